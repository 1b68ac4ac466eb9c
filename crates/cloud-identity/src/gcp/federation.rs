//! Workload identity federation: someone else's token for one of Google's, and that for the one of a service account.

use http::Method;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use super::granted::{Granted, SCOPES};
use crate::exchange::{Error, Request, ask_json, parse_url};
use crate::provider::Session;
use crate::token::{Secret, Token};

const TOKEN_URL: &str = "https://sts.googleapis.com/v1/token";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";

/// Request of a token exchange.
pub(super) struct Exchange {
    token_url: String,
    audience: String,
    subject_token: String,
    subject_token_type: String,
    impersonation_url: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Impersonated {
    access_token: String,
    expire_time: String,
}

impl Exchange {
    /// At Google itself; with an email the token becomes that of a service account.
    pub(super) fn of_google(audience: &str, assertion: &str, email: Option<&str>) -> Self {
        Self {
            token_url: TOKEN_URL.to_owned(),
            audience: audience.to_owned(),
            subject_token: assertion.to_owned(),
            subject_token_type: JWT.to_owned(),
            impersonation_url: email.map(|email| {
                format!(
                    "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{email}:generateAccessToken"
                )
            }),
        }
    }

    pub(super) async fn token(self, session: Session<'_>) -> Result<Token, Error> {
        let all = SCOPES.join(" ");
        // To become someone else it takes no more than this.
        let scope = if self.impersonation_url.is_some() {
            SCOPES[0]
        } else {
            &all
        };
        let fields = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("audience", self.audience.as_str()),
            ("scope", scope),
            (
                "requested_token_type",
                "urn:ietf:params:oauth:token-type:access_token",
            ),
            ("subject_token_type", self.subject_token_type.as_str()),
            ("subject_token", self.subject_token.as_str()),
        ];
        let request = Request::form(parse_url(&self.token_url)?, &fields);
        let granted: Granted = ask_json(session.http, request).await?;
        match &self.impersonation_url {
            Some(url) => impersonate(parse_url(url)?, &granted.access_token, session).await,
            None => Ok(granted.token(session)),
        }
    }
}

async fn impersonate(url: Url, token: &str, session: Session<'_>) -> Result<Token, Error> {
    let mut request = Request::new(Method::POST, url)
        .header(CONTENT_TYPE, "application/json")
        .secret_header(AUTHORIZATION, &format!("Bearer {token}"))?;
    request.body = json!({"lifetime": "3600s", "scope": SCOPES})
        .to_string()
        .into_bytes();
    let answer: Impersonated = ask_json(session.http, request).await?;
    Ok(Token {
        secret: Secret::Bearer(answer.access_token),
        expires: answer.expire_time.parse().ok(),
    })
}

/// The file of the controller: a token in another file, which the cluster keeps fresh.
pub(super) async fn of_file(file: &Value, session: Session<'_>) -> Result<Token, Error> {
    let text = |pointer: &str| {
        let value = file.pointer(pointer).and_then(Value::as_str);
        value.map(str::to_owned).ok_or_else(|| {
            Error::Configuration(format!(
                "GOOGLE_APPLICATION_CREDENTIALS: external_account without {}; only tokens in files are supported",
                pointer.trim_start_matches('/').replace('/', ".")
            ))
        })
    };
    let content = session.environment.read(&text("/credential_source/file")?)?;
    let field = file.pointer("/credential_source/format/subject_token_field_name");
    let subject_token = match field.and_then(Value::as_str) {
        None => content,
        Some(name) => {
            let document: Value = serde_json::from_str(&content).unwrap_or_default();
            document[name].as_str().unwrap_or_default().to_owned()
        }
    };
    let exchange = Exchange {
        token_url: text("/token_url")?,
        audience: text("/audience")?,
        subject_token,
        subject_token_type: text("/subject_token_type")?,
        impersonation_url: text("/service_account_impersonation_url").ok(),
    };
    exchange.token(session).await
}
