//! README.md, and the pages that it hands over to: running the binaries, and the command.

use std::borrow::Cow;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testkit::artifact_access::{READER, allow_all};
use testkit::git::{Change, Repository};
use testkit::objects::{self, is_ready};
use testkit::ports::free_port;
use testkit::registry::tar_gz;
use testkit::tools::repository_root;
use testkit::{ControlPlane, GitServer, Options, Registry, wait_for};

use crate::page::{Piece, Treatment, read};
use crate::shell::Shell;

const BENCHMARK: Treatment = Treatment::Skipped("a benchmark: a release build and minutes of work");
const OF_CI: Treatment = Treatment::Skipped("the CI runs it by itself (.ci/run)");

const WITH_FLUX: Treatment = Treatment::Skipped("Flux is not there; tests/chart/takeover.rs");
const WITH_PODS: Treatment = Treatment::Skipped("no such Pods are there; tests/cluster/cli_trace.rs");

/// Treatment of commands that do not simply run to their end.
const README: &[(&str, Treatment)] = &[
    ("make setup", Treatment::Skipped("make test does the same first")),
    ("make demo", OF_CI),
    ("make test", OF_CI),
    ("make ui-test", OF_CI),
    ("make lint", OF_CI),
    ("make attack", OF_CI),
    (
        "make audit",
        Treatment::Skipped("it installs two programs and asks for the advisories of the day"),
    ),
    (
        "make generate",
        Treatment::Skipped("it would write into the repository; make lint runs it with --check"),
    ),
    (
        "windlass check",
        Treatment::Ends(3, "has no Pod that is ready behind it"), // kwok's Pods have no addresses
    ),
    ("windlass takeover --suspend-self", WITH_FLUX),
    ("windlass giveback", WITH_FLUX),
    ("make bench-sync N=100", BENCHMARK),
    ("make bench-source PEER=/path/to/flux/binaries", BENCHMARK),
    ("make bench-build PEER=/path/to/kustomize", BENCHMARK),
    ("make bench-render PEER=/path/to/helm", BENCHMARK),
    (
        "make fuzz-build CASES=1000",
        Treatment::Skipped(
            "it builds kustomize; the tests of kustomize-build do the same with what is recorded",
        ),
    ),
    (
        "make record-cases",
        Treatment::Skipped("it builds kustomize and writes into the repository"),
    ),
];

/// The same, of docs/operations/binaries.md.
const BINARIES: &[(&str, Treatment)] = &[
    (
        "source-controller --storage-path=/data --storage-adv-addr=HOST:9090",
        Treatment::Serves(Cow::Borrowed("http://127.0.0.1:9440/readyz")),
    ),
    (
        "apply-controller --artifact-service=https://HOST:9091 --artifact-service-account=NAME --metrics-addr=:8081 \
         --health-addr=:9441",
        Treatment::Serves(Cow::Borrowed("http://127.0.0.1:9441/readyz")),
    ),
    (
        "helm-controller --artifact-service=https://HOST:9091 --artifact-service-account=NAME --metrics-addr=:8082 \
         --health-addr=:9442",
        Treatment::Serves(Cow::Borrowed("http://127.0.0.1:9442/readyz")),
    ),
    (
        "notification-controller --events-addr=:9093 --metrics-addr=:8083 --health-addr=:9443",
        Treatment::Serves(Cow::Borrowed("http://127.0.0.1:9443/readyz")),
    ),
];

/// The same, of docs/command.md.
const COMMAND: &[(&str, Treatment)] = &[
    ("windlass why deployment/web -n shop", WITH_PODS),
    ("windlass trace pod/web-5d4f -n shop", WITH_PODS),
    ("windlass verify deployment/web -n shop", WITH_PODS),
    (
        "windlass events ks/shop --watch",
        Treatment::Prints("ReconciliationSucceeded"),
    ),
    (
        "windlass logs --kind ks --name shop --follow",
        Treatment::Skipped("the controllers are no Pods here; tests/cluster/cli_logs.rs"),
    ),
    (
        "windlass shards plan --shards blue",
        Treatment::Skipped("the controllers are no Pods here; tests/cluster/cli_shards.rs"),
    ),
    (
        "windlass hold imagepolicy/shop --reason \"too slow\"",
        Treatment::Skipped("there is no image here; tests/images/commands.rs"),
    ),
    (
        "windlass diff ks/flux-system --recursive",
        Treatment::Skipped("there is none here; tests/cluster/cli_diff.rs"),
    ),
];

/// The repository of someone's application, with a chart beside it.
fn repository(git: &GitServer) -> Result<Repository> {
    let repository = git.create_repository("app")?;
    let files = [
        ("deploy/kustomization.yaml", "resources: [map.yaml]\n"),
        (
            "deploy/map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: default}\ndata: {key: value}\n",
        ),
        ("chart/Chart.yaml", CHART),
        ("chart/templates/map.yaml", TEMPLATE),
        ("values.yaml", "replicas: 2\n"),
    ];
    let changes = files.map(|(path, text)| Change::write(path, text));
    repository.commit("main", "The application", &changes)?;
    Ok(repository)
}

/// The ports of the page, each with one that no one listens at: another program on this machine may have the page's.
fn free_ports() -> Result<Vec<(String, String)>> {
    let ports = [8081, 8082, 8083, 9090, 9091, 9093, 9440, 9441, 9442, 9443];
    let own = ports.map(|port| Ok((format!(":{port}"), format!(":{}", free_port()?))));
    own.into_iter().collect()
}

const CHART: &str = "apiVersion: v2\nname: chart\nversion: 1.2.3\n";
const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {replicas: \"{{ .Values.replicas }}\"}\n";

#[tokio::test]
async fn what_the_readme_says_to_type_works() -> Result<()> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let client = control_plane.client();
    let (git, registry) = (GitServer::start().await?, Registry::start().await?);
    let repository = repository(&git)?;
    let mut shell = Shell::new(control_plane.kubeconfig_path()).await?;
    shell
        .run(&format!("git clone --quiet {} .", repository.url()))
        .await?;
    shell.run("kubectl create namespace flux-system").await?;
    allow_all(&client, "flux-system", READER).await?;
    fs::write(
        shell.folder.join("chart-1.2.3.tgz"),
        tar_gz(&[
            ("chart/Chart.yaml", CHART),
            ("chart/templates/map.yaml", TEMPLATE),
        ])?,
    )?;
    // The rest of the page is typed in a clone of Windlass.
    for part in ["charts", "Makefile"] {
        symlink(repository_root().join(part), shell.folder.join(part))?;
    }
    let data = testkit::scratch::directory("data")?;
    // What it listens at by default, so that the ports become free ones below.
    let storage = format!(
        "--metrics-addr=0 --health-addr=:9440 --storage-addr=:9090 --grpc-addr=:9091 --storage-path={}",
        data.path().display()
    );
    let ports = free_ports()?;
    let account = format!("--artifact-service-account={READER}");
    let artifact = format!("artifact --insecure-registry oci://{}", registry.address());
    let tag = format!("tag --insecure-registry oci://{}", registry.address());
    let mut binaries = vec![
        ("HOST:", "127.0.0.1:"),
        ("--storage-path=/data", storage.as_str()),
        ("--artifact-service-account=NAME", account.as_str()),
        ("https://git.example.com/team/app", repository.url()),
    ];
    binaries.extend(ports.iter().map(|(from, to)| (from.as_str(), to.as_str())));
    let command = [
        ("artifact oci://ghcr.io", artifact.as_str()),
        ("tag oci://ghcr.io", tag.as_str()),
        // What `make cli` builds is the same program.
        ("cargo run --release -p cli --", "windlass"),
    ];
    let steps = [
        read("README.md", &[], &[], README)?,
        read("docs/operations/binaries.md", &[], &binaries, BINARIES)?,
        read("docs/command.md", &[], &command, COMMAND)?,
    ];
    let steps = steps.concat();
    ensure!(steps.len() > 25, "only {} steps were found", steps.len());
    for step in &steps {
        shell.take(step).await?;
        if let Piece::Manifests(text) = &step.piece {
            // The questions to a cluster are about another one, which is made of the same, elsewhere.
            let shop = text
                .replace("name: app", "name: shop")
                .replace("namespace: default", "namespace: flux-system")
                .replace("  prune: true", "  prune: true\n  targetNamespace: flux-system");
            shell.apply(&shop).await?;
            for (namespace, name) in [("default", "app"), ("flux-system", "shop")] {
                let all = objects::api(
                    &client,
                    "kustomize.toolkit.fluxcd.io/v1",
                    "Kustomization",
                    namespace,
                );
                let ready = wait_for(&all, name, is_ready, Duration::from_secs(60)).await;
                ready.with_context(|| format!("{namespace}/{name}"))?;
            }
        }
    }
    Ok(())
}
