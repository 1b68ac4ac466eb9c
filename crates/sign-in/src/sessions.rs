//! Sessions in cookies that are sealed by a key of the server: any replica with the key knows who someone is, and nothing is kept
//! but which sessions were ended early.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cookie::{Cookie, CookieJar, Key, SameSite};
use http::HeaderMap;
use http::header::COOKIE;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::identity::User;
use crate::provider::Pending;

/// Browsers drop cookies of 4096 bytes and more, name and attributes included.
const MAX_COOKIE: usize = 3900;
/// How long someone may take at the provider.
const SIGN_IN: Duration = Duration::from_secs(600);
/// Sessions that were ended early are known up to this number.
const MAX_ENDED: usize = 16_384;
/// A key of less is refused, in bytes.
const MIN_KEY: usize = 32;

/// Why there is no session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Browsers would drop the cookie.
    #[error(
        "the {groups} groups of {username} do not fit into a cookie: keep those that matter (impersonation.groups in the configuration)"
    )]
    TooManyGroups {
        /// Whose.
        username: String,
        /// How many.
        groups: usize,
    },
    /// The key is too short.
    #[error("the session key has {0} bytes; at least {MIN_KEY} are needed (openssl rand -base64 48)")]
    ShortKey(usize),
    /// There are no random numbers.
    #[error("the system has no random numbers")]
    NotRandom,
}

/// Seals and opens.
pub struct Sessions {
    key: Key,
    /// Whether cookies go over TLS only; not so on this machine.
    secure: bool,
    duration: Duration,
    /// Those that were ended, with when they would have.
    ended: Mutex<HashMap<String, i64>>,
}

/// Someone's session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Who.
    pub user: User,
    /// When it ends, in seconds since 1970.
    pub until: i64,
    /// Another one for each.
    id: String,
}

impl Session {
    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.until <= Timestamp::now().as_second()
    }
}

/// A value, and until when it is of use.
#[derive(Serialize, Deserialize)]
struct Sealed<T> {
    value: T,
    until: i64,
}

#[derive(Debug, Clone, Copy)]
enum Purpose {
    Session,
    SignIn,
}

impl Sessions {
    /// Sets sessions up for a server at `base`. Without a key one is made, and all sessions end with the process.
    ///
    /// # Errors
    /// When the key is too short.
    pub fn new(key: Option<&[u8]>, base: &Url, duration: Duration) -> Result<Self, Error> {
        let key = match key {
            Some(key) if key.len() < MIN_KEY => return Err(Error::ShortKey(key.len())),
            Some(key) => Key::derive_from(key),
            None => Key::try_generate().ok_or(Error::NotRandom)?,
        };
        Ok(Self {
            key,
            secure: base.scheme() == "https",
            duration,
            ended: Mutex::default(),
        })
    }

    /// Begins a session: the value of `Set-Cookie`.
    ///
    /// # Errors
    /// When the user has more groups than a cookie can hold.
    pub fn begin(&self, user: User) -> Result<String, Error> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|_| Error::NotRandom)?;
        let (username, groups) = (user.username.clone(), user.groups.len());
        let session = Session {
            user,
            until: from_now(self.duration),
            id: hex::encode(id),
        };
        let cookie = self.seal(Purpose::Session, &session, self.duration);
        match cookie.len() <= MAX_COOKIE {
            true => Ok(cookie),
            false => Err(Error::TooManyGroups { username, groups }),
        }
    }

    /// The session of a request, if it has one that still holds.
    pub fn of(&self, headers: &HeaderMap) -> Option<Session> {
        let session: Session = self.open(Purpose::Session, headers)?;
        let holds = !session.is_over() && !self.is_ended(&session);
        holds.then_some(session)
    }

    /// Whether a session was ended by its user; streams ask now and then.
    pub fn is_ended(&self, session: &Session) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.contains_key(&session.id)
    }

    /// Ends a session: the value of `Set-Cookie`. The cookie is worth nothing at this replica from now on.
    pub fn end(&self, session: &Session) -> String {
        let now = Timestamp::now().as_second();
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.len() >= MAX_ENDED {
            ended.retain(|_, until| *until > now);
        }
        if ended.len() < MAX_ENDED {
            ended.insert(session.id.clone(), session.until);
        }
        self.clear(Purpose::Session)
    }

    /// Keeps what is needed when someone comes back from the provider: the value of `Set-Cookie`.
    pub fn begin_sign_in(&self, pending: &Pending) -> String {
        let until = from_now(SIGN_IN);
        let value = Sealed {
            value: pending,
            until,
        };
        self.seal(Purpose::SignIn, &value, SIGN_IN)
    }

    /// What was kept when this browser was sent to the provider.
    pub fn pending(&self, headers: &HeaderMap) -> Option<Pending> {
        let sealed: Sealed<Pending> = self.open(Purpose::SignIn, headers)?;
        (sealed.until > Timestamp::now().as_second()).then_some(sealed.value)
    }

    /// Forgets it: the value of `Set-Cookie`.
    pub fn end_sign_in(&self) -> String {
        self.clear(Purpose::SignIn)
    }

    /// With TLS, a name that browsers take only from this very host.
    fn name(&self, purpose: Purpose) -> &'static str {
        match (purpose, self.secure) {
            (Purpose::Session, true) => "__Host-windlass-session",
            (Purpose::Session, false) => "windlass-session",
            (Purpose::SignIn, true) => "__Host-windlass-sign-in",
            (Purpose::SignIn, false) => "windlass-sign-in",
        }
    }

    fn seal(&self, purpose: Purpose, value: &impl Serialize, holds: Duration) -> String {
        let text = serde_json::to_string(value).unwrap_or_default();
        let mut jar = CookieJar::new();
        jar.private_mut(&self.key).add((self.name(purpose), text));
        let sealed = jar.get(self.name(purpose)).map(Cookie::value).unwrap_or_default();
        self.attributes(purpose, sealed, holds)
    }

    fn clear(&self, purpose: Purpose) -> String {
        self.attributes(purpose, "", Duration::ZERO)
    }

    fn attributes(&self, purpose: Purpose, value: &str, holds: Duration) -> String {
        let seconds = i64::try_from(holds.as_secs()).unwrap_or(i64::MAX);
        let cookie = Cookie::build((self.name(purpose), value))
            .path("/")
            .http_only(true)
            .secure(self.secure)
            // Lax, so that a link of another page, and the provider, lead to someone who is signed in.
            .same_site(SameSite::Lax)
            .max_age(cookie::time::Duration::seconds(seconds));
        cookie.build().to_string()
    }

    fn open<T: DeserializeOwned>(&self, purpose: Purpose, headers: &HeaderMap) -> Option<T> {
        let mut jar = CookieJar::new();
        let name = self.name(purpose);
        for header in headers.get_all(COOKIE) {
            let cookies = Cookie::split_parse(header.to_str().ok()?.to_owned());
            let ours = cookies.flatten().filter(|cookie| cookie.name() == name);
            ours.for_each(|cookie| jar.add_original(cookie));
        }
        let opened = jar.private(&self.key).get(name)?;
        serde_json::from_str(opened.value()).ok()
    }
}

fn from_now(duration: Duration) -> i64 {
    let seconds = i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    Timestamp::now().as_second().saturating_add(seconds)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const KEY: &[u8] = &[7; 48];

    fn user() -> User {
        User {
            username: "ana@example.com".to_owned(),
            groups: vec!["web".to_owned()],
            name: "Ana".to_owned(),
        }
    }

    fn sessions(base: &str, duration: Duration) -> Sessions {
        Sessions::new(Some(KEY), &Url::parse(base).unwrap(), duration).unwrap()
    }

    /// What a browser sends back.
    fn sent(set: &str) -> HeaderMap {
        let cookie = set.split(';').next().unwrap();
        let mut headers = HeaderMap::new();
        let text = format!("theme=dark; {cookie}; __other=1");
        headers.insert(COOKIE, HeaderValue::from_str(&text).unwrap());
        headers
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_cookie_is_known_by_every_replica_with_the_key_and_no_one_else() {
        let ours = sessions("https://console.example.com", HOUR);
        let set = ours.begin(user()).unwrap();
        for attribute in [
            "__Host-windlass-session=",
            "HttpOnly",
            "Secure",
            "SameSite=Lax",
            "Path=/",
            "Max-Age=3600",
        ] {
            assert!(set.contains(attribute), "{attribute}: {set}");
        }
        assert!(!set.contains("ana") && !set.contains("Domain"));
        let headers = sent(&set);
        let replica = sessions("https://console.example.com", HOUR);
        assert_eq!(replica.of(&headers).map(|session| session.user), Some(user()));
        let other = Sessions::new(Some(&[8; 48]), &Url::parse("https://a").unwrap(), HOUR).unwrap();
        assert_eq!(other.of(&headers), None);
        let random = Sessions::new(None, &Url::parse("https://a").unwrap(), HOUR).unwrap();
        assert_eq!(random.of(&headers), None);
    }

    #[test]
    fn a_cookie_that_was_changed_or_is_of_another_purpose_is_worth_nothing() {
        let ours = sessions("http://localhost:9080", HOUR);
        let set = ours.begin(user()).unwrap();
        let (pair, _) = set.split_once(';').unwrap();
        let (name, value) = pair.split_once('=').unwrap();
        for at in [0, value.len() / 2, value.len() - 3] {
            let mut changed = value.to_owned().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = format!("{name}={}", String::from_utf8(changed).unwrap());
            assert_eq!(ours.of(&sent(&changed)), None, "byte {at}");
        }
        let pending = Pending::for_tests();
        let (_, sealed) = ours
            .begin_sign_in(&pending)
            .split_once('=')
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .unwrap();
        assert_eq!(ours.of(&sent(&format!("{name}={sealed}"))), None);
        assert!(
            ours.pending(&sent(&format!("windlass-sign-in={sealed}")))
                .is_some()
        );
        assert!(
            ours.pending(&sent(&format!("windlass-sign-in={value}")))
                .is_none()
        );
    }

    #[test]
    fn sessions_end() {
        let ours = sessions("http://localhost:9080", HOUR);
        let set = ours.begin(user()).unwrap();
        let session = ours.of(&sent(&set)).unwrap();
        let cleared = ours.end(&session);
        assert!(
            cleared.contains("windlass-session=;") && cleared.contains("Max-Age=0"),
            "{cleared}"
        );
        assert_eq!(ours.of(&sent(&set)), None);
        assert!(
            ours.of(&sent(&ours.begin(user()).unwrap())).is_some(),
            "another one of the same user"
        );
        let short = sessions("http://localhost:9080", Duration::ZERO);
        assert_eq!(short.of(&sent(&short.begin(user()).unwrap())), None);
    }

    #[test]
    fn groups_that_do_not_fit_and_short_keys_are_told() {
        let ours = sessions("http://localhost:9080", HOUR);
        let many = User {
            groups: (0..200)
                .map(|number| format!("00000000-0000-0000-0000-{number:012}"))
                .collect(),
            ..user()
        };
        assert!(matches!(
            ours.begin(many),
            Err(Error::TooManyGroups { groups: 200, .. })
        ));
        let url = Url::parse("http://localhost").unwrap();
        assert!(matches!(
            Sessions::new(Some(b"short"), &url, HOUR),
            Err(Error::ShortKey(5))
        ));
    }
}
