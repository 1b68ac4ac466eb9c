//! Requests that a browser sends by itself: with cookies, or from a place that needs none. Other sites can have it send them, so
//! whoever acts on one must know where it came from.

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Method};
use url::Url;

/// Why a request is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is for another name: someone may have their own name lead here.
    #[error("this is not the host that the console is configured for (baseURL)")]
    Host,
    /// It is from another site, or does not say where it is from.
    #[error("the request does not come from a page of the console: send the header Origin")]
    Foreign,
}

/// Checks that a request comes from a page of `base`, or is a visit by a link.
///
/// # Errors
/// When it is for another host, or another site had it sent.
pub fn check(base: &Url, method: &Method, headers: &HeaderMap) -> Result<(), Error> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if text(HOST.as_str()) != Some(authority(base).as_str()) {
        return Err(Error::Host);
    }
    let is_from = |origin: &str| *origin == base.origin().ascii_serialization();
    let is_safe = matches!(*method, Method::GET | Method::HEAD);
    let is_ours = match (text("sec-fetch-site"), text(ORIGIN.as_str())) {
        (_, Some(origin)) if !is_from(origin) => false,
        (Some("same-origin"), _) => true,
        // Typed, or from a bookmark.
        (Some("none"), _) => is_safe,
        // A link on another site leads here; it must only show something.
        (Some(_), _) => is_safe && text("sec-fetch-mode") == Some("navigate"),
        // Old browsers and programs.
        (None, Some(_)) => true,
        (None, None) => is_safe,
    };
    is_ours.then_some(()).ok_or(Error::Foreign)
}

/// Host and port, as clients write them.
fn authority(base: &Url) -> String {
    let host = base.host_str().unwrap_or_default();
    base.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn ask(method: &Method, headers: &[(&'static str, &'static str)]) -> Result<(), Error> {
        let base = Url::parse("https://console.example.com/").unwrap();
        let mut map = HeaderMap::new();
        map.insert(HOST, HeaderValue::from_static("console.example.com"));
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_static(value));
        }
        check(&base, method, &map)
    }

    #[test]
    fn changes_come_from_our_own_pages() {
        const OURS: (&str, &str) = ("origin", "https://console.example.com");
        for headers in [
            &[("sec-fetch-site", "same-origin")][..],
            &[OURS],
            &[OURS, ("sec-fetch-site", "same-origin")],
        ] {
            assert_eq!(ask(&Method::POST, headers), Ok(()), "{headers:?}");
        }
        for headers in [
            &[][..],
            &[("origin", "null")],
            &[("origin", "https://evil.example.com")],
            &[("origin", "http://console.example.com")],
            &[("origin", "https://console.example.com:8443")],
            &[("origin", "https://console.example.com.evil.com")],
            &[OURS, ("sec-fetch-site", "same-site")],
            &[OURS, ("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "none")],
            &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")],
            &[
                ("sec-fetch-site", "same-origin"),
                ("origin", "https://evil.example.com"),
            ],
        ] {
            assert_eq!(ask(&Method::POST, headers), Err(Error::Foreign), "{headers:?}");
        }
    }

    #[test]
    fn other_sites_may_lead_here_and_read_nothing() {
        const CROSS: (&str, &str) = ("sec-fetch-site", "cross-site");
        assert_eq!(ask(&Method::GET, &[]), Ok(()));
        assert_eq!(ask(&Method::GET, &[("sec-fetch-site", "none")]), Ok(()));
        assert_eq!(
            ask(&Method::GET, &[CROSS, ("sec-fetch-mode", "navigate")]),
            Ok(())
        );
        assert_eq!(ask(&Method::GET, &[CROSS]), Err(Error::Foreign));
        assert_eq!(
            ask(&Method::GET, &[CROSS, ("sec-fetch-mode", "cors")]),
            Err(Error::Foreign)
        );
        let origin = ("origin", "https://evil.example.com");
        assert_eq!(ask(&Method::GET, &[origin]), Err(Error::Foreign));
    }

    #[test]
    fn a_name_that_someone_had_lead_here_is_not_ours() {
        for host in [
            "evil.example.com",
            "console.example.com:9080",
            "127.0.0.1:9080",
            "",
        ] {
            assert_eq!(ask(&Method::GET, &[("host", host)]), Err(Error::Host), "{host}");
        }
        let base = Url::parse("http://localhost:9080").unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("localhost:9080"));
        headers.insert(ORIGIN, HeaderValue::from_static("http://localhost:9080"));
        assert_eq!(check(&base, &Method::POST, &headers), Ok(()));
    }
}
