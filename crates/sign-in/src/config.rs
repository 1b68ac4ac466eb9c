//! The file that says who is let in: of the kind `Config` that users of flux-operator have.
//!
//! ```
//! let config = sign_in::config::Config::parse(r#"
//! apiVersion: web.fluxcd.controlplane.io/v1
//! kind: Config
//! spec:
//!   baseURL: https://console.example.com
//!   authentication:
//!     type: OAuth2
//!     oauth2:
//!       provider: OIDC
//!       issuerURL: https://dex.example.com
//!       clientID: console
//!       clientSecret: a-secret
//! "#)?;
//! assert_eq!(config.base_url.as_str(), "https://console.example.com/");
//! # Ok::<(), sign_in::config::Error>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use url::{Host, Url};

use crate::identity::{self, Mapping, Texts, User};

const API_VERSION: &str = "web.fluxcd.controlplane.io/v1";
const KIND: &str = "Config";
/// A working day: whoever leaves the company is out of the console on the next one.
const SESSION: Duration = Duration::from_secs(12 * 3600);
const SCOPES: [&str; 4] = ["openid", "profile", "email", "groups"];

/// Who is let in.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where people find the console.
    pub base_url: Url,
    /// How.
    pub method: Method,
}

/// How people are let in.
#[derive(Debug, Clone)]
pub enum Method {
    /// Everyone is this user.
    Anonymous(User),
    /// At an OpenID provider.
    Oidc(Box<Oidc>),
}

/// An OpenID provider, and who its people are.
#[derive(Clone)]
pub struct Oidc {
    /// The provider.
    pub issuer: Url,
    /// As whom we are known there.
    pub client_id: String,
    /// Our password there.
    pub client_secret: Option<String>,
    /// What is asked for; None asks for the usual that the provider has.
    pub scopes: Option<Vec<String>>,
    /// More parameters of the URL that people are sent to.
    pub url_parameters: BTreeMap<String, String>,
    /// Who the owner of an ID token is.
    pub mapping: Mapping,
    /// How long a session lasts.
    pub session: Duration,
}

// Without the secret.
impl fmt::Debug for Oidc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Oidc({} at {})", self.client_id, self.issuer)
    }
}

/// What is wrong with the file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is no YAML.
    #[error(transparent)]
    Yaml(Box<manifest::yaml::Error>),
    /// It is something else.
    #[error("it must hold one document with apiVersion: {API_VERSION} and kind: {KIND}")]
    Kind,
    /// A field is unknown, missing or of another type.
    #[error("{0}")]
    Shape(String),
    /// A value is not of use.
    #[error("{field}: {problem}")]
    Value {
        /// Where.
        field: &'static str,
        /// Why.
        problem: String,
    },
    /// An expression cannot be read.
    #[error(transparent)]
    Mapping(#[from] identity::Error),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Spec {
    #[serde(rename = "baseURL")]
    base_url: String,
    authentication: Authentication,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Authentication {
    #[serde(rename = "type")]
    kind: String,
    session_duration: Option<String>,
    anonymous: Option<Names>,
    oauth2: Option<OAuth2>,
}

/// The user and groups as whom someone acts: names, or expressions for them.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, bound = "G: Deserialize<'de>")]
struct ActsAs<G> {
    username: Option<String>,
    groups: Option<G>,
}

type Names = ActsAs<Vec<String>>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OAuth2 {
    provider: String,
    #[serde(rename = "issuerURL")]
    issuer_url: String,
    #[serde(rename = "clientID")]
    client_id: String,
    client_secret: Option<String>,
    scopes: Option<Vec<String>>,
    #[serde(rename = "authURLParams", default)]
    url_parameters: BTreeMap<String, String>,
    #[serde(default)]
    variables: Vec<Variable>,
    #[serde(default)]
    validations: Vec<Validation>,
    #[serde(default)]
    profile: Profile,
    #[serde(default)]
    impersonation: ActsAs<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Variable {
    name: String,
    expression: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Validation {
    expression: String,
    message: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    name: Option<String>,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// When it is not of the kind, has a field that is not known, or a value that would let the wrong people in.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let documents = manifest::yaml::read_documents(text, "the configuration");
        let mut documents = documents.map_err(|error| Error::Yaml(Box::new(error)))?;
        let (Some(document), true) = (documents.pop(), documents.is_empty()) else {
            return Err(Error::Kind);
        };
        if document.value["apiVersion"] != API_VERSION || document.value["kind"] != KIND {
            return Err(Error::Kind);
        }
        let file: File =
            serde_json::from_value(document.value).map_err(|error| Error::Shape(error.to_string()))?;
        let Spec {
            base_url,
            authentication,
        } = file.spec;
        let base_url = trusted_url("spec.baseURL", &base_url)?;
        if base_url.path() != "/" || base_url.query().is_some() {
            return Err(wrong("spec.baseURL", "must have no path"));
        }
        let method = match (
            authentication.kind.as_str(),
            authentication.anonymous,
            authentication.oauth2,
        ) {
            ("Anonymous", Some(names), None) => Method::Anonymous(anonymous(names)?),
            ("OAuth2", None, Some(oauth2)) => Method::Oidc(Box::new(oidc(
                oauth2,
                authentication.session_duration.as_deref(),
            )?)),
            ("Anonymous" | "OAuth2", ..) => {
                let problem = "set the one of anonymous and oauth2 that the type names, and not the other";
                return Err(wrong("spec.authentication", problem));
            }
            _ => return Err(wrong("spec.authentication.type", "must be Anonymous or OAuth2")),
        };
        Ok(Self { base_url, method })
    }
}

fn anonymous(names: Names) -> Result<User, Error> {
    let username = names.username.unwrap_or_default();
    if username.is_empty() {
        return Err(wrong("spec.authentication.anonymous.username", "must be set"));
    }
    Ok(User {
        name: username.clone(),
        username,
        groups: names.groups.unwrap_or_default(),
    })
}

fn oidc(oauth2: OAuth2, session: Option<&str>) -> Result<Oidc, Error> {
    if oauth2.provider != "OIDC" {
        return Err(wrong("spec.authentication.oauth2.provider", "must be OIDC"));
    }
    let pairs = |variable: Variable| (variable.name, variable.expression);
    let messages = |validation: Validation| (validation.expression, validation.message);
    let texts = Texts {
        variables: oauth2.variables.into_iter().map(pairs).collect(),
        validations: oauth2.validations.into_iter().map(messages).collect(),
        username: oauth2.impersonation.username,
        groups: oauth2.impersonation.groups,
        name: oauth2.profile.name,
    };
    let session = match session {
        None => SESSION,
        Some(text) => duration(text).ok_or_else(|| {
            wrong(
                "spec.authentication.sessionDuration",
                "must be a duration such as 12h, more than 0",
            )
        })?,
    };
    Ok(Oidc {
        issuer: trusted_url("spec.authentication.oauth2.issuerURL", &oauth2.issuer_url)?,
        client_id: oauth2.client_id,
        client_secret: oauth2.client_secret,
        scopes: oauth2.scopes,
        url_parameters: oauth2.url_parameters,
        mapping: Mapping::new(&texts)?,
        session,
    })
}

/// The scopes to ask a provider for.
pub fn scopes(wanted: Option<&[String]>, supported: Option<&[String]>) -> Vec<String> {
    match (wanted, supported) {
        (Some(wanted), _) => wanted.to_vec(),
        // Some providers refuse what they do not know.
        (None, Some(supported)) => {
            let known = SCOPES
                .into_iter()
                .filter(|scope| *scope == "openid" || supported.iter().any(|one| one == scope));
            known.map(str::to_owned).collect()
        }
        (None, None) => SCOPES.map(str::to_owned).to_vec(),
    }
}

/// A URL that others cannot read along; http is for this machine only.
fn trusted_url(field: &'static str, text: &str) -> Result<Url, Error> {
    let url = Url::parse(text).map_err(|error| wrong(field, error.to_string()))?;
    let is_this_machine = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match url.scheme() {
        "https" if url.host().is_some() => Ok(url),
        "http" if is_this_machine => Ok(url),
        _ => Err(wrong(
            field,
            "must begin with https:// (http:// is for this machine only)",
        )),
    }
}

fn duration(text: &str) -> Option<Duration> {
    let parsed = go_time::Duration::parse(text.as_bytes()).ok()?;
    let seconds = parsed.seconds();
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| !duration.is_zero())
}

fn wrong(field: &'static str, problem: impl Into<String>) -> Error {
    Error::Value {
        field,
        problem: problem.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(base: &str, authentication: &str) -> String {
        format!(
            "apiVersion: {API_VERSION}\nkind: Config\nspec:\n  baseURL: {base}\n  authentication: {authentication}\n"
        )
    }

    const OAUTH2: &str =
        "provider: OIDC, issuerURL: 'https://dex.example.com/dex', clientID: a, clientSecret: hidden";

    #[test]
    fn a_provider_and_its_people() {
        let oauth2 = format!(
            "{{type: OAuth2, sessionDuration: 1h30m, oauth2: {{{OAUTH2}, scopes: [openid], \
             variables: [{{name: v, expression: claims.sub}}], validations: [{{expression: 'true', message: m}}], \
             profile: {{name: claims.name}}, impersonation: {{username: variables.v, groups: '[]'}}}}}}"
        );
        let config = Config::parse(&file("https://console.example.com", &oauth2)).unwrap();
        let Method::Oidc(oidc) = &config.method else {
            panic!("{config:?}");
        };
        assert_eq!(oidc.session, Duration::from_secs(5400));
        assert_eq!(oidc.scopes.as_deref(), Some(&["openid".to_owned()][..]));
        assert!(!format!("{config:?}").contains("hidden"));
    }

    #[test]
    fn everyone_is_someone_only_when_the_file_says_so() {
        let anonymous = "{type: Anonymous, anonymous: {username: guest, groups: [viewers]}}";
        let config = Config::parse(&file("http://localhost:9080", anonymous)).unwrap();
        let Method::Anonymous(user) = config.method else {
            panic!("it is anonymous");
        };
        assert_eq!((user.username.as_str(), user.groups.len()), ("guest", 1));
    }

    #[test]
    fn what_would_let_the_wrong_people_in_is_refused() {
        let good = format!("{{type: OAuth2, oauth2: {{{OAUTH2}}}}}");
        let anonymous = "{type: Anonymous, anonymous: {username: guest}}";
        for (base, authentication, told) in [
            (
                "http://console.example.com",
                good.as_str(),
                "spec.baseURL: must begin with https",
            ),
            ("https://a/sub", &good, "must have no path"),
            ("ftp://a", &good, "must begin with https"),
            ("https://a", "{type: OAuth2}", "the one of anonymous and oauth2"),
            ("https://a", "{type: None}", "must be Anonymous or OAuth2"),
            (
                "https://a",
                &good.replace("https://dex", "http://dex"),
                "issuerURL: must begin",
            ),
            (
                "https://a",
                &good.replace("OIDC", "GitHub"),
                "provider: must be OIDC",
            ),
            (
                "https://a",
                &good.replace("clientSecret", "secret"),
                "unknown field `secret`",
            ),
            (
                "https://a",
                &good.replace("type:", "sessionDuration: 0s, type:"),
                "sessionDuration",
            ),
            (
                "https://a",
                &anonymous.replace("guest", "''"),
                "username: must be set",
            ),
            (
                "https://a",
                &good.replace("clientID: a", "clientID: a, impersonation: {username: 'a.b('}"),
                "username",
            ),
        ] {
            let error = Config::parse(&file(base, authentication))
                .unwrap_err()
                .to_string();
            assert!(error.contains(told), "{authentication}: {error}");
        }
        for text in ["", "a: [", "kind: Config", "apiVersion: v1\nkind: Config\n"] {
            assert!(Config::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn scopes_are_those_that_the_provider_has() {
        let texts = |scopes: &[&str]| scopes.iter().map(|scope| (*scope).to_owned()).collect::<Vec<_>>();
        let supported = texts(&["email", "profile"]);
        assert_eq!(scopes(None, Some(&supported)), ["openid", "profile", "email"]);
        assert_eq!(scopes(Some(&texts(&["groups"])), Some(&supported)), ["groups"]);
        assert_eq!(scopes(None, None), SCOPES);
    }
}
