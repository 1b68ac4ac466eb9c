//! TokenRequest: tokens of a ServiceAccount of this cluster, for whoever trusts this cluster.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cloud_identity::{Future, Issuer};
use controller_kit::check_name;
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::PostParams;
use kube::{Api, Client};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::api_message;

/// Where a pod finds the token of its own ServiceAccount.
const OWN_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Makes tokens of one ServiceAccount.
pub struct Tokens {
    client: Client,
    /// Namespace and name; None for the controller's own.
    account: Option<(String, String)>,
    /// Audiences for which the controller's own are not shown to others.
    kept: Arc<[String]>,
}

/// Audiences of the clouds' token services: a token of the controller for one of them is its identity there.
const OF_CLOUDS: [&str; 3] = [
    "sts.amazonaws.com",
    "api://AzureADTokenExchange",
    "iam.googleapis.com",
];

/// A token and its end.
pub struct Issued {
    /// The token.
    pub token: Zeroizing<String>,
    /// Until when it is good.
    pub expires: Timestamp,
}

impl Tokens {
    /// Of a ServiceAccount.
    pub fn of_account(client: Client, namespace: &str, name: &str) -> Self {
        Self {
            client,
            account: Some((namespace.to_owned(), name.to_owned())),
            kept: Arc::default(),
        }
    }

    /// Of the ServiceAccount of the pod that this process runs in.
    pub fn of_controller(client: Client, kept: Arc<[String]>) -> Self {
        Self {
            client,
            account: None,
            kept,
        }
    }

    /// A new token for these audiences; those of this cluster when there are none.
    pub async fn request(&self, audiences: Vec<String>) -> Result<Issued, String> {
        let (namespace, name) = self.whose()?;
        self.ask(&namespace, &name, audiences).await.map_err(|problem| {
            format!("failed to create kubernetes token for service account '{namespace}/{name}': {problem}")
        })
    }

    /// The same to be shown to another cluster. Whoever chose the audience must not get a token of the controller that
    /// opens this one.
    pub async fn request_for_elsewhere(&self, audiences: Vec<String>) -> Result<Issued, String> {
        if self.account.is_none() {
            let own = claims_in(&own_token()?)?.aud;
            if let Some(audience) = audiences
                .iter()
                .find(|audience| is_kept(audience, &own, &self.kept))
            {
                return Err(format!(
                    "refused to show a token of the controller for audience '{audience}' elsewhere: it would open this \
                     cluster, a service of it, or a cloud; choose another audience, or a serviceAccountName"
                ));
            }
        }
        self.request(audiences).await
    }

    fn whose(&self) -> Result<(String, String), String> {
        self.account.clone().map_or_else(own_account, Ok)
    }

    async fn ask(&self, namespace: &str, name: &str, audiences: Vec<String>) -> Result<Issued, String> {
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences,
                ..TokenRequestSpec::default()
            },
            ..TokenRequest::default()
        };
        check_name(name)?;
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), namespace);
        let answer = accounts
            .create_token_request(name, &PostParams::default(), &request)
            .await;
        let status = answer.map_err(|error| api_message(&error))?.status;
        let status = status.filter(|status| !status.token.is_empty());
        let status = status.ok_or("the API server gave none")?;
        Ok(Issued {
            token: Zeroizing::new(status.token),
            expires: status.expiration_timestamp.0,
        })
    }
}

impl Issuer for Tokens {
    fn issue(&self, audience: String) -> Future<'_, Result<String, String>> {
        Box::pin(async move {
            // Who asked says whose token it is.
            let (namespace, name) = self.whose()?;
            let issued = self.ask(&namespace, &name, vec![audience]).await?;
            Ok(issued.token.to_string())
        })
    }
}

/// Returns whether a token of the controller for an audience is for no one else: those of this cluster, of our own services, and of
/// clouds.
fn is_kept(audience: &str, own: &[String], kept: &[String]) -> bool {
    let is = |other: &String| other == audience;
    own.iter().any(is) || kept.iter().any(is) || OF_CLOUDS.iter().any(|cloud| audience.contains(cloud))
}

/// Returns the ServiceAccount of this process in its cluster.
fn own_account() -> Result<(String, String), String> {
    account_in(&own_token()?)
}

fn own_token() -> Result<Zeroizing<String>, String> {
    let token = std::fs::read_to_string(OWN_TOKEN);
    token
        .map(Zeroizing::new)
        .map_err(|error| format!("failed to read service account token file {OWN_TOKEN}: {error}"))
}

/// Claims of our own token.
#[derive(Deserialize)]
struct Claims {
    sub: String,
    #[serde(default)]
    aud: Vec<String>,
}

/// The claims of a token, which is not verified: it says who we are to ourselves.
fn claims_in(token: &str) -> Result<Claims, String> {
    let payload = token.trim().split('.').nth(1).unwrap_or_default();
    let payload = URL_SAFE_NO_PAD.decode(payload).ok();
    let claims = payload.and_then(|payload| serde_json::from_slice(&payload).ok());
    claims.ok_or_else(|| "failed to parse service account token: it is not one".to_owned())
}

/// Namespace and name in the subject of a token.
fn account_in(token: &str) -> Result<(String, String), String> {
    let claims = claims_in(token)?;
    let account = claims.sub.strip_prefix("system:serviceaccount:");
    match account.and_then(|account| account.split_once(':')) {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains(':') => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err(format!(
            "invalid subject format in service account token: {}",
            claims.sub
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(subject: &str) -> String {
        let claims = serde_json::json!({"sub": subject}).to_string();
        format!("header.{}.signature\n", URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn tokens_of_the_controller_for_our_own_services_and_clouds_are_kept() {
        let (own, kept) = (
            ["https://kubernetes.default.svc".to_owned()],
            ["windlass-artifact".to_owned()],
        );
        for (audience, expected) in [
            ("https://kubernetes.default.svc", true),
            ("windlass-artifact", true),
            ("sts.amazonaws.com", true),
            ("api://AzureADTokenExchange", true),
            (
                "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
                true,
            ),
            ("https://other.example.com:6443", false),
        ] {
            assert_eq!(is_kept(audience, &own, &kept), expected, "{audience}");
        }
    }

    #[test]
    fn the_subject_of_a_token_says_who_it_is() {
        let of = |subject: &str| account_in(&token(subject));
        let account = ("flux-system".to_owned(), "kustomize-controller".to_owned());
        assert_eq!(
            of("system:serviceaccount:flux-system:kustomize-controller"),
            Ok(account)
        );
        for subject in [
            "admin",
            "system:serviceaccount:a",
            "system:serviceaccount::b",
            "system:serviceaccount:a:b:c",
        ] {
            assert!(of(subject).is_err(), "{subject}");
        }
        let claims = serde_json::json!({"sub": "s", "aud": ["https://kubernetes.default.svc"]}).to_string();
        let token = format!("header.{}.signature", URL_SAFE_NO_PAD.encode(claims));
        assert_eq!(claims_in(&token).unwrap().aud, ["https://kubernetes.default.svc"]);
        assert!(account_in("hunter2").is_err_and(|error| !error.contains("hunter2")));
    }
}
