//! People at browsers: in by an identity provider, out again, and other sites that would act as them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use reqwest::header::{COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::objects::apply;
use testkit::{Controller, Dex, Gitea, dex};

use crate::world::{ANA, ANA_EVERYWHERE, Scene, names, play};

/// Where people find the console, as its configuration says; the browser of these stories knows the port.
const BASE: &str = "http://localhost";
const CALLBACK: &str = "http://localhost/oauth2/callback";

/// A console that people sign in to.
struct Entrance {
    console: Controller,
    config: PathBuf,
    key: PathBuf,
}

impl Entrance {
    async fn open(scene: &Scene, authentication: &Value) -> Result<Self> {
        // They stay as long as the process does.
        let folder = testkit::scratch::directory("sign-in")?.keep();
        let (config, key) = (folder.join("config.yaml"), folder.join("key"));
        let text = json!({
            "apiVersion": "web.fluxcd.controlplane.io/v1", "kind": "Config",
            "spec": {"baseURL": BASE, "authentication": authentication},
        });
        std::fs::write(&config, text.to_string())?;
        std::fs::write(&key, "a key of this test that has more than 32 bytes\n")?;
        let console = Self::start(scene, &config, &key).await?;
        Ok(Self { console, config, key })
    }

    /// Another one with the same configuration and key.
    async fn replica(&self, scene: &Scene) -> Result<Controller> {
        Self::start(scene, &self.config, &self.key).await
    }

    async fn start(scene: &Scene, config: &std::path::Path, key: &std::path::Path) -> Result<Controller> {
        let options = ControllerOptions {
            flags: vec![
                format!("--sign-in-config={}", config.display()),
                format!("--session-key-file={}", key.display()),
            ],
            ..ControllerOptions::default()
        };
        Controller::start_console(scene.world.control_plane.kubeconfig_path(), options).await
    }
}

/// A browser at `BASE`, which leads to a console.
#[derive(Clone)]
struct Browser {
    http: reqwest::Client,
    cookies: BTreeMap<String, String>,
}

impl Browser {
    fn of(console: &Controller) -> Result<Self> {
        let address = console.api_url();
        let address = address
            .trim_start_matches("http://")
            .split('/')
            .next()
            .context("no address")?;
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .resolve("localhost", address.parse()?)
            .build()?;
        Ok(Self {
            http,
            cookies: BTreeMap::new(),
        })
    }

    /// A request with its cookies. An address of `BASE` is meant if only a path is given.
    fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        let url = if path.starts_with('/') {
            format!("{BASE}{path}")
        } else {
            path.to_owned()
        };
        let cookies: Vec<_> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        self.http.request(method, url).header(COOKIE, cookies.join("; "))
    }

    /// Sends it and keeps what cookies come: the status, where it leads, and what it says.
    async fn send(&mut self, request: RequestBuilder) -> Result<(StatusCode, String, Value)> {
        let answer = request.send().await?;
        for cookie in answer.headers().get_all(SET_COOKIE) {
            let text = cookie.to_str()?;
            ensure!(
                text.contains("HttpOnly") && text.contains("SameSite=Lax") && text.contains("Path=/"),
                "{text}"
            );
            let (name, value) = text
                .split(';')
                .next()
                .and_then(|pair| pair.split_once('='))
                .context("no cookie")?;
            if value.is_empty() {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        let status = answer.status();
        let next = answer.headers().get(LOCATION).and_then(|next| next.to_str().ok());
        let next = next.unwrap_or_default().to_owned();
        let text = answer.text().await?;
        Ok((status, next, serde_json::from_str(&text).unwrap_or_default()))
    }

    async fn visit(&mut self, path: &str) -> Result<(StatusCode, String, Value)> {
        let request = self.ask(Method::GET, path);
        self.send(request).await
    }

    /// Begins to sign in: where the provider is.
    async fn begin(&mut self, to: &str) -> Result<String> {
        let (status, next, told) = self.visit(&format!("/oauth2/sign-in?to={to}")).await?;
        ensure!(status == StatusCode::SEE_OTHER, "{status} {told}");
        Ok(next)
    }
}

fn oauth2(issuer: &str, client: &str, secret: &str) -> Value {
    json!({"provider": "OIDC", "issuerURL": issuer, "clientID": client, "clientSecret": secret})
}

/// Lets a user or a group get the Kustomizations of a namespace.
async fn let_get(scene: &Scene, kind: &str, name: &str) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let version = format!("{group}/v1");
    let metadata = json!({"name": "viewers", "namespace": scene.namespace});
    let rule = json!({"apiGroups": ["kustomize.toolkit.fluxcd.io"], "resources": ["kustomizations"], "verbs": ["get"]});
    let role = json!({"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": [rule]});
    apply(&scene.client, &role).await?;
    let binding = json!({
        "apiVersion": version, "kind": "RoleBinding", "metadata": metadata,
        "subjects": [{"kind": kind, "name": name, "apiGroup": group}],
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "viewers"},
    });
    apply(&scene.client, &binding).await.map(drop)
}

#[test]
fn people_sign_in_at_dex_and_see_what_their_group_may() {
    play("dex", async |scene| {
        let dex = Dex::start(CALLBACK).await?;
        let authentication = json!({
            "type": "OAuth2", "oauth2": oauth2(dex.issuer(), dex::CLIENT_ID, dex::CLIENT_SECRET),
        });
        let entrance = Entrance::open(&scene, &authentication).await?;
        scene.kustomization(&scene.namespace, "web", "True", &[]).await?;
        let_get(&scene, "Group", dex::GROUP).await?;
        let mut browser = Browser::of(&entrance.console)?;
        let (status, _, told) = browser.visit("/api/v1/me").await?;
        ensure!(
            status == StatusCode::UNAUTHORIZED && told.to_string().contains("/oauth2/sign-in"),
            "{status} {told}"
        );

        let provider = browser.begin("/api/v1/me").await?;
        let back = dex::follow(&browser.http, provider, CALLBACK).await?;
        // Someone who was made to follow another one's way has not begun it.
        let mut stranger = Browser::of(&entrance.console)?;
        let (status, _, _) = stranger.visit(&back).await?;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        let (status, next, told) = browser.visit(&back).await?;
        ensure!(
            (status, next.as_str()) == (StatusCode::SEE_OTHER, "/api/v1/me"),
            "{status} {next} {told}"
        );
        let (status, _, _) = browser.visit(&back).await?;
        assert_eq!(status, StatusCode::BAD_REQUEST, "a code buys one session");

        let (_, _, me) = browser.visit("/api/v1/me").await?;
        assert_eq!(
            (&me["username"], &me["name"]),
            (&json!(dex::EMAIL), &json!("Kilgore Trout"))
        );
        assert_eq!(me["groups"], json!([dex::GROUP, "system:authenticated"]));
        assert_eq!(me["signedInBy"], "session");
        let (_, _, page) = browser.visit("/api/v1/objects").await?;
        assert_eq!(names(&page), ["Kustomization/web"], "{page:#}");

        // Each replica with the key knows them; nobody can make a cookie.
        let replica = entrance.replica(&scene).await?;
        let mut there = Browser {
            cookies: browser.cookies.clone(),
            ..Browser::of(&replica)?
        };
        assert_eq!(there.visit("/api/v1/me").await?.2["username"], dex::EMAIL);
        let mut forged = browser.clone();
        for value in forged.cookies.values_mut() {
            value.replace_range(10..12, "xx");
        }
        assert_eq!(forged.visit("/api/v1/me").await?.0, StatusCode::UNAUTHORIZED);

        other_sites_act_as_nobody(&mut browser).await?;
        // Who has a token needs neither name nor page.
        let url = format!("{}/me", entrance.console.api_url());
        let answer = browser.http.get(url).bearer_auth(ANA).send().await?;
        assert_eq!(answer.json::<Value>().await?["username"], ANA_EVERYWHERE);

        let kept = browser.clone();
        let out = browser.ask(Method::POST, "/oauth2/sign-out").header(ORIGIN, BASE);
        let (status, _, _) = browser.send(out).await?;
        assert_eq!((status, browser.cookies.len()), (StatusCode::SEE_OTHER, 0));
        let (status, _, _) = kept.clone().visit("/api/v1/me").await?;
        assert_eq!(
            status,
            StatusCode::UNAUTHORIZED,
            "a cookie that was kept ends with its session"
        );
        Ok(())
    });
}

/// What a page of another site can have a browser send.
async fn other_sites_act_as_nobody(browser: &mut Browser) -> Result<()> {
    let sites: [&[(&str, &str)]; 4] = [
        &[("origin", "https://evil.example.com")],
        &[("origin", "null")],
        &[
            ("origin", "http://localhost:9999"),
            ("sec-fetch-site", "same-site"),
        ],
        &[],
    ];
    for headers in sites {
        for path in ["/oauth2/sign-out", "/api/v1/actions", "/api/v1/me"] {
            let method = if path == "/api/v1/me" {
                Method::GET
            } else {
                Method::POST
            };
            if headers.is_empty() && method == Method::GET {
                continue; // a program that reads, or a visit
            }
            let mut request = browser.ask(method, path);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let (status, _, told) = browser.clone().send(request).await?;
            ensure!(
                status == StatusCode::FORBIDDEN,
                "{path} {headers:?}: {status} {told}"
            );
        }
    }
    // A name that someone has lead here.
    let request = browser
        .ask(Method::GET, "/api/v1/me")
        .header(HOST, "evil.example.com");
    assert_eq!(browser.clone().send(request).await?.0, StatusCode::FORBIDDEN);
    // Nothing is shared with other sites.
    for method in [Method::OPTIONS, Method::GET] {
        let request = browser.ask(method, "/api/v1/me");
        let request = request
            .header(ORIGIN, "https://evil.example.com")
            .header("access-control-request-method", "POST");
        let answer = request.send().await?;
        ensure!(
            !answer
                .headers()
                .keys()
                .any(|name| name.as_str().starts_with("access-control"))
        );
    }
    assert_eq!(
        browser.visit("/api/v1/me").await?.0,
        StatusCode::OK,
        "they are still signed in"
    );
    Ok(())
}

#[test]
fn people_sign_in_at_gitea_by_the_rules_of_the_file() {
    play("gitea", async |scene| {
        let gitea = Gitea::start().await?;
        let owner = gitea.add_user("owner").await?;
        let (ana, eve) = (gitea.add_user("ana").await?, gitea.add_user("eve").await?);
        let (client, secret) = gitea.add_application(&owner, CALLBACK).await?;
        let mut oauth2 = oauth2(gitea.url(), &client, &secret);
        oauth2["variables"] = json!([{"name": "login", "expression": "claims.preferred_username"}]);
        oauth2["validations"] = json!([{"expression": "variables.login != 'eve'", "message": "eve may not"}]);
        oauth2["impersonation"] =
            json!({"username": "'gitea:' + variables.login", "groups": "['system:masters', 'people']"});
        let authentication = json!({"type": "OAuth2", "sessionDuration": "1h", "oauth2": oauth2});
        let entrance = Entrance::open(&scene, &authentication).await?;
        scene.kustomization(&scene.namespace, "web", "True", &[]).await?;
        let_get(&scene, "User", "gitea:ana").await?;

        let mut browser = Browser::of(&entrance.console)?;
        let page = browser.begin("//evil.example.com").await?;
        let back = gitea.sign_in_to(&ana, &page).await?;
        let (status, next, told) = browser.visit(&back).await?;
        ensure!(
            (status, next.as_str()) == (StatusCode::SEE_OTHER, "/"),
            "{status} {next} {told}"
        );
        let (_, _, me) = browser.visit("/api/v1/me").await?;
        assert_eq!(me["username"], "gitea:ana");
        assert_eq!(me["groups"], json!(["people", "system:authenticated"]));
        let (_, _, page) = browser.visit("/api/v1/objects").await?;
        assert_eq!(names(&page), ["Kustomization/web"], "{page:#}");

        let mut browser = Browser::of(&entrance.console)?;
        let page = browser.begin("/").await?;
        let back = gitea.sign_in_to(&eve, &page).await?;
        let (status, _, told) = browser.visit(&back).await?;
        assert_eq!(
            (status, &told["message"]),
            (StatusCode::FORBIDDEN, &json!("eve may not"))
        );
        // Who does not agree is sent back, too.
        let page = browser.begin("/").await?;
        let state = page
            .split("state=")
            .nth(1)
            .and_then(|rest| rest.split('&').next())
            .context("no state")?;
        let refused = format!("/oauth2/callback?error=access_denied&error_description=no&state={state}");
        let (status, _, told) = browser.visit(&refused).await?;
        ensure!(
            status == StatusCode::FORBIDDEN && told.to_string().contains("refused: no"),
            "{status} {told}"
        );
        Ok(())
    });
}

#[test]
fn everyone_is_the_guest_where_the_file_says_so() {
    play("guest", async |scene| {
        let authentication =
            json!({"type": "Anonymous", "anonymous": {"username": "guest", "groups": ["viewers"]}});
        let entrance = Entrance::open(&scene, &authentication).await?;
        scene.kustomization(&scene.namespace, "web", "True", &[]).await?;
        let_get(&scene, "Group", "viewers").await?;
        let mut browser = Browser::of(&entrance.console)?;
        let (_, _, me) = browser.visit("/api/v1/me").await?;
        assert_eq!(
            (&me["username"], &me["signedInBy"]),
            (&json!("guest"), &json!("anonymous"))
        );
        let (_, _, page) = browser.visit("/api/v1/objects").await?;
        assert_eq!(names(&page), ["Kustomization/web"], "{page:#}");
        let request = browser
            .ask(Method::GET, "/api/v1/me")
            .header(HOST, "evil.example.com");
        assert_eq!(browser.send(request).await?.0, StatusCode::FORBIDDEN);
        // A wrong token is not someone without one.
        let request = browser.ask(Method::GET, "/api/v1/me").bearer_auth("a.b.c");
        assert_eq!(browser.send(request).await?.0, StatusCode::UNAUTHORIZED);
        let (status, _, _) = browser.visit("/oauth2/sign-in").await?;
        assert_eq!(status, StatusCode::NOT_FOUND);
        Ok(())
    });
}
