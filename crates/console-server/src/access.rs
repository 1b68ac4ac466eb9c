//! How people at browsers are let in: as the administrator's file says.

use std::path::Path;
use std::sync::Arc;

use access_review::Caller;
use anyhow::Context as _;
use axum::http::{HeaderMap, Method};
use sign_in::config::{self, Config};
use sign_in::identity::User;
use sign_in::origin;
use sign_in::provider::Provider;
use sign_in::sessions::{Session, Sessions};
use url::Url;

/// How they are let in.
pub struct Access {
    base: Url,
    way: Way,
}

enum Way {
    Anonymous(User),
    SignIn(Box<SignIn>),
}

/// A provider, and the sessions of those who come back from it.
pub(crate) struct SignIn {
    pub provider: Provider,
    pub sessions: Sessions,
}

/// Someone whose browser tells who they are.
pub(crate) struct Visitor {
    pub caller: Arc<Caller>,
    /// None for anonymous ones.
    pub session: Option<Session>,
}

impl Access {
    /// Reads the file, and the key of sessions if there is one.
    pub fn read(config: &Path, key: Option<&Path>) -> anyhow::Result<Self> {
        let shown = config.display();
        let text = std::fs::read_to_string(config).with_context(|| format!("failed to read {shown}"))?;
        let Config { base_url, method } =
            Config::parse(&text).with_context(|| format!("{shown} is not accepted"))?;
        let way = match method {
            config::Method::Anonymous(user) => {
                tracing::warn!(
                    user = user.username,
                    "whoever reaches the console is let in as this user"
                );
                Way::Anonymous(user)
            }
            config::Method::Oidc(oidc) => {
                let read = |path: &Path| {
                    std::fs::read(path).with_context(|| format!("failed to read {}", path.display()))
                };
                let key = key.map(read).transpose()?;
                if key.is_none() {
                    tracing::info!("there is no --session-key-file: sessions end with this process");
                }
                let key = key.as_deref().map(<[u8]>::trim_ascii);
                let sessions = Sessions::new(key, &base_url, oidc.session)?;
                let provider = Provider::new(*oidc, &base_url)?;
                Way::SignIn(Box::new(SignIn { provider, sessions }))
            }
        };
        Ok(Self { base: base_url, way })
    }

    /// The provider, if people sign in at one.
    pub(crate) fn sign_in(&self) -> Option<&SignIn> {
        match &self.way {
            Way::Anonymous(_) => None,
            Way::SignIn(sign_in) => Some(sign_in),
        }
    }

    /// Who sent a request, as far as the browser tells; None if they have to sign in.
    ///
    /// # Errors
    /// When another site had the browser send it.
    pub(crate) fn visitor(
        &self,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Option<Visitor>, origin::Error> {
        let (user, session) = match &self.way {
            Way::Anonymous(user) => (user.clone(), None),
            Way::SignIn(sign_in) => match sign_in.sessions.of(headers) {
                Some(session) => (session.user.clone(), Some(session)),
                None => return Ok(None),
            },
        };
        origin::check(&self.base, method, headers)?;
        Ok(Some(Visitor {
            caller: Arc::new(Caller::new(&user.username, &user.groups)),
            session,
        }))
    }

    /// Whether a session goes on.
    pub(crate) fn goes_on(&self, session: &Session) -> bool {
        let is_ended = |sign_in: &SignIn| sign_in.sessions.is_ended(session);
        !session.is_over() && !self.sign_in().is_some_and(is_ended)
    }

    /// Whether a request comes from a page of ours, or is a visit.
    ///
    /// # Errors
    /// When another site had the browser send it.
    pub(crate) fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), origin::Error> {
        origin::check(&self.base, method, headers)
    }
}
