//! Kubeconfigs that users give for remote clusters.
//!
//! Such a kubeconfig is hostile: it must not make this process start a program, read a file of its own container (a token of
//! it could be sent to a server of the user's), or trust anybody, unless a flag says so. What Flux drops silently is
//! refused here with the reason.

use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use crate::flags::KubeconfigFlags;

/// A kubeconfig that is not used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not one, or its current context is not there.
    #[error("failed to read the kubeconfig: {0}")]
    Read(String),
    /// It names a file, which would be one of this process. In Flux's words.
    #[error("refused the kubeconfig: {entry} '{name}' references a {field}, only {instead} is supported")]
    File {
        /// `cluster` or `user`.
        entry: &'static str,
        /// Its name.
        name: String,
        /// The field that names the file.
        field: &'static str,
        /// The field for the content.
        instead: &'static str,
    },
    /// It asks for something that it must not have.
    #[error("refused the kubeconfig: {field} is not allowed, {remedy}")]
    Refused {
        /// The field.
        field: &'static str,
        /// The remedy.
        remedy: &'static str,
    },
}

/// Reads a kubeconfig and takes its current context.
pub async fn read(bytes: &[u8], flags: &KubeconfigFlags) -> Result<Config, Error> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::Read("it is not text".to_owned()))?;
    let mut kubeconfig = Kubeconfig::from_yaml(text).map_err(|error| Error::Read(without_content(&error)))?;
    check(&kubeconfig, flags)?;
    if !flags.insecure_kubeconfig_tls {
        // As in Flux, the certificate is verified all the same.
        for cluster in kubeconfig
            .clusters
            .iter_mut()
            .filter_map(|named| named.cluster.as_mut())
        {
            cluster.insecure_skip_tls_verify = None;
        }
    }
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    config.map_err(|error| Error::Read(without_content(&error)))
}

fn check(kubeconfig: &Kubeconfig, flags: &KubeconfigFlags) -> Result<(), Error> {
    let refused = |field, remedy| Err(Error::Refused { field, remedy });
    for named in &kubeconfig.clusters {
        let authority = named
            .cluster
            .as_ref()
            .and_then(|cluster| cluster.certificate_authority.as_ref());
        if authority.is_some() {
            let (field, instead) = ("certificate-authority file", "certificate-authority-data");
            return file("cluster", &named.name, field, instead);
        }
    }
    for named in &kubeconfig.auth_infos {
        let Some(user) = &named.auth_info else { continue };
        if user.exec.is_some() && !flags.insecure_kubeconfig_exec {
            return refused(
                "exec",
                "use a token, or start the controller with --insecure-kubeconfig-exec",
            );
        }
        if user.auth_provider.is_some() {
            return refused("auth-provider", "use a token");
        }
        let files = [
            (&user.token_file, "tokenFile", "an inline token"),
            (
                &user.client_certificate,
                "client-certificate file",
                "client-certificate-data",
            ),
            (&user.client_key, "client-key file", "client-key-data"),
        ];
        if let Some((_, field, instead)) = files.into_iter().find(|(path, ..)| path.is_some()) {
            return file("user", &named.name, field, instead);
        }
    }
    Ok(())
}

fn file(entry: &'static str, name: &str, field: &'static str, instead: &'static str) -> Result<(), Error> {
    const LONGEST: usize = 100;
    Err(Error::File {
        entry,
        name: name.chars().take(LONGEST).collect(),
        field,
        instead,
    })
}

/// The kind of error, with none of what is in the kubeconfig.
fn without_content(error: &KubeconfigError) -> String {
    let words = match error {
        KubeconfigError::CurrentContextNotSet => "it has no current-context",
        KubeconfigError::LoadContext(_) => "the current context is not there",
        KubeconfigError::LoadClusterOfContext(_) => "the cluster of the current context is not there",
        KubeconfigError::MissingClusterUrl => "the cluster has no server",
        KubeconfigError::ParseClusterUrl(_) => "the server is not a URL",
        KubeconfigError::ParseProxyUrl(_) => "proxy-url is not a URL",
        KubeconfigError::LoadCertificateAuthority(_) | KubeconfigError::ParseCertificates(_) => {
            "certificate-authority-data is not a certificate"
        }
        KubeconfigError::LoadClientCertificate(_) => "client-certificate-data is not a certificate",
        KubeconfigError::LoadClientKey(_) => "client-key-data is not a key",
        _ => "it is not a valid kubeconfig",
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const STRICT: KubeconfigFlags = KubeconfigFlags {
        insecure_kubeconfig_exec: false,
        insecure_kubeconfig_tls: false,
    };

    fn kubeconfig(cluster: Value, user: Value) -> String {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": user}],
        })
        .to_string()
    }

    async fn refusal(text: &str, flags: &KubeconfigFlags) -> String {
        let read = read(text.as_bytes(), flags).await;
        read.map(drop).expect_err("refused").to_string()
    }

    #[tokio::test]
    async fn what_reaches_into_the_container_is_refused() {
        let server = json!({"server": "https://127.0.0.1:1"});
        for (user, words) in [
            (
                json!({"exec": {"command": "id", "apiVersion": "client.authentication.k8s.io/v1"}}),
                "exec is not allowed, use a token",
            ),
            (
                json!({"auth-provider": {"name": "gcp", "config": {}}}),
                "auth-provider is not allowed",
            ),
            (
                json!({"tokenFile": "/var/run/secrets/token"}),
                "user 'u' references a tokenFile, only an inline token is supported",
            ),
            (
                json!({"client-certificate": "/a"}),
                "user 'u' references a client-certificate file, only client-certificate-data is supported",
            ),
            (
                json!({"client-key": "/a"}),
                "user 'u' references a client-key file, only client-key-data is supported",
            ),
        ] {
            let message = refusal(&kubeconfig(server.clone(), user), &STRICT).await;
            assert!(message.contains(words), "{message}");
        }
        let file = json!({"server": "https://127.0.0.1:1", "certificate-authority": "/etc/passwd"});
        let message = refusal(&kubeconfig(file, json!({"token": "secret"})), &STRICT).await;
        assert!(
            message.contains(
                "cluster 'c' references a certificate-authority file, only certificate-authority-data is supported"
            ),
            "{message}"
        );
    }

    #[tokio::test]
    async fn a_certificate_is_verified_unless_a_flag_says_otherwise() {
        let careless = json!({"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": true});
        let text = kubeconfig(careless, json!({"token": "secret"}));
        let lax = KubeconfigFlags {
            insecure_kubeconfig_tls: true,
            ..STRICT
        };
        let accepts = |config: Config| config.accept_invalid_certs;
        assert!(!accepts(read(text.as_bytes(), &STRICT).await.expect("readable")));
        assert!(accepts(read(text.as_bytes(), &lax).await.expect("readable")));
    }

    #[tokio::test]
    async fn nothing_of_a_broken_kubeconfig_is_told() {
        for text in [
            "token: hunter2: [",
            "hunter2",
            "{\"users\": [{\"user\": {\"token\": [\"hunter2\"]}}]}",
            "",
        ] {
            let message = refusal(text, &STRICT).await;
            assert!(
                message.starts_with("failed to read the kubeconfig: ") && !message.contains("hunter2"),
                "{message}"
            );
        }
        let message = refusal(
            "{\"apiVersion\": \"v1\", \"clusters\": [], \"current-context\": \"a\"}",
            &STRICT,
        )
        .await;
        assert_eq!(
            message,
            "failed to read the kubeconfig: the current context is not there"
        );
    }
}
