//! The part of the OCI distribution API that pushing needs: blobs that are not there yet, then the manifest under its tag.

use std::time::Duration;

use artifact::Digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use delivery_graph::one_line;
use oci_client::challenge::{self, Challenge};
use oci_client::credentials::Credentials;
use oci_client::name::Name;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Client, Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::image::{Image, MANIFEST};
use crate::progress::Progress;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest silence: a registry may take its time to store a large blob.
const READ_TIMEOUT: Duration = Duration::from_secs(120);
/// Characters of an answer that are told.
const TOLD: usize = 300;

/// A repository that may be pushed to.
pub(super) struct Registry {
    client: Client,
    name: Name,
    base: Url,
    credentials: Option<Credentials>,
    authorization: Option<HeaderValue>,
}

impl Registry {
    /// Finds out how the registry is spoken to, and signs in.
    pub(super) async fn connect(
        name: Name,
        credentials: Option<Credentials>,
        insecure: bool,
    ) -> Result<Self, String> {
        let client = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")));
        let client = client.build().map_err(said)?;
        // As Flux's library: https first, and http where that is asked for or the kind of address allows it.
        let schemes: &[&str] = match insecure || name.is_local() {
            true => &["https", "http"],
            false => &["https"],
        };
        let mut failure = String::new();
        for scheme in schemes {
            let base = format!("{scheme}://{}/v2/", name.registry);
            let base: Url = base.parse().map_err(|error| format!("{base}: {error}"))?;
            let answer = match client.get(base.clone()).send().await {
                Ok(answer) => answer,
                Err(error) => {
                    failure = said(error);
                    continue;
                }
            };
            let mut registry = Self {
                client,
                name,
                base,
                credentials,
                authorization: None,
            };
            if answer.status() == StatusCode::UNAUTHORIZED {
                registry.sign_in(&answer).await?;
            }
            return Ok(registry);
        }
        Err(failure)
    }

    /// Pushes what is not there yet, and the manifest last: it is valid only with all that it names.
    pub(super) async fn push(&mut self, image: &Image, tag: &str, progress: &Progress) -> Result<(), String> {
        for (what, blob) in [("the content", &image.layer), ("the config", &image.config)] {
            progress.tell(&format!("pushing {what}, {} bytes", blob.len()));
            self.blob(blob).await?;
        }
        let url = self.url(&format!("manifests/{tag}"))?;
        let manifest = Some((MANIFEST, image.manifest.as_ref()));
        let answer = checked(self.send(Method::PUT, url, manifest).await?).await?;
        let stored = answer.headers().get("docker-content-digest");
        match stored.and_then(|digest| digest.to_str().ok()) {
            Some(other) if other != image.digest => Err(format!(
                "the registry has stored {other} and not {}",
                image.digest
            )),
            _ => Ok(()),
        }
    }

    async fn blob(&mut self, data: &[u8]) -> Result<(), String> {
        let digest = Digest::of(data).to_string();
        let url = self.url(&format!("blobs/{digest}"))?;
        let there = self.send(Method::HEAD, url, None).await?;
        if there.status().is_success() {
            return Ok(());
        }
        let url = self.url("blobs/uploads/")?;
        let begun = checked(self.send(Method::POST, url.clone(), None).await?).await?;
        let place = begun
            .headers()
            .get(LOCATION)
            .and_then(|place| place.to_str().ok());
        let place = place.ok_or("the registry does not say where to upload to")?;
        // It may be relative, and may have parameters of its own.
        let mut place = url
            .join(place)
            .map_err(|error| format!("the registry's address to upload to: {error}"))?;
        place.query_pairs_mut().append_pair("digest", &digest);
        let data = Some(("application/octet-stream", data));
        checked(self.send(Method::PUT, place, data).await?).await?;
        Ok(())
    }

    fn url(&self, path: &str) -> Result<Url, String> {
        let path = format!("{}/{path}", self.name.repository);
        self.base.join(&path).map_err(|error| error.to_string())
    }

    /// Asks, and where the registry wants to know who does, signs in and asks once more: some let everybody look and ask for
    /// an account only when something is to be written, and what one has signed in with may end while a large blob is pushed.
    async fn send(
        &mut self,
        method: Method,
        url: Url,
        body: Option<(&str, &[u8])>,
    ) -> Result<Response, String> {
        let request = |registry: &Self| {
            let request = registry.at(method.clone(), url.clone());
            match body {
                Some((kind, data)) => request.header(CONTENT_TYPE, kind).body(data.to_vec()),
                None => request,
            }
        };
        let answer = request(self).send().await.map_err(said)?;
        // Others' words about credentials are not listened to.
        let is_home = answer.url().origin() == self.base.origin();
        if answer.status() != StatusCode::UNAUTHORIZED || !is_home {
            return Ok(answer);
        }
        let before = self.authorization.clone();
        self.sign_in(&answer).await?;
        match self.authorization == before {
            true => Ok(answer),
            false => request(self).send().await.map_err(said),
        }
    }

    /// Builds a request. Credentials go to the registry only, not to where it redirects uploads.
    fn at(&self, method: Method, url: Url) -> reqwest::RequestBuilder {
        let is_home = url.origin() == self.base.origin();
        let request = self.client.request(method, url);
        match &self.authorization {
            Some(authorization) if is_home => request.header(AUTHORIZATION, authorization.clone()),
            _ => request,
        }
    }

    async fn sign_in(&mut self, answer: &Response) -> Result<(), String> {
        let asked = answer.headers().get_all(WWW_AUTHENTICATE).iter();
        let asked = challenge::choose(asked.filter_map(|value| value.to_str().ok()));
        let asked = asked.ok_or("the registry asks for a way to sign in that is not known here")?;
        let header = match (asked, &self.credentials) {
            (_, Some(Credentials::Bearer(token))) => format!("Bearer {token}"),
            (Challenge::Basic, Some(Credentials::Basic(user, password))) => basic(user, password),
            (Challenge::Basic, _) => {
                return Err(
                    "the registry asks for user and password: use --creds, or `docker login`".to_owned(),
                );
            }
            (Challenge::Bearer { realm, service }, _) => {
                let token = self.token(&realm, service.as_deref()).await?;
                format!("Bearer {token}")
            }
        };
        let mut header =
            HeaderValue::from_str(&header).map_err(|_| "the credentials hold what no header may hold")?;
        header.set_sensitive(true);
        self.authorization = Some(header);
        Ok(())
    }

    async fn token(&self, realm: &str, service: Option<&str>) -> Result<String, String> {
        let mut url: Url = realm
            .parse()
            .map_err(|_| "the registry names no address to sign in at".to_owned())?;
        if self.base.scheme() == "https" && url.scheme() != "https" {
            return Err("the registry wants the credentials to be sent without TLS".to_owned());
        }
        let scope = format!("repository:{}:pull,push", self.name.repository);
        let mut parameters = vec![("scope", scope.as_str())];
        parameters.extend(service.map(|service| ("service", service)));
        let request = match &self.credentials {
            Some(Credentials::IdentityToken(token)) => {
                parameters.extend([
                    ("grant_type", "refresh_token"),
                    ("refresh_token", token),
                    ("client_id", "windlass"),
                ]);
                let body = url::form_urlencoded::Serializer::new(String::new())
                    .extend_pairs(&parameters)
                    .finish();
                let request = self.client.post(url).body(body);
                request.header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            }
            other => {
                url.query_pairs_mut().extend_pairs(&parameters);
                match other {
                    Some(Credentials::Basic(user, password)) => {
                        self.client.get(url).header(AUTHORIZATION, basic(user, password))
                    }
                    _ => self.client.get(url),
                }
            }
        };
        let answer = request.send().await.map_err(said)?;
        let answer = checked(answer)
            .await
            .map_err(|why| format!("failed to sign in: {why}; use --creds, or `docker login`"))?;
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            token: String,
            #[serde(default)]
            access_token: String,
        }
        let text = answer.bytes().await.map_err(said)?;
        let unreadable = |_| "the answer of the service that signs in cannot be read".to_owned();
        let Answer { token, access_token } = serde_json::from_slice(&text).map_err(unreadable)?;
        Ok(if token.is_empty() { access_token } else { token })
    }
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// Addresses of uploads hold keys to them.
fn said(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

async fn checked(answer: Response) -> Result<Response, String> {
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    let text = answer.text().await.unwrap_or_default();
    let why = refusal(&text);
    let hint = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "; it takes an account that may push there",
        _ => "",
    };
    Err(match why.is_empty() {
        true => format!("the registry answers {status}{hint}"),
        false => format!("the registry answers {status}: {why}{hint}"),
    })
}

/// Message of a registry's error, in the form of the specification or any other.
fn refusal(text: &str) -> String {
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    let errors = parsed.as_ref().and_then(|value| value.get("errors")?.as_array());
    let told = errors.map(|errors| {
        let words = errors.iter().map(|error| {
            let of = |field: &str| error.get(field).and_then(Value::as_str).unwrap_or_default();
            format!("{} {}", of("code"), of("message"))
        });
        words.collect::<Vec<_>>().join("; ")
    });
    let told = one_line(&told.unwrap_or_else(|| text.to_owned()));
    match told.char_indices().nth(TOLD) {
        Some((end, _)) => format!("{}…", &told[..end]),
        None => told,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stand_in;

    #[test]
    fn refusals_are_told_in_the_registrys_words() {
        let text =
            r#"{"errors": [{"code": "DENIED", "message": "requested access to the resource is denied"}]}"#;
        assert_eq!(refusal(text), "DENIED requested access to the resource is denied");
        assert_eq!(refusal("<html>\n no"), "<html> no");
        assert_eq!(refusal(&"x".repeat(1000)).chars().count(), TOLD + 1);
    }

    /// A registry that lets everybody look, and whose tokens are good for so many requests.
    async fn pushed(uses: usize, credentials: Option<Credentials>) -> (Result<(), String>, Vec<String>) {
        let (used, tokens) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
        let image = Image {
            layer: b"layer".to_vec(),
            config: b"config".to_vec(),
            manifest: b"manifest".to_vec(),
            digest: Digest::of(b"manifest").to_string(),
        };
        let (address, asked) = stand_in::serve(move |request| {
            let said = |status, headers: &str| (status, headers.to_owned(), String::new());
            let what = request.what.as_str();
            if what.starts_with("GET /token") {
                tokens.set(tokens.get() + 1);
                used.set(0);
                let body = format!("{{\"token\": \"t{}\"}}", tokens.get());
                return (200, String::new(), body);
            }
            used.set(used.get() + 1);
            let may = request.authorization == format!("Bearer t{}", tokens.get()) && used.get() <= uses;
            match what {
                "GET /v2/" => said(200, ""),
                _ if what.starts_with("HEAD ") => said(404, ""),
                _ if !may => {
                    let host = &request.host;
                    let asks =
                        format!("WWW-Authenticate: Bearer realm=\"http://{host}/token\",service=\"s\"\n");
                    said(401, &asks)
                }
                _ if what.starts_with("POST ") => said(202, "Location: /v2/app/blobs/uploads/1\n"),
                _ => said(201, ""),
            }
        });
        let name = Name::parse(&format!("oci://{address}/app")).unwrap();
        let mut registry = Registry::connect(name, credentials, true).await.unwrap();
        let outcome = registry.push(&image, "v1", &Progress::new(true)).await;
        let asked = asked.lock().unwrap();
        let asked = asked.iter().map(|request| request.what.clone()).collect();
        (outcome, asked)
    }

    fn pusher() -> Option<Credentials> {
        Some(Credentials::Basic("pusher".to_owned(), "let-me-in".to_owned()))
    }

    #[tokio::test]
    async fn who_may_look_without_an_account_signs_in_when_writing() {
        let (outcome, asked) = pushed(100, pusher()).await;
        assert_eq!(outcome, Ok(()));
        let tokens = asked.iter().filter(|what| what.starts_with("GET /token?"));
        assert_eq!(tokens.count(), 1, "{asked:?}");
        assert!(asked.last().unwrap().starts_with("PUT /v2/app/manifests/v1"));
    }

    #[tokio::test]
    async fn a_token_that_ends_on_the_way_is_replaced() {
        let (outcome, asked) = pushed(2, pusher()).await;
        assert_eq!(outcome, Ok(()), "{asked:?}");
        // And one that is never good enough is not asked for over and over.
        let (outcome, asked) = pushed(0, pusher()).await;
        assert!(outcome.unwrap_err().starts_with("the registry answers 401"));
        assert_eq!(asked.len(), 5, "{asked:?}");
    }
}
