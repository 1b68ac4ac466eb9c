//! GitHub Apps: the key of an App, for a token of one of its installations.

use std::collections::BTreeMap;

use http::header::{ACCEPT, AUTHORIZATION, HeaderName};
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use crate::exchange::{Error, Request, ask_json, parse_url};
use crate::jwt::{self, Algorithm};
use crate::provider::Session;
use crate::token::{Secret, Token};

/// The keys of a Secret for a GitHub App.
pub const APP_ID: &str = "githubAppID";
const OWNER: &str = "githubAppInstallationOwner";
const INSTALLATION: &str = "githubAppInstallationID";
const PRIVATE_KEY: &str = "githubAppPrivateKey";
const BASE_URL: &str = "githubAppBaseURL";

const PUBLIC_API: &str = "https://api.github.com/";
/// The user name that goes with a token of an installation.
const USERNAME: &str = "x-access-token";

/// An App that is installed somewhere.
pub struct App {
    id: u64,
    installation: Installation,
    private_key: Vec<u8>,
    base: Url,
}

enum Installation {
    Id(u64),
    Owner(String),
}

#[derive(Deserialize)]
struct Found {
    id: u64,
}

#[derive(Deserialize)]
struct Granted {
    token: String,
    expires_at: String,
}

impl App {
    /// Reads the data of a Secret. Errors name keys and quote nothing.
    pub fn from_secret(data: &BTreeMap<String, Vec<u8>>) -> Result<Self, Error> {
        let text = |key: &str| {
            let value = data
                .get(key)
                .map(|value| String::from_utf8_lossy(value).trim().to_owned());
            value.filter(|value| !value.is_empty())
        };
        let number = |key: &str| {
            text(key)
                .and_then(|text| text.parse::<u64>().ok())
                .filter(|number| *number > 0)
        };
        let refuse =
            |problem: &str| Error::Configuration(format!("{problem} to use github app authentication"));
        let id = number(APP_ID).ok_or_else(|| refuse("app ID must be provided"))?;
        let installation = match (number(INSTALLATION), text(OWNER)) {
            (Some(id), None) => Installation::Id(id),
            (None, Some(owner)) => Installation::Owner(owner),
            (None, None) => return Err(refuse("app installation owner or ID must be provided")),
            (Some(_), Some(_)) => {
                return Err(refuse(
                    "only one of app installation owner or ID must be provided",
                ));
            }
        };
        let private_key = data.get(PRIVATE_KEY).filter(|key| !key.is_empty());
        let private_key = private_key.ok_or_else(|| refuse("private key must be provided"))?;
        jwt::rsa_key(private_key)?;
        let mut base = text(BASE_URL).unwrap_or_else(|| PUBLIC_API.to_owned());
        if !base.ends_with('/') {
            base.push('/');
        }
        let base = Url::parse(&base)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"));
        Ok(Self {
            id,
            installation,
            private_key: private_key.clone(),
            base: base.ok_or_else(|| Error::configuration("invalid API URL in githubAppBaseURL"))?,
        })
    }

    /// Name and password for Git, from the cache as long as they are fresh.
    pub async fn login(&self, session: Session<'_>) -> Result<Token, Error> {
        let installation = match &self.installation {
            Installation::Id(id) => format!("id={id}"),
            Installation::Owner(owner) => format!("owner={owner}"),
        };
        let (id, private_key) = (self.id.to_string(), String::from_utf8_lossy(&self.private_key));
        let key = [
            "provider=github",
            &id,
            &installation,
            &private_key,
            self.base.as_str(),
        ];
        session.cache.get_or(&key, self.create(session)).await
    }

    /// The short name of the App, which is in the names of what it does.
    pub async fn slug(&self, session: Session<'_>) -> Result<String, Error> {
        #[derive(Deserialize)]
        struct Found {
            slug: String,
        }
        let request = self.request(Method::GET, "app", &self.pass(session)?)?;
        Ok(ask_json::<Found>(session.http, request).await?.slug)
    }

    async fn create(&self, session: Session<'_>) -> Result<Token, Error> {
        let pass = self.pass(session)?;
        let id = match &self.installation {
            Installation::Id(id) => *id,
            Installation::Owner(owner) => self.find(owner, &pass, session).await?,
        };
        let path = format!("app/installations/{id}/access_tokens");
        let request = self.request(Method::POST, &path, &pass)?;
        let granted: Granted = ask_json(session.http, request).await?;
        Ok(Token {
            secret: Secret::Login {
                username: USERNAME.to_owned(),
                password: granted.token,
            },
            expires: granted.expires_at.parse().ok(),
        })
    }

    /// The installation at an organisation, or else at a person.
    async fn find(&self, owner: &str, pass: &str, session: Session<'_>) -> Result<u64, Error> {
        let owner = crate::aws::encode(owner, false);
        let of = |kind: &str| self.request(Method::GET, &format!("{kind}/{owner}/installation"), pass);
        match ask_json::<Found>(session.http, of("orgs")?).await {
            Ok(found) => Ok(found.id),
            Err(Error::Refused {
                status: StatusCode::NOT_FOUND,
                ..
            }) => Ok(ask_json::<Found>(session.http, of("users")?).await?.id),
            Err(error) => Err(error),
        }
    }

    /// Proves for two minutes that we have the key; clocks may differ by half a minute.
    fn pass(&self, session: Session<'_>) -> Result<String, Error> {
        let issued = session.environment.now().as_second() - 30;
        let claims = json!({"iat": issued, "exp": issued + 120, "iss": self.id.to_string()});
        let key = jwt::rsa_key(&self.private_key)?;
        jwt::sign(&key, Algorithm::Rs256, json!({}), &claims)
    }

    fn request(&self, method: Method, path: &str, pass: &str) -> Result<Request, Error> {
        let url = parse_url(&format!("{}{path}", self.base))?;
        Request::new(method, url)
            .header(ACCEPT, "application/vnd.github+json")
            .header(HeaderName::from_static("x-github-api-version"), "2022-11-28")
            .secret_header(AUTHORIZATION, &format!("Bearer {pass}"))
    }
}

#[cfg(test)]
mod tests;
