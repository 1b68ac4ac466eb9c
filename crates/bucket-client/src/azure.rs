//! Azure Blob Storage: List Blobs and Get Blob.

use cloud_identity::aws::encode;
use cloud_identity::azure::SharedKey;
use jiff::Timestamp;
use reqwest::Method;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;
use transport::http;
use url::Url;

use super::xml;
use crate::answer::{MAX_PAGE_BYTES, Object, Opened, PAGE, Page, Problem, change, checked, etag, get};
use crate::upload::Upload;

const VERSION: &str = "2021-12-02";
/// Where tokens of the controller may go: storage accounts of Microsoft's clouds. An endpoint is a tenant's choice.
const CLOUDS: [&str; 4] = [
    ".core.windows.net",
    ".core.chinacloudapi.cn",
    ".core.usgovcloudapi.net",
    ".storage.azure.net",
];

/// How requests show whose they are.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each bucket that is read"
)]
pub enum Credential {
    /// They do not.
    Anonymous,
    /// A shared access signature: parameters of the URL, separated by `&`.
    Signature(String),
    /// The key of the storage account.
    Key(SharedKey),
    /// An access token.
    Bearer(String),
}

/// A container.
pub struct Azure {
    endpoint: Url,
    container: String,
    prefix: String,
    credential: Credential,
    client: reqwest::Client,
}

/// Returns whether tokens of the controller, or of a ServiceAccount, may go to this endpoint.
pub fn is_of_microsoft(endpoint: &Url) -> bool {
    let host = endpoint.host_str().unwrap_or_default();
    endpoint.scheme() == "https" && CLOUDS.iter().any(|cloud| host.ends_with(cloud))
}

/// The storage account that an endpoint is of: the first part of its host.
pub fn account(endpoint: &Url) -> Option<&str> {
    let host = endpoint.domain()?;
    (host.split('.').count() > 2)
        .then(|| host.split('.').next())
        .flatten()
}

impl Azure {
    /// A container at an endpoint, whose query goes along with each request.
    pub fn new(
        endpoint: Url,
        container: &str,
        prefix: Option<&str>,
        credential: Credential,
        client: reqwest::Client,
    ) -> Result<Self, Problem> {
        if container.is_empty() || container.bytes().all(|b| b == b'.') {
            return Err(Problem::Url);
        }
        Ok(Self {
            endpoint,
            container: container.to_owned(),
            prefix: prefix.unwrap_or_default().to_owned(),
            credential,
            client,
        })
    }

    /// Prefix of the objects that are listed.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) async fn put(&self, key: &str, upload: Upload, deadline: Instant) -> Result<(), Problem> {
        let url = self
            .url(&format!("/{}", encode(key, true)), "")
            .ok_or(Problem::Url)?;
        let kind = (
            HeaderName::from_static("x-ms-blob-type"),
            HeaderValue::from_static("BlockBlob"),
        );
        let headers = self.signed(&Method::PUT, &url, Some(kind), upload.size())?;
        change(&self.client, Method::PUT, &url, headers, Some(upload), deadline).await
    }

    pub(super) async fn delete(&self, key: &str, deadline: Instant) -> Result<(), Problem> {
        let url = self
            .url(&format!("/{}", encode(key, true)), "")
            .ok_or(Problem::Url)?;
        let headers = self.signed(&Method::DELETE, &url, None, 0)?;
        change(&self.client, Method::DELETE, &url, headers, None, deadline).await
    }

    pub(super) async fn list(
        &self,
        prefix: &str,
        token: Option<&str>,
        deadline: Instant,
    ) -> Result<Page, Problem> {
        let mut query = format!("restype=container&comp=list&maxresults={PAGE}");
        for (name, value) in [("prefix", prefix), ("marker", token.unwrap_or_default())] {
            if !value.is_empty() {
                query.push_str(&format!("&{name}={}", encode(value, false)));
            }
        }
        let url = self.url("", &query).ok_or(Problem::Url)?;
        let response = checked(self.get(&url, deadline).await?, deadline).await?;
        let body = http::read(response, MAX_PAGE_BYTES, deadline).await?;
        page(&body).ok_or_else(|| Problem::Listing {
            url: http::public(&url),
        })
    }

    pub(super) async fn open(&self, key: &str, deadline: Instant) -> Result<Opened, Problem> {
        let url = self
            .url(&format!("/{}", encode(key, true)), "")
            .ok_or(Problem::Url)?;
        let response = checked(self.get(&url, deadline).await?, deadline).await?;
        let etag = etag(response.headers());
        Ok(Opened { response, etag })
    }

    fn url(&self, path: &str, query: &str) -> Option<Url> {
        let mut url = self.endpoint.clone();
        url.set_query(None);
        url.set_fragment(None);
        let base = url.as_str().trim_end_matches('/');
        let mut url = Url::parse(&format!("{base}/{}{path}", encode(&self.container, false))).ok()?;
        let all = [query.to_owned(), self.parameters()];
        let all: Vec<&str> = all
            .iter()
            .map(String::as_str)
            .filter(|part| !part.is_empty())
            .collect();
        if !all.is_empty() {
            url.set_query(Some(&all.join("&")));
        }
        Some(url)
    }

    /// Parameters of the endpoint and of the signature; those of the signature count.
    fn parameters(&self) -> String {
        let signature = match &self.credential {
            Credential::Signature(signature) => signature.trim_start_matches('?'),
            _ => "",
        };
        let mut pairs: Vec<(String, String)> = url::form_urlencoded::parse(signature.as_bytes())
            .into_owned()
            .collect();
        for (name, value) in self.endpoint.query_pairs().into_owned() {
            if !pairs.iter().any(|(other, _)| *other == name) {
                pairs.push((name, value));
            }
        }
        let encoded = pairs
            .iter()
            .map(|(name, value)| format!("{}={}", encode(name, false), encode(value, false)));
        encoded.collect::<Vec<_>>().join("&")
    }

    async fn get(&self, url: &Url, deadline: Instant) -> Result<reqwest::Response, Problem> {
        let headers = self.signed(&Method::GET, url, None, 0)?;
        Ok(get(&self.client, url, headers, deadline).await?)
    }

    /// The headers of a request with a body of this length.
    fn signed(
        &self,
        method: &Method,
        url: &Url,
        more: Option<(HeaderName, HeaderValue)>,
        length: u64,
    ) -> Result<HeaderMap, Problem> {
        let mut headers: HeaderMap = more.into_iter().collect();
        headers.insert(
            HeaderName::from_static("x-ms-version"),
            HeaderValue::from_static(VERSION),
        );
        let date = Timestamp::now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let date = HeaderValue::from_str(&date).map_err(|_| Problem::Unsendable)?;
        headers.insert(HeaderName::from_static("x-ms-date"), date);
        let authorization = match &self.credential {
            Credential::Anonymous | Credential::Signature(_) => None,
            Credential::Key(key) => Some(key.authorization(method, url, &headers, length)),
            Credential::Bearer(token) => Some(format!("Bearer {token}")),
        };
        if let Some(authorization) = authorization {
            let mut value = HeaderValue::from_str(&authorization).map_err(|_| Problem::Unsendable)?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }
}

/// Etags stand in a listing without the quotes that they have elsewhere. Flux's revisions have them with quotes.
fn page(body: &[u8]) -> Option<Page> {
    let document = xml::read(
        body,
        "Blob",
        &["Name", "Etag", "Last-Modified", "ResourceType", "NextMarker"],
    )?;
    document.fields.get("NextMarker")?;
    let is_file = |fields: &&xml::Fields| fields.get("ResourceType").is_none_or(|kind| kind != "directory");
    let object = |fields: &xml::Fields| {
        let etag = fields.get("Etag")?.trim_matches('"');
        Some(Object {
            key: fields.get("Name")?.clone(),
            etag: format!("\"{etag}\""),
            modified: fields.get("Last-Modified").and_then(|time| {
                let time = jiff::fmt::rfc2822::parse(time).ok()?;
                Some(time.timestamp())
            }),
        })
    };
    Some(Page {
        objects: document
            .records
            .iter()
            .filter(is_file)
            .map(object)
            .collect::<Option<_>>()?,
        next: document
            .fields
            .get("NextMarker")
            .filter(|marker| !marker.is_empty())
            .cloned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn container(endpoint: &str, credential: Credential) -> Azure {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        Azure::new(url(endpoint), "app", None, credential, reqwest::Client::new()).unwrap()
    }

    #[test]
    fn parameters_of_the_signature_come_before_those_of_the_endpoint() {
        let signature = Credential::Signature("?sv=1&sig=a%2Bb".to_owned());
        let azure = container("https://x.blob.core.windows.net/?sv=0&se=2", signature);
        assert_eq!(
            azure.url("/a%20b", "comp=list").unwrap().as_str(),
            "https://x.blob.core.windows.net/app/a%20b?comp=list&sv=1&sig=a%2Bb&se=2"
        );
        let azure = container("http://127.0.0.1:10000/account", Credential::Anonymous);
        assert_eq!(
            azure.url("/k", "").unwrap().as_str(),
            "http://127.0.0.1:10000/account/app/k"
        );
    }

    #[test]
    fn tokens_go_to_microsoft_only() {
        assert!(is_of_microsoft(&url("https://x.blob.core.windows.net")));
        for other in [
            "http://x.blob.core.windows.net",
            "https://blob.core.windows.net.evil.example.com",
            "https://evil.example.com",
        ] {
            assert!(!is_of_microsoft(&url(other)), "{other}");
        }
        assert_eq!(account(&url("https://x.blob.core.windows.net")), Some("x"));
        assert_eq!(account(&url("http://127.0.0.1:10000")), None);
        assert_eq!(account(&url("http://localhost:10000")), None);
    }

    #[test]
    fn pages_are_read() {
        let body = "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults><Blobs><Blob><Name>a&amp;b</Name>\
            <Properties><Last-Modified>Fri, 02 Jan 2026 03:04:05 GMT</Last-Modified><Etag>0x8D1</Etag></Properties></Blob><Blob><Name>folder</Name><Properties>\
            <ResourceType>directory</ResourceType><Etag>0x1</Etag></Properties></Blob></Blobs><NextMarker>m</NextMarker>\
            </EnumerationResults>";
        let object = Object {
            key: "a&b".to_owned(),
            etag: "\"0x8D1\"".to_owned(),
            modified: "2026-01-02T03:04:05Z".parse().ok(),
        };
        let expected = Page {
            objects: vec![object],
            next: Some("m".to_owned()),
        };
        assert_eq!(page(body.as_bytes()), Some(expected));
        assert_eq!(page(b"<html>login</html>"), None);
    }
}
