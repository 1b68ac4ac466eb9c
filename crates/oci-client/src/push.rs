//! Writes to a repository: blobs that it does not have, and manifests under a tag.

use artifact::digest::Digest;
use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use url::Url;

use crate::registry::{Call, Error, Place, Repository, header};

impl Repository {
    /// Uploads a blob, unless the repository has it.
    pub async fn push_blob(&self, content: &Bytes) -> Result<(), Error> {
        let digest = Digest::from_content(content).to_string();
        let path = format!("blobs/{digest}");
        let known = self
            .write(Method::HEAD, Place::Path(&path), HeaderMap::new(), None)
            .await;
        match known {
            Ok(_) => return Ok(()),
            Err(error) if error.status().is_none() => return Err(error),
            // Some answer 404, some refuse to say.
            Err(_) => {}
        }
        let begun = self
            .write(
                Method::POST,
                Place::Path("blobs/uploads/"),
                HeaderMap::new(),
                None,
            )
            .await?;
        let place = header(begun.headers(), LOCATION.as_str());
        let place = place.ok_or_else(|| self.unparsable("the place to upload to"))?;
        // It may be relative, and may have parameters of its own.
        let mut place = begun
            .url()
            .join(&place)
            .map_err(|_| self.unparsable("the place to upload to"))?;
        if !may_upload(begun.url(), &place) {
            return Err(Error::UploadWithoutTls {
                registry: self.name.registry.clone(),
            });
        }
        place.query_pairs_mut().append_pair("digest", &digest);
        let headers = content_type("application/octet-stream");
        self.write(Method::PUT, Place::Url(place), headers, Some(content.clone()))
            .await?;
        Ok(())
    }

    /// Stores a manifest under a tag. The last step of a push: the manifest is valid only with all that it names.
    pub async fn push_manifest(
        &self,
        tag: &str,
        media_type: &'static str,
        manifest: &Bytes,
    ) -> Result<(), Error> {
        let path = format!("manifests/{tag}");
        let headers = content_type(media_type);
        let stored = self
            .write(Method::PUT, Place::Path(&path), headers, Some(manifest.clone()))
            .await?;
        let digest = Digest::from_content(manifest).to_string();
        match header(stored.headers(), "docker-content-digest") {
            Some(other) if other != digest => Err(Error::StoredOther {
                registry: self.name.registry.clone(),
                other: other.chars().take(100).collect(),
                digest,
            }),
            _ => Ok(()),
        }
    }

    async fn write(
        &self,
        method: Method,
        place: Place<'_>,
        headers: HeaderMap,
        body: Option<Bytes>,
    ) -> Result<reqwest::Response, Error> {
        self.call(&Call {
            method,
            place,
            headers,
            body,
            writes: true,
        })
        .await
    }
}

/// Returns whether content may be uploaded to this place: never in plain text for a registry that is reached over https.
fn may_upload(asked: &Url, place: &Url) -> bool {
    matches!(
        (asked.scheme(), place.scheme()),
        ("https", "https") | ("http", "http" | "https")
    )
}

fn content_type(media_type: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_uploaded_in_plain_text_for_a_registry_with_tls() {
        for (asked, place, allowed) in [
            ("https://r.io/v2/", "https://r.io/put", true),
            ("https://r.io/v2/", "https://elsewhere.io/put", true),
            ("https://r.io/v2/", "http://r.io/put", false),
            ("https://r.io/v2/", "http://elsewhere.io/put", false),
            ("https://r.io/v2/", "file:///etc/passwd", false),
            ("http://r.io/v2/", "http://r.io/put", true),
            ("http://r.io/v2/", "https://r.io/put", true),
            ("http://r.io/v2/", "ftp://r.io/put", false),
        ] {
            let [asked, place] = [asked, place].map(|url| Url::parse(url).unwrap());
            assert_eq!(may_upload(&asked, &place), allowed, "{asked} {place}");
        }
    }
}
