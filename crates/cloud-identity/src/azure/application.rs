//! An application of Microsoft Entra that proves who it is: with a secret, a certificate, or someone else's token.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use serde::Deserialize;
use serde_json::json;

use super::token_url;
use crate::exchange::{Error, Request, ask_json};
use crate::jwt::{self, Algorithm};
use crate::provider::Session;
use crate::token::Token;

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// An application of a tenant.
pub struct Application {
    /// Where Entra is: `https://login.microsoftonline.com/`.
    pub authority: String,
    /// The tenant.
    pub tenant: String,
    /// The application.
    pub client: String,
    /// How it proves who it is.
    pub credential: Credential,
}

/// How an application proves who it is.
pub enum Credential {
    /// A secret that both know.
    Secret(String),
    /// A certificate and its key in PEM.
    Certificate {
        /// Both, in any order; more certificates are its chain.
        pem: Vec<u8>,
        /// True if the chain is sent along, as applications want that are known by name of their issuer.
        send_chain: bool,
    },
    /// A token of someone whom the application trusts.
    Assertion(String),
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    expires_in: i64,
}

impl Application {
    /// An application in the public cloud, unless an authority is given.
    #[must_use]
    pub fn new(authority: Option<String>, tenant: String, client: String, credential: Credential) -> Self {
        Self {
            authority: authority.unwrap_or_else(|| super::PUBLIC_CLOUD.to_owned()),
            tenant,
            client,
            credential,
        }
    }

    /// An access token, from the cache as long as it is fresh.
    pub async fn access_token(&self, scope: &str, session: Session<'_>) -> Result<Token, Error> {
        let (kind, secret) = match &self.credential {
            Credential::Secret(secret) => ("secret", secret.clone()),
            Credential::Certificate { pem, .. } => ("certificate", String::from_utf8_lossy(pem).into_owned()),
            Credential::Assertion(assertion) => ("assertion", assertion.clone()),
        };
        let key = [
            "provider=azure",
            &self.authority,
            &self.tenant,
            &self.client,
            kind,
            &secret,
            scope,
        ];
        session.cache.get_or(&key, self.token(scope, session)).await
    }

    pub(super) async fn token(&self, scope: &str, session: Session<'_>) -> Result<Token, Error> {
        let url = token_url(&self.authority, &self.tenant)?;
        let mut fields = vec![
            ("client_id", self.client.as_str()),
            ("grant_type", "client_credentials"),
            ("scope", scope),
        ];
        let assertion;
        match &self.credential {
            Credential::Secret(secret) => fields.push(("client_secret", secret)),
            Credential::Assertion(given) => {
                fields.extend([
                    ("client_assertion_type", ASSERTION_TYPE),
                    ("client_assertion", given),
                ]);
            }
            Credential::Certificate { pem, send_chain } => {
                assertion = self.signed(pem, *send_chain, url.as_str(), session)?;
                fields.extend([
                    ("client_assertion_type", ASSERTION_TYPE),
                    ("client_assertion", &assertion),
                ]);
            }
        }
        let granted: Granted = ask_json(session.http, Request::form(url, &fields)).await?;
        Ok(Token::bearer(
            granted.access_token,
            granted.expires_in,
            session.environment.now(),
        ))
    }

    fn signed(
        &self,
        pem: &[u8],
        send_chain: bool,
        audience: &str,
        session: Session<'_>,
    ) -> Result<String, Error> {
        let unusable = || {
            Error::configuration(
                "failed to parse client certificates: they must be PEM, with an unencrypted RSA key",
            )
        };
        let chain: Vec<CertificateDer<'_>> = CertificateDer::pem_slice_iter(pem)
            .collect::<Result<_, _>>()
            .map_err(|_| unusable())?;
        let own = chain.first().ok_or_else(unusable)?;
        let key = jwt::rsa_key(pem).map_err(|_| unusable())?;
        let mut header = json!({"x5t#S256": URL_SAFE_NO_PAD.encode(digest(&SHA256, own))});
        if send_chain {
            header["x5c"] = chain
                .iter()
                .map(|certificate| STANDARD.encode(certificate))
                .collect();
        }
        let now = session.environment.now().as_second();
        // Unique in time: no one else signs with this key in the same second for another purpose.
        let id = hex::encode(digest(
            &SHA256,
            format!("{now}{audience}{}", self.client).as_bytes(),
        ));
        let claims = json!({
            "aud": audience, "iss": self.client, "sub": self.client, "jti": &id[..32],
            "nbf": now, "iat": now, "exp": now + 600,
        });
        jwt::sign(&key, Algorithm::Ps256, header, &claims)
    }
}
