//! `windlass ui`: the console of one user, with their own rights, on their own machine.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kube::config::Kubeconfig;
use reqwest::header::{COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::objects::{self, apply};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

use crate::world::{PATIENCE, Scene, names, play};

const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";

/// A command that serves, and a browser that came by its link.
struct Ui {
    process: Child,
    told: Lines<BufReader<ChildStderr>>,
    base: String,
    cookie: String,
    link: String,
    http: reqwest::Client,
    _home: TempDir,
}

impl Ui {
    /// Starts it, and opens the first link.
    async fn start(kubeconfig: &Path, arguments: &[&str]) -> Result<Self> {
        let home = testkit::scratch::directory("home")?;
        let mut process = Command::new(testkit::controller::program("windlass")?)
            .arg("ui")
            .args(arguments)
            .env("KUBECONFIG", kubeconfig)
            .env("HOME", home.path())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let told = process.stderr.take().context("it says nothing")?;
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        let mut ui = Self {
            process,
            told: BufReader::new(told).lines(),
            base: String::new(),
            cookie: String::new(),
            link: String::new(),
            http,
            _home: home,
        };
        ui.link = ui.line("open once: ").await?;
        let (base, _) = ui.link.split_once("/oauth2/").context("no link of ours")?;
        ui.base = base.to_owned();
        ui.line("all of it is listed").await?;
        let answer = ui.http.get(&ui.link).send().await?;
        ensure!(
            answer.status() == StatusCode::SEE_OTHER,
            "{}",
            answer.text().await?
        );
        ensure!(answer.headers()[LOCATION] == "/");
        let cookie = answer.headers()[SET_COOKIE].to_str()?;
        ensure!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"));
        ui.cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        Ok(ui)
    }

    /// What follows this on the next line that begins so.
    async fn line(&mut self, begins: &str) -> Result<String> {
        let reading = async {
            let mut before = Vec::new();
            while let Some(line) = self.told.next_line().await? {
                if let Some(rest) = line.strip_prefix(begins) {
                    return Ok(rest.to_owned());
                }
                before.push(line);
            }
            anyhow::bail!("it ended without {begins:?}: {before:?}")
        };
        tokio::time::timeout(PATIENCE, reading).await?
    }

    fn get(&self, path: &str) -> RequestBuilder {
        let url = format!("{}/api/v1/{path}", self.base);
        self.http.get(url).header(COOKIE, &self.cookie)
    }

    async fn ask(&self, path: &str) -> Result<Value> {
        answer(self.get(path)).await.map(|(_, value)| value)
    }

    /// Suspends a Kustomization, from a page of ours.
    async fn suspend(&self, cluster: &str, namespace: &str, name: &str) -> Result<(StatusCode, Value)> {
        let object = json!({"cluster": cluster, "kind": "ks", "namespace": namespace, "name": name});
        let url = format!("{}/api/v1/actions", self.base);
        let request = self
            .http
            .post(url)
            .header(COOKIE, &self.cookie)
            .header(ORIGIN, &self.base);
        answer(request.json(&json!({"verb": "suspend", "objects": [object], "reason": "to look at it"})))
            .await
    }
}

async fn answer(request: RequestBuilder) -> Result<(StatusCode, Value)> {
    let answer = request.send().await?;
    let status = answer.status();
    let text = answer.text().await?;
    Ok((
        status,
        serde_json::from_str(&text).with_context(|| format!("{status}: {text}"))?,
    ))
}

/// A kubeconfig of someone with a token, with these contexts, each of which names a namespace.
fn kubeconfig(scene: &Scene, folder: &TempDir, token: &str, contexts: &[(&str, &str)]) -> Result<PathBuf> {
    let own = Kubeconfig::read_from(scene.world.control_plane.kubeconfig_path())?;
    let cluster = own.clusters.first().and_then(|named| named.cluster.clone());
    let named = contexts.iter().map(|(name, namespace)| {
        json!({"name": name, "context": {"cluster": "c", "user": "u", "namespace": namespace}})
    });
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": contexts[0].0,
        "clusters": [{"name": "c", "cluster": cluster.context("no cluster")?}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": named.collect::<Vec<_>>(),
    });
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, text.to_string())?;
    Ok(path)
}

/// Lets a service account of the scene do this to Kustomizations of its namespace.
async fn let_do(scene: &Scene, name: &str, verbs: &[&str]) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let version = format!("{group}/v1");
    let metadata = json!({"name": name, "namespace": scene.namespace});
    let rule = json!({"apiGroups": ["kustomize.toolkit.fluxcd.io"], "resources": ["kustomizations"], "verbs": verbs});
    let role = json!({"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": [rule]});
    let subject = json!({"kind": "ServiceAccount", "name": name, "namespace": scene.namespace});
    let binding = json!({
        "apiVersion": version, "kind": "RoleBinding", "metadata": metadata, "subjects": [subject],
        "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
    });
    apply(&scene.client, &role).await?;
    apply(&scene.client, &binding).await?;
    Ok(())
}

#[test]
fn a_link_lets_one_browser_in_and_no_one_else() {
    play("ui-link", async |scene| {
        scene.kustomization(&scene.namespace, "app", "True", &[]).await?;
        let mut ui = Ui::start(scene.world.control_plane.kubeconfig_path(), &[]).await?;
        let page = ui.ask(&format!("objects?namespace={}", scene.namespace)).await?;
        assert_eq!(names(&page), ["Kustomization/app"]);
        let me = ui.ask("me").await?;
        assert_eq!(me["signedInBy"], "session", "{me}");

        // The link worked once; the next one is told.
        let again = ui.http.get(&ui.link).send().await?;
        assert_eq!(again.status(), StatusCode::FORBIDDEN);
        assert_eq!(again.headers().get(SET_COOKIE), None);
        let next = ui.line("open once: ").await?;
        assert_ne!(next, ui.link);
        let wrong = format!("{}/oauth2/link?once=", ui.base);
        assert_eq!(ui.http.get(wrong).send().await?.status(), StatusCode::FORBIDDEN);
        let other = ui.http.get(&next).send().await?;
        assert_eq!(other.status(), StatusCode::SEE_OTHER);

        // Nobody else is let in: without the cookie, with a token, by another name, from another site.
        let bare = ui.http.get(format!("{}/api/v1/objects", ui.base));
        let (status, told) = answer(bare.try_clone().context("it can be sent again")?).await?;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        assert_eq!(told["message"], "open the link that was printed last");
        let admin = scene.user("admin", &[("*", &["*/*"])]).await?;
        let (status, told) = answer(bare.bearer_auth(admin)).await?;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{told}");
        let (status, _) = answer(ui.get("objects").header(HOST, "rebound.example.com")).await?;
        assert_eq!(status, StatusCode::FORBIDDEN);
        let foreign = ui.get("objects").header(ORIGIN, "https://evil.example.com");
        assert_eq!(answer(foreign).await?.0, StatusCode::FORBIDDEN);

        // An interrupt ends it at once, and well.
        let id = ui.process.id().context("it has ended")?;
        let killed = Command::new("kill").args(["-INT", &id.to_string()]).status();
        ensure!(killed.await?.success());
        let ended = tokio::time::timeout(PATIENCE, ui.process.wait()).await??;
        assert!(ended.success(), "{ended}");
        Ok(())
    });
}

#[test]
fn who_may_see_one_namespace_sees_that_and_acts_there() {
    play("ui-own", async |scene| {
        let other = scene.namespace("ui-foreign").await?;
        for namespace in [&scene.namespace, &other] {
            scene.kustomization(namespace, "app", "True", &[]).await?;
        }
        let token = scene.user("dev", &[]).await?;
        let_do(&scene, "dev", &["get", "list", "watch", "patch"]).await?;
        let folder = testkit::scratch::directory("kubeconfig")?;
        let contexts = [("blue", &*scene.namespace), ("green/eu", &*scene.namespace)];
        let path = kubeconfig(&scene, &folder, &token, &contexts)?;
        let ui = Ui::start(&path, &["--context=blue,green/eu"]).await?;
        let rows = |page: &Value| page["items"].as_array().cloned().unwrap_or_default();
        let seen = async || {
            let all = rows(&ui.ask("objects?kind=ks").await?).into_iter();
            let place = |row: &Value| format!("{} {}", row["cluster"], row["namespace"]);
            anyhow::Ok(all.map(|row| place(&row)).collect::<Vec<_>>())
        };
        let of = |cluster: &str| format!("\"{cluster}\" \"{}\"", scene.namespace);
        let both = [of("blue"), of("green/eu")];
        let waiting = async {
            while seen().await? != both {
                tokio::time::sleep(Duration::from_millis(20)).await; // the second is not waited for
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(PATIENCE, waiting).await??;

        // What they may not list is told, and does not make the cluster look as if it were away.
        let clusters = ui.ask("clusters").await?;
        assert_eq!(
            (&clusters[0]["complete"], &clusters[0]["away"]),
            (&json!(true), &json!(false))
        );
        let told = clusters[0]["message"].as_str().unwrap_or_default();
        assert!(
            told.contains("HelmRelease") && !told.contains("Kustomization"),
            "{told}"
        );

        // They act with their own right to patch; no verb of the console's is asked for.
        let path = format!("objects/blue/ks/{}/app/verbs", scene.namespace);
        assert_eq!(
            ui.ask(&path).await?["verbs"],
            json!(["reconcile", "suspend", "resume"])
        );
        let (status, told) = ui.suspend("blue", &scene.namespace, "app").await?;
        assert_eq!(status, StatusCode::OK, "{told}");
        let (status, told) = ui.suspend("blue", &other, "app").await?;
        assert_eq!(status, StatusCode::FORBIDDEN, "{told}");
        let told = told.to_string();
        assert!(told.contains("may not patch"), "{told}");
        let object = objects::api(&scene.client, KUSTOMIZE, "Kustomization", &scene.namespace);
        assert_eq!(object.get("app").await?.data["spec"]["suspend"], true);
        let foreign = objects::api(&scene.client, KUSTOMIZE, "Kustomization", &other);
        assert_eq!(foreign.get("app").await?.data["spec"].get("suspend"), None);
        let acted = ui.ask("actions").await?;
        assert_eq!(acted["items"].as_array().map(Vec::len), Some(1), "{acted}");
        assert_eq!(acted["items"][0]["verb"], "suspend");

        let quiet = Ui::start(&folder.path().join("kubeconfig"), &["--read-only"]).await?;
        let (status, _) = quiet.suspend("blue", &scene.namespace, "app").await?;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
        Ok(())
    });
}
