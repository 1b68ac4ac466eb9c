//! Changes of manifests through Git, by API and page: with all controllers and a real Gitea, as callers with different rights.

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION, ORIGIN};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::gitea::User;
use testkit::objects::{self, apply, condition, is_ready, text};
use testkit::{ControlPlane, Controller, Gitea, Options, install_all_crds, wait_for};

use crate::diff::{NAMESPACE, SOURCE, grant};
use crate::world::{ANA, ANA_EVERYWHERE, BOB, BOB_EVERYWHERE, EVE, EVE_EVERYWHERE, PATIENCE};

const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";
const DELIVERY: &str = "delivery.windlass.dev/v1alpha1";
const NESTED: &str = "# Of the shop; ask ana.\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: \
                      nested\nspec:\n  interval: 1h # often enough\n  prune: true\n  path: ./nested\n  sourceRef: {kind: \
                      GitRepository, name: repo}\n";
const MAP: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: word, namespace: shop}\ndata: {word: one}\n";
/// Of a chart whose author is no friend.
const SCHEMA: &str = r#"{"properties": {"replicas": {"type": "integer", "description": "<script>alert(1)</script> How many"},
    "image": {"properties": {"tag": {"type": "string"}, "pull": {"enum": ["Always", "Never"]}}}}}"#;
/// What someone writes who wants a reader's browser to run it.
const SCRIPT: &str = "\"'></textarea><script>alert(1)</script>";

/// A cluster with what delivers, a repository at a forge, and a console.
struct Shop {
    client: Client,
    gitea: Gitea,
    bot: User,
    http: reqwest::Client,
    console: Controller,
    _control_plane: ControlPlane,
    _others: Vec<Controller>,
}

impl Shop {
    async fn open() -> Result<Self> {
        let users = [
            (ANA, ANA_EVERYWHERE, 1),
            (BOB, BOB_EVERYWHERE, 2),
            (EVE, EVE_EVERYWHERE, 3),
        ];
        let options = Options {
            users: users
                .map(|(token, name, uid)| format!("{token},{name},{uid}"))
                .to_vec(),
            ..Options::api_server_only()
        };
        let control_plane = ControlPlane::start(options).await?;
        let client = control_plane.client();
        install_all_crds(&client).await?;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        apply(&client, &namespace).await?;
        let kubeconfig = control_plane.kubeconfig_path();
        let source = Controller::start_source(kubeconfig, ControllerOptions::default()).await?;
        let applies = Controller::start_apply(kubeconfig, &source, ControllerOptions::default()).await?;
        let pipelines = Controller::start_pipeline(kubeconfig, ControllerOptions::default()).await?;
        let gitea = Gitea::start().await?;
        let bot = gitea.add_user("bot").await?;
        let files = [
            ("deploy/nested.yaml", NESTED),
            (
                "deploy/kustomization.yaml",
                "# All of it.\nresources:\n- nested.yaml\n",
            ),
            ("nested/map.yaml", MAP),
            (
                "charts/web/Chart.yaml",
                "apiVersion: v2\nname: web\nversion: 1.0.0\n",
            ),
            ("charts/web/values.yaml", "replicas: 1\nimage: {tag: v1}\n"),
            ("charts/web/values.schema.json", SCHEMA),
        ];
        gitea.add_repository(&bot, "fleet", &files).await?;
        let url = gitea.repository_url(&bot.name, "fleet");
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "fleet", "namespace": NAMESPACE},
            "stringData": {"username": bot.name, "password": bot.token},
        });
        let repository = objects::git_repository(NAMESPACE, "repo", &url, "main");
        let chart = json!({
            "apiVersion": SOURCE, "kind": "HelmChart", "metadata": {"name": "web", "namespace": NAMESPACE},
            "spec": {"chart": "./charts/web", "interval": "1h", "sourceRef": {"kind": "GitRepository", "name": "repo"}},
        });
        let app = objects::kustomization(NAMESPACE, "app", ("GitRepository", "repo"), "./deploy");
        let forge = json!({"provider": "gitea", "secretRef": {"name": "fleet"}});
        let policy = json!({
            "apiVersion": DELIVERY, "kind": "ChangePolicy", "metadata": {"name": "review", "namespace": NAMESPACE},
            "spec": {"type": "PullRequest", "pullRequest": {"forge": forge}},
        });
        for object in [
            &secret,
            &objects::with_spec(
                repository,
                json!({"interval": "1s", "secretRef": {"name": "fleet"}}),
            ),
            &chart,
            &objects::with_spec(app, json!({"targetNamespace": NAMESPACE, "prune": true})),
            &policy,
        ] {
            apply(&client, object).await?;
        }
        let kustomizations = objects::api(&client, KUSTOMIZE, "Kustomization", NAMESPACE);
        wait_for(&kustomizations, "app", is_ready, PATIENCE).await?;
        wait_for(&kustomizations, "nested", is_ready, PATIENCE).await?;
        let charts = objects::api(&client, SOURCE, "HelmChart", NAMESPACE);
        wait_for(&charts, "web", is_ready, PATIENCE).await?;
        let delivery = [
            "kustomizations",
            "helmcharts",
            "helmreleases",
            "gitrepositories",
            "changepolicies",
            "changerequests",
        ];
        for user in [ANA_EVERYWHERE, BOB_EVERYWHERE] {
            grant(&client, user, &["get"], &delivery).await?;
            grant(
                &client,
                user,
                &["get", "create", "patch"],
                &["configmaps", "kustomizations"],
            )
            .await?;
        }
        grant(&client, ANA_EVERYWHERE, &["create"], &["changerequests"]).await?;
        let folder = testkit::scratch::directory("changes")?.keep();
        let options = ControllerOptions {
            flags: vec![
                "--actions=impersonated".to_owned(),
                format!("--source-url={}", source.storage_url()),
                format!("--ledger-url=sqlite:{}", folder.join("ledger.db").display()),
            ],
            ..ControllerOptions::default()
        };
        Ok(Self {
            console: Controller::start_console(kubeconfig, options).await?,
            client,
            gitea,
            bot,
            http: reqwest::Client::builder()
                .no_proxy()
                .redirect(reqwest::redirect::Policy::none())
                .build()?,
            _control_plane: control_plane,
            _others: vec![source, applies, pipelines],
        })
    }

    async fn get(&self, token: &str, path: &str) -> Result<(StatusCode, Value)> {
        let url = format!("{}/{path}", self.console.api_url());
        let answer = self.http.get(url).bearer_auth(token).send().await?;
        Ok((answer.status(), answer.json().await?))
    }

    async fn change(&self, token: &str, change: &Value) -> Result<(StatusCode, Value)> {
        let url = format!("{}/changes", self.console.api_url());
        let answer = self.http.post(url).bearer_auth(token).json(change).send().await?;
        Ok((answer.status(), answer.json().await?))
    }

    async fn page(&self, token: &str, path: &str) -> Result<(StatusCode, String)> {
        let base = self.console.api_url().replace("/api/v1", "");
        let request = self.http.get(format!("{base}{path}")).bearer_auth(token);
        let answer = request.header(ACCEPT, "text/html").send().await?;
        Ok((answer.status(), answer.text().await?))
    }

    /// Sends a form: the status, where it leads, and the page.
    async fn send(&self, token: &str, fields: &[(&str, &str)]) -> Result<(StatusCode, String, String)> {
        let base = self.console.api_url().replace("/api/v1", "");
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(fields)
            .finish();
        let request = self.http.post(format!("{base}/changes")).bearer_auth(token);
        let request = request
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(body);
        let answer = request.header(ACCEPT, "text/html").send().await?;
        let to = answer.headers().get(LOCATION).and_then(|to| to.to_str().ok());
        let (status, to) = (answer.status(), to.unwrap_or_default().to_owned());
        Ok((status, to, answer.text().await?))
    }

    async fn requests(&self, number: usize) -> Result<Vec<Value>> {
        let path = format!("repos/{}/fleet/pulls?state=all&sort=oldest", self.bot.name);
        let looking = async {
            loop {
                let all = self.gitea.call(Method::GET, &path, None).await?;
                let all = all.as_array().cloned().unwrap_or_default();
                if all.len() == number {
                    return Ok::<_, anyhow::Error>(all);
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await; // a forge has no watch
            }
        };
        tokio::time::timeout(PATIENCE, looking)
            .await
            .context("no such pull requests")?
    }

    async fn requests_now(&self) -> Result<usize> {
        let path = format!("repos/{}/fleet/pulls?state=all", self.bot.name);
        let all = self.gitea.call(Method::GET, &path, None).await?;
        Ok(all.as_array().map_or(0, Vec::len))
    }

    async fn merge(&self, number: u64) -> Result<()> {
        let path = format!("repos/{}/fleet/pulls/{number}/merge", self.bot.name);
        let merging = async {
            // Gitea looks for conflicts in the background first.
            while self
                .gitea
                .call_as(&self.bot, Method::POST, &path, Some(json!({"Do": "merge"})))
                .await
                .is_err()
            {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, merging)
            .await
            .context("it is not merged")
    }
}

fn place(name: &str) -> Value {
    json!({"namespace": NAMESPACE, "name": name})
}

/// A change of the nested Kustomization.
fn edited(manifest: &Value, content: &str) -> Value {
    json!({
        "cluster": "local", "kustomization": manifest["kustomization"], "policy": place("review"), "title": "Look more often",
        "reason": "It is slow.",
        "files": [{
            "path": manifest["path"], "object": manifest["object"], "digest": manifest["digest"], "content": content,
        }],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_shown_proposed_and_does_what_was_shown() -> Result<()> {
    let shop = Shop::open().await?;
    by_api(&shop).await?;
    by_page(&shop).await?;
    by_schema(&shop).await?;
    a_pipeline(&shop).await?;
    by_others(&shop).await
}

async fn by_api(shop: &Shop) -> Result<()> {
    let at = format!("objects/local/ks/{NAMESPACE}/nested/manifest");
    let (status, manifest) = shop.get(ANA, &at).await?;
    ensure!(status == StatusCode::OK, "{manifest}");
    let found = (
        manifest["path"].as_str(),
        manifest["content"].as_str(),
        &manifest["policies"],
    );
    assert_eq!(
        found,
        (
            Some("deploy/nested.yaml"),
            Some(NESTED),
            &json!([place("review")])
        )
    );
    assert_eq!(manifest["isOutside"], false);

    // What it would change: the line in the file, and the field in the cluster.
    let content = NESTED.replace("1h #", "7m #");
    let mut change = edited(&manifest, &content);
    change["dryRun"] = json!(true);
    let (status, answer) = shop.change(ANA, &change).await?;
    ensure!(status == StatusCode::OK, "{answer}");
    let lines = answer["files"][0]["lines"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    ensure!(
        lines.contains(&json!("-  interval: 1h # often enough")),
        "{answer:#}"
    );
    ensure!(
        lines.contains(&json!("+  interval: 7m # often enough")),
        "{answer:#}"
    );
    let object = &answer["objects"][0];
    assert_eq!(
        object["object"],
        format!("Kustomization/{NAMESPACE}/nested"),
        "{answer:#}"
    );
    let field = &object["fields"][0];
    assert_eq!(
        (&field["path"], &field["old"], &field["new"]),
        (&json!("spec.interval"), &json!("\"1h\""), &json!("\"7m\""))
    );
    ensure!(answer.get("request").is_none());
    assert_eq!(
        objects::api(&shop.client, DELIVERY, "ChangeRequest", NAMESPACE)
            .list(&Default::default())
            .await?
            .items
            .len(),
        0
    );

    // It is proposed in the name of who asks, and delivered when it is merged: just this.
    change["dryRun"] = json!(false);
    let (status, answer) = shop.change(ANA, &change).await?;
    ensure!(status == StatusCode::OK, "{answer}");
    let name = answer["request"]["name"].as_str().unwrap_or_default();
    ensure!(name.starts_with("look-more-often-"), "{name}");
    let all = shop.requests(1).await?;
    let body = all[0]["body"].as_str().unwrap_or_default();
    ensure!(
        body.contains(&format!("`{ANA_EVERYWHERE}` asks for this change.")),
        "{body}"
    );
    let api = objects::api(&shop.client, DELIVERY, "ChangeRequest", NAMESPACE);
    let made = wait_for(
        &api,
        name,
        |one| text(one, "/status/pullRequest/state") == "Open",
        PATIENCE,
    )
    .await?;
    assert_eq!(text(&made, "/spec/requestedBy"), ANA_EVERYWHERE);
    shop.merge(1).await?;
    let kustomizations = objects::api(&shop.client, KUSTOMIZE, "Kustomization", NAMESPACE);
    wait_for(
        &kustomizations,
        "nested",
        |one| text(one, "/spec/interval") == "7m",
        PATIENCE,
    )
    .await?;
    let file = shop
        .gitea
        .file(&format!("{}/fleet", shop.bot.name), "main", "deploy/nested.yaml")
        .await?;
    assert_eq!(file, content);
    // The page of the request has the pull request; the ledger has who did it.
    let (status, page) = shop
        .page(ANA, &format!("/objects/local/ChangeRequest/{NAMESPACE}/{name}"))
        .await?;
    ensure!(
        status == StatusCode::OK && page.contains("/pulls/1\"") && page.contains("Look more often"),
        "{page}"
    );
    let (_, actions) = shop.get(ANA, "actions").await?;
    let action = &actions["items"][0];
    assert_eq!(
        (&action["verb"], &action["username"]),
        (&json!("propose"), &json!(ANA_EVERYWHERE)),
        "{actions:#}"
    );
    Ok(())
}

/// A new object by a form, shown with what it would change, and then proposed.
async fn by_page(shop: &Shop) -> Result<()> {
    let (status, page) = shop.page(ANA, "/new").await?;
    ensure!(
        status == StatusCode::OK && page.contains("href=\"/new/HelmRelease\""),
        "{page}"
    );
    let (status, page) = shop.page(ANA, "/new/Kustomization").await?;
    ensure!(
        status == StatusCode::OK && page.contains(&format!("<option value=\"{NAMESPACE}/app\">")),
        "{status} {page}"
    );
    let kustomization = format!("{NAMESPACE}/app");
    let typed = [
        ("kind", "Kustomization"),
        ("cluster", "local"),
        ("kustomization", kustomization.as_str()),
        ("name", "second"),
        ("spec.sourceRef.kind", "GitRepository"),
        ("spec.sourceRef.name", "repo"),
        ("spec.path", "./nested"),
        ("spec.interval", "1h"),
        ("spec.prune", "true"),
        ("path", ""),
        ("step", "preview"),
    ];
    let (status, _, page) = shop.send(ANA, &typed).await?;
    ensure!(status == StatusCode::OK, "{page}");
    for text in [
        "deploy/kustomization-second.yaml",
        "kind: Kustomization",
        "created",
        "value=\"propose\"",
        "+- kustomization-second.yaml",
    ] {
        ensure!(page.contains(text), "{text}: {page}");
    }
    // Of the list of files, only what is added is shown.
    ensure!(!page.contains("All of it."), "{page}");
    let content = "apiVersion: kustomize.toolkit.fluxcd.io/v1\r\nkind: Kustomization\r\nmetadata: {name: second}\r\nspec: {interval: 1h, \
                   prune: true, path: ./nested, sourceRef: {kind: GitRepository, name: repo}}\r\n";
    let review = format!("{NAMESPACE}/review");
    let mut draft = vec![
        ("cluster", "local"),
        ("kustomization", kustomization.as_str()),
        ("object", ""),
        ("digest", ""),
        ("path", "deploy/second.yaml"),
        ("content", content),
        ("title", "Add the second"),
        ("reason", ""),
        ("policy", review.as_str()),
        ("step", "propose"),
    ];
    let (status, to, page) = shop.send(ANA, &draft).await?;
    ensure!(status == StatusCode::SEE_OTHER, "{status} {page}");
    ensure!(
        to.starts_with(&format!(
            "/objects/local/ChangeRequest/{NAMESPACE}/add-the-second-"
        )),
        "{to}"
    );
    let (status, page) = shop.page(ANA, &to).await?;
    ensure!(
        status == StatusCode::OK && page.contains("Add the second"),
        "{status} {page}"
    );
    shop.requests(2).await?;
    shop.merge(2).await?;
    let kustomizations = objects::api(&shop.client, KUSTOMIZE, "Kustomization", NAMESPACE);
    wait_for(&kustomizations, "second", is_ready, PATIENCE).await?;
    let file = |path: &'static str| async move {
        shop.gitea
            .file(&format!("{}/fleet", shop.bot.name), "main", path)
            .await
    };
    assert_eq!(file("deploy/second.yaml").await?, content.replace("\r\n", "\n"));
    assert_eq!(
        file("deploy/kustomization.yaml").await?,
        "# All of it.\nresources:\n- nested.yaml\n- second.yaml\n"
    );

    // What is written is not lost when it cannot be proposed, and stays text.
    let bad = format!("{content}# {SCRIPT}\n");
    draft[4] = ("path", ".github/workflows/second.yaml");
    draft[5] = ("content", &bad);
    draft[6] = ("title", SCRIPT);
    for step in ["preview", "propose"] {
        draft[9] = ("step", step);
        let (status, _, page) = shop.send(ANA, &draft).await?;
        let is_refused = match step {
            "preview" => status == StatusCode::CONFLICT && page.contains("hidden files or folders"),
            // The controller refuses it later; what the API server accepts is made.
            _ => status == StatusCode::SEE_OTHER,
        };
        ensure!(is_refused, "{step}: {status} {page}");
        ensure!(!page.contains("<script>alert"), "{page}");
    }
    let (status, page) = shop.page(ANA, "/changes").await?;
    ensure!(
        status == StatusCode::OK && !page.contains("<script>alert"),
        "{page}"
    );
    Ok(())
}

/// A pipeline that someone makes in the page, and that is delivered as everything else is.
async fn a_pipeline(shop: &Shop) -> Result<()> {
    let kustomization = format!("{NAMESPACE}/app");
    let typed = [
        ("kind", "Pipeline"),
        ("cluster", "local"),
        ("kustomization", kustomization.as_str()),
        ("name", "shop"),
        ("spec.apps.0.kind", "Kustomization"),
        ("spec.apps.0.name", "nested"),
        ("spec.environments", "dev: shop\r\nproduction: shop-eu shop-us"),
        ("spec.changePolicyRef.name", "review"),
        ("path", "deploy/pipeline.yaml"),
    ];
    let (status, _, page) = shop.send(ANA, &typed).await?;
    ensure!(
        status == StatusCode::OK && page.contains("Add Pipeline/shop"),
        "{status} {page}"
    );
    let begin = page
        .find("<textarea class=\"manifest\"")
        .context("there is no manifest")?;
    let text = page[begin..].split_once('>').map_or("", |(_, rest)| rest);
    let content = text
        .split_once("</textarea>")
        .map_or("", |(content, _)| content)
        .trim_start();
    let review = format!("{NAMESPACE}/review");
    let draft = [
        ("cluster", "local"),
        ("kustomization", kustomization.as_str()),
        ("object", ""),
        ("digest", ""),
        ("path", "deploy/pipeline.yaml"),
        ("content", content),
        ("title", "Promote the shop"),
        ("reason", ""),
        ("policy", review.as_str()),
        ("step", "propose"),
    ];
    let before = shop.requests_now().await?;
    let (status, _, page) = shop.send(ANA, &draft).await?;
    ensure!(status == StatusCode::SEE_OTHER, "{status} {page}");
    shop.requests(before + 1).await?;
    shop.merge(before as u64 + 1).await?;
    let pipelines = objects::api(&shop.client, DELIVERY, "Pipeline", NAMESPACE);
    let is_judged = |one: &kube::api::DynamicObject| condition(one, "Ready").is_some();
    let made = wait_for(&pipelines, "shop", is_judged, PATIENCE).await?;
    let targets = objects::field(&made, "/spec/environments/1/targets");
    assert_eq!(
        targets,
        Some(&json!([{"namespace": "shop-eu"}, {"namespace": "shop-us"}]))
    );
    Ok(())
}

/// A release with the values that its chart takes.
async fn by_schema(shop: &Shop) -> Result<()> {
    let chart = format!("HelmChart/{NAMESPACE}/web");
    let (status, page) = shop.page(ANA, "/new/HelmRelease").await?;
    ensure!(
        status == StatusCode::OK && page.contains(&format!("<option>{chart}</option>")),
        "{page}"
    );
    let (status, page) = shop.page(ANA, &format!("/new/HelmRelease?chart={chart}")).await?;
    for text in [
        "name=\"values:integer:/replicas\"",
        "name=\"values:string:/image/tag\"",
        "<option>Never</option>",
        "(default: 1)",
    ] {
        ensure!(status == StatusCode::OK && page.contains(text), "{text}: {page}");
    }
    ensure!(!page.contains("<script>alert"), "{page}");
    let kustomization = format!("{NAMESPACE}/app");
    let mut typed = vec![
        ("kind", "HelmRelease"),
        ("cluster", "local"),
        ("kustomization", kustomization.as_str()),
        ("name", "web"),
        ("spec.chartRef.kind", "HelmChart"),
        ("spec.chartRef.namespace", NAMESPACE),
        ("spec.chartRef.name", "web"),
        ("spec.interval", "1h"),
        ("values:integer:/replicas", "3"),
        ("values:string:/image/pull", "Never"),
    ];
    let (status, _, page) = shop.send(ANA, &typed).await?;
    let values = "  values:\n    image:\n      pull: Never\n    replicas: 3\n";
    ensure!(
        status == StatusCode::OK && page.contains(values),
        "{status} {page}"
    );
    typed[8].1 = "many";
    let (status, _, page) = shop.send(ANA, &typed).await?;
    ensure!(
        status == StatusCode::BAD_REQUEST && page.contains("values.replicas: it must be a whole number"),
        "{status} {page}"
    );
    // Who may not get the chart is not told what it takes.
    let (_, page) = shop.page(EVE, &format!("/new/HelmRelease?chart={chart}")).await?;
    ensure!(!page.contains("replicas"), "{page}");
    Ok(())
}

/// What those may not who lack rights, and what nobody may.
async fn by_others(shop: &Shop) -> Result<()> {
    let at = format!("objects/local/ks/{NAMESPACE}/nested/manifest");
    let (status, answer) = shop.get(EVE, &at).await?;
    ensure!(
        status == StatusCode::FORBIDDEN && !answer.to_string().contains("nested.yaml"),
        "{answer}"
    );
    let (_, manifest) = shop.get(ANA, &at).await?;
    let content = manifest["content"]
        .as_str()
        .unwrap_or_default()
        .replace("7m", "9m");
    let mut change = edited(&manifest, &content);
    // Bob sees what it would change, and may not have it proposed.
    change["dryRun"] = json!(true);
    let (status, answer) = shop.change(BOB, &change).await?;
    ensure!(status == StatusCode::OK, "{answer}");
    let (status, answer) = shop.change(EVE, &change).await?;
    ensure!(
        status == StatusCode::CONFLICT && !answer.to_string().contains("interval"),
        "{status} {answer}"
    );
    change["dryRun"] = json!(false);
    for token in [BOB, EVE] {
        let (status, answer) = shop.change(token, &change).await?;
        ensure!(status == StatusCode::FORBIDDEN, "{status} {answer}");
        ensure!(
            answer["message"]
                .as_str()
                .is_some_and(|said| said.contains("cannot create resource")),
            "{answer}"
        );
    }
    // Another site's form is refused by the session's rules; one without a session has no rights at all.
    let base = shop.console.api_url();
    let request = shop
        .http
        .post(format!("{base}/changes"))
        .header(ORIGIN, "https://evil.example.com");
    let answer = request.json(&change).send().await?;
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);

    let cases: [(&str, Value, StatusCode, &str); 7] = [
        (
            "kustomization",
            json!({"namespace": "../..", "name": "app"}),
            StatusCode::BAD_REQUEST,
            "no namespace and name",
        ),
        (
            "policy",
            json!({"namespace": NAMESPACE, "name": "a/b"}),
            StatusCode::BAD_REQUEST,
            "no namespace and name",
        ),
        ("title", json!("two\nlines"), StatusCode::BAD_REQUEST, "one line"),
        ("title", json!(""), StatusCode::BAD_REQUEST, "one line"),
        (
            "reason",
            json!("x".repeat(1001)),
            StatusCode::BAD_REQUEST,
            "longer than",
        ),
        ("files", json!([]), StatusCode::BAD_REQUEST, "from 1 to 20"),
        (
            "cluster",
            json!("no-such"),
            StatusCode::UNPROCESSABLE_ENTITY,
            "has no user for you",
        ),
    ];
    for (field, value, code, said) in cases {
        let mut change = change.clone();
        change[field] = value;
        let (status, answer) = shop.change(ANA, &change).await?;
        ensure!(
            status == code
                && answer["message"]
                    .as_str()
                    .is_some_and(|message| message.contains(said)),
            "{field}: {status} {answer}"
        );
    }
    change["dryRun"] = json!(true);
    let wrong = [
        (
            json!({"digest": "0".repeat(64)}),
            "was changed in Git since it was read",
        ),
        (
            json!({"path": "deploy/none.yaml"}),
            "no single Kustomization/nested",
        ),
        (
            json!({"content": content.replace("name: nested", "name: other")}),
            "another name would be another object",
        ),
    ];
    for (more, said) in wrong {
        let mut change = change.clone();
        for (key, value) in more.as_object().into_iter().flatten() {
            change["files"][0][key] = value.clone();
        }
        let (status, answer) = shop.change(ANA, &change).await?;
        ensure!(
            status == StatusCode::CONFLICT
                && answer["message"]
                    .as_str()
                    .is_some_and(|message| message.contains(said)),
            "{said}: {status} {answer}"
        );
    }
    // Repositories are found by what applied an object; what nothing applied has no file.
    let (status, answer) = shop
        .get(ANA, &format!("objects/local/ks/{NAMESPACE}/app/manifest"))
        .await?;
    ensure!(
        status == StatusCode::CONFLICT && answer.to_string().contains("was not applied by a Kustomization"),
        "{answer}"
    );
    let sources = objects::api(&shop.client, SOURCE, "GitRepository", NAMESPACE);
    ensure!(condition(&sources.get("repo").await?, "Ready").is_some());
    Ok(())
}
