//! The key of a service account: it signs a request for an access token.

use serde::Deserialize;
use serde_json::json;

use super::granted::Granted;
use crate::exchange::{Error, Request, ask_json, parse_url};
use crate::jwt::{self, Algorithm};
use crate::provider::Session;
use crate::token::Token;

/// A key as Google's console gives it, in JSON.
#[derive(Deserialize)]
pub struct AccountKey {
    client_email: String,
    #[serde(default)]
    private_key_id: String,
    private_key: String,
    #[serde(default = "google")]
    token_uri: String,
}

fn google() -> String {
    "https://oauth2.googleapis.com/token".to_owned()
}

impl AccountKey {
    /// Reads the JSON. Other kinds of credentials are refused: some name files and programs of this machine.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Typed {
            #[serde(rename = "type")]
            type_: String,
        }
        let unusable = |problem: &str| {
            Error::Configuration(format!(
                "failed to create Google credentials from secret: {problem}"
            ))
        };
        let typed: Typed =
            serde_json::from_slice(json).map_err(|_| unusable("it is no credential in JSON"))?;
        if typed.type_ != "service_account" {
            return Err(unusable("only credentials of type service_account are supported"));
        }
        serde_json::from_slice(json).map_err(|_| unusable("client_email and private_key are required"))
    }

    /// An access token with these scopes (separated by spaces), from the cache as long as it is fresh.
    pub async fn access_token(&self, scopes: &str, session: Session<'_>) -> Result<Token, Error> {
        let key = [
            "provider=gcp",
            &self.client_email,
            &self.private_key,
            &self.token_uri,
            scopes,
        ];
        session.cache.get_or(&key, self.token(scopes, session)).await
    }

    pub(super) async fn token(&self, scopes: &str, session: Session<'_>) -> Result<Token, Error> {
        let key = jwt::rsa_key(self.private_key.as_bytes())?;
        let now = session.environment.now().as_second();
        let claims = json!({
            "iss": self.client_email,
            "scope": scopes,
            "aud": self.token_uri,
            "iat": now,
            "exp": now + 3600,
        });
        let assertion = jwt::sign(
            &key,
            Algorithm::Rs256,
            json!({"kid": self.private_key_id}),
            &claims,
        )?;
        let fields = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
            ("assertion", assertion.as_str()),
        ];
        let request = Request::form(parse_url(&self.token_uri)?, &fields);
        let granted: Granted = ask_json(session.http, request).await?;
        Ok(granted.token(session))
    }
}
