//! The archive of a source's artifact. Its address is one of the cluster's inside: where that is a Service, the API server is
//! asked to pass it on.

use std::time::Duration;

use artifact::digest::Hasher;
use bytes::Bytes;
use delivery_graph::object::{self, text};
use futures::stream::{self, BoxStream};
use futures::{AsyncReadExt as _, StreamExt as _, TryStreamExt as _};
use kube::Client;
use manifest::ObjectId;
use serde_json::Value;
use url::Url;

use crate::reader::{Reader, refusal};

/// How long a server may be silent.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes that are read at a time from a Service.
const PIECE: usize = 64 << 10;

/// Where archives are had from.
#[derive(Debug, Clone, Default)]
pub enum Archives {
    /// From the address that a status names, as whoever reads objects: through the API server where it is that of a Service.
    #[default]
    AsTheReader,
    /// The same, but from Services alone, and only from the place that is the source's own: whoever may write a status must not lead
    /// the reader elsewhere.
    Services,
    /// From this server alone, whatever server a status names, and only from the place that is the source's own.
    Server(Url),
}

/// An archive as it arrives, in pieces. Its last piece comes only if the whole has the digest that the source's status names.
pub struct Archive {
    source: ObjectId,
    pieces: BoxStream<'static, Result<Bytes, String>>,
    digest: String,
    hasher: Hasher,
    last: Option<Bytes>,
}

impl Archives {
    /// From one server alone: this one, or source-controller's Service in a namespace.
    ///
    /// # Errors
    /// When the namespace makes no URL.
    pub fn from_server(server: Option<&Url>, namespace: &str) -> Result<Self, url::ParseError> {
        let beside = || format!("http://source-controller.{namespace}.svc.cluster.local.").parse();
        Ok(Self::Server(server.cloned().map_or_else(beside, Ok)?))
    }

    /// Begins to fetch the archive that a source's status names.
    ///
    /// # Errors
    /// When there is none, it is not in a place where it may be, or its server does not give it.
    pub async fn open(&self, client: Client, source: &Value) -> Result<Archive, String> {
        let id = object::id(source);
        let address = text(source, "/status/artifact/url");
        if address.is_empty() {
            return Err(format!("{id} has no artifact"));
        }
        let url: Url = address
            .parse()
            .map_err(|error| format!("the artifact of {id}: {address:?}: {error}"))?;
        let pieces = match (self, proxied(&url)) {
            (Self::Server(_) | Self::Services, _) if !is_own_place(&id, &url) => {
                Err("it is not in the place that is its own".to_owned())
            }
            (Self::Server(server), _) => from_server(server, &url).await,
            (Self::Services, None) => Err("it is at no Service".to_owned()),
            (Self::AsTheReader | Self::Services, Some(path)) => through_api_server(client, &path).await,
            (Self::AsTheReader, None) => directly(reqwest::Client::new(), url).await,
        };
        let pieces =
            pieces.map_err(|why| format!("the artifact of {id} cannot be had from {address}: {why}"))?;
        Ok(Archive {
            source: id,
            pieces,
            digest: text(source, "/status/artifact/digest").to_owned(),
            hasher: Hasher::new(),
            last: None,
        })
    }

    /// Fetches it whole.
    pub(crate) async fn fetch(&self, reader: &Reader, source: &Value, max: u64) -> Result<Vec<u8>, String> {
        let mut archive = self.open(reader.client(), source).await?;
        let mut data = Vec::new();
        while let Some(piece) = archive.next().await? {
            data.extend_from_slice(&piece);
            if data.len() as u64 > max {
                return Err(archive.failed(&format!("it has more than {max} bytes")));
            }
        }
        Ok(data)
    }
}

impl Archive {
    /// The next piece; None at the end.
    ///
    /// # Errors
    /// When it is cut short, or has another digest.
    pub async fn next(&mut self) -> Result<Option<Bytes>, String> {
        while let Some(piece) = self.pieces.next().await {
            let piece = piece.map_err(|why| self.failed(&why))?;
            self.hasher.update(&piece);
            if let Some(before) = self.last.replace(piece) {
                return Ok(Some(before));
            }
        }
        let found = self.hasher.clone().finish().to_string();
        match found == self.digest {
            true => Ok(self.last.take()),
            false => Err(format!(
                "the artifact of {} has the digest {found} and not {}",
                self.source, self.digest
            )),
        }
    }

    fn failed(&self, why: &str) -> String {
        format!("the artifact of {} cannot be had: {why}", self.source)
    }
}

/// Whoever may write a status must not be given what another object has: the path begins with the object's own place.
fn is_own_place(id: &ObjectId, url: &Url) -> bool {
    let own = format!("/{}/{}/{}/", id.kind.to_lowercase(), id.namespace, id.name);
    url.path().starts_with(&own)
}

type Pieces = BoxStream<'static, Result<Bytes, String>>;

async fn from_server(server: &Url, url: &Url) -> Result<Pieces, String> {
    let mut place = server.clone();
    place.set_path(url.path());
    let http = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(PATIENCE)
        .read_timeout(PATIENCE)
        .build();
    directly(http.map_err(|error| error.to_string())?, place).await
}

/// The path at the API server that leads to a Service; None if the address is of none.
fn proxied(url: &Url) -> Option<String> {
    let host = url.host_str()?.trim_end_matches('.');
    let host = host.strip_suffix(".cluster.local").unwrap_or(host);
    let (service, namespace) = host.strip_suffix(".svc")?.split_once('.')?;
    let port = url.port_or_known_default()?;
    let scheme = url.scheme();
    Some(format!(
        "/api/v1/namespaces/{namespace}/services/{scheme}:{service}:{port}/proxy{}",
        url.path()
    ))
}

async fn through_api_server(client: Client, path: &str) -> Result<Pieces, String> {
    let request = http::Request::get(path).body(Vec::new());
    let request = request.map_err(|error| error.to_string())?;
    let answer = client.request_stream(request).await;
    let answer = Box::pin(answer.map_err(|error| refusal("reach the Service", &error))?);
    let pieces = stream::try_unfold(answer, async |mut answer| {
        let mut piece = vec![0; PIECE];
        let read = answer.read(&mut piece).await.map_err(|error| error.to_string())?;
        piece.truncate(read);
        Ok((read > 0).then(|| (Bytes::from(piece), answer)))
    });
    Ok(pieces.boxed())
}

async fn directly(http: reqwest::Client, url: Url) -> Result<Pieces, String> {
    let said = |error: reqwest::Error| error_chain::chain(&error.without_url());
    let answer = http.get(url).send().await;
    let answer = answer
        .and_then(reqwest::Response::error_for_status)
        .map_err(said)?;
    Ok(answer.bytes_stream().map_err(said).boxed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_does_not_lead_to_what_others_have() {
        let id = ObjectId {
            group: "source.toolkit.fluxcd.io".to_owned(),
            kind: "GitRepository".to_owned(),
            namespace: "shop".to_owned(),
            name: "repo".to_owned(),
        };
        for (path, is_own) in [
            ("gitrepository/shop/repo/a.tar.gz", true),
            ("gitrepository/bank/repo/a.tar.gz", false),
            ("gitrepository/shop/repo/../../bank/repo/a.tar.gz", false),
            ("gitrepository/shop/repo/%2e%2e/%2E./bank/repo/a.tar.gz", false),
            ("gitrepository/shop/repo2/a.tar.gz", false),
            ("?/gitrepository/shop/repo/a.tar.gz", false),
        ] {
            let url = format!("http://source-controller.flux-system.svc/{path}")
                .parse()
                .unwrap();
            assert_eq!(is_own_place(&id, &url), is_own, "{path}");
        }
    }

    #[test]
    fn services_are_reached_through_the_api_server() {
        let path = |url: &str| proxied(&url.parse().unwrap());
        let chart = "/helmchart/shop/web/web-1.0.0.tgz";
        for host in [
            "source-controller.flux-system.svc",
            "source-controller.flux-system.svc.cluster.local.",
        ] {
            assert_eq!(
                path(&format!("http://{host}{chart}")).unwrap(),
                format!("/api/v1/namespaces/flux-system/services/http:source-controller:80/proxy{chart}")
            );
        }
        assert_eq!(path("http://127.0.0.1:9090/a.tgz"), None);
        assert_eq!(path("https://example.com/a.tgz"), None);
    }
}
