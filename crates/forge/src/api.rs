//! The REST API of a Git service: JSON in and out, bounded answers, and errors that say whether to try again.
//!
//! Knows headers and status codes that GitHub, GitLab, Gitea, Bitbucket and Azure DevOps have in common; what is asked
//! is in their files.

use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, LOCATION,
};
use http::{Method, StatusCode};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;

use crate::error::{Error, Retry};
use crate::exchange::{Answer, Exchange, Request};
use crate::pull_request::Merge;
use crate::retry_after;

/// A page of 100 comments fits; each has at most some 64 KiB of text, and most have little.
const MAX_ANSWER: usize = 8 << 20;
/// Bytes of a service's refusal that are quoted.
const MAX_QUOTED: usize = 300;
/// Longer entity tags are not kept, in bytes.
const MAX_TAG: usize = 256;
/// Repositories that were renamed are elsewhere.
const MAX_REDIRECTS: usize = 3;

/// A service, and how to get in.
pub struct Api<'a> {
    http: Box<dyn Exchange + 'a>,
    base: Url,
    headers: HeaderMap,
    /// Secret to remove from errors, even if the service repeats it.
    secret: String,
    /// Explanation of "not found".
    missing: String,
}

impl<'a> Api<'a> {
    /// A service with the root of its API.
    pub fn new(http: impl Exchange + 'a, base: Url) -> Self {
        Self {
            http: Box::new(http),
            base,
            headers: HeaderMap::new(),
            secret: String::new(),
            missing: String::new(),
        }
    }

    /// With a header that is no secret.
    pub fn header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.insert(name, HeaderValue::from_static(value));
        self
    }

    /// With a secret in a header, behind a prefix such as `Bearer `.
    pub fn secret(mut self, name: HeaderName, prefix: &str, secret: &str) -> Result<Self, Error> {
        let mut value = HeaderValue::from_str(&format!("{prefix}{secret}")).map_err(|_| {
            Error::invalid("the token holds characters that headers cannot, such as line breaks")
        })?;
        value.set_sensitive(true);
        self.headers.insert(name, value);
        self.secret = secret.to_owned();
        Ok(self)
    }

    /// The same, or without one if it is empty: public repositories tell everyone.
    pub fn secret_unless_empty(self, name: HeaderName, prefix: &str, secret: &str) -> Result<Self, Error> {
        match secret {
            "" => Ok(self),
            secret => self.secret(name, prefix, secret),
        }
    }

    /// With a bearer token.
    pub fn bearer(self, token: &str) -> Result<Self, Error> {
        self.secret(AUTHORIZATION, "Bearer ", token)
    }

    /// With a name and a password.
    pub fn basic(self, username: &str, password: &str) -> Result<Self, Error> {
        use base64::Engine as _;
        let login = base64::engine::general_purpose::STANDARD.encode(format!("{username}:{password}"));
        Ok(Self {
            secret: password.to_owned(),
            ..self.secret(AUTHORIZATION, "Basic ", &login)?
        })
    }

    /// With the meaning of "not found": services say it of what a token may not see as well.
    pub fn about(mut self, missing: String) -> Self {
        self.missing = missing;
        self
    }

    /// Fetches the object at this path.
    pub async fn get<T: DeserializeOwned>(&self, path: &[&str], query: &[(&str, &str)]) -> Result<T, Error> {
        let request = self.request(Method::GET, path, query, None::<&()>)?;
        let url = request.url.clone();
        let answer = self.ask(request).await?;
        parsed(&url, &answer)
    }

    /// Fetches the object at this path unless it is the one that is known by an entity tag, which is brought up to date. Services do not
    /// count answers that nothing is new.
    pub async fn get_new<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        known: &mut Option<String>,
    ) -> Result<Option<T>, Error> {
        let mut request = self.request(Method::GET, path, query, None::<&()>)?;
        if let Some(tag) = known.as_deref().and_then(|tag| HeaderValue::from_str(tag).ok()) {
            request.headers.insert(IF_NONE_MATCH, tag);
        }
        let url = request.url.clone();
        let answer = self.exchange(request.clone()).await?;
        if answer.status == StatusCode::NOT_MODIFIED && known.is_some() {
            return Ok(None);
        }
        let answer = self.success(&request, answer)?;
        let tag = answer.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
        *known = tag.filter(|tag| tag.len() <= MAX_TAG).map(str::to_owned);
        parsed(&url, &answer).map(Some)
    }

    /// Fetches the object at this path, if there is one.
    pub async fn find<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Option<T>, Error> {
        let request = self.request(Method::GET, path, query, None::<&()>)?;
        let url = request.url.clone();
        let answer = self.exchange(request.clone()).await?;
        match answer.status {
            StatusCode::NOT_FOUND => Ok(None),
            _ => parsed(&url, &self.success(&request, answer)?).map(Some),
        }
    }

    /// Creates an object and returns it.
    pub async fn create<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        body: &impl Serialize,
    ) -> Result<T, Error> {
        let request = self.request(Method::POST, path, query, Some(body))?;
        let url = request.url.clone();
        parsed(&url, &self.ask(request).await?)
    }

    /// Sends a body with another method than POST.
    pub async fn send(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: &impl Serialize,
    ) -> Result<Answer, Error> {
        self.ask(self.request(method, path, query, Some(body))?).await
    }

    /// Asks for a merge. What the forge says no to may be allowed later: checks, reviews, a newer commit, conflicts.
    pub async fn merge(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: &impl Serialize,
    ) -> Result<Merge, Error> {
        let request = self.request(method, path, query, Some(body))?;
        let answer = self.exchange(request.clone()).await?;
        let is_no = matches!(
            answer.status,
            StatusCode::METHOD_NOT_ALLOWED
                | StatusCode::NOT_ACCEPTABLE
                | StatusCode::CONFLICT
                | StatusCode::UNPROCESSABLE_ENTITY
        );
        if is_no {
            let said = self.masked(&reason(&answer.body));
            let said = said.trim_start_matches(": ").to_owned();
            return Ok(Merge::NotYet(if said.is_empty() {
                answer.status.to_string()
            } else {
                said
            }));
        }
        self.success(&request, answer)?;
        Ok(Merge::Done)
    }

    /// Says something new.
    pub async fn post(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        body: &impl Serialize,
    ) -> Result<Answer, Error> {
        self.ask(self.request(Method::POST, path, query, Some(body))?)
            .await
    }

    /// Changes what was said; None if it is no longer there.
    pub async fn change(
        &self,
        method: Method,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<Option<Answer>, Error> {
        let request = self.request(method, path, &[], Some(body))?;
        let answer = self.exchange(request.clone()).await?;
        match answer.status {
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(None),
            _ => self.success(&request, answer).map(Some),
        }
    }

    /// Deletes what is at this path, if it is there.
    pub async fn delete(&self, path: &[&str], query: &[(&str, &str)]) -> Result<(), Error> {
        let request = self.request(Method::DELETE, path, query, None::<&()>)?;
        let answer = self.exchange(request.clone()).await?;
        match answer.status {
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(()),
            _ => self.success(&request, answer).map(drop),
        }
    }

    fn request(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<&impl Serialize>,
    ) -> Result<Request, Error> {
        let mut url = url(&self.base, path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut headers = self.headers.clone();
        let body = match body {
            Some(body) => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                let body = serde_json::to_vec(body);
                Bytes::from(body.map_err(|error| Error::invalid(error.to_string()))?)
            }
            None => Bytes::new(),
        };
        Ok(Request {
            method,
            url,
            headers,
            body,
            longest: MAX_ANSWER,
        })
    }

    async fn ask(&self, request: Request) -> Result<Answer, Error> {
        let answer = self.exchange(request.clone()).await?;
        self.success(&request, answer)
    }

    /// Sends it, to where the repository is now.
    async fn exchange(&self, mut request: Request) -> Result<Answer, Error> {
        let place = public(&request.url);
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.http.exchange(request.clone()).await;
            let answer = answer.map_err(|error| error.within(&place))?;
            if answer.is_cut {
                return Err(Error::invalid(format!("the answer of {place} is too large")));
            }
            match elsewhere(&request, &answer) {
                Some(there) => request.url = there,
                None => return Ok(answer),
            }
        }
        Err(Error::invalid(format!("{place} redirects too often")))
    }

    fn success(&self, request: &Request, answer: Answer) -> Result<Answer, Error> {
        let status = answer.status;
        // Azure DevOps answers 203 with a page to log in at.
        if status.is_success() && status != StatusCode::NON_AUTHORITATIVE_INFORMATION {
            return Ok(answer);
        }
        let said = reason(&answer.body);
        let is_missing = status == StatusCode::NOT_FOUND || said.contains("No commit found");
        let hint = match self.missing.as_str() {
            missing if is_missing && !missing.is_empty() => format!(": {missing}"),
            _ => String::new(),
        };
        let text = format!(
            "{} {} answered {status}{}{hint}",
            request.method,
            public(&request.url),
            self.masked(&said)
        );
        Err(Error::new(text, retry(&answer, Timestamp::now())))
    }

    fn masked(&self, text: &str) -> String {
        match self.secret.len() {
            0..4 => text.to_owned(),
            _ => text.replace(&self.secret, secret_mask::MASK),
        }
    }
}

/// Each part of the path is one segment, whatever characters it has.
pub fn url(base: &Url, path: &[&str]) -> Result<Url, Error> {
    if path.iter().any(|part| matches!(*part, "" | "." | "..")) {
        return Err(Error::invalid("a part of the address is empty or a dot"));
    }
    let mut url = base.clone();
    url.path_segments_mut()
        .map_err(|()| Error::invalid("the address has no path"))?
        .pop_if_empty()
        .extend(path);
    Ok(url)
}

/// The message of serde_json would quote values of the answer.
fn parsed<T: DeserializeOwned>(url: &Url, answer: &Answer) -> Result<T, Error> {
    let problem = |_| {
        Error::passing(format!(
            "{} did not answer with the JSON that was expected",
            public(url)
        ))
    };
    serde_json::from_slice(&answer.body).map_err(problem)
}

/// Where a renamed repository is: at the same service, which alone may have the token. Other redirects than these are
/// followed by the client.
fn elsewhere(request: &Request, answer: &Answer) -> Option<Url> {
    let is_moved = matches!(answer.status, StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND);
    let location = answer
        .headers
        .get(LOCATION)
        .filter(|_| is_moved && request.method == Method::GET)?;
    let there = request.url.join(location.to_str().ok()?).ok()?;
    (there.origin() == request.url.origin()).then_some(there)
}

fn public(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

/// When to try again, by the headers that services have for it: `Retry-After`, and GitHub's and GitLab's limits.
pub fn retry(answer: &Answer, now: Timestamp) -> Retry {
    let (status, headers) = (answer.status, &answer.headers);
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::trim)
    };
    let pause = retry_after::pause(headers, now);
    // GitHub says 403 for its limits as well as for what a token may not do.
    let is_limit = status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::FORBIDDEN && (pause.is_some() || text("x-ratelimit-remaining") == Some("0"));
    if !is_limit && !status.is_server_error() && status != StatusCode::REQUEST_TIMEOUT {
        return Retry::Never;
    }
    let reset = ["x-ratelimit-reset", "ratelimit-reset"]
        .into_iter()
        .find_map(|name| text(name)?.parse::<i64>().ok())
        .filter(|_| is_limit)
        .map(|at| retry_after::bounded(at.saturating_sub(now.as_second()).max(0).unsigned_abs()));
    pause.or(reset).map_or(Retry::Backoff, Retry::After)
}

/// The service's explanation, with a leading colon.
fn reason(body: &[u8]) -> String {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(body) else {
        return String::new();
    };
    let texts = [
        "/message",
        "/error/message",
        "/errors/0/message",
        "/error_description",
        "/error",
    ];
    let text = texts.iter().find_map(|pointer| match value.pointer(pointer)? {
        serde_json::Value::String(text) => Some(text.clone()),
        // GitLab has objects and lists of texts here.
        other if *pointer == "/message" => Some(other.to_string()),
        _ => None,
    });
    let Some(text) = text else {
        return String::new();
    };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut line: String = line.chars().filter(|c| !c.is_control()).collect();
    if line.chars().count() > MAX_QUOTED {
        line = line.chars().take(MAX_QUOTED - 1).chain(['…']).collect();
    }
    format!(": {line}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn retried(status: u16, headers: &[(&'static str, &'static str)]) -> Retry {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let answer = Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            body: Bytes::new(),
            is_cut: false,
        };
        retry(&answer, Timestamp::from_second(1_700_000_000).unwrap())
    }

    #[test]
    fn limits_say_when_they_end() {
        let after = |seconds| Retry::After(Duration::from_secs(seconds));
        for (status, headers, expected) in [
            (429, &[("retry-after", "7")][..], after(7)),
            (403, &[("retry-after", "60")][..], after(60)),
            (
                403,
                &[
                    ("x-ratelimit-remaining", "0"),
                    ("x-ratelimit-reset", "1700000090"),
                ][..],
                after(90),
            ),
            (
                403,
                &[
                    ("x-ratelimit-remaining", "0"),
                    ("x-ratelimit-reset", "9999999999"),
                ][..],
                after(3600),
            ),
            (429, &[("ratelimit-reset", "1600000000")][..], after(1)),
            (429, &[][..], Retry::Backoff),
            (503, &[("retry-after", "2")][..], after(2)),
            (502, &[("x-ratelimit-reset", "1700000090")][..], Retry::Backoff),
            (403, &[("x-ratelimit-remaining", "59")][..], Retry::Never),
            (404, &[][..], Retry::Never),
            (422, &[("retry-after", "9")][..], Retry::Never),
        ] {
            assert_eq!(retried(status, headers), expected, "{status} {headers:?}");
        }
    }

    #[test]
    fn what_a_service_says_is_quoted_in_a_line() {
        assert_eq!(reason(br#"{"message":"Not\n  Found"}"#), ": Not Found");
        assert_eq!(
            reason(br#"{"message":{"base":["taken"]}}"#),
            r#": {"base":["taken"]}"#
        );
        assert_eq!(reason(br#"{"error":{"message":"no"},"type":"error"}"#), ": no");
        assert_eq!(
            reason(br#"{"error":"insufficient_scope"}"#),
            ": insufficient_scope"
        );
        for body in [&b"<html>"[..], b"{}", b"", b"[1]"] {
            assert_eq!(reason(body), "");
        }
        let long = format!(r#"{{"message":"{}"}}"#, "x".repeat(5000));
        assert_eq!(reason(long.as_bytes()).chars().count(), 302);
    }

    #[test]
    fn each_part_of_a_path_is_one_segment() {
        let base = Url::parse("https://gitlab.com/api/v4/").unwrap();
        let path = url(&base, &["projects", "a/b c/d?", "statuses"]).unwrap();
        assert_eq!(
            path.as_str(),
            "https://gitlab.com/api/v4/projects/a%2Fb%20c%2Fd%3F/statuses"
        );
        assert!(url(&base, &["projects", ".."]).is_err());
    }
}
