//! A cluster as a ConfigMap describes it: its address and authority, and who asks it. Nothing in it is secret; who asks
//! proves it with a token of a ServiceAccount of this cluster (`generic`), or with what a cloud gives for one.

use std::collections::BTreeMap;
use std::sync::Arc;

use artifact::Digest;
use cloud_identity::cluster::{Cloud, Cluster, Endpoint};
use cloud_identity::{Future, Identity, Issuer};
use kube::Config;
use kube::config::Kubeconfig;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use url::Url;

use workload_identity::{Identities, Tokens};

/// What a ConfigMap says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Description {
    namespace: String,
    name: String,
    provider: Provider,
    cluster: String,
    address: String,
    authority: String,
    audiences: Vec<String>,
    /// The ServiceAccount of the namespace; None is the controller's own.
    account: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Provider {
    Generic,
    Cloud(Cloud),
}

/// Who asks clusters that a ConfigMap describes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Asker<'a> {
    /// The account where the ConfigMap names none.
    pub(super) default_account: Option<&'a str>,
    /// There are tenants: never the controller itself.
    pub(super) is_locked: bool,
}

/// A token and until when it is good; None when no one said so.
pub(super) type Bearer = (zeroize::Zeroizing<String>, Option<jiff::Timestamp>);

impl Description {
    /// Reads a ConfigMap.
    pub(super) fn new(
        namespace: &str,
        name: &str,
        data: &BTreeMap<String, String>,
        asker: Asker<'_>,
    ) -> Result<Self, String> {
        let text = |key: &str| data.get(key).cloned().unwrap_or_default();
        let provider = match data.get("provider").map_or("", String::as_str) {
            "generic" => Provider::Generic,
            "aws" => Provider::Cloud(Cloud::Aws),
            "azure" => Provider::Cloud(Cloud::Azure),
            "gcp" => Provider::Cloud(Cloud::Gcp),
            other => {
                return Err(format!(
                    "provider '{other}' not implemented: it must be one of aws, azure, gcp and generic"
                ));
            }
        };
        let account = Some(text("serviceAccountName")).filter(|name| !name.is_empty());
        let audiences = data
            .get("audiences")
            .map_or("", String::as_str)
            .lines()
            .map(str::trim);
        let described = Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            provider,
            cluster: text("cluster"),
            address: text("address"),
            authority: text("ca.crt"),
            audiences: audiences
                .filter(|line| !line.is_empty())
                .map(str::to_owned)
                .collect(),
            account: account.or(asker.default_account.map(str::to_owned)),
        };
        if described.account.is_none() && asker.is_locked {
            return Err(
                "it names no serviceAccountName, and the controller's own identity is not for tenants: name one, or set \
                 --default-kubeconfig-service-account"
                    .to_owned(),
            );
        }
        if provider == Provider::Generic {
            if described.address.is_empty() {
                return Err("cluster address is required to create a REST config".to_owned());
            }
            canonical(&described.address)?;
        }
        Ok(described)
    }

    /// Namespace and name of the ConfigMap.
    pub(super) fn found_in(&self) -> (String, String) {
        (self.namespace.clone(), self.name.clone())
    }

    /// Differs wherever another cluster, or someone else there, is described.
    pub(super) fn digest(&self) -> Digest {
        let provider = format!("{:?}", self.provider);
        let ingredients = serde_json::json!([
            self.namespace,
            provider,
            self.cluster,
            self.address,
            self.authority,
            self.audiences,
            self.account,
        ]);
        Digest::from_content(ingredients.to_string().as_bytes())
    }

    /// Finds out where the cluster is.
    pub(super) async fn config(&self, identities: &Identities) -> Result<Config, String> {
        let endpoint = match self.provider {
            Provider::Generic => Endpoint {
                address: self.address.clone(),
                authority: self.authority.clone().into_bytes(),
            },
            Provider::Cloud(cloud) => {
                let identity = self.identity(identities).await?;
                let cluster = self.of_cloud(cloud);
                let found = cluster
                    .endpoint(&identity, identities.session(), read_kubeconfig)
                    .await;
                found.map_err(|error| error_chain::chain(&error))?
            }
        };
        let address = canonical(&endpoint.address)?;
        let mut config = Config::new(address.parse().map_err(|_| not_an_address(&endpoint.address))?);
        if !endpoint.authority.is_empty() {
            config.root_cert = Some(certificates(&endpoint.authority)?);
        }
        Ok(config)
    }

    /// A new token for the cluster.
    pub(super) async fn token(&self, identities: &Identities) -> Result<Bearer, String> {
        match self.provider {
            Provider::Generic => {
                if self.account.is_some() {
                    identities.check_object_level()?;
                }
                let audiences = match &self.audiences[..] {
                    [] => vec![self.address.clone()],
                    audiences => audiences.to_vec(),
                };
                let tokens = identities.tokens_of(&self.namespace, self.account.as_deref());
                let issued = tokens.request_for_elsewhere(audiences).await?;
                Ok((issued.token, Some(issued.expires)))
            }
            Provider::Cloud(cloud) => {
                let identity = self.identity(identities).await?;
                let token = self.of_cloud(cloud).token(&identity, identities.session()).await;
                let token = token.map_err(|error| error_chain::chain(&error))?;
                let bearer = token
                    .as_bearer()
                    .ok_or("the token of the provider is no bearer token")?;
                Ok((zeroize::Zeroizing::new(bearer.to_owned()), token.expires))
            }
        }
    }

    fn of_cloud(&self, cloud: Cloud) -> Cluster {
        Cluster {
            cloud,
            resource: self.cluster.clone(),
            address: self.address.clone(),
            authority: self.authority.clone(),
        }
    }

    /// Read anew for each token: annotations say who the account is at the provider.
    async fn identity(&self, identities: &Identities) -> Result<Identity, String> {
        let identity = identities
            .identity_of(&self.namespace, self.account.as_deref())
            .await?;
        Ok(match identity {
            Identity::Account(mut account) if !self.audiences.is_empty() => {
                let tokens = identities.tokens_of(&self.namespace, self.account.as_deref());
                account.issuer = Arc::new(ForAudiences(tokens, self.audiences.clone()));
                Identity::Account(account)
            }
            identity => identity,
        })
    }
}

/// Makes tokens for the audiences of the ConfigMap, whatever the provider usually wants.
struct ForAudiences(Tokens, Vec<String>);

impl Issuer for ForAudiences {
    fn issue(&self, _: String) -> Future<'_, Result<String, String>> {
        Box::pin(async move {
            let issued = self.0.request(self.1.clone()).await?;
            Ok(issued.token.to_string())
        })
    }
}

fn not_an_address(address: &str) -> String {
    format!("failed to parse Kubernetes API server address '{address}': it is no URL")
}

/// `https://host:port`, as Flux compares addresses.
fn canonical(address: &str) -> Result<String, String> {
    let text = if address.starts_with("http") {
        address.to_owned()
    } else {
        format!("https://{address}")
    };
    let url = Url::parse(&text).map_err(|_| not_an_address(address))?;
    if url.scheme() != "https" {
        return Err(format!(
            "the Kubernetes API server address '{address}' must use https scheme"
        ));
    }
    match (url.host_str(), url.username(), url.password()) {
        (Some(host), "", None) => Ok(format!("https://{host}:{}", url.port().unwrap_or(443))),
        _ => Err(not_an_address(address)),
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates
            .into_iter()
            .map(|certificate| certificate.to_vec())
            .collect()),
        _ => Err("ca.crt holds no certificate in PEM".to_owned()),
    }
}

/// Server and authority of the first cluster of a kubeconfig.
fn read_kubeconfig(bytes: &[u8]) -> Option<Endpoint> {
    use base64::Engine as _;
    let kubeconfig = Kubeconfig::from_yaml(std::str::from_utf8(bytes).ok()?).ok()?;
    let cluster = kubeconfig.clusters.into_iter().find_map(|named| named.cluster)?;
    let authority = cluster.certificate_authority_data.unwrap_or_default();
    Some(Endpoint {
        address: cluster.server?,
        authority: base64::engine::general_purpose::STANDARD.decode(authority).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(data: &[(&str, &str)], default_account: Option<&str>) -> Result<Description, String> {
        let data = data
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let asker = Asker {
            default_account,
            is_locked: false,
        };
        Description::new("apps", "cluster", &data.collect(), asker)
    }

    #[test]
    fn a_config_map_says_where_and_who() {
        let data = [
            ("provider", "generic"),
            ("address", "https://Remote.example.com"),
            ("audiences", " a \n\nb\n"),
        ];
        let found = description(&data, None).unwrap();
        assert_eq!(found.audiences, ["a", "b"]);
        assert_eq!(found.account, None);
        let locked = description(&data, Some("lock")).unwrap();
        assert_eq!(locked.account.as_deref(), Some("lock"));
        assert_ne!(found.digest(), locked.digest());
        let own = [&data[..], &[("serviceAccountName", "own")]].concat();
        assert_eq!(
            description(&own, Some("lock")).unwrap().account.as_deref(),
            Some("own")
        );
    }

    #[test]
    fn what_cannot_be_a_cluster_is_refused() {
        for (data, words) in [
            (&[][..], "provider '' not implemented"),
            (&[("provider", "other")][..], "provider 'other' not implemented"),
            (&[("provider", "generic")][..], "cluster address is required"),
            (
                &[("provider", "generic"), ("address", "http://a")][..],
                "must use https scheme",
            ),
            (
                &[("provider", "generic"), ("address", "https://u:p@a")][..],
                "it is no URL",
            ),
            (
                &[("provider", "generic"), ("address", "https://")][..],
                "it is no URL",
            ),
        ] {
            let error = description(data, None).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn addresses_are_compared_in_one_form() {
        for (address, expected) in [
            ("https://A.example.com", "https://a.example.com:443"),
            ("a.example.com:6443", "https://a.example.com:6443"),
            ("10.0.0.1", "https://10.0.0.1:443"),
            ("https://[::1]:6443/path", "https://[::1]:6443"),
        ] {
            assert_eq!(canonical(address).as_deref(), Ok(expected), "{address}");
        }
    }

    #[test]
    fn a_kubeconfig_of_azure_has_server_and_authority() {
        let text =
            "clusters: [{name: a, cluster: {server: 'https://a:443', certificate-authority-data: UEVN}}]\n";
        let found = read_kubeconfig(text.as_bytes()).unwrap();
        assert_eq!(
            (found.address.as_str(), found.authority.as_slice()),
            ("https://a:443", &b"PEM"[..])
        );
        assert_eq!(read_kubeconfig(b"hunter2"), None);
        assert!(certificates(b"hunter2").is_err());
    }
}
