//! Pages: what readers see of others' objects, what tenants can write into them, and what other sites can have a browser send.

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, ORIGIN};
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use testkit::Controller;
use testkit::controller::ControllerOptions;
use testkit::objects::{self, apply};
use testkit::ports::free_port;
use tokio::time::timeout;

use crate::running::deployment;
use crate::world::{PATIENCE, Scene, play};

const KUSTOMIZATIONS: &[&str] = &["kustomize.toolkit.fluxcd.io/kustomizations"];
const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";

/// What someone writes who wants a reader's browser to run it.
const SCRIPT: &str = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>";

impl Scene {
    fn page(&self, token: &str, path: &str) -> RequestBuilder {
        let base = self.world.console.api_url().replace("/api/v1", "");
        let request = self.world.http.get(format!("{base}{path}"));
        request.bearer_auth(token).header(ACCEPT, "text/html")
    }

    async fn read(&self, token: &str, path: &str) -> Result<(StatusCode, String)> {
        let answer = self.page(token, path).send().await?;
        Ok((answer.status(), answer.text().await?))
    }
}

/// Whether nothing in a page is more than text: no script, no handler, no address that runs.
fn is_inert(page: &str) -> bool {
    let lower = page.to_lowercase();
    !lower.contains("<script>")
        && !lower.contains("<img")
        && !lower.contains("href=\"javascript:")
        && !lower.contains("href=\"data:")
}

#[test]
fn a_page_shows_what_its_reader_may_get() {
    play("pages", async |scene| {
        let namespace = &scene.namespace;
        let other = scene.namespace("pages-other").await?;
        let reader = scene.user("reader", &[(namespace, KUSTOMIZATIONS)]).await?;
        let everyone = scene.user("root", &[("*", KUSTOMIZATIONS)]).await?;
        scene.kustomization(namespace, "mine", "False", &[]).await?;
        scene.kustomization(&other, "theirs", "False", &[]).await?;
        let both = format!("objects?namespace={namespace},{other}");
        scene.until(&everyone, &both, |page| page["total"] == 2).await?;
        for path in [
            "/",
            "/apps",
            "/fleet",
            "/find?q=i",
            "/graph",
            "/change?q=main@sha1:abc",
            "/apps?q=status:failed",
        ] {
            let (status, page) = scene.read(&reader, path).await?;
            ensure!(status == StatusCode::OK, "{path}: {status} {page}");
            ensure!(page.contains(">mine<"), "{path}: {page}");
            ensure!(
                !page.contains("theirs") && !page.contains(&other),
                "{path} tells of others: {page}"
            );
        }
        let (status, page) = scene.read(&reader, "/wall").await?;
        ensure!(
            status == StatusCode::OK && page.contains("0/1 Ready"),
            "others are not counted: {page}"
        );
        let (status, page) = scene.read(&reader, "/state?at=1h").await?;
        ensure!(
            status == StatusCode::OK && !page.contains("theirs"),
            "{status} {page}"
        );
        for (path, code) in [
            ("/state?at=never", StatusCode::BAD_REQUEST),
            ("/compare?from=nonsense", StatusCode::BAD_REQUEST),
            ("/change?q=4f3a", StatusCode::BAD_REQUEST),
            ("/find?q=kind:nonsense", StatusCode::BAD_REQUEST),
            ("/apps?filter=row.", StatusCode::BAD_REQUEST),
            ("/apps?after=x", StatusCode::BAD_REQUEST),
        ] {
            let (status, page) = scene.read(&reader, path).await?;
            ensure!(status == code && page.contains("<h1>"), "{path}: {status} {page}");
        }
        let (_, page) = scene.read(&reader, "/apps").await?;
        ensure!(page.contains("1 objects"), "{page}");
        // Whether something is there is not told.
        for name in ["theirs", "nothing"] {
            let (status, page) = scene
                .read(&reader, &format!("/objects/local/ks/{other}/{name}"))
                .await?;
            ensure!(
                status == StatusCode::FORBIDDEN && page.contains("may not get"),
                "{status} {page}"
            );
        }
        let (status, page) = scene.read("nobody", "/apps").await?;
        ensure!(
            status == StatusCode::UNAUTHORIZED && page.contains("<h1>"),
            "{status} {page}"
        );
        ensure!(!page.contains("mine"));
        let (status, page) = scene.read(&reader, "/nowhere").await?;
        ensure!(
            status == StatusCode::NOT_FOUND && page.contains("<h1>"),
            "{status} {page}"
        );
        Ok(())
    });
}

#[test]
fn what_tenants_write_is_text() {
    play("inert", async |scene| {
        let namespace = &scene.namespace;
        let everyone = scene
            .user(
                "root",
                &[(
                    "*",
                    &[
                        "kustomize.toolkit.fluxcd.io/kustomizations",
                        "source.toolkit.fluxcd.io/gitrepositories",
                        "source.toolkit.fluxcd.io/buckets",
                    ],
                )],
            )
            .await?;
        let source = objects::git_repository(namespace, "repo", "https://git.example.com/a", "main");
        apply(&scene.client, &source).await?;
        // An address that a browser would run.
        let bucket = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "Bucket", "metadata": {"name": "odd", "namespace": namespace},
            "spec": {"bucketName": "b", "endpoint": "javascript:alert(1)", "interval": "1h"},
        });
        apply(&scene.client, &bucket).await?;
        let of_bucket = objects::kustomization(namespace, "odd", ("Bucket", "odd"), SCRIPT);
        apply(&scene.client, &of_bucket).await?;
        let revision = format!("main@sha1:abc{SCRIPT}");
        let condition = json!({
            "type": "Ready", "status": "False", "reason": "BuildFailed", "message": SCRIPT,
            "lastTransitionTime": "2026-11-25T10:00:00Z", "observedGeneration": 1,
        });
        let artifact = json!({
            "path": "p", "url": "http://s/p", "revision": revision, "lastUpdateTime": "2026-11-25T10:00:00Z",
            "digest": "sha256:0000000000000000000000000000000000000000000000000000000000000000",
            "metadata": {"org.opencontainers.image.revision": SCRIPT, "org.opencontainers.image.authors": SCRIPT},
        });
        let status = json!({"observedGeneration": 1, "conditions": [condition], "artifact": artifact});
        scene
            .status(
                "source.toolkit.fluxcd.io/v1",
                "GitRepository",
                namespace,
                "repo",
                status,
            )
            .await?;
        scene.kustomization(namespace, "web", "False", &[]).await?;
        let history = json!([{
            "digest": "sha256:0000000000000000000000000000000000000000000000000000000000000000",
            "firstReconciled": "2026-11-25T10:00:00Z", "lastReconciled": "2026-11-25T10:00:01Z",
            "lastReconciledDuration": "1s", "lastReconciledStatus": "BuildFailed", "totalReconciliations": 1,
            "metadata": {"revision": revision},
        }]);
        let status = json!({
            "observedGeneration": 1, "lastAppliedRevision": revision, "lastAttemptedRevision": revision,
            "conditions": [condition], "history": history,
            "inventory": {"entries": [{"id": format!("{namespace}_{SCRIPT}__ConfigMap"), "v": "v1"}]},
        });
        scene
            .status(KUSTOMIZE, "Kustomization", namespace, "web", status)
            .await?;
        let rows = format!("objects?namespace={namespace}&revision=main@sha1:abc\"");
        scene.until(&everyone, &rows, |page| page["total"] == 2).await?;
        let typed = "%22%27%3E%3Cscript%3Ealert(1)%3C/script%3E";
        for path in [
            "/".to_owned(),
            "/apps".to_owned(),
            "/sources".to_owned(),
            "/fleet".to_owned(),
            "/history".to_owned(),
            format!("/apps?q={typed}&label={typed}&source={typed}"),
            format!("/change?q={typed}"),
            "/change?q=main@sha1:abc%22".to_owned(),
            format!("/history?name={typed}&namespace={typed}&since=1h"),
            format!("/history?since={typed}"),
            format!("/objects/local/ks/{namespace}/web"),
            format!("/objects/local/git/{namespace}/repo"),
            format!("/objects/local/bucket/{namespace}/odd"),
            format!("/objects/local/ks/{namespace}/odd"),
            format!("/objects/{typed}/ks/{namespace}/{typed}"),
            format!("/nowhere/{typed}"),
            format!("/state?at={typed}"),
            "/state?at=1s".to_owned(),
            "/wall".to_owned(),
            format!("/graph?q=ns:{namespace}"),
        ] {
            let (_, page) = scene.read(&everyone, &path).await?;
            ensure!(page.starts_with("<!DOCTYPE html>"), "{path}: {page}");
            ensure!(is_inert(&page), "{path}: {page}");
        }
        let path = format!("/objects/local/ks/{namespace}/web");
        let (_, page) = scene.read(&everyone, &format!("{path}?guess=of-a-value")).await?;
        ensure!(!page.contains("of-a-value"), "{page}");
        ensure!(
            page.contains("&lt;script&gt;alert(1)"),
            "it is shown as what it is: {page}"
        );
        Ok(())
    });
}

#[test]
fn a_tab_is_sent_the_parts_that_change_and_nothing_of_others() {
    play("live", async |scene| {
        let namespace = &scene.namespace;
        let other = scene.namespace("live-other").await?;
        let reader = scene.user("reader", &[(namespace, KUSTOMIZATIONS)]).await?;
        let everyone = scene.user("root", &[("*", KUSTOMIZATIONS)]).await?;
        scene.kustomization(namespace, "web", "True", &[]).await?;
        let all = format!("objects?namespace={namespace},{other}");
        let seen = scene
            .until(&everyone, &format!("{all}&status=Ready"), |page| {
                page["total"] == 1
            })
            .await?;
        let since = &seen["change"];
        let answer = scene
            .page(&reader, &format!("/live?at=/apps&since={since}"))
            .send()
            .await?;
        ensure!(answer.headers()["content-type"] == "text/event-stream");
        let mut events = Events::of(answer);
        scene.kustomization(&other, "hidden", "False", &[]).await?;
        scene.until(&everyone, &all, |page| page["total"] == 2).await?;
        scene.kustomization(namespace, "web", "False", &[]).await?;
        let patch = events.until("Failed").await?;
        ensure!(
            patch.contains("<hx-partial hx-target=\"#r-") && patch.contains("\"#state\""),
            "{patch}"
        );
        ensure!(!patch.contains("hidden\"") && !patch.contains(&other), "{patch}");
        // Another row: the list as a whole.
        scene.kustomization(namespace, "new", "True", &[]).await?;
        let patch = events.until(">new</a>").await?;
        ensure!(patch.contains("hx-target=\"#rows\""), "{patch}");
        // Who comes late is sent what they do not have.
        let answer = scene
            .page(&reader, &format!("/live?at=/apps&since={since}"))
            .send()
            .await?;
        ensure!(Events::of(answer).until(">new</a>").await.is_ok());
        for path in ["/live", "/live?at=nowhere", "/live?at=/objects/local/ks/a"] {
            let (status, _) = scene.read(&reader, path).await?;
            ensure!(status.is_client_error(), "{path}: {status}");
        }
        Ok(())
    });
}

#[test]
fn an_application_names_what_its_pods_run() {
    play("runs", async |scene| {
        let namespace = &scene.namespace;
        let image = "registry.example.com/team/web";
        deployment(&scene, namespace, "web", &format!("{image}:1.4.2")).await?;
        deployment(&scene, namespace, "other", "registry.example.com/team/other:1").await?;
        let id = format!("{namespace}_web_apps_Deployment");
        scene.kustomization(namespace, "web", "True", &[&id]).await?;
        let all = scene
            .user("all", &[(namespace, &[KUSTOMIZATIONS[0], "/pods"])])
            .await?;
        let some = scene.user("some", &[(namespace, KUSTOMIZATIONS)]).await?;
        let running = format!("where?image={image}&namespace={namespace}");
        scene
            .until(&all, &running, |page| page["items"][0]["ready"] == 2)
            .await?;
        let path = format!("/objects/local/ks/{namespace}/web");
        let (_, page) = scene.read(&all, &path).await?;
        ensure!(
            page.contains("registry.example.com/team/web:1.4.2") && page.contains("2/2"),
            "{page}"
        );
        ensure!(!page.contains("team/other"), "{page}");
        let (_, page) = scene.read(&some, &path).await?;
        ensure!(
            page.contains("Deployment") && !page.contains("team/web"),
            "Pods have rights of their own: {page}"
        );
        Ok(())
    });
}

/// Events of a stream.
struct Events {
    bytes: futures::stream::BoxStream<'static, reqwest::Result<Vec<u8>>>,
    text: String,
}

impl Events {
    fn of(answer: Response) -> Self {
        let bytes = answer
            .bytes_stream()
            .map(|bytes| bytes.map(|bytes| bytes.to_vec()));
        Self {
            bytes: bytes.boxed(),
            text: String::new(),
        }
    }

    /// The next event with this text, and those before it.
    async fn until(&mut self, wanted: &str) -> Result<String> {
        let reading = async {
            loop {
                if let Some((events, rest)) = self.text.rsplit_once("\n\n")
                    && events.contains(wanted)
                {
                    let (events, rest) = (events.to_owned(), rest.to_owned());
                    self.text = rest;
                    return anyhow::Ok(events);
                }
                let bytes = self.bytes.next().await.context("the stream ended")??;
                self.text.push_str(&String::from_utf8(bytes)?);
            }
        };
        let read = timeout(PATIENCE, reading).await;
        read.with_context(|| format!("{wanted:?} does not come"))?
    }
}

/// A console where everyone is the same user, as a browser finds it.
async fn console(scene: &Scene, user: &str, actions: &str) -> Result<(Controller, String)> {
    // It stays as long as the process does.
    let folder = testkit::scratch::directory("pages")?.keep();
    let base = format!("http://127.0.0.1:{}", free_port()?);
    let config = json!({
        "apiVersion": "web.fluxcd.controlplane.io/v1", "kind": "Config",
        "spec": {"baseURL": base, "authentication": {"type": "Anonymous", "anonymous": {"username": user, "groups": []}}},
    });
    let file = folder.join("config.yaml");
    std::fs::write(&file, config.to_string())?;
    let options = ControllerOptions {
        flags: vec![
            format!("--api-addr={}", base.trim_start_matches("http://")),
            format!("--sign-in-config={}", file.display()),
            format!("--ledger-url=sqlite:{}", folder.join("ledger.db").display()),
            format!("--actions={actions}"),
        ],
        ..ControllerOptions::default()
    };
    let kubeconfig = scene.world.control_plane.kubeconfig_path();
    Ok((Controller::start_console(kubeconfig, options).await?, base))
}

async fn is_suspended(scene: &Scene, name: &str) -> Result<bool> {
    let api = objects::api(&scene.client, KUSTOMIZE, "Kustomization", &scene.namespace);
    Ok(api.get(name).await?.data["spec"]["suspend"] == Value::Bool(true))
}

#[test]
fn forms_act_for_pages_of_ours_alone() {
    play("forms", async |scene| {
        let namespace = scene.namespace.clone();
        let user = format!("operator-of-{namespace}");
        let version = "rbac.authorization.k8s.io/v1";
        let metadata = json!({"name": "operates", "namespace": namespace});
        apply(
            &scene.client,
            &json!({
                "apiVersion": version, "kind": "Role", "metadata": metadata,
                "rules": [{"apiGroups": ["kustomize.toolkit.fluxcd.io"], "resources": ["kustomizations"],
                           "resourceNames": ["web", "api"], "verbs": ["get", "suspend", "reconcile"]}],
            }),
        )
        .await?;
        apply(
            &scene.client,
            &json!({
                "apiVersion": version, "kind": "RoleBinding", "metadata": metadata,
                "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "operates"},
            }),
        )
        .await?;
        for name in ["web", "api", "other"] {
            scene.kustomization(&namespace, name, "True", &[]).await?;
        }
        let (_console, base) = console(&scene, &user, "fine-grained").await?;
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        let object = |name: &str| format!("local/Kustomization/{namespace}/{name}");
        let post = |fields: &[(&str, &str)]| {
            let body =
                reqwest::Url::parse_with_params(&base, fields).map(|url| url.query().map(str::to_owned));
            http.post(format!("{base}/actions"))
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(body.ok().flatten().unwrap_or_default())
        };
        let suspend = [
            ("object", object("web")),
            ("verb", "suspend".to_owned()),
            ("reason", "r".to_owned()),
        ];
        let suspend: Vec<(&str, &str)> = suspend
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        // Other sites, and programs that do not say where they are from.
        for headers in [
            &[(ORIGIN.as_str(), "https://evil.example.com")][..],
            &[(ORIGIN.as_str(), "null")],
            &[("sec-fetch-site", "cross-site")],
            &[],
        ] {
            let mut request = post(&suspend);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let answer = request.send().await?;
            ensure!(
                answer.status() == StatusCode::FORBIDDEN,
                "{headers:?}: {}",
                answer.status()
            );
        }
        ensure!(!is_suspended(&scene, "web").await?);
        // The same for changes, by form and as JSON.
        for (path, kind) in [
            ("/changes", "application/x-www-form-urlencoded"),
            ("/api/v1/changes", "application/json"),
        ] {
            let request = http.post(format!("{base}{path}")).header(CONTENT_TYPE, kind);
            let answer = request
                .header(ORIGIN, "https://evil.example.com")
                .body("{}")
                .send()
                .await?;
            ensure!(
                answer.status() == StatusCode::FORBIDDEN,
                "{path}: {}",
                answer.status()
            );
        }
        // Nothing is done by a visit, or by what is no form.
        let visit = http
            .get(format!("{base}/actions?verb=suspend&object={}", object("web")))
            .send()
            .await?;
        ensure!(
            visit.status() == StatusCode::METHOD_NOT_ALLOWED,
            "{}",
            visit.status()
        );
        let plain = http
            .post(format!("{base}/actions"))
            .header(ORIGIN, &base)
            .body("verb=suspend")
            .send()
            .await?;
        ensure!(plain.status() == StatusCode::BAD_REQUEST, "{}", plain.status());
        // A page of ours, and back to where it was; nowhere else.
        for (back, place) in [
            ("/apps?q=ns:a", "/apps?q=ns:a"),
            ("//evil.example.com", "/"),
            ("https://evil.example.com", "/"),
        ] {
            let mut fields = suspend.clone();
            fields.push(("back", back));
            let answer = post(&fields).header(ORIGIN, &base).send().await?;
            ensure!(
                answer.status() == StatusCode::SEE_OTHER,
                "{}",
                answer.text().await?
            );
            ensure!(answer.headers()["location"] == place, "{:?}", answer.headers());
        }
        ensure!(is_suspended(&scene, "web").await?);
        // What one may not is told for each; what one may is done.
        let (api, other) = (object("api"), object("other"));
        let some = [
            ("object", api.as_str()),
            ("object", other.as_str()),
            ("verb", "suspend"),
        ];
        let answer = post(&some).header(ORIGIN, &base).send().await?;
        ensure!(answer.status() == StatusCode::MULTI_STATUS, "{}", answer.status());
        let page = answer.text().await?;
        ensure!(page.contains("Not done") && page.contains(">other</a>"), "{page}");
        ensure!(is_suspended(&scene, "api").await? && !is_suspended(&scene, "other").await?);
        // The verbs that one has are offered, others are not.
        let page = http
            .get(format!("{base}/objects/local/ks/{namespace}/web"))
            .send()
            .await?
            .text()
            .await?;
        ensure!(
            page.contains("value=\"suspend\"") && !page.contains("value=\"resume\""),
            "{page}"
        );
        ensure!(
            page.contains(&format!("<td>{user}</td>")),
            "who did it is in the history: {page}"
        );
        Ok(())
    });
}

#[test]
fn files_of_pages_are_kept_by_browsers_and_nothing_else_is_served() {
    play("assets", async |scene| {
        let base = scene.world.console.api_url().replace("/api/v1", "");
        let http = &scene.world.http;
        let (_, page) = scene.read("nobody", "/").await?;
        let names: Vec<&str> = page
            .split('"')
            .filter(|part| part.starts_with("/assets/"))
            .collect();
        ensure!(names.len() >= 5, "{page}");
        for name in names {
            let answer = http.get(format!("{base}{name}")).send().await?;
            ensure!(answer.status() == StatusCode::OK, "{name}: {}", answer.status());
            ensure!(answer.headers()["cache-control"] == "public, max-age=31536000, immutable");
            let plain = answer.bytes().await?;
            let answer = http
                .get(format!("{base}{name}"))
                .header(ACCEPT_ENCODING, "gzip, br")
                .send()
                .await?;
            ensure!(answer.headers()["content-encoding"] == "br", "{name}");
            ensure!(
                answer.bytes().await?.len() < plain.len() || name.ends_with(".svg"),
                "{name}"
            );
        }
        for path in [
            "/assets/style.css",
            "/assets/..%2f..%2fCargo.toml",
            "/assets/%2e%2e/%2e%2e/etc/passwd",
            "/assets/",
        ] {
            let answer = http.get(format!("{base}{path}")).send().await?;
            ensure!(
                answer.status() == StatusCode::NOT_FOUND,
                "{path}: {}",
                answer.status()
            );
        }
        let answer = scene.page("nobody", "/").send().await?;
        let policy = answer.headers()["content-security-policy"].to_str()?;
        ensure!(policy.starts_with("default-src 'self'; frame-ancestors 'none'; form-action 'self'"));
        ensure!(answer.headers()["cache-control"] == "no-store");
        Ok(())
    });
}
