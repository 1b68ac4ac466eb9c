//! Google Cloud Storage: its JSON API. The endpoint is Google's whatever the object says, as in Flux: the token that goes
//! there opens what the controller may see.

use cloud_identity::aws::encode;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use transport::http;
use url::Url;

use crate::answer::{MAX_PAGE_BYTES, Object, Opened, PAGE, Page, Problem, checked, get};

/// Where the store is, unless `STORAGE_EMULATOR_HOST` says otherwise.
const ENDPOINT: &str = "https://storage.googleapis.com";

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

    pub(super) async fn list(&self, token: Option<&str>, deadline: Instant) -> Result<Page, Problem> {
        let mut query = format!(
            "?fields=nextPageToken%2Citems(name%2Cetag)&maxResults={PAGE}&prefix={}",
            encode(&self.prefix, false)
        );
        if let Some(token) = token {
            query.push_str("&pageToken=");
            query.push_str(&encode(token, false));
        }
        let listing: Listing = self.json(&query, deadline).await?;
        let object = |item: Item| Object {
            key: item.name,
            etag: item.etag,
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
        let path = format!("/storage/v1/b/{}/o{rest}", encode(&self.bucket, false));
        let url = self.endpoint.join(&path).map_err(|_| Problem::Url)?;
        let mut headers = HeaderMap::new();
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        Ok(get(&self.client, &url, headers, deadline).await?)
    }
}
