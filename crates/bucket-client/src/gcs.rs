//! Google Cloud Storage: its JSON API. The endpoint is Google's whatever the object says, as in Flux: the token that goes
//! there opens what the controller may see.

use cloud_identity::aws::encode;
use jiff::Timestamp;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use transport::http;
use url::Url;

use crate::answer::{MAX_PAGE_BYTES, Object, Opened, PAGE, Page, Problem, change, checked, get};
use crate::upload::Upload;

/// Where the store is, unless `STORAGE_EMULATOR_HOST` says otherwise.
pub const ENDPOINT: &str = "https://storage.googleapis.com";

/// A bucket.
pub struct Gcs {
    endpoint: Url,
    bucket: String,
    prefix: String,
    authorization: Option<HeaderValue>,
    client: reqwest::Client,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listing {
    #[serde(default)]
    items: Vec<Item>,
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    name: String,
    etag: String,
    updated: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Attributes {
    etag: String,
    generation: String,
}

/// Where the store is.
pub fn endpoint(emulator: Option<&str>) -> Result<Url, Problem> {
    let url = match emulator {
        Some(host) if !host.contains("://") => &format!("http://{host}"),
        Some(url) => url,
        None => ENDPOINT,
    };
    Url::parse(url).map_err(|_| Problem::Url)
}

impl Gcs {
    /// A bucket, with an access token unless an emulator has it.
    pub fn new(
        endpoint: Url,
        bucket: &str,
        prefix: Option<&str>,
        token: Option<&str>,
        client: reqwest::Client,
    ) -> Result<Self, Problem> {
        if bucket.is_empty() || bucket.bytes().all(|b| b == b'.') {
            return Err(Problem::Url);
        }
        let authorization = token.map(|token| {
            let mut value =
                HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| Problem::Unsendable)?;
            value.set_sensitive(true);
            Ok::<_, Problem>(value)
        });
        Ok(Self {
            endpoint,
            bucket: bucket.to_owned(),
            prefix: prefix.unwrap_or_default().to_owned(),
            authorization: authorization.transpose()?,
            client,
        })
    }

    /// Prefix of the objects that are listed.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) async fn put(&self, key: &str, upload: Upload, deadline: Instant) -> Result<(), Problem> {
        let bucket = encode(&self.bucket, false);
        let path = format!(
            "/upload/storage/v1/b/{bucket}/o?uploadType=media&name={}",
            encode(key, false)
        );
        let (url, headers) = (
            self.endpoint.join(&path).map_err(|_| Problem::Url)?,
            self.headers(),
        );
        change(&self.client, Method::POST, &url, headers, Some(upload), deadline).await
    }

    pub(super) async fn delete(&self, key: &str, deadline: Instant) -> Result<(), Problem> {
        let (url, headers) = (self.url(&format!("/{}", encode(key, false)))?, self.headers());
        change(&self.client, Method::DELETE, &url, headers, None, deadline).await
    }

    pub(super) async fn list(
        &self,
        prefix: &str,
        token: Option<&str>,
        deadline: Instant,
    ) -> Result<Page, Problem> {
        let mut query = format!(
            "?fields=nextPageToken%2Citems(name%2Cetag%2Cupdated)&maxResults={PAGE}&prefix={}",
            encode(prefix, false)
        );
        if let Some(token) = token {
            query.push_str("&pageToken=");
            query.push_str(&encode(token, false));
        }
        let listing: Listing = self.json(&query, deadline).await?;
        let object = |item: Item| Object {
            key: item.name,
            etag: item.etag,
            modified: item.updated,
        };
        Ok(Page {
            objects: listing.items.into_iter().map(object).collect(),
            next: listing.next_page_token.filter(|token| !token.is_empty()),
        })
    }

    /// The content says nothing of the etag, so attributes come first, and then the content of that generation.
    pub(super) async fn open(&self, key: &str, deadline: Instant) -> Result<Opened, Problem> {
        let object = format!("/{}", encode(key, false));
        let attributes: Attributes = self
            .json(&format!("{object}?fields=etag%2Cgeneration"), deadline)
            .await?;
        let query = format!(
            "{object}?alt=media&generation={}",
            encode(&attributes.generation, false)
        );
        let response = checked(self.get(&query, deadline).await?, deadline).await?;
        Ok(Opened {
            response,
            etag: attributes.etag,
        })
    }

    async fn json<T: DeserializeOwned>(&self, rest: &str, deadline: Instant) -> Result<T, Problem> {
        let response = checked(self.get(rest, deadline).await?, deadline).await?;
        let url = http::public(response.url());
        let body = http::read(response, MAX_PAGE_BYTES, deadline).await?;
        serde_json::from_slice(&body).map_err(|_| Problem::Listing { url })
    }

    async fn get(&self, rest: &str, deadline: Instant) -> Result<reqwest::Response, Problem> {
        let url = self.url(rest)?;
        Ok(get(&self.client, &url, self.headers(), deadline).await?)
    }

    fn url(&self, rest: &str) -> Result<Url, Problem> {
        let path = format!("/storage/v1/b/{}/o{rest}", encode(&self.bucket, false));
        self.endpoint.join(&path).map_err(|_| Problem::Url)
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        headers
    }
}
