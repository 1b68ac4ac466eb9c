//! `windlass create source git|oci|bucket|helm|chart`.

use std::time::Duration;

use clap::{ArgAction, Args, Subcommand};
use serde_json::{Value, json};
use url::Url;

use super::secret::GitCredentials;
use super::{Common, Interval, Made, duration, kind_named, named, reference};
use crate::cluster::{Failure, parse_timeout};

const API: &str = "source.toolkit.fluxcd.io/v1";
const PROVIDERS: [&str; 4] = ["generic", "aws", "azure", "gcp"];

#[derive(Debug, Subcommand)]
pub(super) enum Kind {
    /// Create a GitRepository.
    Git(Box<Git>),
    /// Create an OCIRepository.
    Oci(Box<Oci>),
    /// Create a Bucket.
    Bucket(Box<Bucket>),
    /// Create a HelmRepository.
    Helm(Box<Helm>),
    /// Create a HelmChart.
    Chart(Box<Chart>),
}

/// Flags of every source.
#[derive(Debug, Args)]
struct Shared {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    interval: Interval,

    /// Timeout for a fetch
    #[arg(long, value_name = "DURATION", value_parser = parse_timeout)]
    fetch_timeout: Option<Duration>,

    /// Existing Secret with the credentials
    #[arg(long, value_name = "NAME")]
    secret_ref: Option<String>,
}

impl Shared {
    fn object(&self, kind: &str, mut spec: Value) -> Value {
        spec["interval"] = self.interval.text().into();
        spec["timeout"] = self.fetch_timeout.map(duration).into();
        if spec["secretRef"].is_null() {
            spec["secretRef"] = named(self.secret_ref.as_ref());
        }
        self.common.object(API, kind, spec)
    }
}

/// Command line of `create source git`.
#[derive(Debug, Args)]
pub(super) struct Git {
    #[command(flatten)]
    shared: Shared,

    /// URL of the repository: https://… or ssh://…
    #[arg(long, value_name = "URL")]
    url: Url,

    /// Branch
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    branch: String,

    /// Tag
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    tag: String,

    /// Highest tag in this range of versions
    #[arg(long, value_name = "RANGE", default_value = "", hide_default_value = true)]
    tag_semver: String,

    /// Reference by its full name, such as refs/pull/1/head
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    ref_name: String,

    /// Commit
    #[arg(long, value_name = "SHA", default_value = "", hide_default_value = true)]
    commit: String,

    #[command(flatten)]
    credentials: GitCredentials,

    /// Secret with a proxy
    #[arg(long, value_name = "NAME")]
    proxy_secret_ref: Option<String>,

    /// Provider of the identity
    #[arg(long, value_name = "NAME", value_parser = ["generic", "aws", "azure", "github"])]
    provider: Option<String>,

    /// Fetch submodules, too
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", hide_default_value = true, hide_possible_values = true)]
    recurse_submodules: bool,

    /// Folders to fetch; repeatable
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    sparse_checkout_paths: Vec<String>,

    /// Paths to leave out, in .gitignore syntax; repeatable
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    ignore_paths: Vec<String>,
}

/// Command line of `create source oci`.
#[derive(Debug, Args)]
pub(super) struct Oci {
    #[command(flatten)]
    shared: Shared,

    /// URL, as oci://HOST/REPOSITORY
    #[arg(long, value_name = "URL")]
    url: String,

    /// Tag
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    tag: String,

    /// Highest tag in this range of versions
    #[arg(long, value_name = "RANGE", default_value = "", hide_default_value = true)]
    tag_semver: String,

    /// Digest
    #[arg(long, value_name = "DIGEST", default_value = "", hide_default_value = true)]
    digest: String,

    /// Provider of the identity
    #[arg(long, value_name = "NAME", default_value = "generic", value_parser = PROVIDERS)]
    provider: String,

    /// Service account with the credentials
    #[arg(long, value_name = "NAME")]
    service_account: Option<String>,

    /// Secret with certificates
    #[arg(long, value_name = "NAME")]
    cert_secret_ref: Option<String>,

    /// Secret with a proxy
    #[arg(long, value_name = "NAME")]
    proxy_secret_ref: Option<String>,

    /// Verify signatures
    #[arg(long, value_name = "NAME", value_parser = ["cosign", "notation"])]
    verify_provider: Option<String>,

    /// Secret with the keys of signatures
    #[arg(long, value_name = "NAME", requires = "verify_provider")]
    verify_secret_ref: Option<String>,

    /// Pattern for the subject of keyless signatures
    #[arg(long, value_name = "PATTERN", requires = "verify_issuer")]
    verify_subject: Option<String>,

    /// Pattern for the issuer of keyless signatures
    #[arg(long, value_name = "PATTERN", requires = "verify_provider")]
    verify_issuer: Option<String>,

    /// Connect without TLS
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", hide_default_value = true, hide_possible_values = true)]
    insecure: bool,

    /// Paths to leave out, in .gitignore syntax; repeatable
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    ignore_paths: Vec<String>,
}

/// Command line of `create source bucket`.
#[derive(Debug, Args)]
pub(super) struct Bucket {
    #[command(flatten)]
    shared: Shared,

    /// Name of the bucket
    #[arg(long, value_name = "NAME")]
    bucket_name: String,

    /// Host of the store
    #[arg(long, value_name = "HOST")]
    endpoint: String,

    /// Region
    #[arg(long, value_name = "NAME")]
    region: Option<String>,

    /// Provider of the store
    #[arg(long, value_name = "NAME", default_value = "generic", value_parser = PROVIDERS)]
    provider: String,

    /// Access key; a Secret is made of it
    #[arg(long, value_name = "TEXT", requires = "secret_key")]
    access_key: Option<String>,

    /// Secret key
    #[arg(long, value_name = "TEXT", requires = "access_key")]
    secret_key: Option<String>,

    /// Secret with a proxy
    #[arg(long, value_name = "NAME")]
    proxy_secret_ref: Option<String>,

    /// Connect without TLS
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", hide_default_value = true, hide_possible_values = true)]
    insecure: bool,

    /// Paths to leave out, in .gitignore syntax; repeatable
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    ignore_paths: Vec<String>,
}

/// Command line of `create source helm`.
#[derive(Debug, Args)]
pub(super) struct Helm {
    #[command(flatten)]
    shared: Shared,

    /// URL: https://… or oci://…
    #[arg(long, value_name = "URL")]
    url: String,

    /// User name; a Secret is made of it
    #[arg(long, short, value_name = "NAME", requires = "password")]
    username: Option<String>,

    /// Password
    #[arg(long, short, value_name = "TEXT", requires = "username")]
    password: Option<String>,

    /// Provider of the identity, for oci://
    #[arg(long, value_name = "NAME", value_parser = PROVIDERS)]
    provider: Option<String>,

    /// Send the credentials to all hosts that the index names
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", hide_default_value = true, hide_possible_values = true)]
    pass_credentials: bool,
}

/// Command line of `create source chart`.
#[derive(Debug, Args)]
pub(super) struct Chart {
    #[command(flatten)]
    shared: Shared,

    /// Source, as KIND/NAME
    #[arg(long, value_name = "SOURCE")]
    source: String,

    /// Name of the chart, or its path in a repository
    #[arg(long, value_name = "NAME")]
    chart: String,

    /// Version, or a range of versions
    #[arg(long, value_name = "VERSION")]
    chart_version: Option<String>,

    /// When a chart of a Git repository is made anew
    #[arg(long, value_name = "NAME", default_value = "ChartVersion", value_parser = ["ChartVersion", "Revision"])]
    reconcile_strategy: String,
}

impl Kind {
    pub(super) fn objects(&self, report_line: &impl Fn(&str)) -> Result<Made<'_>, Failure> {
        match self {
            Self::Git(flags) => flags.objects(report_line),
            Self::Oci(flags) => flags.objects(),
            Self::Bucket(flags) => flags.objects(),
            Self::Helm(flags) => flags.objects(),
            Self::Chart(flags) => flags.objects(),
        }
    }
}

impl Git {
    fn objects(&self, report_line: &impl Fn(&str)) -> Result<Made<'_>, Failure> {
        let Self { shared, url, .. } = self;
        let text = |text: &String| (!text.is_empty()).then(|| text.clone());
        let reference = match (
            &self.commit,
            &self.ref_name,
            &self.tag_semver,
            &self.tag,
            &self.branch,
        ) {
            (commit, ..) if !commit.is_empty() => json!({"commit": commit, "branch": text(&self.branch)}),
            (_, name, ..) if !name.is_empty() => json!({"name": name}),
            (_, _, range, ..) if !range.is_empty() => json!({"semver": range}),
            (_, _, _, tag, _) if !tag.is_empty() => json!({"tag": tag}),
            (_, _, _, _, branch) if !branch.is_empty() => json!({"branch": branch}),
            _ => {
                return Err(Failure::Usage(
                    "a reference is required: --branch, --tag, --tag-semver, --ref-name or --commit"
                        .to_owned(),
                ));
            }
        };
        let mut objects = Vec::new();
        // As in Flux, what is printed has no credentials in it.
        let makes_secret =
            shared.secret_ref.is_none() && self.credentials.is_there(url) && !shared.common.export;
        let mut spec = json!({
            "url": url, "ref": reference, "provider": self.provider,
            "recurseSubmodules": self.recurse_submodules,
            "sparseCheckout": self.sparse_checkout_paths,
            "proxySecretRef": named(self.proxy_secret_ref.as_ref()),
            "ignore": self.ignore_paths.join("\n"),
        });
        if makes_secret {
            let data = self.credentials.data(url, report_line)?;
            objects.push(shared.common.secret(&shared.common.name, None, &data));
            spec["secretRef"] = json!({"name": shared.common.name});
        }
        objects.push(shared.object("GitRepository", spec));
        Ok((&shared.common, objects))
    }
}

impl Oci {
    fn objects(&self) -> Result<Made<'_>, Failure> {
        let reference = match (&self.digest, &self.tag_semver, &self.tag) {
            (digest, ..) if !digest.is_empty() => json!({"digest": digest}),
            (_, range, _) if !range.is_empty() => json!({"semver": range}),
            (_, _, tag) if !tag.is_empty() => json!({"tag": tag}),
            _ => {
                return Err(Failure::Usage(
                    "a reference is required: --tag, --tag-semver or --digest".to_owned(),
                ));
            }
        };
        let verify = match &self.verify_provider {
            Some(provider) => {
                let identity = json!({"subject": self.verify_subject, "issuer": self.verify_issuer});
                let keyless = self.verify_issuer.as_ref().map(|_| vec![identity]);
                json!({"provider": provider, "secretRef": named(self.verify_secret_ref.as_ref()),
                    "matchOIDCIdentity": keyless})
            }
            None => Value::Null,
        };
        let spec = json!({
            "url": self.url, "ref": reference, "provider": self.provider, "insecure": self.insecure, "verify": verify,
            "serviceAccountName": self.service_account,
            "certSecretRef": named(self.cert_secret_ref.as_ref()),
            "proxySecretRef": named(self.proxy_secret_ref.as_ref()),
            "ignore": self.ignore_paths.join("\n"),
        });
        Ok((
            &self.shared.common,
            vec![self.shared.object("OCIRepository", spec)],
        ))
    }
}

impl Bucket {
    fn objects(&self) -> Result<Made<'_>, Failure> {
        let shared = &self.shared;
        let mut spec = json!({
            "bucketName": self.bucket_name, "endpoint": self.endpoint, "region": self.region,
            "provider": self.provider, "insecure": self.insecure,
            "proxySecretRef": named(self.proxy_secret_ref.as_ref()),
            "ignore": self.ignore_paths.join("\n"),
        });
        let mut objects = Vec::new();
        if let (Some(access), Some(secret), false) =
            (&self.access_key, &self.secret_key, shared.common.export)
        {
            let data = [("accesskey", access.clone()), ("secretkey", secret.clone())];
            objects.push(shared.common.secret(&shared.common.name, None, &data));
            spec["secretRef"] = json!({"name": shared.common.name});
        }
        objects.push(shared.object("Bucket", spec));
        Ok((&shared.common, objects))
    }
}

impl Helm {
    fn objects(&self) -> Result<Made<'_>, Failure> {
        let shared = &self.shared;
        let mut spec = json!({
            "url": self.url, "provider": self.provider, "passCredentials": self.pass_credentials,
            "type": self.url.starts_with("oci://").then_some("oci"),
        });
        let mut objects = Vec::new();
        if let (Some(username), Some(password), false) =
            (&self.username, &self.password, shared.common.export)
        {
            let data = [("username", username.clone()), ("password", password.clone())];
            objects.push(shared.common.secret(&shared.common.name, None, &data));
            spec["secretRef"] = json!({"name": shared.common.name});
        }
        objects.push(shared.object("HelmRepository", spec));
        Ok((&shared.common, objects))
    }
}

impl Chart {
    fn objects(&self) -> Result<Made<'_>, Failure> {
        let (kind, name, _) = reference("--source", &self.source)?;
        let kind = kind_named("--source", &kind, &["HelmRepository", "GitRepository", "Bucket"])?;
        let spec = json!({
            "chart": self.chart, "version": self.chart_version, "reconcileStrategy": self.reconcile_strategy,
            "sourceRef": {"kind": kind, "name": name},
        });
        Ok((&self.shared.common, vec![self.shared.object("HelmChart", spec)]))
    }
}
