//! The OCI distribution API: HEAD and GET of manifests, blobs, tags, and tokens. What writes is in [`crate::push`].
//!
//! In: a repository name, credentials, a client. Out: responses whose status is success. What was learnt about a
//! registry (https or http, a token) is remembered, so that the check of an unchanged artifact is one HEAD; tokens are
//! kept per repository *and credentials*, so that no object acts with those of another. Every answer is bounded.
//!
//! Written by hand because of what the client library for this would cost: a connection pool and a TLS store for each
//! object, a request before each request to learn about tokens, one page of tags, no bounds.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use artifact::digest::Digest;
use reqwest::header::{
    ACCEPT, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH, LINK, WWW_AUTHENTICATE,
};
use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;
use tokio::time::Instant;
use transport::auth::basic;
use transport::http;
use url::Url;

use super::credentials::Credentials;
use super::manifest::{Descriptor, Manifest};
use super::name::Name;
use crate::challenge::{self, Challenge};

/// The specification recommends registries to accept 4 MiB; no manifest of an artifact comes near.
const MAX_MANIFEST_BYTES: u64 = 4 << 20;
const MAX_TOKEN_BYTES: u64 = 1 << 20;
const MAX_TAG_PAGE_BYTES: u64 = 16 << 20;
/// No more pages are asked for, however few tags are on them.
const MAX_TAG_PAGES: usize = 2000;
/// More tags of one repository are not looked at; with their longest names they take 26 MiB.
const MAX_TAGS: usize = 200_000;
/// Tests have small pages, so that they need not push many thousands of tags.
const TAGS_PER_PAGE: usize = if cfg!(test) { 100 } else { 1000 };
/// Bytes of the mark of a list; longer ones are not kept.
const MAX_MARK: usize = 256;
/// More manifests that refer to one are not looked at.
const MAX_REFERRERS: usize = 1000;
/// Repositories whose scheme and token are remembered.
const MAX_REMEMBERED: usize = 4096;
/// The specification's answer when a token service names no lifetime.
const DEFAULT_TOKEN_LIFETIME: Duration = Duration::from_secs(60);
/// A token is not used in its last seconds, so that it holds until the request arrives.
const TOKEN_RESERVE: Duration = Duration::from_secs(10);

/// Manifests and indexes, of OCI and Docker.
const MANIFEST_TYPES: &str = "application/vnd.oci.image.manifest.v1+json, \
    application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, \
    application/vnd.docker.distribution.manifest.list.v2+json";

/// A list of tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listing {
    /// It is still the one whose mark was given.
    Unchanged,
    /// A list.
    Tags {
        /// All tags, in the order of the registry.
        tags: Vec<String>,
        /// The mark to ask with next time, if the registry gives one and the list came in one page.
        mark: Option<String>,
    },
}

struct TagPage {
    tags: Vec<String>,
    /// The query of the next page, where the registry says so.
    next: Option<String>,
    mark: Option<String>,
}

/// Returns the media type of a manifest or an index, if it is one.
pub fn media_type(text: &str) -> Option<&'static str> {
    MANIFEST_TYPES.split(", ").find(|known| *known == text)
}

/// Media type of an index of referrers.
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";

/// A conversation with a registry that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] http::Error),
    /// The registry asked for something that we do not do.
    #[error("failed to authenticate with '{registry}': {problem}")]
    Authenticate {
        /// The registry.
        registry: String,
        /// Why not.
        problem: &'static str,
    },
    /// The token service refused.
    #[error("failed to get a token for '{registry}'")]
    GetToken {
        /// The registry.
        registry: String,
        /// Error of the service.
        #[source]
        source: http::Error,
    },
    /// A blob that is not what its manifest says.
    #[error("failed to verify the blob '{digest}' of '{registry}'")]
    VerifyBlob {
        /// As in the manifest.
        digest: String,
        /// The registry.
        registry: String,
    },
    /// The registry wants an upload sent in plain text.
    #[error("'{registry}' is reached over https and wants the upload sent without TLS")]
    UploadWithoutTls {
        /// The registry.
        registry: String,
    },
    /// A manifest was changed on the way.
    #[error("'{registry}' has stored {other} and not {digest}")]
    StoredOther {
        /// The registry.
        registry: String,
        /// The digest that it names.
        other: String,
        /// The digest that was sent.
        digest: String,
    },
    /// An answer that is not what the specification says.
    #[error("failed to parse {what} of '{registry}'")]
    Parse {
        /// Which answer.
        what: &'static str,
        /// The registry.
        registry: String,
    },
}

impl Error {
    /// Returns whether the registry wants other credentials.
    pub fn is_unauthorized(&self) -> bool {
        match self {
            Self::Request(error) | Self::GetToken { source: error, .. } => {
                error.kind() == http::Kind::Unauthorized
            }
            Self::Authenticate { .. } => true,
            Self::Parse { .. }
            | Self::VerifyBlob { .. }
            | Self::UploadWithoutTls { .. }
            | Self::StoredOther { .. } => false,
        }
    }

    /// The HTTP status of a refusal.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Request(http::Error::Status { status, .. }) => Some(*status),
            _ => None,
        }
    }

    /// Returns whether the registry has no such thing.
    pub fn is_not_found(&self) -> bool {
        self.status() == Some(StatusCode::NOT_FOUND)
    }
}

/// Knowledge of this process about registries.
#[derive(Clone, Default)]
pub struct Memory {
    schemes: Arc<Mutex<HashMap<(String, bool), &'static str>>>,
    grants: Arc<Mutex<HashMap<Viewer, Grant>>>,
}

/// Credentials with which a repository is used, and whether they are to write.
type Viewer = (Name, Option<Credentials>, bool);

/// An `Authorization` header that a registry accepted.
#[derive(Clone)]
struct Grant {
    header: HeaderValue,
    expires: Option<Instant>,
}

fn recall<K: Eq + Hash, V: Clone>(map: &Mutex<HashMap<K, V>>, key: &K) -> Option<V> {
    map.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(key)
        .cloned()
}

fn remember<K: Eq + Hash, V>(map: &Mutex<HashMap<K, V>>, key: K, value: V) {
    let mut map = map.lock().unwrap_or_else(PoisonError::into_inner);
    if map.len() >= MAX_REMEMBERED {
        map.clear(); // forgetting costs one request each
    }
    map.insert(key, value);
}

/// One repository, as one object sees it.
pub struct Repository {
    /// Its registry and its path there.
    pub name: Name,
    /// `spec.insecure`: plain http may be used.
    pub insecure: bool,
    /// Credentials for the registry, if any.
    pub credentials: Option<Credentials>,
    /// HTTP client.
    pub client: http::Client,
    /// Tokens that are still good, shared by all objects.
    pub memory: Memory,
    /// When all of it must be over.
    pub deadline: Instant,
}

/// A request to the registry.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) place: Place<'a>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<bytes::Bytes>,
    /// True if it needs a token that may push.
    pub(crate) writes: bool,
}

/// Where a request goes.
pub(crate) enum Place<'a> {
    /// Below the repository.
    Path(&'a str),
    /// Where the registry said; may be another server, which gets no credentials.
    Url(Url),
}

/// Answer to a HEAD.
pub struct Head {
    /// `Docker-Content-Digest`, if the registry sends it.
    pub digest: Option<String>,
}

impl Repository {
    /// Asks for the digest of a manifest without its content.
    pub async fn head_manifest(&self, reference: &str) -> Result<Head, Error> {
        let response = self
            .request(Method::HEAD, &format!("manifests/{reference}"), MANIFEST_TYPES)
            .await?;
        Ok(Head {
            digest: header(response.headers(), "docker-content-digest"),
        })
    }

    /// The bytes of a manifest or index, and its media type. The digest is for the caller to check.
    pub async fn manifest(&self, reference: &str) -> Result<(bytes::Bytes, Option<String>), Error> {
        let response = self
            .request(Method::GET, &format!("manifests/{reference}"), MANIFEST_TYPES)
            .await?;
        http::refuse_page(&response, "a manifest")?;
        let media_type = header(response.headers(), CONTENT_TYPE.as_str());
        Ok((
            http::read(response, MAX_MANIFEST_BYTES, self.deadline).await?,
            media_type,
        ))
    }

    /// The content of a blob, to be read and checked by the caller.
    pub async fn blob(&self, digest: &str) -> Result<Response, Error> {
        self.request(Method::GET, &format!("blobs/{digest}"), "*/*").await
    }

    /// All tags. Registries answer in pages; each says where the next one is.
    pub async fn tags(&self) -> Result<Vec<String>, Error> {
        match self.tags_unless(None).await? {
            Listing::Tags { tags, .. } => Ok(tags),
            Listing::Unchanged => Err(self.unparsable("the list of tags")),
        }
    }

    /// All tags, unless the list is still the one that the registry marked so (`ETag`).
    pub async fn tags_unless(&self, mark: Option<&str>) -> Result<Listing, Error> {
        let mut tags: Vec<String> = Vec::new();
        let mut query = format!("n={TAGS_PER_PAGE}");
        let mut asked = HashSet::new();
        let mut mark = mark;
        // A server that leads back to where we were, or on for ever, gets no further than this.
        while asked.len() < MAX_TAG_PAGES && asked.insert(query.clone()) && tags.len() < MAX_TAGS {
            let Some(page) = self.tag_page(&query, mark.take()).await? else {
                return Ok(Listing::Unchanged);
            };
            // The mark of one page says nothing of another.
            let is_first = asked.len() == 1;
            let new_mark = page.mark.filter(|_| is_first);
            if page.tags.is_empty() || page.tags.last() == tags.last() {
                return Ok(Listing::Tags { tags, mark: new_mark });
            }
            // Registries that say nothing of a next page but filled this one may have one all the same.
            let full = page.tags.len() >= TAGS_PER_PAGE;
            let last = page.tags.last().filter(|_| full).map(|last| after(last));
            tags.extend(page.tags);
            match page.next.or(last) {
                Some(next) => query = next,
                None => return Ok(Listing::Tags { tags, mark: new_mark }),
            }
        }
        Err(self.unparsable("the list of tags, which does not end,"))
    }

    /// The tags of the first page: enough to name some.
    pub async fn first_tags(&self) -> Result<Vec<String>, Error> {
        let page = self.tag_page(&format!("n={TAGS_PER_PAGE}"), None).await?;
        Ok(page.map(|page| page.tags).unwrap_or_default())
    }

    /// One page of tags; None if it is still the one with this mark.
    async fn tag_page(&self, query: &str, mark: Option<&str>) -> Result<Option<TagPage>, Error> {
        #[derive(Deserialize)]
        struct Page {
            #[serde(default)]
            tags: Option<Vec<String>>,
        }
        let path = format!("tags/list?{query}");
        let mut headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        let mark = mark.and_then(|mark| HeaderValue::from_str(mark).ok());
        let is_conditional = mark.is_some();
        headers.extend(mark.map(|mark| (IF_NONE_MATCH, mark)));
        let call = Call {
            method: Method::GET,
            place: Place::Path(&path),
            headers,
            body: None,
            writes: false,
        };
        let response = self.call(&call).await?;
        if is_conditional && response.status() == StatusCode::NOT_MODIFIED {
            return Ok(None);
        }
        http::refuse_page(&response, "the list of tags")?;
        let next = next_page(&response);
        let mark = header(response.headers(), ETAG.as_str()).filter(|mark| mark.len() <= MAX_MARK);
        let body = http::read(response, MAX_TAG_PAGE_BYTES, self.deadline).await?;
        let page: Page = serde_json::from_slice(&body).map_err(|_| self.unparsable("the list of tags"))?;
        Ok(Some(TagPage {
            tags: page.tags.unwrap_or_default(),
            next,
            mark,
        }))
    }

    /// Lists the referrers of a manifest, such as its signatures: by the referrers API, or by the index with
    /// the fallback tag.
    pub async fn referrers(&self, digest: &Digest) -> Result<Vec<Descriptor>, Error> {
        let mut referrers = Vec::new();
        let mut query = None;
        let mut asked = HashSet::new();
        while asked.insert(query.clone()) && referrers.len() < MAX_REFERRERS {
            let parameters = query.take().map(|query| format!("?{query}")).unwrap_or_default();
            let path = format!("referrers/{digest}{parameters}");
            let response = match self.request(Method::GET, &path, INDEX_TYPE).await {
                Ok(response) => response,
                Err(error) if has_no_such_api(&error) => return self.referrers_of_tag(digest).await,
                Err(error) => return Err(error),
            };
            if header(response.headers(), CONTENT_TYPE.as_str()).as_deref() != Some(INDEX_TYPE) {
                return self.referrers_of_tag(digest).await;
            }
            query = next_page(&response);
            let body = http::read(response, MAX_MANIFEST_BYTES, self.deadline).await?;
            referrers.extend(self.index(&body)?);
            if query.is_none() {
                break;
            }
        }
        referrers.truncate(MAX_REFERRERS);
        Ok(referrers)
    }

    async fn referrers_of_tag(&self, digest: &Digest) -> Result<Vec<Descriptor>, Error> {
        let body = match self.manifest(&format!("sha256-{}", digest.hex())).await {
            Ok((body, _)) => body,
            Err(error) if error.is_not_found() => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut referrers = self.index(&body)?;
        referrers.truncate(MAX_REFERRERS);
        Ok(referrers)
    }

    fn index(&self, body: &[u8]) -> Result<Vec<Descriptor>, Error> {
        let index = Manifest::parse(body).map_err(|_| self.unparsable("the list of referrers"))?;
        Ok(index.into_manifests())
    }

    /// The whole of a small blob, which is what its descriptor says.
    pub async fn small_blob(&self, descriptor: &Descriptor, limit: u64) -> Result<bytes::Bytes, Error> {
        let refuse = || Error::VerifyBlob {
            digest: descriptor.digest.clone(),
            registry: self.name.registry.clone(),
        };
        let digest: Digest = descriptor.digest.parse().map_err(|_| refuse())?;
        let response = self.blob(&digest.to_string()).await?;
        let body = http::read(response, limit.min(descriptor.size), self.deadline).await?;
        if Digest::from_content(&body) == digest {
            Ok(body)
        } else {
            Err(refuse())
        }
    }

    /// Sends a request below the repository, with a token or password if the registry wants one.
    async fn request(&self, method: Method, path: &str, accept: &'static str) -> Result<Response, Error> {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
        self.call(&Call {
            method,
            place: Place::Path(path),
            headers,
            body: None,
            writes: false,
        })
        .await
    }

    /// Sends a request, with a token or password if the registry wants one.
    pub(crate) async fn call(&self, call: &Call<'_>) -> Result<Response, Error> {
        let key = (self.name.clone(), self.credentials.clone(), call.writes);
        let known = recall(&self.memory.grants, &key)
            .filter(|grant| grant.expires.is_none_or(|expires| Instant::now() < expires));
        let response = self.send(call, known.as_ref()).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return self.checked(response).await;
        }
        // Credentials are for the registry that was asked, not for where it sends us.
        let asked = self.url(response.url().scheme(), "")?;
        let is_the_registry = http::same_origin(response.url(), &asked);
        let challenge = self.challenge(&response).filter(|_| is_the_registry);
        let Some(challenge) = challenge else {
            return self.checked(response).await;
        };
        drop(response);
        let Some(grant) = self.authorize(&challenge, call.writes).await? else {
            return Err(self.cannot_authenticate("the registry asks for credentials and there are none"));
        };
        let response = self.send(call, Some(&grant)).await?;
        let response = self.checked(response).await?;
        remember(&self.memory.grants, key, grant);
        Ok(response)
    }

    /// Returns an error unless the request succeeded. "Not modified" counts as success: a server sends it only in answer to a
    /// condition.
    async fn checked(&self, response: Response) -> Result<Response, Error> {
        match response.status() {
            StatusCode::NOT_MODIFIED => Ok(response),
            _ => Ok(http::checked(response, self.deadline).await?),
        }
    }

    async fn send(&self, call: &Call<'_>, grant: Option<&Grant>) -> Result<Response, Error> {
        let path = match &call.place {
            Place::Path(path) => path,
            Place::Url(url) => return Ok(self.attempt(call, url.clone(), grant).await?),
        };
        let known = (self.name.registry.clone(), self.insecure);
        let scheme = recall(&self.memory.schemes, &known);
        // As Flux's library: https first, and http where the object or the kind of address allows it.
        let schemes: &[&'static str] = match scheme {
            Some("http") => &["http"],
            Some(_) => &["https"],
            None if self.insecure || self.name.is_local() => &["https", "http"],
            None => &["https"],
        };
        let mut first_failure = None;
        for scheme in schemes {
            let url = self.url(scheme, path)?;
            match self.attempt(call, url, grant).await {
                Ok(response) => {
                    remember(&self.memory.schemes, known, *scheme);
                    return Ok(response);
                }
                // Who speaks TLS and is not trusted does not speak http beside it.
                Err(http::Error::Reach { url, cause }) if !cause.is_mistrust() => {
                    first_failure = Some(http::Error::Reach { url, cause });
                }
                Err(error) => return Err(error.into()),
            }
        }
        // A server that moved from http to https, or back, is found again the next time.
        self.memory
            .schemes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&known);
        match first_failure {
            Some(error) => Err(error.into()),
            None => Err(self.unparsable("the address")),
        }
    }

    /// Sends a request once. Credentials go to the registry only, not to where it wants uploads.
    async fn attempt(
        &self,
        call: &Call<'_>,
        url: Url,
        grant: Option<&Grant>,
    ) -> Result<Response, http::Error> {
        let home = self.url(url.scheme(), "").ok();
        let is_home = home.is_some_and(|home| http::same_origin(&home, &url));
        let request = http::Request {
            method: call.method.clone(),
            url,
            headers: call.headers.clone(),
            authorization: grant.filter(|_| is_home).map(|grant| &grant.header),
        };
        http::send_body(&self.client, request, call.body.clone(), self.deadline).await
    }

    fn url(&self, scheme: &str, path: &str) -> Result<Url, Error> {
        let url = format!(
            "{scheme}://{}/v2/{}/{path}",
            self.name.registry, self.name.repository
        );
        Url::parse(&url).map_err(|_| self.unparsable("the address"))
    }

    fn challenge(&self, response: &Response) -> Option<Challenge> {
        let headers = response.headers().get_all(WWW_AUTHENTICATE);
        challenge::choose(headers.iter().filter_map(|value| value.to_str().ok()))
    }

    /// Gets what the registry asks for: None when that needs credentials and there are none.
    async fn authorize(&self, challenge: &Challenge, writes: bool) -> Result<Option<Grant>, Error> {
        match (challenge, &self.credentials) {
            (_, Some(Credentials::Bearer(token))) => self.grant(&format!("Bearer {token}"), None).map(Some),
            (Challenge::Basic, Some(Credentials::Basic(user, password))) => {
                self.grant(&basic(user, password), None).map(Some)
            }
            (Challenge::Basic, _) => Ok(None),
            (Challenge::Bearer { realm, service }, _) => {
                self.token(realm, service.as_deref(), writes).await.map(Some)
            }
        }
    }

    /// Asks the token service for a token to pull from this repository, and to push to it if `writes`.
    async fn token(&self, realm: &str, service: Option<&str>, writes: bool) -> Result<Grant, Error> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            token: String,
            #[serde(default)]
            access_token: String,
            #[serde(default)]
            expires_in: u64,
        }
        let mut url = self.realm(realm)?;
        let actions = if writes { "pull,push" } else { "pull" };
        let scope = format!("repository:{}:{actions}", self.name.repository);
        let mut parameters = vec![("scope", scope.as_str())];
        parameters.extend(service.map(|service| ("service", service)));
        let requested = Instant::now();
        let response = match &self.credentials {
            Some(Credentials::IdentityToken(token)) => {
                parameters.extend([
                    ("grant_type", "refresh_token"),
                    ("refresh_token", token),
                    ("client_id", "windlass"),
                ]);
                let body = url::form_urlencoded::Serializer::new(String::new())
                    .extend_pairs(&parameters)
                    .finish();
                let request = self.client.post(url.clone()).body(body);
                let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
                http::within(self.deadline, &url, request.send()).await
            }
            credentials => {
                url.query_pairs_mut().extend_pairs(&parameters);
                let header = match credentials {
                    Some(Credentials::Basic(user, password)) => Some(self.header(&basic(user, password))?),
                    _ => None,
                };
                let headers = HeaderMap::new();
                let request = http::Request {
                    method: Method::GET,
                    url,
                    headers,
                    authorization: header.as_ref(),
                };
                http::send(&self.client, request, self.deadline).await
            }
        };
        let refused = |source| Error::GetToken {
            registry: self.name.registry.clone(),
            source,
        };
        let response = http::checked(response.map_err(refused)?, self.deadline)
            .await
            .map_err(refused)?;
        let body = http::read(response, MAX_TOKEN_BYTES, self.deadline)
            .await
            .map_err(refused)?;
        let answer: Answer = serde_json::from_slice(&body).map_err(|_| self.unparsable("the token"))?;
        let token = if answer.token.is_empty() {
            answer.access_token
        } else {
            answer.token
        };
        if token.is_empty() {
            return Err(self.unparsable("the token"));
        }
        let lifetime = match answer.expires_in {
            0 => DEFAULT_TOKEN_LIFETIME,
            seconds => Duration::from_secs(seconds.min(24 * 3600)),
        };
        self.grant(
            &format!("Bearer {token}"),
            Some(requested + lifetime.saturating_sub(TOKEN_RESERVE)),
        )
    }

    /// The registry names its token service. Credentials travel there, so it must be https, unless the registry itself
    /// is spoken to in plain text.
    fn realm(&self, realm: &str) -> Result<Url, Error> {
        let url =
            Url::parse(realm).map_err(|_| self.cannot_authenticate("its token service has no valid URL"))?;
        let known = (self.name.registry.clone(), self.insecure);
        let in_plain_text = recall(&self.memory.schemes, &known) == Some("http");
        match url.scheme() {
            "https" => Ok(url),
            "http" if in_plain_text => Ok(url),
            _ => Err(self.cannot_authenticate("its token service is not reached over https")),
        }
    }

    fn grant(&self, header: &str, expires: Option<Instant>) -> Result<Grant, Error> {
        Ok(Grant {
            header: self.header(header)?,
            expires,
        })
    }

    fn header(&self, value: &str) -> Result<HeaderValue, Error> {
        let mut header = HeaderValue::from_str(value)
            .map_err(|_| self.cannot_authenticate("the credentials hold characters that cannot be sent"))?;
        header.set_sensitive(true);
        Ok(header)
    }

    fn cannot_authenticate(&self, problem: &'static str) -> Error {
        Error::Authenticate {
            registry: self.name.registry.clone(),
            problem,
        }
    }

    pub(crate) fn unparsable(&self, what: &'static str) -> Error {
        Error::Parse {
            what,
            registry: self.name.registry.clone(),
        }
    }
}

/// The registry knows no referrers: it says so in one of several ways. Whoever may not read learns that from the tag.
fn has_no_such_api(error: &Error) -> bool {
    error.status().is_some_and(|status| {
        let about_us = [StatusCode::UNAUTHORIZED, StatusCode::TOO_MANY_REQUESTS];
        status == StatusCode::NOT_IMPLEMENTED || (status.is_client_error() && !about_us.contains(&status))
    })
}

/// The query of the page after this tag.
fn after(last: &str) -> String {
    url::form_urlencoded::Serializer::new(format!("n={TAGS_PER_PAGE}"))
        .append_pair("last", last)
        .finish()
}

pub(crate) fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned)
}

/// The query of the next page. Only the query is taken from the answer: the request goes to the same place again.
fn next_page(response: &Response) -> Option<String> {
    let link = header(response.headers(), LINK.as_str())?;
    next_query(&link, response.url())
}

fn next_query(link: &str, asked: &Url) -> Option<String> {
    let next = link.split(',').find(|part| {
        let parameters = part.split(';').skip(1);
        parameters
            .map(|parameter| parameter.trim().replace('"', ""))
            .any(|parameter| parameter == "rel=next")
    })?;
    let target = next.split_once('<')?.1.split_once('>')?.0;
    asked.join(target).ok()?.query().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_read_from_the_link() {
        let asked = Url::parse("https://r.io/v2/app/tags/list?n=2").unwrap();
        let cases = [
            (
                r#"</v2/app/tags/list?last=b&n=2>; rel="next""#,
                Some("last=b&n=2"),
            ),
            (r"<https://elsewhere.io/x?last=b>;rel=next", Some("last=b")),
            (
                r#"</v2/app/tags/list?n=2>; rel="first", <?last=c>; rel="next""#,
                Some("last=c"),
            ),
            (r#"</v2/app/tags/list?last=b>; rel="prev""#, None),
            ("nonsense", None),
        ];
        for (link, query) in cases {
            assert_eq!(next_query(link, &asked).as_deref(), query, "{link}");
        }
    }
}
