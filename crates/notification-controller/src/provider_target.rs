//! A Provider and its Secrets, read: what is sent to, and how to get in. Keys of Secrets, precedence and words are Flux's.

use std::collections::BTreeMap;
use std::time::Duration;

use api::notification::Provider;
use controller_kit::check_name;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, ResourceExt as _};
use notifier::{ProviderRef, Target, Tls};
use tokio::time::timeout;
use url::Url;

use crate::alert::admit::type_of;
use crate::flags::Policy;

/// Longer addresses are refused, as in Flux.
const MOST_ADDRESS_BYTES: usize = 2048;
/// How long reading its Secrets may take: whoever reads them holds a place that others wait for.
const READ_TIMEOUT: Duration = Duration::from_secs(15);
/// Schemes of proxies that Flux accepts.
const PROXY_SCHEMES: [&str; 3] = ["http", "https", "socks5"];

type Data = BTreeMap<String, Vec<u8>>;

/// The Secrets that a Provider names.
#[derive(Default)]
struct Secrets {
    auth: Option<Data>,
    proxy: Option<(String, Data)>,
    certificates: Option<Data>,
}

/// Reads what a Provider names.
pub async fn read(client: &Client, provider: &Provider, policy: &Policy) -> Result<Target, String> {
    let secrets = timeout(READ_TIMEOUT, Secrets::read(client, provider))
        .await
        .map_err(|_| {
            format!("failed to get its secrets: the API server takes longer than {READ_TIMEOUT:?}")
        })?;
    target(provider, secrets?, policy)
}

impl Secrets {
    async fn read(client: &Client, provider: &Provider) -> Result<Self, String> {
        let namespace = provider.namespace().unwrap_or_default();
        let spec = &provider.spec;
        let mut secrets = Self::default();
        if let Some(reference) = &spec.secret_ref {
            secrets.auth = Some(secret(client, &namespace, &reference.name).await?);
        }
        if let Some(reference) = &spec.proxy_secret_ref {
            let data = secret(client, &namespace, &reference.name).await?;
            secrets.proxy = Some((format!("{namespace}/{}", reference.name), data));
        }
        if let Some(reference) = &spec.cert_secret_ref {
            secrets.certificates = Some(secret(client, &namespace, &reference.name).await?);
        }
        Ok(secrets)
    }
}

async fn secret(client: &Client, namespace: &str, name: &str) -> Result<Data, String> {
    let failed = |problem: String| format!("failed to get secret '{namespace}/{name}': {problem}");
    check_name(name).map_err(failed)?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let secret = secrets.get(name).await.map_err(|error| match error {
        kube::Error::Api(status) => failed(status.message),
        other => failed(other.to_string()),
    })?;
    Ok(secret
        .data
        .unwrap_or_default()
        .into_iter()
        .map(|(key, value)| (key, value.0))
        .collect())
}

/// Puts it together; pure.
fn target(provider: &Provider, secrets: Secrets, policy: &Policy) -> Result<Target, String> {
    let spec = &provider.spec;
    let type_ = type_of(provider)?;
    let mut target = Target::new(type_, spec.address.clone().unwrap_or_default());
    target.channel = spec.channel.clone().unwrap_or_default();
    target.username = spec.username.clone().unwrap_or_default();
    target.proxy.clone_from(&spec.proxy);
    target.service_account = spec
        .service_account_name
        .clone()
        .or_else(|| policy.default_service_account.clone());
    target.locked = policy.no_cross_namespace_refs;
    target.provider = ProviderRef {
        name: provider.name_any(),
        namespace: provider.namespace().unwrap_or_default(),
        uid: provider.uid().unwrap_or_default(),
    };
    if let Some(data) = secrets.auth {
        authenticate(&mut target, data)?;
    }
    if let Some((name, data)) = secrets.proxy {
        target.proxy = Some(proxy(&name, &data)?);
    }
    target.tls = match secrets.certificates {
        Some(data) => tls(&data).map_err(|problem| format!("failed to get TLS config: {problem}"))?,
        // As in Flux, for Git services the authority may be in the other Secret.
        None if shares_secret(&target) && has_tls(&target.secret) => {
            tls(&target.secret).map_err(|problem| format!("failed to get TLS config: {problem}"))?
        }
        None => None,
    };
    Ok(target)
}

fn authenticate(target: &mut Target, data: Data) -> Result<(), String> {
    let text = |key: &str| {
        data.get(key)
            .map(|value| String::from_utf8_lossy(value).into_owned())
    };
    if let Some(address) = text("address") {
        if address.len() > MOST_ADDRESS_BYTES {
            return Err(format!(
                "invalid address in secret: address exceeds maximum length of {MOST_ADDRESS_BYTES} bytes"
            ));
        }
        target.address = address.trim().to_owned();
    }
    if let Some(proxy) = text("proxy") {
        target.proxy = Some(proxy.trim().to_owned());
    }
    if let Some(headers) = text("headers") {
        target.headers = read_headers(&headers)?;
    }
    // As in Flux, a user without a password makes the Secret's other ways to get in unusable too.
    let has = |key: &str| data.contains_key(key);
    if has("username") == has("password") {
        if let Some(token) = text("token") {
            target.token = token;
        }
        if let (Some(username), Some(password)) = (text("username"), text("password")) {
            target.username = username;
            target.password = password;
        }
    }
    target.secret = data;
    Ok(())
}

fn read_headers(text: &str) -> Result<BTreeMap<String, String>, String> {
    let failed = |problem: &str| format!("failed to read headers from secret: {problem}");
    // The text is a secret, and errors of YAML quote it.
    let mut documents =
        manifest::yaml::read_documents(text, "headers").map_err(|_| failed("it is not YAML"))?;
    let Some(document) = documents.pop() else {
        return Ok(BTreeMap::new());
    };
    serde_json::from_value(document.value).map_err(|_| failed("it is not a map of texts to texts"))
}

fn proxy(name: &str, data: &Data) -> Result<String, String> {
    let Some(address) = data.get("address") else {
        return Err(format!(
            "failed to get proxy URL: secret '{name}': key 'address' not found"
        ));
    };
    let failed = |problem: String| format!("failed to get proxy URL: secret '{name}': {problem}");
    if address.is_empty() {
        return Err(failed("proxy address is empty".to_owned()));
    }
    if address.len() > MOST_ADDRESS_BYTES {
        return Err(failed(format!(
            "proxy URL exceeds maximum length of {MOST_ADDRESS_BYTES} characters"
        )));
    }
    let text = String::from_utf8_lossy(address);
    let mut url =
        Url::parse(&text).map_err(|error| failed(format!("failed to parse proxy address: {error}")))?;
    if !PROXY_SCHEMES.contains(&url.scheme()) {
        return Err(failed(format!(
            "proxy URL must use one of the supported schemes ({}), got '{}'",
            PROXY_SCHEMES.join(", "),
            url.scheme()
        )));
    }
    let text = |key: &str| {
        data.get(key)
            .map(|value| String::from_utf8_lossy(value).into_owned())
    };
    if let Some(username) = text("username") {
        // Fails only for URLs without a host, which no proxy has.
        let set = url
            .set_username(&username)
            .and_then(|()| url.set_password(text("password").as_deref()));
        set.map_err(|()| failed("the address has no host".to_owned()))?;
    }
    Ok(url.into())
}

/// Returns whether the Secret with the token may hold certificates, too.
fn shares_secret(target: &Target) -> bool {
    let is_github_app =
        target.type_.as_str().starts_with("github") && target.secret.contains_key("githubAppID");
    target.type_.is_commit_status() || is_github_app
}

fn has_tls(data: &Data) -> bool {
    ["ca.crt", "caFile", "tls.crt", "certFile"]
        .iter()
        .any(|key| data.contains_key(*key))
}

/// Reads certificates under their keys, and under those that are deprecated.
fn tls(data: &Data) -> Result<Option<Tls>, String> {
    let of = |key: &str, deprecated: &str| {
        let value = data.get(key).or_else(|| data.get(deprecated));
        value.filter(|value| !value.is_empty()).cloned()
    };
    let (ca, certificate, key) = (
        of("ca.crt", "caFile"),
        of("tls.crt", "certFile"),
        of("tls.key", "keyFile"),
    );
    let certificate = match (certificate, key) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => return Err("tls.crt and tls.key must be there both, or neither".to_owned()),
    };
    if ca.is_none() && certificate.is_none() {
        return Err("the secret has neither ca.crt nor tls.crt and tls.key".to_owned());
    }
    Ok(Some(Tls { ca, certificate }))
}

#[cfg(test)]
mod tests;
