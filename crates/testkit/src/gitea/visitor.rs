//! A person at a browser who signs in to something else by their account at a Gitea.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use reqwest::{Method, StatusCode, Url};
use serde_json::json;

use super::{Gitea, User};

/// A page's hidden fields begin so.
const HIDDEN: &str = "<input type=\"hidden\" name=\"";

impl Gitea {
    /// Adds an application that people sign in to: its id and its password.
    pub async fn add_application(&self, owner: &User, callback: &str) -> Result<(String, String)> {
        let body = json!({"name": "console", "redirect_uris": [callback], "confidential_client": true});
        let made = self
            .call_as(owner, Method::POST, "user/applications/oauth2", Some(body))
            .await?;
        let text = |field: &str| {
            made[field]
                .as_str()
                .map(str::to_owned)
                .context("Gitea names no client")
        };
        Ok((text("client_id")?, text("client_secret")?))
    }

    /// Visits the page of an application as a user who signs in with a password and agrees; where Gitea sends them then.
    pub async fn sign_in_to(&self, user: &User, page: &str) -> Result<String> {
        let password = "a-password-for-tests";
        let body = json!({"password": password, "login_name": user.name, "source_id": 0, "must_change_password": false});
        self.call(Method::PATCH, &format!("admin/users/{}", user.name), Some(body))
            .await?;
        let redirect = reqwest::redirect::Policy::none();
        let http = reqwest::Client::builder().no_proxy().redirect(redirect).build()?;
        let mut visitor = Visitor {
            http,
            cookies: BTreeMap::new(),
        };
        let sign_in = format!("{}/user/login", self.url);
        let mut form = visitor.form(&sign_in).await?;
        form.insert("user_name".to_owned(), user.name.clone());
        form.insert("password".to_owned(), password.to_owned());
        let answer = visitor.send(Method::POST, &sign_in, Some(&form)).await?;
        ensure!(
            answer.status() == StatusCode::SEE_OTHER,
            "Gitea lets nobody in: {}",
            answer.status()
        );
        let mut form = visitor.form(page).await?;
        form.insert("granted".to_owned(), "true".to_owned());
        let answer = visitor
            .send(
                Method::POST,
                &format!("{}/login/oauth/grant", self.url),
                Some(&form),
            )
            .await?;
        let next = answer
            .headers()
            .get("location")
            .and_then(|next| next.to_str().ok());
        let next = next.map(str::to_owned);
        next.with_context(|| format!("Gitea grants nothing: {}", answer.status()))
    }
}

struct Visitor {
    http: reqwest::Client,
    cookies: BTreeMap<String, String>,
}

impl Visitor {
    async fn send(
        &mut self,
        method: Method,
        url: &str,
        form: Option<&BTreeMap<String, String>>,
    ) -> Result<reqwest::Response> {
        let cookies: Vec<_> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let mut request = self
            .http
            .request(method, url)
            .header("Cookie", cookies.join("; "));
        if let Some(form) = form {
            // A form is written as a query is.
            let written = Url::parse_with_params("http://form", form)?;
            let body = written.query().unwrap_or_default().to_owned();
            request = request
                .header("Content-Type", "application/x-www-form-urlencoded")
                .body(body);
        }
        let answer = request.send().await?;
        for cookie in answer.headers().get_all("set-cookie") {
            let pair = cookie.to_str()?.split(';').next().unwrap_or_default();
            if let Some((name, value)) = pair.split_once('=') {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        Ok(answer)
    }

    /// The hidden fields of a page.
    async fn form(&mut self, url: &str) -> Result<BTreeMap<String, String>> {
        let answer = self.send(Method::GET, url, None).await?;
        ensure!(
            answer.status() == StatusCode::OK,
            "{url} answers {}",
            answer.status()
        );
        let page = answer.text().await?;
        let fields = page.split(HIDDEN).skip(1);
        let field = |text: &str| {
            let (name, rest) = text.split_once('"')?;
            let value = rest.split_once("value=\"")?.1.split_once('"')?.0;
            let value = value
                .replace("&#43;", "+")
                .replace("&#34;", "\"")
                .replace("&#39;", "'")
                .replace("&amp;", "&");
            Some((name.to_owned(), value))
        };
        Ok(fields.filter_map(field).collect())
    }
}
