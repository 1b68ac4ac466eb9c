//! S3, Amazon's and everybody else's: ListObjectsV2 and GetObject.
//!
//! As Flux's client does it: the bucket is a part of the host name where the store is known to want that, and of the
//! path elsewhere. A region that no one gave is learned from the first refusal.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cloud_identity::aws::{Keys, Signer, encode, sha256_hex};
use jiff::Timestamp;
use reqwest::header::HeaderMap;
use reqwest::{Method, Response};
use tokio::time::Instant;
use transport::http;
use url::Url;

use super::index::decoded;
use super::xml;
use crate::answer::{MAX_PAGE_BYTES, Object, Opened, PAGE, Page, Problem, change, checked, etag, get};
use crate::upload::Upload;

const DEFAULT_REGION: &str = "us-east-1";
const AMAZON: &str = "s3.amazonaws.com";
const REGION_HEADER: &str = "x-amz-bucket-region";

/// A bucket.
pub struct S3 {
    scheme: &'static str,
    /// Host and port, without the bucket.
    endpoint: String,
    bucket: String,
    prefix: String,
    /// As far as it is known.
    region: Mutex<String>,
    keys: Option<Keys>,
    client: reqwest::Client,
}

/// An endpoint or a bucket that cannot be.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// Only a host, and perhaps a port, is one.
    #[error(
        "Endpoint: {0} does not follow ip address or domain name standards: give host and port without a scheme or path"
    )]
    Endpoint(String),
    /// A region becomes a part of host names.
    #[error("Region: {0} is not the name of a region")]
    Region(String),
    /// Its name has characters that no bucket has.
    #[error("Bucket name contains invalid characters")]
    BucketName,
}

/// Which bucket, and how to get there.
pub struct Address<'a> {
    /// Host and port.
    pub endpoint: &'a str,
    /// True to speak plain http.
    pub insecure: bool,
    /// Name of the bucket.
    pub bucket: &'a str,
    /// Only objects whose names begin so.
    pub prefix: Option<&'a str>,
    /// Region of the bucket; `us-east-1` without one.
    pub region: Option<&'a str>,
}

impl Address<'_> {
    /// The host, if the endpoint is one.
    pub fn host(&self) -> Result<String, Error> {
        let refuse = || Error::Endpoint(self.endpoint.to_owned());
        if self.endpoint.contains(['/', '?', '#', '@', '\\']) {
            return Err(refuse());
        }
        let url = Url::parse(&format!("https://{}", self.endpoint)).map_err(|_| refuse())?;
        url.host_str().map(str::to_owned).ok_or_else(refuse)
    }
}

impl S3 {
    /// A bucket, with keys unless everybody may read it.
    pub fn new(address: &Address<'_>, keys: Option<Keys>, client: reqwest::Client) -> Result<Self, Error> {
        let host = address.host()?;
        let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':');
        let bucket = address.bucket;
        if !bucket.bytes().all(is_name) || bucket.bytes().all(|b| b == b'.') {
            return Err(Error::BucketName);
        }
        let given = address.region.filter(|region| !region.is_empty());
        if let Some(region) = given.filter(|region| !is_region(region)) {
            return Err(Error::Region(region.to_owned()));
        }
        let region = given
            .map(str::to_owned)
            .or_else(|| region_of_host(&host))
            .unwrap_or_else(|| DEFAULT_REGION.to_owned());
        Ok(Self {
            scheme: if address.insecure { "http" } else { "https" },
            endpoint: address.endpoint.to_owned(),
            bucket: bucket.to_owned(),
            prefix: address.prefix.unwrap_or_default().to_owned(),
            region: Mutex::new(region),
            keys,
            client,
        })
    }

    pub(super) async fn list(
        &self,
        prefix: &str,
        token: Option<&str>,
        deadline: Instant,
    ) -> Result<Page, Problem> {
        let mut query = format!(
            "?encoding-type=url&list-type=2&max-keys={PAGE}&prefix={}",
            encode(prefix, false)
        );
        if let Some(token) = token {
            query.push_str("&continuation-token=");
            query.push_str(&encode(token, false));
        }
        let response = self.get_in_its_region(&query, deadline).await?;
        let url = http::public(response.url());
        let body = http::read(response, MAX_PAGE_BYTES, deadline).await?;
        page(&body).ok_or(Problem::Listing { url })
    }

    pub(super) async fn open(&self, key: &str, deadline: Instant) -> Result<Opened, Problem> {
        let response = checked(self.get(&encode(key, true), deadline).await?, deadline).await?;
        let etag = unquoted(&etag(response.headers()));
        Ok(Opened { response, etag })
    }

    /// The first request tells in which region the bucket is, if it is not where we thought.
    async fn get_in_its_region(&self, query: &str, deadline: Instant) -> Result<Response, Problem> {
        let response = self.get(query, deadline).await?;
        let region = response
            .headers()
            .get(REGION_HEADER)
            .and_then(|region| region.to_str().ok())
            .filter(|region| is_region(region) && **region != *self.region());
        match region {
            Some(region) if !response.status().is_success() => {
                *self.region() = region.to_owned();
                checked(self.get(query, deadline).await?, deadline).await
            }
            _ => checked(response, deadline).await,
        }
    }

    pub(super) async fn put(&self, key: &str, upload: Upload, deadline: Instant) -> Result<(), Problem> {
        let url = self.url(&encode(key, true)).ok_or(Problem::Url)?;
        let headers = self.signed(&Method::PUT, &url, &upload.hash())?;
        change(&self.client, Method::PUT, &url, headers, Some(upload), deadline).await
    }

    pub(super) async fn delete(&self, key: &str, deadline: Instant) -> Result<(), Problem> {
        let url = self.url(&encode(key, true)).ok_or(Problem::Url)?;
        let headers = self.signed(&Method::DELETE, &url, &sha256_hex(b""))?;
        change(&self.client, Method::DELETE, &url, headers, None, deadline).await
    }

    async fn get(&self, rest: &str, deadline: Instant) -> Result<Response, Problem> {
        let url = self.url(rest).ok_or(Problem::Url)?;
        let headers = self.signed(&Method::GET, &url, &sha256_hex(b""))?;
        Ok(get(&self.client, &url, headers, deadline).await?)
    }

    /// The headers of a request whose body has this hash.
    fn signed(&self, method: &Method, url: &Url, hash: &str) -> Result<HeaderMap, Problem> {
        let mut headers = HeaderMap::new();
        if let Some(keys) = &self.keys {
            let signer = Signer {
                keys: keys.clone(),
                region: self.region().clone(),
                service: "s3",
            };
            let signed = signer.sign_hashed(method, url, &mut headers, hash, Timestamp::now());
            signed.map_err(|_| Problem::Unsendable)?;
        }
        Ok(headers)
    }

    fn url(&self, rest: &str) -> Option<Url> {
        let (scheme, bucket) = (self.scheme, &self.bucket);
        let regional;
        let region = self.region();
        let endpoint = if self.endpoint == AMAZON && *region != DEFAULT_REGION {
            regional = format!("s3.dualstack.{region}.amazonaws.com");
            &regional
        } else {
            &self.endpoint
        };
        let url = if self.is_host_of_its_own() {
            format!("{scheme}://{bucket}.{endpoint}/{rest}")
        } else {
            format!("{scheme}://{endpoint}/{bucket}/{rest}")
        };
        Url::parse(&url).ok()
    }

    /// A panic of another holder leaves the old one or the new one.
    fn region(&self) -> MutexGuard<'_, String> {
        self.region.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prefix of the objects that are listed.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns whether the store wants the bucket in the host name. A certificate is not for names with more dots.
    fn is_host_of_its_own(&self) -> bool {
        let host = self.endpoint.split(':').next().unwrap_or_default();
        let can_be = self
            .bucket
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'));
        can_be
            && !(self.scheme == "https" && self.bucket.contains('.'))
            && (is_amazon(host) || host == "storage.googleapis.com" || host.ends_with(".aliyuncs.com"))
    }
}

fn is_amazon(host: &str) -> bool {
    (host.starts_with("s3.") || host.starts_with("s3-") || host.contains(".s3."))
        && (host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn"))
}

fn is_region(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// `s3.eu-west-1.amazonaws.com`, `s3-eu-west-1.amazonaws.com`, `s3.dualstack.eu-west-1.amazonaws.com`
fn region_of_host(host: &str) -> Option<String> {
    if !is_amazon(host) {
        return None;
    }
    let inner = host
        .strip_suffix(".cn")
        .unwrap_or(host)
        .strip_suffix(".amazonaws.com")?;
    let region = inner
        .strip_prefix("s3-")
        .unwrap_or_else(|| inner.rsplit('.').next().unwrap_or_default());
    (is_region(region) && region.contains('-')).then(|| region.to_owned())
}

fn page(body: &[u8]) -> Option<Page> {
    const NAMES: [&str; 7] = [
        "Key",
        "ETag",
        "LastModified",
        "IsTruncated",
        "NextContinuationToken",
        "EncodingType",
        "Name",
    ];
    let document = xml::read(body, "Contents", &NAMES)?;
    let is_encoded = document
        .fields
        .get("EncodingType")
        .is_some_and(|encoding| encoding == "url");
    document.fields.get("IsTruncated")?;
    let object = |fields: &xml::Fields| {
        let key = fields.get("Key")?;
        Some(Object {
            key: if is_encoded {
                decoded(&key.replace('+', " "))
            } else {
                key.clone()
            },
            etag: unquoted(fields.get("ETag").map(String::as_str).unwrap_or_default()),
            modified: fields.get("LastModified").and_then(|time| time.parse().ok()),
        })
    };
    let is_truncated = document
        .fields
        .get("IsTruncated")
        .is_some_and(|value| value == "true");
    Some(Page {
        objects: document.records.iter().map(object).collect::<Option<_>>()?,
        next: document
            .fields
            .get("NextContinuationToken")
            .filter(|_| is_truncated)
            .cloned(),
    })
}

fn unquoted(etag: &str) -> String {
    let etag = etag.strip_prefix('"').unwrap_or(etag);
    etag.strip_suffix('"').unwrap_or(etag).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(endpoint: &str, bucket: &str, insecure: bool, region: Option<&str>) -> Result<S3, Error> {
        // A client is made with whatever provider of TLS the process has; tests have none by themselves.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let address = Address {
            endpoint,
            insecure,
            bucket,
            prefix: None,
            region,
        };
        S3::new(&address, None, reqwest::Client::new())
    }

    #[test]
    fn the_bucket_is_in_the_host_name_only_where_that_is_known() {
        let cases = [
            ("minio:9000", "app", true, None, "http://minio:9000/app/k"),
            (
                "minio.example.com",
                "app",
                false,
                None,
                "https://minio.example.com/app/k",
            ),
            (
                "s3.amazonaws.com",
                "app",
                false,
                None,
                "https://app.s3.amazonaws.com/k",
            ),
            (
                "s3.amazonaws.com",
                "app",
                false,
                Some("eu-west-1"),
                "https://app.s3.dualstack.eu-west-1.amazonaws.com/k",
            ),
            (
                "s3.amazonaws.com",
                "my.app",
                false,
                None,
                "https://s3.amazonaws.com/my.app/k",
            ),
            (
                "storage.googleapis.com",
                "app",
                false,
                None,
                "https://app.storage.googleapis.com/k",
            ),
            (
                "oss-cn-x.aliyuncs.com",
                "app",
                false,
                None,
                "https://app.oss-cn-x.aliyuncs.com/k",
            ),
        ];
        for (endpoint, name, insecure, region, url) in cases {
            let bucket = bucket(endpoint, name, insecure, region).unwrap();
            assert_eq!(bucket.url("k").unwrap().as_str(), url);
        }
    }

    #[test]
    fn a_region_is_no_place_for_another_host() {
        for region in ["evil.example/", "a.b", "x#", "eu west"] {
            let refused = bucket("s3.amazonaws.com", "app", false, Some(region)).map(drop);
            assert_eq!(refused, Err(Error::Region(region.to_owned())));
        }
        assert!(bucket("s3.amazonaws.com", "app", false, Some("")).is_ok());
    }

    #[test]
    fn regions_are_read_out_of_amazons_names() {
        let cases = [
            ("s3.amazonaws.com", "us-east-1"),
            ("s3.eu-west-1.amazonaws.com", "eu-west-1"),
            ("s3-eu-west-1.amazonaws.com", "eu-west-1"),
            ("s3.dualstack.eu-west-1.amazonaws.com", "eu-west-1"),
            ("s3.cn-north-1.amazonaws.com.cn", "cn-north-1"),
            ("minio.example.com", "us-east-1"),
        ];
        for (host, region) in cases {
            assert_eq!(
                *bucket(host, "app", false, None).unwrap().region(),
                region,
                "{host}"
            );
        }
    }

    #[test]
    fn an_endpoint_is_a_host_and_a_bucket_a_name() {
        for endpoint in [
            "http://minio:9000",
            "minio/x",
            "user@minio",
            "",
            "a b",
            "minio:port",
        ] {
            let error = bucket(endpoint, "app", false, None).err();
            assert_eq!(error, Some(Error::Endpoint(endpoint.to_owned())));
        }
        for name in ["a/b", "..", "a?b", "ä"] {
            assert_eq!(
                bucket("minio", name, false, None).err(),
                Some(Error::BucketName),
                "{name}"
            );
        }
    }

    #[test]
    fn pages_are_read() {
        let body = br#"<ListBucketResult><Name>app</Name><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>
            <Contents><Key>a+b/%C3%A4</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified><ETag>&quot;1-2&quot;</ETag></Contents>
            <NextContinuationToken>t&amp;1</NextContinuationToken></ListBucketResult>"#;
        let object = Object {
            key: "a b/ä".to_owned(),
            etag: "1-2".to_owned(),
            modified: "2026-01-02T03:04:05Z".parse().ok(),
        };
        let expected = Page {
            objects: vec![object],
            next: Some("t&1".to_owned()),
        };
        assert_eq!(page(body), Some(expected));
        assert_eq!(page(b"<html>login</html>"), None);
    }
}
