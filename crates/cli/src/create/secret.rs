//! `windlass create secret`: Secrets in the form that sources, providers and receivers expect.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use git_ssh::identity::Identity;
use serde_json::json;
use url::Url;

use super::{Common, Made, file};
use crate::cluster::Failure;
use crate::host_keys;

#[derive(Debug, Subcommand)]
pub(super) enum Kind {
    /// Credentials of a Git repository.
    Git(Box<Git>),
    /// The identity of a GitHub App.
    #[command(alias = "githubapp")]
    GithubApp(Box<GithubApp>),
    /// Credentials of a Helm repository.
    Helm(Box<Login>),
    /// Credentials of an OCI registry.
    Oci(Box<Oci>),
    /// The address and credentials of a proxy.
    Proxy(Box<Proxy>),
    /// Certificates.
    Tls(Box<Tls>),
    /// A trust policy and certificates of notation.
    Notation(Box<Notation>),
    /// The token of a Receiver.
    Receiver(Box<Token>),
}

/// Command line of `create secret git`.
#[derive(Debug, Args)]
pub(super) struct Git {
    #[command(flatten)]
    common: Common,

    /// URL of the repository: https://… or ssh://…
    #[arg(long, value_name = "URL")]
    url: Url,

    #[command(flatten)]
    credentials: GitCredentials,

    /// Bearer token, for https
    #[arg(long, value_name = "TEXT", conflicts_with = "username")]
    bearer_token: Option<String>,
}

/// How a Git repository is opened.
#[derive(Debug, Args)]
pub(super) struct GitCredentials {
    /// User name, for https
    #[arg(long, short, value_name = "NAME")]
    username: Option<String>,

    /// Password or token for https, or passphrase of the private key for ssh
    #[arg(long, short, value_name = "TEXT")]
    password: Option<String>,

    /// File with the private key, for ssh; without one a key is made
    #[arg(long, value_name = "FILE")]
    private_key_file: Option<PathBuf>,

    /// File with the certificate authority, for https
    #[arg(long, visible_alias = "ca-crt-file", value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

/// Command line of `create secret github-app`.
#[derive(Debug, Args)]
pub(super) struct GithubApp {
    #[command(flatten)]
    common: Common,

    /// Id of the app
    #[arg(long, value_name = "ID")]
    app_id: String,

    /// Id of the installation
    #[arg(long, value_name = "ID")]
    app_installation_id: Option<String>,

    /// Owner of the installation, instead of its id
    #[arg(long, value_name = "NAME")]
    app_installation_owner: Option<String>,

    /// File with the private key of the app
    #[arg(long, value_name = "FILE")]
    app_private_key: PathBuf,

    /// URL of the API, for GitHub Enterprise
    #[arg(long, value_name = "URL")]
    app_base_url: Option<String>,
}

/// Command line of `create secret helm`.
#[derive(Debug, Args)]
pub(super) struct Login {
    #[command(flatten)]
    common: Common,

    /// User name
    #[arg(long, short, value_name = "NAME")]
    username: String,

    /// Password
    #[arg(long, short, value_name = "TEXT")]
    password: String,
}

/// Command line of `create secret oci`.
#[derive(Debug, Args)]
pub(super) struct Oci {
    /// Host of the registry
    #[arg(long, value_name = "HOST")]
    url: String,

    #[command(flatten)]
    login: Login,
}

/// Command line of `create secret proxy`.
#[derive(Debug, Args)]
pub(super) struct Proxy {
    #[command(flatten)]
    common: Common,

    /// Address of the proxy, with its scheme
    #[arg(long, value_name = "URL")]
    address: String,

    /// User name
    #[arg(long, short, value_name = "NAME")]
    username: Option<String>,

    /// Password
    #[arg(long, short, value_name = "TEXT")]
    password: Option<String>,
}

/// Command line of `create secret tls`.
#[derive(Debug, Args)]
pub(super) struct Tls {
    #[command(flatten)]
    common: Common,

    /// File with the certificate of the client
    #[arg(long, value_name = "FILE", requires = "tls_key_file")]
    tls_crt_file: Option<PathBuf>,

    /// File with the key of the client
    #[arg(long, value_name = "FILE", requires = "tls_crt_file")]
    tls_key_file: Option<PathBuf>,

    /// File with the certificate authority
    #[arg(long, value_name = "FILE")]
    ca_crt_file: Option<PathBuf>,
}

/// Command line of `create secret notation`.
#[derive(Debug, Args)]
pub(super) struct Notation {
    #[command(flatten)]
    common: Common,

    /// File with the trust policy
    #[arg(long, value_name = "FILE")]
    trust_policy_file: PathBuf,

    /// File with a certificate authority; repeatable
    #[arg(long, value_name = "FILE", value_delimiter = ',', required = true)]
    ca_cert_file: Vec<PathBuf>,
}

/// Command line of `create secret receiver`.
#[derive(Debug, Args)]
pub(super) struct Token {
    #[command(flatten)]
    common: Common,

    /// Token; without one, it is made
    #[arg(long, value_name = "TEXT")]
    token: Option<String>,

    /// Type of the Receiver
    #[arg(long = "type", value_name = "TYPE", value_parser = RECEIVER_TYPES)]
    type_: Option<String>,

    /// Host at which the webhook is reached, such as flux.example.com; its URL, for a Receiver of the same name, becomes an annotation
    #[arg(long, value_name = "HOST", required_if_eq("type_", GCR))]
    hostname: Option<String>,

    /// Address of the IAM service account that calls, for type gcr
    #[arg(long, value_name = "EMAIL", required_if_eq("type_", GCR))]
    email_claim: Option<String>,

    /// Audience of its tokens, for type gcr; the URL of the webhook if there is none
    #[arg(long, value_name = "TEXT")]
    audience_claim: Option<String>,
}

const GCR: &str = "gcr";
const RECEIVER_TYPES: [&str; 12] = [
    "generic",
    "generic-hmac",
    "github",
    "gitlab",
    "bitbucket",
    "harbor",
    "dockerhub",
    "quay",
    GCR,
    "nexus",
    "acr",
    "cdevents",
];
const WEBHOOK: &str = "notification.toolkit.fluxcd.io/webhook";

impl Kind {
    pub(super) fn objects(&self, report_line: &impl Fn(&str)) -> Result<Made<'_>, Failure> {
        match self {
            Self::Git(flags) => flags.objects(report_line),
            Self::GithubApp(flags) => flags.objects(),
            Self::Helm(flags) => flags.objects(),
            Self::Oci(flags) => flags.objects(),
            Self::Proxy(flags) => flags.objects(),
            Self::Tls(flags) => flags.objects(),
            Self::Notation(flags) => flags.objects(),
            Self::Receiver(flags) => flags.objects(),
        }
    }
}

impl Git {
    fn objects(&self, report_line: &impl Fn(&str)) -> Result<Made<'_>, Failure> {
        let mut data = self.credentials.data(&self.url, report_line)?;
        data.push(("bearerToken", self.bearer_token.clone().unwrap_or_default()));
        if data.iter().all(|(_, value)| value.is_empty()) {
            return Err(Failure::Usage(
                "give --username and --password, --bearer-token or --ca-file".to_owned(),
            ));
        }
        let secret = self.common.secret(&self.common.name, None, &data);
        Ok((&self.common, vec![secret]))
    }
}

impl GitCredentials {
    /// Returns whether any were given, or are needed.
    pub(super) fn is_there(&self, url: &Url) -> bool {
        url.scheme() == "ssh" || self.username.is_some() || self.password.is_some() || self.ca_file.is_some()
    }

    /// The content of a Secret for a repository. For ssh a key is made if there is none, and shown.
    pub(super) fn data(
        &self,
        url: &Url,
        report_line: &impl Fn(&str),
    ) -> Result<Vec<(&'static str, String)>, Failure> {
        let password = self.password.clone().unwrap_or_default();
        match url.scheme() {
            "ssh" => {
                let key = match &self.private_key_file {
                    Some(path) => file("--private-key-file", path)?,
                    None => made_key()?,
                };
                let passphrase = Some(password.as_str()).filter(|password| !password.is_empty());
                let identity = Identity::parse(key.as_bytes(), passphrase);
                let identity =
                    identity.map_err(|error| Failure::Usage(format!("the private key: {error}")))?;
                let public = identity
                    .public()
                    .map_err(|error| Failure::Usage(error.to_string()))?;
                report_line(&format!("deploy key: {public}"));
                let hosts = known_hosts(url, report_line)?;
                Ok(vec![
                    ("identity", key),
                    ("identity.pub", format!("{public}\n")),
                    ("known_hosts", hosts),
                    ("password", password),
                ])
            }
            "http" | "https" => {
                let ca = self
                    .ca_file
                    .as_deref()
                    .map(|path| file("--ca-file", path))
                    .transpose()?;
                Ok(vec![
                    ("username", self.username.clone().unwrap_or_default()),
                    ("password", password),
                    ("ca.crt", ca.unwrap_or_default()),
                ])
            }
            other => Err(Failure::Usage(format!(
                "--url: {other}:// is not supported, write https:// or ssh://"
            ))),
        }
    }
}

fn made_key() -> Result<String, Failure> {
    let text = Identity::generate().and_then(|key| key.to_openssh());
    let text = text.map_err(|error| Failure::Usage(error.to_string()))?;
    Ok((*text).clone())
}

fn known_hosts(url: &Url, report_line: &impl Fn(&str)) -> Result<String, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    runtime.block_on(host_keys::read(url, report_line))
}

impl GithubApp {
    fn objects(&self) -> Result<Made<'_>, Failure> {
        let key = file("--app-private-key", &self.app_private_key)?;
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let data = [
            ("githubAppID", self.app_id.clone()),
            ("githubAppInstallationID", text(&self.app_installation_id)),
            ("githubAppInstallationOwner", text(&self.app_installation_owner)),
            ("githubAppPrivateKey", key),
            ("githubAppBaseURL", text(&self.app_base_url)),
        ];
        Ok((
            &self.common,
            vec![self.common.secret(&self.common.name, None, &data)],
        ))
    }
}

impl Login {
    fn objects(&self) -> Result<Made<'_>, Failure> {
        let data = [
            ("username", self.username.clone()),
            ("password", self.password.clone()),
        ];
        Ok((
            &self.common,
            vec![
                self.common
                    .secret(&self.common.name, Some("kubernetes.io/basic-auth"), &data),
            ],
        ))
    }
}

impl Oci {
    fn objects(&self) -> Result<Made<'_>, Failure> {
        use base64::Engine as _;
        let Login {
            common,
            username,
            password,
        } = &self.login;
        let auth = base64::engine::general_purpose::STANDARD.encode(format!("{username}:{password}"));
        let config =
            json!({"auths": {&self.url: {"username": username, "password": password, "auth": auth}}});
        let data = [(".dockerconfigjson", config.to_string())];
        let secret = common.secret(&common.name, Some("kubernetes.io/dockerconfigjson"), &data);
        Ok((common, vec![secret]))
    }
}

impl Proxy {
    fn objects(&self) -> Result<Made<'_>, Failure> {
        let data = [
            ("address", self.address.clone()),
            ("username", self.username.clone().unwrap_or_default()),
            ("password", self.password.clone().unwrap_or_default()),
        ];
        Ok((
            &self.common,
            vec![self.common.secret(&self.common.name, Some("Opaque"), &data)],
        ))
    }
}

impl Tls {
    fn objects(&self) -> Result<Made<'_>, Failure> {
        let read = |flag: &str, path: &Option<PathBuf>| match path {
            Some(path) => file(flag, path),
            None => Ok(String::new()),
        };
        let data = [
            ("tls.crt", read("--tls-crt-file", &self.tls_crt_file)?),
            ("tls.key", read("--tls-key-file", &self.tls_key_file)?),
            ("ca.crt", read("--ca-crt-file", &self.ca_crt_file)?),
        ];
        if data.iter().all(|(_, value)| value.is_empty()) {
            return Err(Failure::Usage(
                "give --ca-crt-file, or --tls-crt-file and --tls-key-file".to_owned(),
            ));
        }
        Ok((
            &self.common,
            vec![self.common.secret(&self.common.name, None, &data)],
        ))
    }
}

impl Notation {
    fn objects(&self) -> Result<Made<'_>, Failure> {
        let mut secret = self.common.secret(&self.common.name, None, &[]);
        secret["stringData"]["trustpolicy.json"] =
            file("--trust-policy-file", &self.trust_policy_file)?.into();
        for path in &self.ca_cert_file {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let name = name.filter(|name| name.ends_with(".crt") || name.ends_with(".pem"));
            let name = name.ok_or_else(|| {
                Failure::Usage(format!(
                    "--ca-cert-file {}: its name must end in .crt or .pem",
                    path.display()
                ))
            })?;
            secret["stringData"][name] = file("--ca-cert-file", path)?.into();
        }
        Ok((&self.common, vec![secret]))
    }
}

/// The URL at which a Receiver is called that has this token, name and namespace.
fn webhook(host: &str, token: &str, name: &str, namespace: &str) -> String {
    let text = format!("{token}{name}{namespace}");
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    let path: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("https://{host}/hook/{path}")
}

impl Token {
    fn objects(&self) -> Result<Made<'_>, Failure> {
        let token = match &self.token {
            Some(token) => token.clone(),
            None => {
                let mut bytes = [0; 32];
                aws_lc_rs::rand::fill(&mut bytes).map_err(|_| {
                    Failure::Usage("failed to make a token: there are no random bytes".to_owned())
                })?;
                bytes.iter().map(|byte| format!("{byte:02x}")).collect()
            }
        };
        let hostname = self.hostname.as_ref();
        let webhook = hostname.map(|host| webhook(host, &token, &self.common.name, &self.common.namespace()));
        let mut data = vec![("token", token)];
        if self.type_.as_deref() == Some(GCR) {
            let audience = self.audience_claim.clone().or_else(|| webhook.clone());
            data.push(("email", self.email_claim.clone().unwrap_or_default()));
            data.push(("audience", audience.unwrap_or_default()));
        }
        let mut secret = self.common.secret(&self.common.name, None, &data);
        if let Some(webhook) = webhook {
            secret["metadata"]["annotations"] = json!({WEBHOOK: webhook});
        }
        Ok((&self.common, vec![secret]))
    }
}
