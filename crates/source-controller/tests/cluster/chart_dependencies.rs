//! A chart in Git whose dependencies come from everywhere: the same repository, HelmRepositories by name and by address,
//! and an address that no one made a HelmRepository for.

use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use serde_json::json;
use testkit::HelmRepository;
use testkit::git::{Change, GitServer};
use testkit::objects::{apply, condition, with_spec};
use testkit::tools::run_helm;

use super::charts::{helm_chart, revision};
use super::charts_of_servers::repository;
use super::{World, download, files, handled, ready, until};

fn chart_yaml(name: &str, version: &str, dependencies: &[String]) -> String {
    let list = dependencies.join("\n");
    format!("apiVersion: v2\nname: {name}\nversion: {version}\ndependencies:\n{list}\n")
}

fn dependency(name: &str, version: &str, repository: &str, alias: &str) -> String {
    let alias = if alias.is_empty() {
        String::new()
    } else {
        format!(", alias: {alias}")
    };
    format!("- {{name: {name}, version: '{version}', repository: '{repository}'{alias}}}")
}

async fn events(world: &World) -> Vec<(String, String)> {
    let api: Api<Event> = Api::namespaced(world.plane.client(), &world.namespace);
    let list = api.list(&ListParams::default()).await.unwrap();
    let told = list
        .items
        .into_iter()
        .filter(|event| event.involved_object.kind.as_deref() == Some("HelmChart"));
    told.map(|event| {
        (
            event.reason.unwrap_or_default(),
            event.message.unwrap_or_default(),
        )
    })
    .collect()
}

#[tokio::test]
async fn dependencies_come_from_everywhere() {
    let world = World::start().await;
    let (open, closed, unknown) = (
        HelmRepository::start().await.unwrap(),
        HelmRepository::start().await.unwrap(),
        HelmRepository::start().await.unwrap(),
    );
    closed.set_credentials("user", "pass");
    let login = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": world.namespace},
        "stringData": {"username": "user", "password": "pass"},
    });
    apply(&world.plane.client(), &login).await.unwrap();
    let (repositories, charts) = world.create(&repository(&world, "charts", open.url())).await;
    ready(&repositories, &charts).await;
    let with_login = with_spec(
        repository(&world, "private", &format!("{}/", closed.url())),
        json!({"secretRef": {"name": "login"}}),
    );
    world.create(&with_login).await;
    ready(&repositories, "private").await;
    for server in [&open, &closed] {
        server.take_requests();
    }

    let server = GitServer::start().await.unwrap();
    let git = server.create_repository("repo").unwrap();
    let dependencies = [
        dependency("lib", "^1", "file://../lib", ""),
        dependency("app", "1.0.x", "@charts", ""),
        dependency("app", ">=2.0.0-0", closed.url(), "second"),
        dependency("web", "0.1.0", "alias:charts", ""),
        dependency("web", "*", unknown.url(), "third"),
        dependency("app", "1.1.0", unknown.url(), "fourth"),
    ];
    let lib = "{apiVersion: v2, name: lib, version: 1.9.0}";
    let changes = [
        Change::write(
            "charts/umbrella/Chart.yaml",
            chart_yaml("umbrella", "1.0.0", &dependencies),
        ),
        Change::write("charts/umbrella/values.yaml", "a: 1\n"),
        Change::write("charts/lib/Chart.yaml", lib),
    ];
    git.commit("main", "one", &changes).unwrap();
    world.create(&world.git("repo", git.url())).await;
    let umbrella = helm_chart(&world, "umbrella", "GitRepository", "repo", "charts/umbrella");
    let (api, name) = world.create(&umbrella).await;
    let object = ready(&api, &name).await;
    assert_eq!(revision(&object), "1.0.0");
    let archive = download(&object).await;
    let all = files(&archive);
    for (path, version) in [
        ("lib", "1.9.0"),
        ("app", "1.0.0"),
        ("second", "2.0.0-rc.1"),
        ("web", "0.1.0"),
        ("fourth", "1.1.0"),
    ] {
        let start = format!("umbrella/charts/{path}/Chart.yaml: ");
        let found = all.iter().find(|file| file.starts_with(&start));
        let found = found.unwrap_or_else(|| panic!("{path} is missing in {all:?}"));
        assert!(found.contains(&format!("version: {version}")), "{found}");
    }
    let asked = |server: &HelmRepository| -> Vec<_> {
        server
            .take_requests()
            .into_iter()
            .map(|asked| (asked.path, asked.status, asked.authorization.is_some()))
            .collect()
    };
    let got = |path: &str, authorized| (path.to_owned(), 200, authorized);
    assert_eq!(
        asked(&open),
        [got("app-1.0.0.tgz", false), got("web-0.1.0.tgz", false)],
        "its index is stored"
    );
    assert_eq!(asked(&closed), [got("app-2.0.0-rc.1.tgz", true)]);
    assert_eq!(
        asked(&unknown),
        [
            got("index.yaml", false),
            got("web-0.1.0.tgz", false),
            got("app-1.1.0.tgz", false)
        ],
        "the index is fetched once"
    );

    // helm misses nothing.
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("chart.tgz"), &archive).unwrap();
    run_helm(&["template", "demo", "chart.tgz"], folder.path()).unwrap();

    let mut told = events(&world).await;
    told.retain(|(reason, _)| reason == "ResolvedDependencies" || reason == "ChartPackageSucceeded");
    told.sort();
    let packaged = "packaged 'umbrella' chart with version '1.0.0'";
    let pair = |reason: &str, message: &str| (reason.to_owned(), message.to_owned());
    assert_eq!(
        told,
        [
            pair("ChartPackageSucceeded", packaged),
            pair("ResolvedDependencies", "resolved 6 chart dependencies")
        ]
    );

    // Chart.lock says which version, though there is a newer one.
    let wanted = |version: &str| [dependency("app", version, "@charts", "")];
    let lock = |version: &str| {
        let list = wanted(version).join("\n");
        format!("dependencies:\n{list}\ndigest: sha256:0\ngenerated: \"2026-01-01T00:00:00Z\"\n")
    };
    let changes = [
        Change::write(
            "charts/umbrella/Chart.yaml",
            chart_yaml("umbrella", "1.1.0", &wanted("^1")),
        ),
        Change::write("charts/umbrella/Chart.lock", lock("1.0.0")),
    ];
    git.commit("main", "two", &changes).unwrap();
    handled(&world.git_api(), "repo").await;
    let object = until(&api, &name, |object| revision(object) == "1.1.0").await;
    let all = files(&download(&object).await);
    let found = all
        .iter()
        .find(|file| file.starts_with("umbrella/charts/app/Chart.yaml: "));
    assert!(found.unwrap().contains("version: 1.0.0"), "{found:?}");

    // What cannot be had is named.
    let changes = [
        Change::write(
            "charts/umbrella/Chart.yaml",
            chart_yaml("umbrella", "1.2.0", &wanted("9.x")),
        ),
        Change::write("charts/umbrella/Chart.lock", lock("9.x")),
    ];
    git.commit("main", "three", &changes).unwrap();
    handled(&world.git_api(), "repo").await;
    let failed = |object: &DynamicObject| condition(object, "BuildFailed").is_some();
    let object = until(&api, &name, failed).await;
    let (_, reason, message) = condition(&object, "BuildFailed").unwrap();
    assert_eq!(reason, "DependencyBuildError");
    let expected = "dependency build error: failed to add remote dependency 'app': failed to get chart 'app' version '9.x' from \
                    '@charts': no 'app' chart with version matching '9.x' found";
    assert_eq!(message, expected);
}
