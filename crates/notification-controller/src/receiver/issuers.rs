//! The HTTP client with which issuers of tokens are asked for their keys.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use url::Url;
use webhook::KeySource;

/// A caller waits for it.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Documents of issuers have some kilobytes.
const MAX_BYTES: usize = 1 << 20;

/// Asks over HTTP.
pub struct Issuers(reqwest::Client);

impl Issuers {
    /// Sets the client up. Where a document is not, it is not looked for elsewhere: Receivers name issuers, and those
    /// must not lead the controller on.
    pub fn new() -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT)
            .pool_max_idle_per_host(1)
            .build()?;
        Ok(Self(client))
    }

    async fn fetch(&self, url: &Url) -> Result<Bytes, reqwest::Error> {
        let mut response = self.0.get(url.clone()).send().await?.error_for_status()?;
        let mut document = BytesMut::new();
        while let Some(chunk) = response.chunk().await? {
            document.extend_from_slice(&chunk);
            if document.len() > MAX_BYTES {
                break;
            }
        }
        Ok(document.freeze())
    }
}

impl KeySource for Issuers {
    async fn get(&self, url: &Url) -> Result<Bytes, String> {
        let document = self.fetch(url).await;
        document.map_err(|error| {
            format!(
                "failed to ask the issuer: {:#}",
                anyhow::Error::new(error.without_url())
            )
        })
    }
}
