//! Charts of a real Helm repository on an HTTP server.

use api::meta::condition_types::{BUILD_FAILED, FETCH_FAILED};
use api::source::HelmRepository;
use testkit::HelmRepository as Server;

use super::*;
use crate::error::Disposition;
use crate::fetch::helm_repository::Secrets;
use crate::kind::helm_repository;
use transport::auth::SecretData;

fn index_of(entries: &[(&str, &str, &str)]) -> Vec<u8> {
    let mut text = "apiVersion: v1\nentries:\n  web:\n".to_owned();
    for (version, url, digest) in entries {
        text += &format!(
            "  - apiVersion: v2\n    name: web\n    version: {version}\n    urls: [{url}]\n    digest: '{digest}'\n"
        );
    }
    text.into_bytes()
}

/// Puts these versions of `web` there, and nothing else.
fn publish(server: &Server, versions: &[&str]) {
    let entries: Vec<_> = versions
        .iter()
        .map(|version| {
            let (file, data) = (format!("web-{version}.tgz"), package(version));
            let digest = Digest::from_content(&data).hex();
            server.set_file(&file, Some(data));
            (*version, file, digest)
        })
        .collect();
    let entries: Vec<_> = entries
        .iter()
        .map(|(version, file, digest)| (*version, file.as_str(), digest.as_str()))
        .collect();
    server.set_file("index.yaml", Some(index_of(&entries)));
}

impl World {
    fn server(&self, server: &Server, spec: Value, secrets: Secrets) -> References {
        let mut full = json!({"url": server.url(), "interval": "1h", "timeout": "20s"});
        full.as_object_mut()
            .unwrap()
            .extend(spec.as_object().unwrap().clone());
        let object: HelmRepository = serde_json::from_value(
            json!({"metadata": {"name": "charts", "namespace": "apps"}, "spec": full}),
        )
        .unwrap();
        self.references(Source::Repository(Repository::Index {
            object: Box::new(object),
            references: helm_repository::References(secrets),
            store: self.store.clone(),
            urgent: true,
        }))
    }

    fn anonymous(&self, server: &Server) -> References {
        self.server(server, json!({}), Secrets::default())
    }

    /// Asserts the error as the conditions show it, and the next step.
    async fn refused(
        &self,
        object: &HelmChart,
        references: &References,
    ) -> (Option<&'static str>, &'static str, String, Disposition) {
        let Err(Failure { error, .. }) = self.fetch(object, references).await else {
            panic!("nothing is wrong")
        };
        let (type_, reason) = error.condition();
        (type_, reason, error.message(), error.disposition())
    }
}

fn login() -> Secrets {
    let pair = |key: &str, value: &str| (key.to_owned(), value.as_bytes().to_vec());
    let authentication = SecretData::from([pair("username", "user"), pair("password", "pass")]);
    Secrets {
        authentication: Some(authentication),
        certificates: None,
    }
}

#[tokio::test]
async fn charts_come_from_a_server_by_version() {
    let (world, server) = (World::new(), Server::start().await.unwrap());
    publish(&server, &["1.0.0", "v1.2.0", "1.1.0+b.1", "2.0.0-rc.1"]);
    let references = world.anonymous(&server);
    let cases = [
        (json!({}), "v1.2.0"),
        (json!({"version": "1.0.x"}), "1.0.0"),
        (
            json!({"version": "~1.1", "reconcileStrategy": "Revision"}),
            "1.1.0+b.1",
        ),
        (json!({"version": ">=1.0.0-0"}), "2.0.0-rc.1"),
        (json!({"version": "2.0.0-rc.1"}), "2.0.0-rc.1"),
    ];
    for (spec, version) in cases {
        let (record, build) = world.take(&web(spec), &references).await;
        assert_eq!(record.revision, version);
        assert_eq!(record.path, format!("helmchart/apps/app/web-{version}.tgz"));
        let digest = Digest::from_content(&package(version));
        assert_eq!(record.digest, digest, "the archive is taken as it is");
        let expected = format!("pulled 'web' chart with version '{version}'");
        assert_eq!((build.reason, build.summary), ("ChartPullSucceeded", expected));
    }
    let known = at_rest(web(json!({"version": "1.0.x"})), "1.0.0");
    let mut known = known;
    known.status.as_mut().unwrap().observed_chart_name = Some("web".to_owned());
    server.take_requests();
    let again = known
        .fetch(&references, Some("1.0.0".to_owned()), &world.fetcher)
        .await;
    assert!(matches!(again, Ok(Fetch::Unchanged { revision }) if revision == "1.0.0"));
    assert_eq!(
        server.take_requests(),
        [],
        "the stored index says that nothing changed"
    );
}

#[tokio::test]
async fn values_files_of_a_chart_on_a_server_are_merged() {
    let (world, server) = (World::new(), Server::start().await.unwrap());
    publish(&server, &["1.0.0"]);
    let references = world.anonymous(&server);
    let files =
        |files: Value, ignore: bool| web(json!({"valuesFiles": files, "ignoreMissingValuesFiles": ignore}));
    let both = json!(["values.yaml", "none.yaml", "./prod.yaml"]);
    let (record, build) = world.take(&files(both.clone(), true), &references).await;
    assert_eq!(record.revision, "1.0.0+2");
    assert_eq!(
        build.summary,
        "packaged 'web' chart with version '1.0.0+2' and merged values files [values.yaml ./prod.yaml]"
    );
    assert!(
        world
            .file(&record, "web/Chart.yaml")
            .contains("version: 1.0.0+2\n")
    );
    assert_eq!(world.file(&record, "web/values.yaml"), "a: 2\n");

    let (type_, reason, message, disposition) = world.refused(&files(both, false), &references).await;
    assert_eq!((type_, reason), (Some(BUILD_FAILED), "ValuesFilesError"));
    assert_eq!(
        message,
        "values files merge error: failed to merge chart values: no values file found at path 'none.yaml'"
    );
    assert_eq!(disposition, Disposition::Stalled);
    let (record, _) = world
        .take(&files(json!(["values.yaml"]), false), &references)
        .await;
    assert_eq!(record.revision, "1.0.0", "they are its defaults anyway");
}

#[tokio::test]
async fn what_a_server_has_not_is_told() {
    let (world, server) = (World::new(), Server::start().await.unwrap());
    publish(&server, &["1.0.0", "1.1.0"]);
    let references = world.anonymous(&server);
    world.take(&web(json!({})), &references).await;
    let step = "failed to get chart version for remote reference";

    // Whoever asks the repository again gets the same: only a new index or a new spec helps, and both wake the chart.
    let missing = web(json!({"version": "3.x"}));
    let expected =
        format!("invalid chart reference: {step}: no 'web' chart with version matching '3.x' found");
    let refused = world.refused(&missing, &references).await;
    assert_eq!(
        refused,
        (
            Some(FETCH_FAILED),
            "InvalidChartReference",
            expected,
            Disposition::Stalled
        )
    );
    let refused = world
        .refused(&web(json!({"version": "what?"})), &references)
        .await;
    assert_eq!(
        refused.2,
        format!("invalid chart reference: {step}: improper constraint: \"what?\"")
    );
    server.set_file("index.yaml", Some(b"apiVersion: v1\nentries: {}\n".to_vec()));
    let refused = world.refused(&web(json!({"chart": "gone"})), &references).await;
    assert_eq!(
        refused.2,
        format!("invalid chart reference: {step}: no chart name found")
    );

    // The index has a version that is gone, or is another one now.
    publish(&server, &["1.0.0", "1.1.0"]);
    world.refused(&missing, &references).await;
    server.set_file("web-1.0.0.tgz", None);
    server.set_file("web-1.1.0.tgz", Some(package("1.1.1")));
    let step = "chart pull error: failed to download chart for remote reference";
    let url = server.url();
    let refused = world
        .refused(&web(json!({"version": "1.0.0"})), &references)
        .await;
    let expected = format!(
        "{step}: '{url}/web-1.0.0.tgz' answered 404 Not Found; check the address, and whether the credentials may see it"
    );
    assert_eq!(
        refused,
        (Some(FETCH_FAILED), "ChartPullError", expected, Disposition::Retry)
    );
    let refused = world
        .refused(&web(json!({"version": "1.1.0"})), &references)
        .await;
    assert!(
        refused.2.starts_with(&format!(
            "{step}: failed to verify the chart from '{url}/web-1.1.0.tgz': "
        )),
        "{refused:?}"
    );
    server.set_failing(Some(503));
    let refused = world.refused(&missing, &references).await;
    let expected = "chart pull error: failed to get chart version for remote reference: ";
    assert!(refused.2.starts_with(expected), "{refused:?}");
    assert_eq!(refused.3, Disposition::Retry, "it may be there");
}

#[tokio::test]
async fn a_server_is_shown_the_credentials_of_its_repository() {
    let (world, server) = (World::new(), Server::start().await.unwrap());
    let other = Server::start().await.unwrap();
    publish(&other, &["1.0.0"]);
    let elsewhere = format!("{}/web-1.0.0.tgz", other.url());
    server.set_file("index.yaml", Some(index_of(&[("1.0.0", &elsewhere, "")])));
    server.set_credentials("user", "pass");
    let refused = world.refused(&web(json!({})), &world.anonymous(&server)).await;
    let url = server.url();
    let expected = format!(
        "failed to authenticate with the Helm repository: chart pull error: failed to get chart version for remote \
         reference: '{url}/index.yaml' answered 401 Unauthorized; the credentials are missing or wrong, see spec.secretRef"
    );
    assert_eq!(
        refused,
        (
            Some(FETCH_FAILED),
            "AuthenticationFailed",
            expected,
            Disposition::Retry
        )
    );

    other.set_credentials("user", "pass");
    let kept = world.server(&server, json!({}), login());
    let refused = world.refused(&web(json!({})), &kept).await;
    assert_eq!(
        refused.1, "AuthenticationFailed",
        "the other server is not told: {refused:?}"
    );
    let passed = world.server(&server, json!({"passCredentials": true}), login());
    world.take(&web(json!({})), &passed).await;
}

#[tokio::test]
async fn what_is_too_large_or_no_chart_is_not_stored() {
    let (mut world, server) = (World::new(), Server::start().await.unwrap());
    let padding = "x".repeat(3000);
    let large = format!("{{apiVersion: v2, name: web, version: 1.0.0, description: {padding}}}");
    server.set_file(
        "web-1.0.0.tgz",
        Some(tar_gz(&[("web/Chart.yaml", &large)]).unwrap()),
    );
    server.set_file("web-1.1.0.tgz", Some(b"no chart".to_vec()));
    server.set_file(
        "index.yaml",
        Some(index_of(&[
            ("1.0.0", "web-1.0.0.tgz", ""),
            ("1.1.0", "web-1.1.0.tgz", ""),
        ])),
    );
    world.fetcher.charts.file = 3000;
    let references = world.anonymous(&server);
    let step = "chart pull error: failed to load chart metadata from written chart: ";
    let refused = world
        .refused(&web(json!({"version": "1.0.0"})), &references)
        .await;
    assert_eq!(
        refused.2,
        format!("{step}size of 'web/Chart.yaml' exceeds '3000' bytes limit")
    );
    let refused = world
        .refused(&web(json!({"version": "1.1.0"})), &references)
        .await;
    assert!(refused.2.starts_with(step), "{refused:?}");
    world.fetcher.helm.limits.chart = 20;
    let refused = world
        .refused(&web(json!({"version": "1.0.0"})), &references)
        .await;
    assert_eq!(
        refused.2,
        "chart pull error: failed to download chart for remote reference: chart exceeds the maximum chart size of 20 bytes"
    );
}
