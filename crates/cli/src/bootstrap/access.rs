//! How the cluster gets into the repository: the Secret, and the deploy key that goes with it.

use std::collections::BTreeMap;
use std::time::Duration;

use forge::Forge;
use forge::hosting::DeployKey;
use git_client::reference::Reference;
use git_client::{Error, Request};
use git_ssh::identity::Identity;
use git_ssh::known_hosts::KnownHosts;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::time::Instant;
use transport::auth::SecretData;
use transport::stop::Stop;
use url::Url;

use super::flags::Shared;
use super::origin::{At, GIT_TIMEOUT, Known, Origin, failed, of_forge, remote, scratch};
use crate::cluster::Failure;
use crate::host_keys;
use crate::platform::Platform;

const FIELD_MANAGER: &str = "windlass";
/// How long a forge may take to let a new key in.
const LET_IN: Duration = Duration::from_secs(20);
/// How often it is tried whether a key is let in.
const TRY_AGAIN: Duration = Duration::from_secs(3);

/// The access of the cluster, as it is to be.
pub(super) struct Plan {
    url: Url,
    secret: SecretData,
    namespace: String,
    name: String,
    /// The public key that was there before, if it is replaced.
    replaced: Option<String>,
}

impl Plan {
    /// Finds out what is there. Nothing is written yet.
    pub(super) async fn new(
        client: &Client,
        origin: &Origin,
        known: &Known,
        shared: &Shared,
    ) -> Result<Self, Failure> {
        let namespace = shared.place.namespace.clone();
        let name = shared.secret_name.clone().unwrap_or_else(|| namespace.clone());
        let mut plan = Self {
            url: origin.url.clone(),
            secret: origin.secret.clone(),
            namespace,
            name,
            replaced: None,
        };
        let At::Forge {
            token_auth: false,
            ssh_host,
            ..
        } = &origin.at
        else {
            if origin.url.scheme() == "ssh" {
                with_public(&mut plan.secret)?;
            }
            return Ok(plan);
        };
        plan.url = ssh_url(&origin.url, known.ssh(), ssh_host.as_deref())?;
        let before = read(client, &plan.namespace, &plan.name).await?;
        let key = before
            .get("identity")
            .and_then(|key| Identity::parse(key, None).ok());
        let hosts = before.get("known_hosts").cloned();
        plan.secret = SecretData::new();
        let key = match key {
            Some(key) if !shared.rotate_key => key,
            before => {
                plan.replaced = before.and_then(|key| key.public().ok());
                Identity::generate().map_err(|error| failed("make a key", &error))?
            }
        };
        let text = key
            .to_openssh()
            .map_err(|error| failed("write the key", &error))?;
        plan.secret
            .insert("identity".to_owned(), text.as_bytes().to_vec());
        if let Some(hosts) = hosts {
            plan.secret.insert("known_hosts".to_owned(), hosts);
        }
        with_public(&mut plan.secret)?;
        Ok(plan)
    }

    /// The address that the cluster fetches from.
    pub(super) fn url(&self) -> &str {
        self.url.as_str()
    }

    /// The Secret that it fetches with; None if the repository asks for no credentials.
    pub(super) fn secret(&self) -> Option<&str> {
        (!self.secret.is_empty()).then_some(self.name.as_str())
    }

    /// Registers the deploy key, checks that the credentials open the repository, and writes the Secret.
    pub(super) async fn carry_out(
        mut self,
        client: &Client,
        origin: &Origin,
        shared: &Shared,
        report_line: &impl Fn(&str),
    ) -> Result<Self, Failure> {
        if self.url.scheme() == "ssh" {
            learn_hosts(&self.url, &mut self.secret, report_line).await?;
        }
        if let (
            Some(forge),
            At::Forge {
                token_auth: false, ..
            },
        ) = (origin.forge().await?, &origin.at)
        {
            self.register(&forge, origin, shared, report_line).await?;
        }
        if self.secret.is_empty() {
            return Ok(self);
        }
        self.opens(shared).await?;
        write(client, &self.namespace, &self.name, &self.secret).await?;
        report_line(&format!(
            "Secret {}/{} has the credentials",
            self.namespace, self.name
        ));
        Ok(self)
    }

    /// Lets the key of the Secret in, with the rights that were asked for.
    async fn register(
        &self,
        forge: &Forge<'_>,
        origin: &Origin,
        shared: &Shared,
        report_line: &impl Fn(&str),
    ) -> Result<(), Failure> {
        let At::Forge { read_write, .. } = &origin.at else {
            return Ok(());
        };
        let (public, read_only) = (self.public(), !*read_write);
        let keys = forge.deploy_keys().await.map_err(|error| of_forge(&error))?;
        let place = format!("windlass {} {}", self.namespace, shared.path);
        let place = place.trim();
        let is_other = |key: &&DeployKey| {
            key.title.starts_with(place) && key.key != public && Some(&key.key) != self.replaced.as_ref()
        };
        for other in keys.iter().filter(is_other) {
            report_line(&format!(
                "note: the deploy key '{}' is of another cluster, or of one that is gone: remove it then",
                other.title
            ));
        }
        let same = keys.iter().find(|key| key.key == public);
        if same.is_some_and(|key| key.read_only == read_only) {
            return Ok(());
        }
        if let Some(key) = same {
            forge
                .remove_deploy_key(&key.id)
                .await
                .map_err(|error| of_forge(&error))?;
        }
        let rights = if read_only { "read-only" } else { "read-write" };
        report_line(&format!("adding a {rights} deploy key"));
        // Some forges take a title once.
        let title = format!("{place} {}", self.mark()?);
        let added = forge.add_deploy_key(&title, &public, read_only).await;
        added.map_err(|error| of_forge(&error))
    }

    /// Tries the credentials. Some forges know a new key only after some seconds.
    async fn opens(&self, shared: &Shared) -> Result<(), Failure> {
        let deadline = Instant::now() + LET_IN;
        loop {
            match check(&self.url, &self.secret, &shared.branch).await {
                Ok(()) => return Ok(()),
                Err(Error::Ssh(_)) if Instant::now() < deadline => tokio::time::sleep(TRY_AGAIN).await,
                Err(error) => return Err(failed(&format!("read {} as the cluster will", self.url), &error)),
            }
        }
    }

    /// The first letters of the key's fingerprint.
    fn mark(&self) -> Result<String, Failure> {
        let key = self.secret.get("identity").map(Vec::as_slice).unwrap_or_default();
        let key = Identity::parse(key, None).map_err(|error| failed("read the private key", &error))?;
        let fingerprint = key.fingerprint();
        let fingerprint = fingerprint.trim_start_matches("SHA256:");
        Ok(fingerprint.chars().take(8).collect())
    }

    /// Takes away the key that was replaced; the cluster has fetched with the new one by now.
    pub(super) async fn forget_old_key(
        &self,
        origin: &Origin,
        report_line: &impl Fn(&str),
    ) -> Result<(), Failure> {
        let (Some(old), Some(forge)) = (&self.replaced, origin.forge().await?) else {
            return Ok(());
        };
        let keys = forge.deploy_keys().await.map_err(|error| of_forge(&error))?;
        for key in keys.iter().filter(|key| key.key == *old) {
            report_line(&format!(
                "removing the deploy key '{}' that was replaced",
                key.title
            ));
            forge
                .remove_deploy_key(&key.id)
                .await
                .map_err(|error| of_forge(&error))?;
        }
        Ok(())
    }

    fn public(&self) -> String {
        let public = self
            .secret
            .get("identity.pub")
            .map(|key| String::from_utf8_lossy(key));
        public.unwrap_or_default().trim().to_owned()
    }
}

impl Origin {
    /// At a plain server of ssh: finds the key that the cluster has, or makes one and waits until the repository lets it in.
    pub(super) async fn sign_in(
        &mut self,
        platform: &Platform,
        shared: &Shared,
        report_line: &impl Fn(&str),
    ) -> Result<(), Failure> {
        if !matches!(self.at, At::Git) || self.url.scheme() != "ssh" {
            return Ok(());
        }
        let namespace = &shared.place.namespace;
        let name = shared.secret_name.clone().unwrap_or_else(|| namespace.clone());
        let before = read(&platform.client, namespace, &name).await?;
        if let Some(hosts) = before.get("known_hosts") {
            self.secret.insert("known_hosts".to_owned(), hosts.clone());
        }
        learn_hosts(&self.url, &mut self.secret, report_line).await?;
        if self.secret.contains_key("identity") {
            return Ok(());
        }
        let known = before.get("identity").filter(|_| !shared.rotate_key);
        if let Some(key) = known {
            self.secret.insert("identity".to_owned(), key.clone());
        } else {
            let key = Identity::generate().map_err(|error| failed("make a key", &error))?;
            let text = key
                .to_openssh()
                .map_err(|error| failed("write the key", &error))?;
            self.secret
                .insert("identity".to_owned(), text.as_bytes().to_vec());
        }
        with_public(&mut self.secret)?;
        if shared.dry_run {
            return Ok(());
        }
        // It is kept before it is shown, so that the same key is there when the command is run again.
        if known.is_none() {
            platform.create_namespace().await?;
            write(&platform.client, namespace, &name, &self.secret).await?;
        }
        let public = self
            .secret
            .get("identity.pub")
            .map(|key| String::from_utf8_lossy(key));
        let public = public.unwrap_or_default().trim().to_owned();
        let deadline = Instant::now() + shared.timeout;
        let mut is_shown = false;
        loop {
            let error = match check(&self.url, &self.secret, &shared.branch).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if !matches!(error, Error::Ssh(_)) || Instant::now() > deadline {
                return Err(failed(&format!("read the repository {}", self.url), &error));
            }
            if !is_shown {
                report_line(&format!(
                    "let this key read and write the repository; the command goes on then:\n{public}"
                ));
                is_shown = true;
            }
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }
}

/// Asks the repository for a branch, as the cluster will. That it is not there yet is fine.
async fn check(url: &Url, secret: &SecretData, branch: &str) -> Result<(), Error> {
    let remote = remote(url, secret).map_err(|error| Error::Talk(error.to_string()))?;
    let stop = Stop::default();
    let request = Request {
        remote,
        reference: Reference::Branch(branch.to_owned()),
        sparse: Some(git_client::sparse::Sparse::new(&[
            "windlass-checks-access".to_owned()
        ])),
        unless_revision: None,
        over: None,
        directory: scratch(),
        packs: git_pack::Settings {
            cancelled: stop.flag().clone(),
            ..git_pack::Settings::default()
        },
        deadline: Instant::now() + GIT_TIMEOUT,
        stop,
    };
    match git_client::fetch(request).await {
        Ok(_) | Err(Error::EmptyRepository | Error::FindReference { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Writes down the keys of the server if none are known, and shows them.
async fn learn_hosts(url: &Url, secret: &mut SecretData, report_line: &impl Fn(&str)) -> Result<(), Failure> {
    let (host, port) = host_keys::address(url);
    let known = secret.get("known_hosts").cloned().unwrap_or_default();
    let hosts = KnownHosts::parse(&known);
    let hosts = hosts.map_err(|error| failed("read the known hosts of the Secret", &error))?;
    if !hosts.key_types(host, port).is_empty() || hosts.has_authority(host, port) {
        return Ok(());
    }
    let mut lines = String::from_utf8_lossy(&known).into_owned();
    if !lines.is_empty() && !lines.ends_with('\n') {
        lines.push('\n');
    }
    lines.push_str(&host_keys::read(url, report_line).await?);
    secret.insert("known_hosts".to_owned(), lines.into_bytes());
    Ok(())
}

/// Adds the public key, which people look for.
fn with_public(secret: &mut SecretData) -> Result<(), Failure> {
    let Some(key) = secret.get("identity") else {
        return Ok(());
    };
    let passphrase = transport::auth::text(secret, "password");
    let key = Identity::parse(key, passphrase.as_deref())
        .map_err(|error| failed("read the private key", &error))?;
    let public = key
        .public()
        .map_err(|error| failed("write the public key", &error))?;
    secret.insert("identity.pub".to_owned(), format!("{public}\n").into_bytes());
    Ok(())
}

async fn read(client: &Client, namespace: &str, name: &str) -> Result<SecretData, Failure> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let found = secrets.get_opt(name).await;
    let found = found.map_err(|error| Failure::request(format!("get Secret/{namespace}/{name}"), error))?;
    let data = found.and_then(|secret| secret.data).unwrap_or_default();
    Ok(data.into_iter().map(|(key, value)| (key, value.0)).collect())
}

async fn write(client: &Client, namespace: &str, name: &str, data: &SecretData) -> Result<(), Failure> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let data: BTreeMap<String, ByteString> = data
        .iter()
        .map(|(key, value)| (key.clone(), ByteString(value.clone())))
        .collect();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": name, "namespace": namespace}, "data": data});
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    let written = secrets.patch(name, &parameters, &Patch::Apply(&secret)).await;
    written
        .map(drop)
        .map_err(|error| Failure::request(format!("write Secret/{namespace}/{name}"), error))
}

/// The address for ssh: what the forge says, or the usual one, at another host if that is asked for.
fn ssh_url(https: &Url, told: &str, host: Option<&str>) -> Result<Url, Failure> {
    let unreadable = |text: &str| Failure::Usage(format!("the address {text} for ssh cannot be read"));
    let text = match told {
        "" => format!(
            "ssh://git@{}{}",
            https.host_str().unwrap_or_default(),
            https.path()
        ),
        told if told.contains("://") => told.to_owned(),
        // As scp has it: git@host:owner/name.git
        told => {
            let (place, path) = told.split_once(':').ok_or_else(|| unreadable(told))?;
            format!("ssh://{place}/{}", path.trim_start_matches('/'))
        }
    };
    let mut url = Url::parse(&text).map_err(|_| unreadable(&text))?;
    // The cluster will fetch from it: what a service says must not become another protocol, or a file.
    if url.scheme() != "ssh" || url.host_str().is_none_or(str::is_empty) || url.password().is_some() {
        return Err(unreadable(&text));
    }
    if let Some(host) = host {
        let (host, port) = match host.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse::<u16>().map_err(|_| unreadable(host))?)),
            None => (host, None),
        };
        url.set_host(Some(host)).map_err(|_| unreadable(host))?;
        url.set_port(port).map_err(|()| unreadable(host))?;
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_for_ssh_are_urls() {
        let https = Url::parse("https://git.example.com/org/fleet.git").unwrap();
        for (told, host, expected) in [
            ("", None, "ssh://git@git.example.com/org/fleet.git"),
            (
                "git@github.com:org/fleet.git",
                None,
                "ssh://git@github.com/org/fleet.git",
            ),
            (
                "ssh://git@git.example.com:2222/org/fleet.git",
                None,
                "ssh://git@git.example.com:2222/org/fleet.git",
            ),
            (
                "git@github.com:org/fleet.git",
                Some("ssh.example.com:443"),
                "ssh://git@ssh.example.com:443/org/fleet.git",
            ),
            (
                "ssh://git@git.example.com:2222/org/fleet.git",
                Some("ssh.example.com"),
                "ssh://git@ssh.example.com/org/fleet.git",
            ),
        ] {
            assert_eq!(ssh_url(&https, told, host).unwrap().as_str(), expected);
        }
        for told in [
            "nonsense",
            "file:///etc/passwd",
            "http://evil.example.com/fleet.git",
            "https://git@git.example.com/fleet.git",
            "ssh://git:word@git.example.com/fleet.git",
            "ssh:///fleet.git",
        ] {
            let refused = ssh_url(&https, told, None).unwrap_err().to_string();
            assert!(refused.ends_with("for ssh cannot be read"), "{told}: {refused}");
        }
    }
}
