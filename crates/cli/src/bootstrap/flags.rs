//! The command line of `bootstrap`, with the words of `flux bootstrap`.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use forge::Kind;
use helm_chart::values;
use serde_json::{Map, Value, json};
use transport::auth::SecretData;
use url::Url;

use super::origin::{At, Origin};
use crate::cluster::{Failure, parse_timeout};
use crate::platform::Place;
use crate::platform::chart::ValueFlags;

/// The flags of every kind of repository.
#[derive(Debug, Args)]
pub(super) struct Shared {
    /// Folder of this cluster in the repository, such as clusters/production
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true, value_parser = folder)]
    pub(super) path: String,

    /// Branch that the cluster follows; made from the default branch if it is not there
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(super) branch: String,

    /// How often the cluster looks for new commits; 1m at first
    #[arg(long, value_name = "DURATION", value_parser = parse_timeout)]
    pub(super) interval: Option<Duration>,

    /// Name of the Secret with the credentials of the repository; defaults to the namespace
    #[arg(long, value_name = "NAME")]
    pub(super) secret_name: Option<String>,

    /// Fetch submodules, too
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", hide_default_value = true, hide_possible_values = true)]
    pub(super) recurse_submodules: bool,

    /// File with the certificate authority of the Git server, in PEM
    #[arg(long, value_name = "FILE")]
    pub(super) ca_file: Option<PathBuf>,

    /// Allow credentials to be sent over HTTP
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", hide_default_value = true, hide_possible_values = true)]
    pub(super) allow_insecure_http: bool,

    /// Author of the commits
    #[arg(long, value_name = "TEXT", default_value = "Windlass")]
    pub(super) author_name: String,

    /// Mail address of the author
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(super) author_email: String,

    /// Text to add to the messages of the commits, such as [ci skip]
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(super) commit_message_appendix: String,

    /// Replace the key of the repository by a new one
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", hide_default_value = true, hide_possible_values = true)]
    pub(super) rotate_key: bool,

    /// Move the files of this cluster from the path that it has now
    #[arg(long = "move")]
    pub(super) move_path: bool,

    /// Have the cluster return to the revision before when the controllers of a new one do not become healthy
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    pub(super) rollback: Option<bool>,

    /// Open a pull request instead of pushing to the branch; run the command again when it is merged
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", hide_default_value = true, hide_possible_values = true)]
    pub(super) pull_request: bool,

    #[command(flatten)]
    pub(super) values: ValueFlags,

    #[command(flatten)]
    chart: ChartFlags,

    /// Show the files and objects that would change, without changing anything
    #[arg(long)]
    pub(super) dry_run: bool,

    /// Timeout for the cluster to deliver the commit
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_timeout)]
    pub(super) timeout: Duration,

    #[command(flatten)]
    pub(super) place: Place,
}

/// Flux's words for what are values of the chart.
#[derive(Debug, Args)]
struct ChartFlags {
    /// Registry and folder of the images, such as ghcr.io/org
    #[arg(long, value_name = "HOST/PATH")]
    registry: Option<String>,

    /// Secret that the images are pulled with
    #[arg(long, value_name = "NAME")]
    image_pull_secret: Option<String>,

    /// More controllers: image-reflector-controller, image-automation-controller, pipeline-controller, resource-set-controller
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    components_extra: Vec<String>,

    /// Deny traffic from other namespaces to the controllers
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    network_policy: Option<bool>,

    /// Watch all namespaces, not only that of the controllers
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true")]
    watch_all_namespaces: Option<bool>,

    /// Log level of the controllers
    #[arg(long, value_name = "LEVEL", value_parser = ["trace", "debug", "info", "error"])]
    log_level: Option<String>,
}

/// The flags of a repository at a forge.
#[derive(Debug, Args)]
pub(super) struct ForgeFlags {
    /// User, organisation, group or project that has the repository
    #[arg(long, value_name = "NAME")]
    owner: String,

    /// Name of the repository; it is made if it is not there
    #[arg(long, value_name = "NAME")]
    repository: String,

    /// Host of the forge, or its URL
    #[arg(long, value_name = "HOST")]
    hostname: Option<String>,

    /// Host of the forge for ssh, with its port if it is not 22; defaults to what the forge says
    #[arg(long, value_name = "HOST[:PORT]")]
    ssh_hostname: Option<String>,

    /// The owner is a user, not an organisation
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", hide_default_value = true, hide_possible_values = true)]
    personal: bool,

    /// Make the repository private
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "true")]
    private: bool,

    /// User name for the token
    #[arg(long, short, value_name = "NAME", default_value = "git")]
    username: String,

    /// Let the cluster use the token over HTTPS instead of a deploy key over ssh
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", hide_default_value = true, hide_possible_values = true)]
    token_auth: bool,

    /// Let the deploy key push, too, as image automation needs it
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "false", hide_default_value = true, hide_possible_values = true)]
    read_write_key: bool,

    #[command(flatten)]
    pub(super) shared: Shared,
}

/// The flags of a repository at any Git server.
#[derive(Debug, Args)]
pub(super) struct GitFlags {
    /// URL of the repository: https://… or ssh://…
    #[arg(long, value_name = "URL")]
    url: Url,

    /// User name for a password or token
    #[arg(long, short, value_name = "NAME", default_value = "git")]
    username: String,

    /// Password or token, or passphrase of the private key
    #[arg(
        long,
        short,
        value_name = "TEXT",
        hide_env_values = true,
        env = "GIT_PASSWORD"
    )]
    password: Option<String>,

    /// File with the private key for ssh; without one, a key is made, and the command waits until the repository lets it in
    #[arg(long, value_name = "FILE")]
    private_key_file: Option<PathBuf>,

    #[command(flatten)]
    pub(super) shared: Shared,
}

impl Shared {
    /// Refuses what cannot be meant.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let usage = |text: &str| Err(Failure::Usage(text.to_owned()));
        if self.branch.is_empty() {
            return usage("--branch: write the name of a branch");
        }
        match self.pull_request && self.rotate_key {
            true => usage("--rotate-key changes no file: leave --pull-request out"),
            false => Ok(()),
        }
    }

    /// The message of a commit.
    pub(super) fn message(&self, is_there: bool, namespace: &str) -> String {
        let verb = if is_there { "Update" } else { "Add" };
        let version = env!("CARGO_PKG_VERSION");
        let place = match self.path.as_str() {
            "" => namespace,
            path => path,
        };
        let mut text = format!("{verb} Windlass {version} in {place}\n");
        if !self.commit_message_appendix.is_empty() {
            text.push_str(&format!("\n{}\n", self.commit_message_appendix));
        }
        text
    }

    /// The values that were given, those of Helm's flags over those of Flux's.
    pub(super) fn given(&self) -> Result<Map<String, Value>, Failure> {
        let mut values = self.chart.values()?;
        if let Some(over) = self.values.read()? {
            values::merge(&mut values, over);
        }
        Ok(values)
    }

    fn ca(&self) -> Result<Option<Vec<u8>>, Failure> {
        let Some(path) = &self.ca_file else {
            return Ok(None);
        };
        let read = std::fs::read(path);
        read.map(Some)
            .map_err(|error| Failure::Usage(format!("--ca-file {}: {error}", path.display())))
    }

    fn refuse_http(&self, url: &Url) -> Result<(), Failure> {
        match url.scheme() == "http" && !self.allow_insecure_http {
            true => Err(Failure::Usage(format!(
                "{url} is not encrypted: credentials would be sent in plain text; --allow-insecure-http allows it"
            ))),
            false => Ok(()),
        }
    }
}

impl ChartFlags {
    fn values(&self) -> Result<Map<String, Value>, Failure> {
        let mut values = json!({});
        if let Some(registry) = &self.registry {
            let (host, path) = registry.split_once('/').unwrap_or((registry, ""));
            values["image"]["registry"] = host.into();
            if !path.is_empty() {
                values["image"]["repository"] = path.into();
            }
        }
        if let Some(secret) = &self.image_pull_secret {
            values["image"]["pullSecrets"] = json!([{"name": secret}]);
        }
        for component in &self.components_extra {
            let key = match component.as_str() {
                "image-reflector-controller" | "image-automation-controller" => "images",
                "pipeline-controller" => "pipelines",
                "resource-set-controller" => "resourceSets",
                // It is a part of source-controller.
                "source-watcher" => continue,
                other => {
                    return Err(Failure::Usage(format!(
                        "--components-extra: {other} is no component"
                    )));
                }
            };
            values[key]["enabled"] = true.into();
        }
        if let Some(create) = self.network_policy {
            values["networkPolicy"]["create"] = create.into();
        }
        if let Some(all) = self.watch_all_namespaces {
            values["watch"]["allNamespaces"] = all.into();
        }
        if let Some(level) = &self.log_level {
            values["logging"]["level"] = level.as_str().into();
        }
        Ok(match values {
            Value::Object(values) => values,
            _ => Map::new(),
        })
    }
}

impl ForgeFlags {
    /// The repository at this forge.
    pub(super) fn origin(&self, kind: Kind) -> Result<Origin, Failure> {
        let usage = |text: String| Err(Failure::Usage(text));
        let (variable, host) = match kind {
            Kind::GitHub => ("GITHUB_TOKEN", "github.com"),
            Kind::GitLab => ("GITLAB_TOKEN", "gitlab.com"),
            Kind::Gitea => ("GITEA_TOKEN", "gitea.com"),
            Kind::AzureDevOps => ("AZURE_DEVOPS_TOKEN", "dev.azure.com"),
            _ => ("BITBUCKET_TOKEN", ""),
        };
        let host = self.hostname.as_deref().unwrap_or(host).trim_end_matches('/');
        if host.is_empty() {
            return usage(format!("--hostname: name the host of {kind}"));
        }
        let base = match host.contains("://") {
            true => host.to_owned(),
            false => format!("https://{host}"),
        };
        let (owner, name) = (self.owner.trim_matches('/'), self.repository.trim_matches('/'));
        let name = name.strip_suffix(".git").unwrap_or(name);
        let path = match kind {
            Kind::BitbucketServer => format!("scm/{owner}/{name}.git"),
            Kind::AzureDevOps => format!("{owner}/_git/{name}"),
            _ => format!("{owner}/{name}.git"),
        };
        let url = Url::parse(&format!("{base}/{path}"));
        let url = url.map_err(|error| Failure::Usage(format!("--hostname {host}: {error}")))?;
        self.shared.refuse_http(&url)?;
        let token = env::var(variable).unwrap_or_default().trim().to_owned();
        if token.is_empty() {
            return usage(format!("${variable} must hold a token for {kind}"));
        }
        let mut secret = SecretData::new();
        secret.insert("username".to_owned(), self.username.clone().into_bytes());
        secret.insert("password".to_owned(), token.into_bytes());
        if let Some(ca) = self.shared.ca()? {
            secret.insert("ca.crt".to_owned(), ca);
        }
        Ok(Origin {
            url,
            secret,
            at: At::Forge {
                kind,
                personal: self.personal,
                private: self.private,
                ssh_host: self.ssh_hostname.clone(),
                token_auth: self.token_auth || kind == Kind::AzureDevOps,
                read_write: self.read_write_key,
            },
        })
    }
}

impl GitFlags {
    /// The repository at this address.
    pub(super) fn origin(&self) -> Result<Origin, Failure> {
        let url = &self.url;
        let mut secret = SecretData::new();
        let password = self.password.clone().filter(|password| !password.is_empty());
        match url.scheme() {
            "ssh" => {
                if let Some(path) = &self.private_key_file {
                    let key = std::fs::read(path);
                    let key = key.map_err(|error| {
                        Failure::Usage(format!("--private-key-file {}: {error}", path.display()))
                    })?;
                    secret.insert("identity".to_owned(), key);
                }
                if let Some(password) = password {
                    secret.insert("password".to_owned(), password.into_bytes());
                }
            }
            "http" | "https" => {
                self.shared.refuse_http(url)?;
                if let Some(password) = password {
                    secret.insert("username".to_owned(), self.username.clone().into_bytes());
                    secret.insert("password".to_owned(), password.into_bytes());
                }
                if let Some(ca) = self.shared.ca()? {
                    secret.insert("ca.crt".to_owned(), ca);
                }
            }
            other => {
                return Err(Failure::Usage(format!(
                    "--url: {other}:// is not supported, write https:// or ssh://"
                )));
            }
        }
        if url.password().is_some() {
            return Err(Failure::Usage(
                "--url: give the password with $GIT_PASSWORD".to_owned(),
            ));
        }
        Ok(Origin {
            url: url.clone(),
            secret,
            at: At::Git,
        })
    }
}

/// A folder of a repository, as `clusters/production`; `./clusters/production/` is the same.
fn folder(text: &str) -> Result<String, String> {
    let parts = text.split('/').filter(|part| !matches!(*part, "" | "."));
    let parts: Vec<&str> = parts.collect();
    match parts.contains(&"..") || parts.contains(&".git") {
        true => Err("it must be a folder of the repository".to_owned()),
        false => Ok(parts.join("/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_in_the_repository() {
        assert_eq!(folder("./clusters//prod/"), Ok("clusters/prod".to_owned()));
        assert_eq!(folder(""), Ok(String::new()));
        assert!(folder("../other").is_err());
        assert!(folder(".git/hooks").is_err());
    }

    #[test]
    fn flags_of_flux_are_values_of_the_chart() {
        let flags = ChartFlags {
            registry: Some("ghcr.io/org/images".to_owned()),
            image_pull_secret: Some("pull".to_owned()),
            components_extra: vec![
                "image-automation-controller".to_owned(),
                "source-watcher".to_owned(),
            ],
            network_policy: Some(false),
            watch_all_namespaces: None,
            log_level: Some("debug".to_owned()),
        };
        let expected = json!({
            "image": {"registry": "ghcr.io", "repository": "org/images", "pullSecrets": [{"name": "pull"}]},
            "images": {"enabled": true}, "networkPolicy": {"create": false}, "logging": {"level": "debug"},
        });
        assert_eq!(Value::Object(flags.values().unwrap()), expected);
    }
}
