//! From another source's artifact, and from a real registry, to the chart in the store.

mod server;

use api::meta::condition_types::ARTIFACT_OUTDATED;
use artifact::digest::Digest;
use artifact::store::{Options, Record, RecordMeta, Store};
use controller_kit::ObjectKey;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::registry::{Artifact as Pushed, Registry, tar_gz};

use super::references::Source;
use super::repository::Repository;
use super::*;
use crate::error::HelmChartError;
use crate::fetch::helm_chart::Access;
use crate::reconcile::decide::Progress;
use crate::reconcile::reader::Reader;
use crate::reconcile::secrets_read::SecretsRead;
use crate::reconcile::status::{self, Ending, Next};
use crate::reconcile::store::{AdvertisedAddress, store};

const COMMIT: &str = "main@sha1:0123456789abcdef0123456789abcdef01234567";
const CHART: &str = "{apiVersion: v2, name: app, version: 1.2.3, dependencies: [{name: lib, version: ^1, repository: 'file://../lib'}]}";
const FILES: [(&str, &str); 6] = [
    ("charts/app/Chart.yaml", CHART),
    ("charts/app/values.yaml", "a: 1\n"),
    ("charts/app/templates/a.yaml", "kind: A"),
    (
        "charts/lib/Chart.yaml",
        "{apiVersion: v2, name: lib, version: 1.9.0}",
    ),
    ("env/one.yaml", "a: 2"),
    ("other", ""),
];

struct World {
    store: Store,
    fetcher: Fetcher,
    _directory: TempDir,
}

impl World {
    fn new() -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let directory = tempfile::tempdir().unwrap();
        let fetching = directory.path().join("fetching");
        std::fs::create_dir(&fetching).unwrap();
        let (store, _) = Store::open(&directory.path().join("store"), Options::default()).unwrap();
        Self {
            store,
            fetcher: Fetcher::alone(fetching),
            _directory: directory,
        }
    }

    /// No one listens there: whatever needs the API server fails.
    fn reader(&self) -> Reader {
        let config = kube::Config::new("http://127.0.0.1:9".parse().unwrap());
        let client = kube::Client::try_from(config).unwrap();
        Reader::new(
            client,
            self.store.clone(),
            self.fetcher.identities.clone(),
            "apps",
            SecretsRead::default().begin(store::ObjectKey::new("", "", "")),
        )
    }

    fn references(&self, source: Source) -> References {
        References::new(source, self.reader())
    }

    /// Files as the artifact of a GitRepository.
    fn source(&self, files: &[(&str, &str)]) -> Record {
        let mut ingest = self.store.ingest();
        for (path, text) in files {
            ingest.add_file(path, false, text.as_bytes()).unwrap();
        }
        let meta = RecordMeta {
            kind: "GitRepository".to_owned(),
            namespace: "apps".to_owned(),
            name: "repo".to_owned(),
            revision: COMMIT.to_owned(),
            filename: "c.tar.gz".to_owned(),
            ..RecordMeta::default()
        };
        ingest.finish(meta).unwrap()
    }

    fn tree(&self, files: &[(&str, &str)]) -> References {
        let record = self.source(files);
        let store = self.store.clone();
        self.references(Source::Tree { store, record })
    }

    async fn fetch(&self, object: &HelmChart, references: &References) -> Result<Fetched<Content>, Failure> {
        match object.fetch(references, None, &self.fetcher).await? {
            Fetch::New(fetched) => Ok(fetched),
            Fetch::Unchanged { revision } => panic!("nothing is known yet, and yet it is {revision}"),
        }
    }

    /// Fetches and stores.
    async fn take(&self, object: &HelmChart, references: &References) -> (Record, Build) {
        let fetched = self
            .fetch(object, references)
            .await
            .unwrap_or_else(|failure| panic!("{}", failure.error.message()));
        let build = HelmChart::build(&fetched.content).unwrap();
        let record = store::<HelmChart>(
            &ObjectKey::from_object(object),
            fetched,
            &self.store,
            &self.fetcher,
        )
        .await;
        (
            record.unwrap_or_else(|failure| panic!("{}", failure.error.message())),
            build,
        )
    }

    fn paths(&self, record: &Record) -> Vec<String> {
        let archive = self.store.open_archive(&record.digest).unwrap();
        let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(archive));
        let entries = tar.entries().unwrap();
        entries
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect()
    }

    fn file(&self, record: &Record, path: &str) -> String {
        let archive = self.store.open_archive(&record.digest).unwrap();
        let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(archive));
        let entries = tar.entries().unwrap().map(Result::unwrap);
        let mut found = entries
            .into_iter()
            .find(|entry| entry.path().unwrap().to_str() == Some(path))
            .unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut found, &mut text).unwrap();
        text
    }

    fn status(
        &self,
        object: &HelmChart,
        ending: Ending,
    ) -> (Vec<String>, HelmChartStatus, Vec<status::Event>, Next) {
        let progress = Progress {
            message: "building artifact".to_owned(),
            artifact_disappeared: false,
            has_artifact: object
                .status
                .as_ref()
                .is_some_and(|status| status.artifact.is_some()),
            inputs: vec![(
                store::ObjectKey::new("GitRepository", "apps", "repo"),
                COMMIT.to_owned(),
            )],
            has_policies: false,
        };
        let now = "2026-11-22T00:00:00Z".parse().unwrap();
        let address = AdvertisedAddress::new("store:9090");
        let conclusion = status::conclude(object, &progress, ending, &address, now);
        let lines = conclusion.status.conditions.iter().map(|condition| {
            format!(
                "{}={} {}: {}",
                condition.type_, condition.status, condition.reason, condition.message
            )
        });
        (
            lines.collect(),
            conclusion.status.clone(),
            conclusion.events,
            conclusion.next,
        )
    }
}

fn chart(spec: Value) -> HelmChart {
    let mut full = json!({
        "chart": "charts/app", "interval": "1m", "sourceRef": {"kind": "GitRepository", "name": "repo"},
    });
    full.as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    let object = json!({"metadata": {"name": "app", "namespace": "apps", "generation": 2}, "spec": full});
    serde_json::from_value(object).unwrap()
}

fn at_rest(mut object: HelmChart, version: &str) -> HelmChart {
    object.status = serde_json::from_value(json!({
        "observedGeneration": 2, "observedChartName": "app",
        "artifact": {"path": "p", "url": "u", "revision": version, "digest": "sha256:1",
                     "lastUpdateTime": "2026-01-01T00:00:00Z"},
        "conditions": [{"type": "ArtifactInStorage", "status": "True", "reason": "ChartPackageSucceeded",
                        "message": format!("packaged 'app' chart with version '{version}'"),
                        "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }))
    .unwrap();
    object
}

#[tokio::test]
async fn a_chart_is_packaged_from_the_artifact_of_another_source() {
    let world = World::new();
    let references = world.tree(&FILES);
    let object = chart(json!({}));
    let (record, build) = world.take(&object, &references).await;
    assert_eq!(record.path, "helmchart/apps/app/app-1.2.3.tgz");
    assert_eq!(record.revision, "1.2.3");
    let paths = [
        "app/Chart.yaml",
        "app/values.yaml",
        "app/templates/a.yaml",
        "app/charts/lib/Chart.yaml",
    ];
    assert_eq!(world.paths(&record), paths);
    let root = world.store.directory(&record.tree).unwrap();
    assert!(root.entry("app").is_some(), "its files are in the store as well");

    let ending = Ending::Stored {
        included: Vec::new(),
        record,
        headline: Some(build.summary.clone()),
        build: Some(build),
        verified: None,
        met: None,
    };
    let (lines, status, events, _) = world.status(&object, ending);
    let said = "ChartPackageSucceeded: packaged 'app' chart with version '1.2.3'";
    assert_eq!(
        lines,
        [
            format!("Ready=True {said}"),
            format!("ArtifactInStorage=True {said}")
        ]
    );
    assert_eq!(status.observed_chart_name.as_deref(), Some("app"));
    assert_eq!(status.observed_source_artifact_revision.as_deref(), Some(COMMIT));
    assert_eq!(
        status.url.as_deref(),
        Some("http://store:9090/helmchart/apps/app/latest.tar.gz")
    );
    let told: Vec<_> = events
        .iter()
        .map(|event| (event.reason.as_str(), event.message.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            ("ResolvedDependencies", "resolved 1 chart dependencies"),
            (
                "ChartPackageSucceeded",
                "packaged 'app' chart with version '1.2.3'"
            )
        ]
    );
}

#[tokio::test]
async fn the_version_tells_what_the_chart_was_made_of() {
    let world = World::new();
    let references = world.tree(&FILES);
    let cases = [
        (json!({"reconcileStrategy": "Revision"}), "1.2.3+0123456789ab", ""),
        (
            json!({"valuesFiles": ["env/one.yaml"]}),
            "1.2.3+2",
            " and merged values files [env/one.yaml]",
        ),
        (
            json!({"valuesFiles": ["env/one.yaml", "x"], "ignoreMissingValuesFiles": true, "reconcileStrategy": "Revision"}),
            "1.2.3+0123456789ab.2",
            " and merged values files [env/one.yaml]",
        ),
    ];
    for (spec, version, merged) in cases {
        let object = chart(spec);
        let (record, build) = world.take(&object, &references).await;
        assert_eq!(record.revision, version);
        assert_eq!(record.path, format!("helmchart/apps/app/app-{version}.tgz"));
        assert_eq!(
            build.summary,
            format!("packaged 'app' chart with version '{version}'{merged}")
        );
        let mut status = HelmChartStatus::default();
        object.note_build(&build, &mut status);
        let noted = status.observed_values_files.len();
        assert_eq!(noted, usize::from(object.spec.ignore_missing_values_files));
    }
}

#[tokio::test]
async fn the_same_version_is_not_built_again() {
    let world = World::new();
    let references = world.tree(&FILES);
    let object = at_rest(chart(json!({})), "1.2.3");
    assert!(!object.settings_changed());
    let fetch = object
        .fetch(&references, Some("1.2.3".to_owned()), &world.fetcher)
        .await;
    assert!(matches!(fetch, Ok(Fetch::Unchanged { revision }) if revision == "1.2.3"));
    // What is at rest keeps what was said of it.
    let (lines, status, events, next) = world.status(
        &object,
        Ending::UpToDate {
            revision: "1.2.3".to_owned(),
        },
    );
    let said = "ChartPackageSucceeded: packaged 'app' chart with version '1.2.3'";
    assert_eq!(
        lines,
        [
            format!("Ready=True {said}"),
            format!("ArtifactInStorage=True {said}")
        ]
    );
    assert_eq!(status.observed_source_artifact_revision.as_deref(), Some(COMMIT));
    assert_eq!((events, next), (Vec::new(), Next::AtInterval));

    let mut changed = object;
    changed.metadata.generation = Some(3);
    assert!(
        changed.settings_changed(),
        "any change of the spec builds anew, as in Flux"
    );
}

#[tokio::test]
async fn a_failed_build_says_which_step_failed() {
    let world = World::new();
    let broken = [
        (
            "charts/app/Chart.yaml",
            "{apiVersion: v2, name: app, version: 1.2.4}",
        ),
        ("charts/app/values.yaml", "["),
    ];
    let cases = [
        (
            json!({"chart": "none"}),
            &FILES[..],
            "FetchFailed=True InvalidChartReference: invalid chart reference: stat none: no such file or directory",
            true,
        ),
        (
            json!({"valuesFiles": ["x"]}),
            &FILES[..],
            "BuildFailed=True ValuesFilesError: values files merge error: no values file found at path '/x' (reference 'x')",
            true,
        ),
        (
            json!({}),
            &FILES[..1],
            "BuildFailed=True DependencyBuildError: dependency build error: failed to add local dependency 'lib': no chart found at '/charts/lib' (reference 'file://../lib')",
            false,
        ),
        (
            json!({}),
            &broken[..],
            "BuildFailed=True ChartPackageError: chart package error: failed to load chart from /charts/app: cannot load values.yaml: ",
            false,
        ),
    ];
    for (spec, files, expected, is_stalled) in cases {
        let references = world.tree(files);
        let object = at_rest(chart(spec), "1.2.0");
        let Err(failure) = world.fetch(&object, &references).await else {
            panic!("{expected}")
        };
        let told = failure.seen.is_some();
        let (lines, _, _, next) = world.status(&object, Ending::Failed(failure));
        assert!(lines.iter().any(|line| line.starts_with(expected)), "{lines:?}");
        assert_eq!(next == Next::WhenChanged, is_stalled, "{lines:?}");
        let outdated = lines.iter().find(|line| line.starts_with(ARTIFACT_OUTDATED));
        assert_eq!(outdated.is_some(), told);
        if let Some(line) = outdated {
            assert!(
                line.contains("NewChart: new 'app' chart with version '1.2."),
                "{line}"
            );
        }
    }
}

#[test]
fn a_source_that_has_nothing_yet_is_waited_for() {
    let world = World::new();
    let object = chart(json!({}));
    let error = Error::Chart(HelmChartError::NoSourceArtifact {
        kind: "GitRepository",
        name: "repo".to_owned(),
    });
    let (lines, _, events, next) = world.status(&object, Ending::Failed(error.into()));
    let said = "NoSourceArtifact: no artifact available for GitRepository source 'repo'";
    assert!(lines.contains(&format!("FetchFailed=True {said}")), "{lines:?}");
    assert!(lines.contains(&format!("Ready=False {said}")), "{lines:?}");
    assert_eq!(next, Next::AtInterval);
    assert_eq!(events[0].severity, controller_kit::events::Severity::Trace);
    assert_eq!(
        object.inputs(),
        [store::ObjectKey::new("GitRepository", "apps", "repo")]
    );
}

fn package(version: &str) -> Vec<u8> {
    let chart = format!("{{apiVersion: v2, name: web, version: {version}}}");
    tar_gz(&[
        ("web/Chart.yaml", &chart),
        ("web/values.yaml", "a: 1\n"),
        ("web/prod.yaml", "a: 2"),
    ])
    .unwrap()
}

async fn push(registry: &Registry, data: Vec<u8>, tags: &[&str]) {
    let artifact = Pushed::from_chart(data);
    registry.push("charts/web", tags, &artifact).await.unwrap();
}

fn access(registry: &Registry) -> Source {
    Source::Repository(Repository::Registry(Access {
        url: registry.url("charts/"),
        insecure: true,
        timeout: api::meta::Duration::from_secs(20),
        secret: None,
        certificates: None,
        login: None,
    }))
}

fn web(spec: Value) -> HelmChart {
    let mut full = json!({"chart": "web", "sourceRef": {"kind": "HelmRepository", "name": "charts"}});
    full.as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    chart(full)
}

#[tokio::test]
async fn charts_come_from_a_registry_by_version() {
    let (world, registry) = (World::new(), Registry::start().await.unwrap());
    for (version, tags) in [
        ("1.0.0", ["1.0.0"]),
        ("1.1.0+b.1", ["1.1.0_b.1"]),
        ("2.0.0-rc.1", ["2.0.0-rc.1"]),
    ] {
        push(&registry, package(version), &tags).await;
    }
    let references = world.references(access(&registry));
    let cases = [
        (json!({}), "1.1.0+b.1"),
        (json!({"version": "1.0.x"}), "1.0.0"),
        (json!({"version": "2.0.0-rc.1"}), "2.0.0-rc.1"),
    ];
    for (spec, version) in cases {
        let (record, build) = world.take(&web(spec), &references).await;
        assert_eq!(record.revision, version);
        assert_eq!(
            record.digest,
            Digest::from_content(&package(version)),
            "the archive is taken as it is"
        );
        assert_eq!(
            build.summary,
            format!("pulled 'web' chart with version '{version}'")
        );
        assert_eq!(build.reason, "ChartPullSucceeded");
    }
    let (record, build) = world
        .take(
            &web(json!({"valuesFiles": ["values.yaml", "prod.yaml"]})),
            &references,
        )
        .await;
    assert_eq!(record.revision, "1.1.0+2");
    assert_eq!(
        build.summary,
        "packaged 'web' chart with version '1.1.0+2' and merged values files [values.yaml prod.yaml]"
    );

    let Err(failure) = world.fetch(&web(json!({"version": ">=3"})), &references).await else {
        panic!("there is no such version")
    };
    let message = "chart pull error: failed to get chart version for remote reference: could not locate a version matching \
                   provided version string >=3; the newest are 2.0.0-rc.1, 1.1.0+b.1, 1.0.0";
    assert_eq!(failure.error.message(), message);
    assert_eq!(failure.error.condition(), (Some("FetchFailed"), "ChartPullError"));
}

#[tokio::test]
async fn what_a_registry_calls_a_chart_and_is_none_is_not_stored() {
    let (mut world, registry) = (World::new(), Registry::start().await.unwrap());
    push(&registry, b"no chart".to_vec(), &["1.0.0"]).await;
    push(&registry, tar_gz(&[("web/a", "")]).unwrap(), &["1.0.1"]).await;
    push(&registry, package("1.0.2"), &["1.0.2"]).await;
    let references = world.references(access(&registry));
    world.fetcher.charts.archive = 100;
    let cases = [
        ("1.0.0", "failed to load chart metadata from written chart: "),
        (
            "1.0.1",
            "failed to load chart metadata from written chart: no 'Chart.yaml' found",
        ),
        (
            "1.0.2",
            "failed to download chart for remote reference: size of chart 'web-1.0.2' exceeds '100' bytes limit",
        ),
    ];
    for (version, expected) in cases {
        let Err(failure) = world.fetch(&web(json!({"version": version})), &references).await else {
            panic!("{version} is no chart")
        };
        let message = failure.error.message();
        assert!(
            message.starts_with(&format!("chart pull error: {expected}")),
            "{message}"
        );
        assert!(failure.seen.is_some());
    }
    let Err(failure) = world.fetch(&web(json!({"chart": "Web"})), &references).await else {
        panic!("no chart is called that")
    };
    assert!(
        failure
            .error
            .message()
            .starts_with("invalid chart reference: invalid chart name 'Web'")
    );
}
