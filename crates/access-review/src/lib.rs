//! The two questions to the API server: whose token is this, and may they get that object?
//!
//! Answers are kept for a moment, so that a permission which is withdrawn holds no longer than a minute. Tokens are kept by
//! their digest only.

mod cache;
pub mod limit;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use k8s_openapi::api::authentication::v1::{
    SelfSubjectReview, TokenReview, TokenReviewSpec, TokenReviewStatus, UserInfo,
};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
    SubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use kube::{Api, Client, api::PostParams};
use serde::{Deserialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use cache::Cache;

/// Callers and permissions that are known at a time; each takes some hundred bytes.
const MOST_TOKENS: usize = 2048;
const MOST_PERMISSIONS: usize = 16 * 1024;
/// Reviews that are under way at a time.
const MOST_REVIEWS: usize = 16;
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);
const YES_HOLDS: Duration = Duration::from_secs(60);
const NO_HOLDS: Duration = Duration::from_secs(10);
/// How long a cluster that did not answer is left alone, so that callers do not wait for it one after the other.
const REST: Duration = Duration::from_secs(10);
/// Timeout for a remote cluster, which may be away. Its last answers hold for an hour.
const REMOTE_TIMEOUT: Duration = Duration::from_secs(3);
const LAST_HOLDS: Duration = Duration::from_secs(60 * 60);

/// Caller, as the API server knows it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The user's name.
    pub username: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

/// Names and groups that each cluster gives for itself begin so.
const OF_THE_CLUSTER: &str = "system:";
/// The groups of these that mean the same everywhere.
const EVERYWHERE: [&str; 2] = ["system:authenticated", "system:unauthenticated"];

impl Caller {
    /// Returns a caller that the administrator's configuration names, instead of the API server.
    pub fn new(username: &str, groups: &[String]) -> Self {
        let mut groups = groups.to_vec();
        // As the API server does for all whom it lets in.
        groups.push(EVERYWHERE[0].to_owned());
        Self {
            username: username.to_owned(),
            uid: String::new(),
            groups,
            extra: BTreeMap::new(),
        }
    }

    /// Returns the groups that clusters know them in.
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// Returns the caller's identity in another cluster. Service accounts have none: each cluster has its own, and so it is with
    /// most groups that begin with `system:`. Otherwise, whoever may create namespaces and accounts here could impersonate
    /// anyone there.
    pub fn elsewhere(&self) -> Option<Self> {
        let is_ours = |name: &str| name.starts_with(OF_THE_CLUSTER);
        if is_ours(&self.username) {
            return None;
        }
        let groups = self.groups.iter();
        let groups = groups.filter(|group| !is_ours(group) || EVERYWHERE.contains(&group.as_str()));
        Some(Self {
            username: self.username.clone(),
            uid: String::new(),
            groups: groups.cloned().collect(),
            extra: BTreeMap::new(),
        })
    }
}

/// One object, all of a kind in a namespace (no name), or all of a kind (no namespace).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Target {
    /// API group of the kind.
    pub group: &'static str,
    /// The kind in the API's paths.
    pub resource: &'static str,
    /// Namespace; empty for all.
    pub namespace: String,
    /// Name; empty for all.
    pub name: String,
}

impl Target {
    /// All of the kind, all in the namespace, and the object, as far as they are named.
    fn widest_first(&self) -> impl Iterator<Item = Self> {
        let namespace = Self {
            name: String::new(),
            ..self.clone()
        };
        let all = Self {
            namespace: String::new(),
            ..namespace.clone()
        };
        let mut targets = vec![all, namespace, self.clone()];
        targets.dedup();
        targets.into_iter()
    }
}

/// A question that has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The token is no one's, or meant for someone else.
    #[error("the token is not accepted: {0}")]
    Token(String),
    /// The API server did not answer, or does not let us ask.
    #[error("failed to ask the API server for a {kind}")]
    Ask {
        /// Kind of the requested object.
        kind: &'static str,
        /// Error of the API server.
        #[source]
        source: Box<kube::Error>,
    },
    /// It takes too long.
    #[error("failed to ask the API server for a {kind}: it takes longer than {timeout:?}")]
    Slow {
        /// Kind of the requested object.
        kind: &'static str,
        /// How long was waited.
        timeout: Duration,
    },
    /// It did not answer a moment ago.
    #[error("the API server did not answer a moment ago; it is asked again after {REST:?}")]
    Away,
}

type Known = Result<Arc<Caller>, String>;

/// Asks, and remembers.
pub struct Reviews {
    client: Client,
    /// Tokens must be meant for it; None takes those for the API server.
    audience: Option<String>,
    /// The client's own user is the only caller; reviews are self-reviews.
    of_self: bool,
    /// By the digest of the token.
    accepted: Cache<[u8; 32], Known>,
    permissions: Cache<(Arc<Caller>, &'static str, Target), bool>,
    asking: Semaphore,
    timeout: Duration,
    /// Until when it is not asked; None if it always is.
    rests: Option<Mutex<Instant>>,
}

impl Reviews {
    /// For service accounts with tokens for an audience.
    pub fn for_audience(client: Client, audience: String) -> Self {
        Self::new(client, Some(audience))
    }

    /// For all whom the API server lets in.
    pub fn for_users(client: Client) -> Self {
        Self::new(client, None)
    }

    /// For another cluster, which may be away: it is asked in vain once in a while, and what it said in the last hour holds
    /// then. Tokens are not for it; callers are who [another](Self::for_users) says.
    pub fn for_remote(client: Client) -> Self {
        Self {
            permissions: Cache::new(MOST_PERMISSIONS).with_last_answers(LAST_HOLDS),
            timeout: REMOTE_TIMEOUT,
            rests: Some(Mutex::new(Instant::now())),
            ..Self::new(client, None)
        }
    }

    /// For the client's own user, with self-reviews, which need no rights. Tokens are refused.
    pub fn for_self(client: Client) -> Self {
        Self {
            of_self: true,
            ..Self::new(client, None)
        }
    }

    /// As [`for_self`](Self::for_self), in another cluster, which may be away.
    pub fn for_self_in_remote(client: Client) -> Self {
        Self {
            of_self: true,
            ..Self::for_remote(client)
        }
    }

    /// Returns who the client is.
    ///
    /// # Errors
    /// When the API server does not say.
    pub async fn myself(&self) -> Result<Caller, Error> {
        let answer: SelfSubjectReview = self
            .ask("SelfSubjectReview", &SelfSubjectReview::default())
            .await?;
        let user = answer.status.and_then(|status| status.user_info);
        of_user(user.unwrap_or_default()).map_err(|problem| Error::Token(problem.to_owned()))
    }

    fn is_resting(&self) -> bool {
        let until = |rests: &Mutex<Instant>| *rests.lock().unwrap_or_else(PoisonError::into_inner);
        self.rests
            .as_ref()
            .is_some_and(|rests| Instant::now() < until(rests))
    }

    fn new(client: Client, audience: Option<String>) -> Self {
        Self {
            timeout: REVIEW_TIMEOUT,
            rests: None,
            of_self: false,
            client,
            audience,
            accepted: Cache::new(MOST_TOKENS),
            permissions: Cache::new(MOST_PERMISSIONS),
            asking: Semaphore::new(MOST_REVIEWS),
        }
    }

    /// The owner of a token that is meant for us.
    ///
    /// # Errors
    /// When it is not accepted, and when the API server does not say.
    pub async fn caller(&self, token: &str) -> Result<Arc<Caller>, Error> {
        if self.of_self {
            return Err(Error::Token("no token is taken here".to_owned()));
        }
        let claims = Claims::from_token(token);
        let left = claims.as_ref().map(|claims| claims.left(now()));
        // Anybody can send a hundred wrong tokens in a second; what is obviously wrong costs the API server nothing.
        if let Some(audience) = &self.audience {
            let claims = claims.ok_or_else(|| Error::Token("it is no service account token".to_owned()))?;
            claims.check(audience, now()).map_err(Error::Token)?;
        } else if left == Some(Duration::ZERO) {
            return Err(Error::Token("it has expired".to_owned()));
        }
        let key = Sha256::digest(token.as_bytes()).into();
        let known = self.accepted.get(key, async {
            let known = self.review_token(token).await?;
            let holds = if known.is_ok() {
                YES_HOLDS.min(left.unwrap_or(YES_HOLDS))
            } else {
                NO_HOLDS
            };
            Ok::<_, Error>((known, holds))
        });
        known.await?.map_err(Error::Token)
    }

    async fn review_token(&self, token: &str) -> Result<Known, Error> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                audiences: self.audience.clone().map(|audience| vec![audience]),
            },
            ..TokenReview::default()
        };
        let answer: TokenReview = self.ask("TokenReview", &review).await?;
        Ok(caller(
            answer.status.unwrap_or_default(),
            self.audience.as_deref(),
        ))
    }

    /// Returns whether a caller may `get` an object, asked in the widest form first (the kind in the cluster, then in the
    /// namespace, then the object): who may see much costs one review for each kind.
    ///
    /// # Errors
    /// When the API server does not say.
    pub async fn may_get(&self, caller: &Arc<Caller>, object: &Target) -> Result<bool, Error> {
        self.may(caller, "get", object).await
    }

    /// As [`may_get`](Self::may_get), with another verb.
    ///
    /// # Errors
    /// When the API server does not say.
    pub async fn may(
        &self,
        caller: &Arc<Caller>,
        verb: &'static str,
        object: &Target,
    ) -> Result<bool, Error> {
        for target in object.widest_first() {
            if self.may_exactly(caller, verb, target).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether a caller may `get` the target, as it is.
    ///
    /// # Errors
    /// When the API server does not say.
    pub async fn may_get_exactly(&self, caller: &Arc<Caller>, target: Target) -> Result<bool, Error> {
        self.may_exactly(caller, "get", target).await
    }

    async fn may_exactly(
        &self,
        caller: &Arc<Caller>,
        verb: &'static str,
        target: Target,
    ) -> Result<bool, Error> {
        let key = (caller.clone(), verb, target.clone());
        let answer = self.permissions.get(key, async {
            let allowed = self.may_now(caller, verb, &target).await?;
            Ok((allowed, if allowed { YES_HOLDS } else { NO_HOLDS }))
        });
        answer.await
    }

    /// Returns whether a caller has a verb on the target at this moment: what is kept is not asked.
    ///
    /// # Errors
    /// When the API server does not say.
    pub async fn may_now(&self, caller: &Caller, verb: &str, target: &Target) -> Result<bool, Error> {
        if self.of_self {
            let review = SelfSubjectAccessReview {
                spec: SelfSubjectAccessReviewSpec {
                    resource_attributes: Some(attributes(verb, target)),
                    ..SelfSubjectAccessReviewSpec::default()
                },
                ..SelfSubjectAccessReview::default()
            };
            let answer: SelfSubjectAccessReview = self.ask("SelfSubjectAccessReview", &review).await?;
            return Ok(answer.status.as_ref().is_some_and(is_allowed));
        }
        let review = SubjectAccessReview {
            spec: question(caller, verb, target),
            ..SubjectAccessReview::default()
        };
        let answer: SubjectAccessReview = self.ask("SubjectAccessReview", &review).await?;
        Ok(answer.status.as_ref().is_some_and(is_allowed))
    }

    async fn ask<K>(&self, kind: &'static str, question: &K) -> Result<K, Error>
    where
        K: kube::Resource<DynamicType = ()> + serde::Serialize + DeserializeOwned + Clone + std::fmt::Debug,
        K: kube::Resource<Scope = kube::core::ClusterResourceScope>,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let asking = async {
            let _turn = self.asking.acquire().await;
            if self.is_resting() {
                return Err(Error::Away);
            }
            let (parameters, timeout) = (PostParams::default(), self.timeout);
            let answer = tokio::time::timeout(timeout, api.create(&parameters, question));
            let answer = answer.await.map_err(|_| Error::Slow { kind, timeout })?;
            let source = |source| Error::Ask { kind, source };
            answer.map_err(Box::new).map_err(source)
        };
        // A turn may take its time, too: others are asking.
        let answer = tokio::time::timeout(2 * self.timeout, asking).await;
        let timeout = 2 * self.timeout;
        let answer = answer.unwrap_or(Err(Error::Slow { kind, timeout }));
        if let (Some(rests), Err(Error::Slow { .. } | Error::Ask { .. })) = (&self.rests, &answer) {
            *rests.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + REST;
        }
        answer
    }
}

/// Reads a TokenReview. An API server that does not support audiences returns none: then the token is for
/// itself.
fn caller(status: TokenReviewStatus, audience: Option<&str>) -> Known {
    if status.authenticated != Some(true) {
        let reason = status.error.filter(|error| !error.is_empty());
        return Err(reason.unwrap_or_else(|| "the API server does not know it".to_owned()));
    }
    if let Some(audience) = audience {
        let audiences = status.audiences.unwrap_or_default();
        if !audiences.iter().any(|one| one == audience) {
            return Err(format!("it is not for the audience {audience:?}"));
        }
    }
    Ok(Arc::new(of_user(status.user.unwrap_or_default())?))
}

fn of_user(user: UserInfo) -> Result<Caller, &'static str> {
    let username = user.username.filter(|name| !name.is_empty());
    Ok(Caller {
        username: username.ok_or("it names nobody")?,
        uid: user.uid.unwrap_or_default(),
        groups: user.groups.unwrap_or_default(),
        extra: user.extra.unwrap_or_default(),
    })
}

fn question(caller: &Caller, verb: &str, target: &Target) -> SubjectAccessReviewSpec {
    SubjectAccessReviewSpec {
        user: Some(caller.username.clone()),
        uid: Some(caller.uid.clone()),
        groups: Some(caller.groups.clone()),
        extra: Some(caller.extra.clone()),
        resource_attributes: Some(attributes(verb, target)),
        ..SubjectAccessReviewSpec::default()
    }
}

fn attributes(verb: &str, target: &Target) -> ResourceAttributes {
    ResourceAttributes {
        verb: Some(verb.to_owned()),
        group: Some(target.group.to_owned()),
        version: Some("*".to_owned()),
        resource: Some(target.resource.to_owned()),
        namespace: Some(target.namespace.clone()),
        name: Some(target.name.clone()),
        ..ResourceAttributes::default()
    }
}

fn is_allowed(status: &SubjectAccessReviewStatus) -> bool {
    status.allowed && status.denied != Some(true)
}

/// Claims of a token. Not trusted: they only save questions whose answer is no.
#[derive(Deserialize)]
struct Claims {
    aud: Audiences,
    exp: u64,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audiences {
    One(String),
    Many(Vec<String>),
}

impl Claims {
    fn from_token(token: &str) -> Option<Self> {
        let mut parts = token.split('.');
        let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }

    fn check(&self, audience: &str, now: u64) -> Result<(), String> {
        let is_ours = match &self.aud {
            Audiences::One(one) => one == audience,
            Audiences::Many(many) => many.iter().any(|one| one == audience),
        };
        if !is_ours {
            return Err(format!("it is not for the audience {audience:?}"));
        }
        if self.exp <= now {
            return Err("it has expired".to_owned());
        }
        Ok(())
    }

    fn left(&self, now: u64) -> Duration {
        Duration::from_secs(self.exp.saturating_sub(now))
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_token_says_of_itself_spares_questions() {
        let token = |claims: &str| format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims));
        let checked =
            |claims: &str| Claims::from_token(&token(claims)).map(|claims| claims.check("ours", 100));
        assert_eq!(checked(r#"{"aud":["x","ours"],"exp":101}"#), Some(Ok(())));
        assert_eq!(checked(r#"{"aud":"ours","exp":101}"#), Some(Ok(())));
        assert!(
            checked(r#"{"aud":"ours","exp":100}"#)
                .unwrap()
                .unwrap_err()
                .contains("expired")
        );
        assert!(
            checked(r#"{"aud":["api"],"exp":101}"#)
                .unwrap()
                .unwrap_err()
                .contains("audience")
        );
        assert_eq!(checked("{}"), None);
        for text in ["", "a", "a.b", "a.b.c", "a.b.c.d", "..", "e30.e30.e30.e30"] {
            assert!(Claims::from_token(text).is_none(), "{text}");
        }
        let claims = Claims::from_token(&token(r#"{"aud":"ours","exp":101}"#)).unwrap();
        assert_eq!(
            (claims.left(99), claims.left(200)),
            (Duration::from_secs(2), Duration::ZERO)
        );
    }

    #[test]
    fn a_service_account_is_nobody_elsewhere() {
        let named = |username: &str| Caller {
            username: username.to_owned(),
            uid: "1".to_owned(),
            groups: [
                "system:masters",
                "system:authenticated",
                "system:serviceaccounts:a",
                "web",
            ]
            .map(str::to_owned)
            .to_vec(),
            extra: BTreeMap::from([("scopes".to_owned(), vec!["all".to_owned()])]),
        };
        assert_eq!(named("system:serviceaccount:a:b").elsewhere(), None);
        assert_eq!(named("system:admin").elsewhere(), None);
        let ana = named("ana@example.com").elsewhere().unwrap();
        assert_eq!(ana.groups, ["system:authenticated", "web"]);
        assert!(ana.uid.is_empty() && ana.extra.is_empty());
    }

    #[test]
    fn only_a_token_for_our_audience_has_a_caller() {
        let user = UserInfo {
            username: Some("system:serviceaccount:apps:reader".to_owned()),
            groups: Some(vec!["system:serviceaccounts".to_owned()]),
            ..UserInfo::default()
        };
        let good = TokenReviewStatus {
            authenticated: Some(true),
            audiences: Some(vec!["ours".to_owned()]),
            user: Some(user),
            error: None,
        };
        let found = caller(good.clone(), Some("ours")).unwrap();
        assert_eq!(found.username, "system:serviceaccount:apps:reader");
        let foreign = TokenReviewStatus {
            audiences: Some(vec!["https://kubernetes.default.svc".to_owned()]),
            ..good.clone()
        };
        let silent = TokenReviewStatus {
            audiences: None,
            ..good.clone()
        };
        let nobody = TokenReviewStatus {
            user: None,
            ..good.clone()
        };
        let refused = TokenReviewStatus {
            authenticated: Some(false),
            ..good
        };
        for status in [foreign, silent, nobody, refused, TokenReviewStatus::default()] {
            assert!(caller(status.clone(), Some("ours")).is_err(), "{status:?}");
        }
    }
}
