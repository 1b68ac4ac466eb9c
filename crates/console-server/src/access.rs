//! How people at browsers are let in: as the administrator's file says, or by a link.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use access_review::Caller;
use anyhow::Context as _;
use axum::http::{HeaderMap, Method};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use sign_in::config::{self, Config};
use sign_in::identity::User;
use sign_in::origin;
use sign_in::provider::Provider;
use sign_in::sessions::{self, Session, Sessions};
use url::Url;

/// How long a session lasts that began with a link.
const OF_LINKS: Duration = Duration::from_secs(12 * 3600);

/// Said where there is only one way in.
pub(crate) const MISSING_TOKEN: &str =
    "send a Kubernetes token: Authorization: Bearer TOKEN (kubectl create token NAME)";

/// How they are let in.
pub struct Access {
    base: Url,
    way: Way,
}

enum Way {
    Anonymous(User),
    SignIn(Box<SignIn>),
    Links(Links),
}

/// The only user of a server on their own machine, who signs in by single-use links.
struct Links {
    user: User,
    sessions: Sessions,
    /// Digest of the secret in the valid link.
    next: Mutex<[u8; 32]>,
    /// Receives each new link.
    tell: Box<dyn Fn(&str) + Send + Sync>,
}

impl Links {
    /// Replaces the valid link by a new one.
    fn renew(&self, base: &Url) -> Result<(), sessions::Error> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|_| sessions::Error::NotRandom)?;
        let secret = URL_SAFE_NO_PAD.encode(secret);
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = digest(&secret);
        (self.tell)(&format!(
            "{base}{}?{LINK}={secret}",
            LINKS.trim_start_matches('/')
        ));
        Ok(())
    }
}

/// Path and query parameter of links.
pub(crate) const LINKS: &str = "/oauth2/link";
const LINK: &str = "once";

/// Digests are compared, so that how long that takes tells nothing of the secret.
fn digest(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
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

    /// Accepts one user, by single-use links. `tell` receives each link; the first one immediately.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn by_links(
        base: Url,
        user: User,
        tell: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, sessions::Error> {
        let links = Links {
            user,
            sessions: Sessions::new(None, &base, OF_LINKS)?,
            next: Mutex::default(),
            tell: Box::new(tell),
        };
        links.renew(&base)?;
        let way = Way::Links(links);
        Ok(Self { base, way })
    }

    /// Begins a session if the secret is that of the valid link, and returns the value of `Set-Cookie`.
    pub(crate) fn by_link(&self, secret: &str) -> Result<Option<String>, sessions::Error> {
        let Way::Links(links) = &self.way else {
            return Ok(None);
        };
        {
            let mut next = links.next.lock().unwrap_or_else(PoisonError::into_inner);
            if *next != digest(secret) {
                return Ok(None);
            }
            *next = [0; 32]; // of two who come at once, one is let in
        }
        let cookie = links.sessions.begin(links.user.clone())?;
        links.renew(&self.base)?;
        Ok(Some(cookie))
    }

    /// Sessions, if there are any.
    pub(crate) fn sessions(&self) -> Option<&Sessions> {
        match &self.way {
            Way::Anonymous(_) => None,
            Way::SignIn(sign_in) => Some(&sign_in.sessions),
            Way::Links(links) => Some(&links.sessions),
        }
    }

    /// What someone without a session has to do.
    pub(crate) fn missing(&self) -> &'static str {
        match self.way {
            Way::Anonymous(_) => MISSING_TOKEN,
            Way::SignIn(_) => {
                "send a Kubernetes token: Authorization: Bearer TOKEN (kubectl create token NAME), or sign in at /oauth2/sign-in"
            }
            Way::Links(_) => "open the link that was printed last",
        }
    }

    /// The provider, if people sign in at one.
    pub(crate) fn sign_in(&self) -> Option<&SignIn> {
        match &self.way {
            Way::SignIn(sign_in) => Some(sign_in),
            Way::Anonymous(_) | Way::Links(_) => None,
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
        let session = self.sessions().and_then(|sessions| sessions.of(headers));
        let user = match (&self.way, &session) {
            (Way::Anonymous(user), _) => user.clone(),
            (_, Some(session)) => session.user.clone(),
            (_, None) => return Ok(None),
        };
        origin::check(&self.base, method, headers)?;
        Ok(Some(Visitor {
            caller: Arc::new(Caller::new(&user.username, &user.groups)),
            session,
        }))
    }

    /// Whether a session goes on.
    pub(crate) fn goes_on(&self, session: &Session) -> bool {
        let is_ended = |sessions: &Sessions| sessions.is_ended(session);
        !session.is_over() && !self.sessions().is_some_and(is_ended)
    }

    /// Whether a request comes from a page of ours, or is a visit.
    ///
    /// # Errors
    /// When another site had the browser send it.
    pub(crate) fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), origin::Error> {
        origin::check(&self.base, method, headers)
    }
}
