//! Signature Version 4: a request that proves that its sender has the keys, without showing them.
//!
//! The path must be encoded as [`encode`] does it: it is signed as it stands, which is S3's rule, and for the path `/`
//! of the other services there is no difference.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, InvalidHeaderValue};
use http::{HeaderName, Method};
use jiff::Timestamp;
use url::{Position, Url};

use crate::token::Keys;

/// Signs requests to one service in one region.
#[derive(Debug, Clone)]
pub struct Signer {
    /// With what.
    pub keys: Keys,
    /// Where.
    pub region: String,
    /// For whom: `s3`, `ecr`.
    pub service: &'static str,
}

impl Signer {
    /// Adds the headers of a signature over method, URL, host, body and the headers that are there. Fails when a key
    /// has characters that no header can carry.
    pub fn sign(
        &self,
        method: &Method,
        url: &Url,
        headers: &mut HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<(), InvalidHeaderValue> {
        self.sign_hashed(method, url, headers, &sha256_hex(body), now)
    }

    /// As [`Signer::sign`], for a body that is not in memory but whose hash is known. Fails likewise.
    pub fn sign_hashed(
        &self,
        method: &Method,
        url: &Url,
        headers: &mut HeaderMap,
        hash: &str,
        now: Timestamp,
    ) -> Result<(), InvalidHeaderValue> {
        let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
        headers.insert(
            HeaderName::from_static("x-amz-date"),
            HeaderValue::from_str(&time)?,
        );
        headers.insert(
            HeaderName::from_static("x-amz-content-sha256"),
            HeaderValue::from_str(hash)?,
        );
        if let Some(token) = &self.keys.session_token {
            let mut token = HeaderValue::from_str(token)?;
            token.set_sensitive(true);
            headers.insert(HeaderName::from_static("x-amz-security-token"), token);
        }
        let (canonical, signed) = canonical_headers(url, headers);
        let request = format!(
            "{method}\n{}\n{}\n{canonical}\n{signed}\n{hash}",
            url.path(),
            canonical_query(url)
        );
        let scope = self.scope(&time);
        let signature = self.signature(&time, &time, &request);
        let value = format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={signed}, Signature={signature}",
            self.keys.access_key_id
        );
        let mut value = HeaderValue::from_str(&value)?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
        Ok(())
    }

    /// A URL to get with these headers, good for so many seconds: the signature is in its query. `hash` is that of the
    /// body, or what the service takes instead.
    #[must_use]
    pub fn presign(&self, url: &Url, headers: &HeaderMap, hash: &str, seconds: u32, now: Timestamp) -> Url {
        let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
        let (canonical, signed) = canonical_headers(url, headers);
        let credential = format!("{}/{}", self.keys.access_key_id, self.scope(&time));
        let seconds = seconds.to_string();
        let mut pairs = vec![
            ("X-Amz-Algorithm", "AWS4-HMAC-SHA256"),
            ("X-Amz-Credential", &credential),
            ("X-Amz-Date", &time),
            ("X-Amz-Expires", &seconds),
            ("X-Amz-SignedHeaders", &signed),
        ];
        if let Some(token) = &self.keys.session_token {
            pairs.push(("X-Amz-Security-Token", token));
        }
        let pairs = pairs
            .iter()
            .map(|(name, value)| format!("{name}={}", encode(value, false)));
        let query = url.query().filter(|query| !query.is_empty()).map(str::to_owned);
        let query: Vec<String> = query.into_iter().chain(pairs).collect();
        let mut url = url.clone();
        url.set_query(Some(&query.join("&")));
        let query = canonical_query(&url);
        let request = format!("GET\n{}\n{query}\n{canonical}\n{signed}\n{hash}", url.path());
        let signature = self.signature(&time, &time, &request);
        url.set_query(Some(&format!("{query}&X-Amz-Signature={signature}")));
        url
    }

    /// `20260101/eu-west-1/s3/aws4_request`
    fn scope(&self, time: &str) -> String {
        format!("{}/{}/{}/aws4_request", &time[..8], self.region, self.service)
    }

    /// The signature of a canonical request, in hex. `time` begins with the date; `stamp` is what the text that is
    /// signed has for a time, which CodeCommit wants written differently.
    pub(crate) fn signature(&self, time: &str, stamp: &str, request: &str) -> String {
        let text = format!(
            "AWS4-HMAC-SHA256\n{stamp}\n{}\n{}",
            self.scope(time),
            sha256_hex(request.as_bytes())
        );
        let mut key = format!("AWS4{}", self.keys.secret_access_key).into_bytes();
        for part in [&time[..8], &self.region, self.service, "aws4_request"] {
            key = mac(&key, part.as_bytes());
        }
        hex::encode(mac(&key, text.as_bytes()))
    }
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, text).as_ref().to_vec()
}

/// The SHA-256 of these bytes, in hex.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(digest(&SHA256, bytes))
}

/// All headers that are there, and the host; and the list of their names.
fn canonical_headers(url: &Url, headers: &HeaderMap) -> (String, String) {
    let host = &url[Position::BeforeHost..Position::AfterPort];
    let mut lines = vec![("host".to_owned(), host.to_owned())];
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        lines.push((name.as_str().to_owned(), value.trim().to_owned()));
    }
    lines.sort();
    let names: Vec<&str> = lines.iter().map(|(name, _)| name.as_str()).collect();
    let signed = names.join(";");
    let canonical = lines.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name}:{value}"); // writing to a String cannot fail
        text
    });
    (canonical, signed)
}

fn canonical_query(url: &Url) -> String {
    let mut pairs: Vec<&str> = url
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
        .collect();
    pairs.sort_by_key(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let whole = pairs.iter().map(|pair| {
        if pair.contains('=') {
            (*pair).to_owned()
        } else {
            format!("{pair}=")
        }
    });
    whole.collect::<Vec<_>>().join("&")
}

/// Percent-encodes all but unreserved characters and, if wanted, slashes.
#[must_use]
pub fn encode(text: &str, keep_slashes: bool) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            b'/' if keep_slashes => encoded.push('/'),
            byte => {
                let _ = write!(encoded, "%{byte:02X}"); // writing to a String cannot fail
            }
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys of the examples in Amazon's documentation.
    fn published() -> Signer {
        Signer {
            keys: Keys {
                access_key_id: "AKIAIOSFODNN7EXAMPLE".to_owned(),
                secret_access_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned(),
                session_token: None,
            },
            region: "us-east-1".to_owned(),
            service: "s3",
        }
    }

    /// The examples of Amazon's documentation of S3's signatures: header-based, keys as published there.
    #[test]
    fn signatures_are_those_of_the_documentation() {
        let signer = published();
        let now = "2013-05-24T00:00:00Z".parse().unwrap();
        let cases = [
            (
                "https://examplebucket.s3.amazonaws.com/?lifecycle",
                "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
            ),
            (
                "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J",
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
        ];
        for (url, signature) in cases {
            let mut headers = HeaderMap::new();
            let url = Url::parse(url).unwrap();
            signer.sign(&Method::GET, &url, &mut headers, b"", now).unwrap();
            let value = headers[AUTHORIZATION].to_str().unwrap();
            assert_eq!(
                value.rsplit_once("Signature=").unwrap().1,
                signature,
                "{url} {value}"
            );
        }
    }

    /// The example of Amazon's documentation of signatures in queries.
    #[test]
    fn a_presigned_url_is_that_of_the_documentation() {
        let signer = published();
        let url = Url::parse("https://examplebucket.s3.amazonaws.com/test.txt").unwrap();
        let now = "2013-05-24T00:00:00Z".parse().unwrap();
        let signed = signer.presign(&url, &HeaderMap::new(), "UNSIGNED-PAYLOAD", 86400, now);
        assert_eq!(
            signed.as_str(),
            "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=\
             AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&\
             X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
        );
    }

    #[test]
    fn the_session_token_is_signed_too() {
        let signer = Signer {
            keys: Keys {
                access_key_id: "id".to_owned(),
                secret_access_key: "secret".to_owned(),
                session_token: Some("token".to_owned()),
            },
            region: "eu-west-1".to_owned(),
            service: "s3",
        };
        let mut headers = HeaderMap::new();
        let url = Url::parse("http://h:9000/b/a%20b").unwrap();
        signer
            .sign(&Method::GET, &url, &mut headers, b"", Timestamp::UNIX_EPOCH)
            .unwrap();
        let value = headers[AUTHORIZATION].to_str().unwrap();
        assert!(
            value.contains("SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,"),
            "{value}"
        );
        assert!(!format!("{headers:?}{signer:?}").contains("secret\""));
    }

    #[test]
    fn only_unreserved_characters_stand_for_themselves() {
        assert_eq!(encode("a-._~/ +ä%", true), "a-._~/%20%2B%C3%A4%25");
        assert_eq!(encode("a/b", false), "a%2Fb");
    }
}
