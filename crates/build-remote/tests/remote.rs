//! Bases, files and charts that are elsewhere, from real servers.

use std::path::PathBuf;

use anyhow::Result;
use build_remote::{Remote, Settings};
use kustomize_build::{MemoryFs, Options, build_fetching};
use testkit::git::{Access, Change, GitServer, KeyPair, SshServer};
use testkit::helm_repository::HelmRepository;
use testkit::registry::{Artifact, CHART_MEDIA_TYPE, Layer, Registry};
use tokio::runtime::Handle;

const CHART: &[u8] = include_bytes!("../../testkit/charts/app-1.1.0.tgz");

async fn build(kustomization: &str, network: bool) -> Result<String, String> {
    // A second call finds it there.
    _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut tree = MemoryFs::default();
    tree.insert("kustomization.yaml", kustomization);
    let settings = Settings {
        charts: true,
        ..Settings::default()
    };
    let remote = Remote::new(settings, network.then(Handle::current));
    tokio::task::spawn_blocking(move || {
        build_fetching(&tree, "", &Options::default(), &remote)
            .map(|built| built.to_yaml())
            .map_err(|error| error.to_string())
    })
    .await
    .expect("no panic")
}

#[tokio::test(flavor = "multi_thread")]
async fn bases_of_repositories_are_built_at_the_reference_that_is_named() -> Result<()> {
    let server = GitServer::start().await?;
    let repository = server.create_repository("fleet")?;
    let map = |value: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{v: {value}}}\n")
    };
    let first = repository.commit(
        "main",
        "first",
        &[
            Change::write("app/kustomization.yaml", "resources: [map.yaml, ../shared]\n"),
            Change::write("app/map.yaml", map("one")),
            Change::write(
                "shared/kustomization.yaml",
                "configMapGenerator: [{name: shared, literals: [a=b]}]\n",
            ),
            Change::write("up/kustomization.yaml", "resources: [../../outside]\n"),
        ],
    )?;
    repository.tag("v1", &first)?;
    repository.git(&["symbolic-ref", "HEAD", "refs/heads/main"])?;
    repository.commit("main", "second", &[Change::write("app/map.yaml", map("two"))])?;
    // What belongs at `vendor` is in another repository.
    let place = "--work-tree=.";
    repository.git(&[place, "read-tree", "main"])?;
    let link = format!("160000,{first},vendor");
    repository.git(&[place, "update-index", "--add", "--cacheinfo", &link])?;
    let tree = repository.git(&[place, "write-tree"])?;
    let vendored = repository.git(&["commit-tree", &tree, "-m", "vendored"])?;
    repository.branch("vendored", &vendored)?;
    let url = repository.url().to_owned();
    for (query, value) in [
        (String::new(), "v: two"),
        ("?ref=v1".to_owned(), "v: one"),
        ("?ref=main".to_owned(), "v: two"),
        (format!("?ref={first}"), "v: one"),
    ] {
        let built = build(&format!("resources: ['{url}//app{query}']\n"), true).await;
        let built = built.expect("it is there");
        assert!(
            built.contains(value) && built.contains("name: shared-"),
            "{query}: {built}"
        );
    }
    for (entry, words) in [
        (format!("{url}//app?ref=nothing"), "nothing"),
        (format!("{url}//up"), "outside"),
        (format!("{url}//none"), "none"),
        (format!("{url}//vendor/app?ref=vendored"), "vendor is a submodule"),
    ] {
        let error = build(&format!("resources: ['{entry}']\n"), true)
            .await
            .expect_err("refused");
        assert!(error.contains(words), "{error}");
    }
    let error = build(&format!("resources: ['{url}//app']\n"), false).await;
    let error = error.expect_err("no network");
    assert!(error.contains("allow it with --allow-remote"), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_of_the_address_are_shown_to_its_server_and_to_no_reader() -> Result<()> {
    let server = GitServer::start().await?;
    let repository = server.create_repository("private")?;
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    let files = [
        Change::write("kustomization.yaml", "resources: [map.yaml]\n"),
        Change::write("map.yaml", map),
    ];
    repository.commit("main", "first", &files)?;
    let (username, password) = ("ana".to_owned(), "tr0ub4dor".to_owned());
    server.set_access("private", Access::Basic { username, password });
    let url = |credentials: &str| {
        repository
            .url()
            .replace("http://", &format!("http://{credentials}@"))
    };
    let entry = |credentials: &str| format!("resources: ['{}?ref=main']\n", url(credentials));
    let built = build(&entry("ana:tr0ub4dor"), true).await;
    assert!(built.is_ok(), "{built:?}");
    let error = build(&entry("ana:wr0ng"), true).await.expect_err("refused");
    assert!(
        error.contains("401") || error.contains("authentication"),
        "{error}"
    );
    assert!(!error.contains("wr0ng"), "{error}");
    let error = build(&entry("ana:tr0ub4dor"), false).await.expect_err("refused");
    assert!(!error.contains("tr0ub4dor"), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn files_and_charts_of_servers_are_read() -> Result<()> {
    let server = HelmRepository::start().await?;
    server.set_file(
        "map.yaml",
        Some(b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n".to_vec()),
    );
    let url = server.url();
    let built = build(&format!("resources: ['{url}/map.yaml']\n"), true).await;
    assert_eq!(
        built,
        Ok("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n".to_owned())
    );
    let chart = |more: &str| format!("helmCharts: [{{name: app, repo: '{url}', releaseName: a{more}}}]\n");
    for (more, archive) in [
        ("", "app-1.1.0.tgz"),
        (", version: 1.0.0", "app-1.0.0.tgz"),
        (", version: '~1.0'", "app-1.0.0.tgz"),
        (", devel: true", "app-2.0.0-rc.1.tgz"),
    ] {
        server.take_requests();
        let built = build(&chart(more), true).await;
        let expected = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\n";
        assert_eq!(built.as_deref(), Ok(expected));
        let paths: Vec<String> = server
            .take_requests()
            .into_iter()
            .map(|asked| asked.path)
            .collect();
        assert_eq!(paths, ["index.yaml", archive]);
    }
    let error = build(&chart(", version: 9.9.9"), true)
        .await
        .expect_err("no such version");
    assert!(error.contains("failed to pull the Helm chart \"app\""), "{error}");
    server.set_file("app-1.1.0.tgz", server.file("app-1.0.0.tgz"));
    let error = build(&chart(""), true).await.expect_err("another archive");
    assert!(error.contains("and the index says 9d1c56ba"), "{error}");
    let error = build("helmCharts: [{name: app}]\n", true)
        .await
        .expect_err("no repository");
    assert_eq!(
        error,
        "no repo specified for pull, no chart found at 'charts/app'"
    );
    let error = build(&chart(""), false).await.expect_err("no network");
    assert!(error.contains("allow it with --allow-remote"), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn charts_of_registries_are_read() -> Result<()> {
    let registry = Registry::start().await?;
    let artifact = Artifact {
        config_media_type: "application/vnd.cncf.helm.config.v1+json".to_owned(),
        config: "{}".to_owned(),
        layers: vec![Layer {
            media_type: CHART_MEDIA_TYPE.to_owned(),
            data: CHART.to_vec(),
        }],
        annotations: Default::default(),
    };
    registry.push("charts/app", &["1.1.0"], &artifact).await?;
    let repository = format!("oci://{}/charts", registry.address());
    for version in ["", ", version: 1.1.0", ", version: '>=1.0.0'"] {
        let kustomization =
            format!("helmCharts: [{{name: app, repo: '{repository}', releaseName: a{version}}}]\n");
        let built = build(&kustomization, true).await;
        let expected = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\n";
        assert_eq!(built.as_deref(), Ok(expected), "{version}");
    }
    let error = build(
        &format!("helmCharts: [{{name: none, repo: '{repository}', releaseName: a}}]\n"),
        true,
    )
    .await;
    assert!(error.expect_err("no such chart").contains("none"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn bases_are_fetched_over_ssh_from_hosts_that_are_known() -> Result<()> {
    let server = SshServer::start(&[]).await?;
    let repository = server.create_repository("fleet")?;
    let files = [
        Change::write("kustomization.yaml", "resources: [map.yaml]\n"),
        Change::write(
            "map.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
        ),
    ];
    repository.commit("main", "first", &files)?;
    let keys = KeyPair::generate(&["-t", "ed25519"])?;
    server.authorize(&keys.public)?;
    let home = testkit::scratch::directory("home")?;
    let (key, hosts) = (home.path().join("key"), home.path().join("known_hosts"));
    std::fs::write(&key, &keys.private)?;
    let build = async || {
        let bases = remote_base::Settings {
            ssh_keys: vec![home.path().join("none"), key.clone()],
            known_hosts: Some(hosts.clone()),
            only: None,
        };
        let settings = Settings {
            bases,
            ..Settings::default()
        };
        let remote = Remote::new(settings, Some(Handle::current()));
        let mut tree = MemoryFs::default();
        let entry = format!("resources: ['{}?ref=main']\n", repository.url());
        tree.insert("kustomization.yaml", entry);
        tokio::task::spawn_blocking(move || {
            build_fetching(&tree, "", &Options::default(), &remote)
                .map(|built| built.to_yaml())
                .map_err(|error| error.to_string())
        })
        .await
    };
    std::fs::write(&hosts, server.known_hosts()?)?;
    let built = build().await?;
    assert!(
        built.as_ref().is_ok_and(|built| built.contains("name: a")),
        "{built:?}"
    );
    std::fs::write(&hosts, "")?;
    assert!(build().await?.is_err(), "a host that is not known");
    Ok(())
}

#[test]
fn without_a_key_ssh_is_refused_by_name() {
    let bases = remote_base::Settings {
        ssh_keys: vec![PathBuf::from("/nowhere/id_ed25519")],
        ..remote_base::Settings::default()
    };
    let settings = Settings {
        bases,
        ..Settings::default()
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let remote = Remote::new(settings, Some(runtime.handle().clone()));
    let mut tree = MemoryFs::default();
    tree.insert("kustomization.yaml", "resources: ['git@127.0.0.1:org/repo']\n");
    let error = build_fetching(&tree, "", &Options::default(), &remote).expect_err("no key");
    assert!(
        error
            .to_string()
            .contains("there is no private key for SSH (tried /nowhere/id_ed25519)"),
        "{error}"
    );
}
