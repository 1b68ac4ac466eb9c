//! The archive of a source's artifact. Its address is one of the cluster's inside: where that is a Service, the API server is
//! asked to pass it on.

use artifact::Digest;
use delivery_graph::object::{self, text};
use futures::AsyncReadExt as _;
use serde_json::Value;
use url::Url;

use crate::reader::{Reader, refusal};

/// The largest archive of a chart; Helm takes no more when it is unpacked.
const MAX: u64 = 100 << 20;

/// Fetches the archive that a source's status names, and checks it against its digest.
pub(crate) async fn fetch(reader: &Reader, source: &Value) -> Result<Vec<u8>, String> {
    let id = object::id(source);
    let address = text(source, "/status/artifact/url");
    if address.is_empty() {
        return Err(format!("{id} has no artifact"));
    }
    let url: Url = address
        .parse()
        .map_err(|error| format!("the artifact of {id}: {address:?}: {error}"))?;
    let data = match proxied(&url) {
        Some(path) => through_api_server(reader, &path).await,
        None => directly(url).await,
    };
    let data = data.map_err(|why| format!("the artifact of {id} cannot be had from {address}: {why}"))?;
    let wanted = text(source, "/status/artifact/digest");
    let found = Digest::from_content(&data).to_string();
    match found == wanted {
        true => Ok(data),
        false => Err(format!(
            "the artifact of {id} has the digest {found} and not {wanted}"
        )),
    }
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

async fn through_api_server(reader: &Reader, path: &str) -> Result<Vec<u8>, String> {
    let request = http::Request::get(path).body(Vec::new());
    let request = request.map_err(|error| error.to_string())?;
    let stream = reader.client().request_stream(request).await;
    let stream = stream.map_err(|error| refusal("reach the Service", &error))?;
    let mut data = Vec::new();
    let read = Box::pin(stream).take(MAX + 1).read_to_end(&mut data).await;
    read.map_err(|error| error.to_string())?;
    bounded(data)
}

async fn directly(url: Url) -> Result<Vec<u8>, String> {
    let said = |error: reqwest::Error| error_chain::chain(&error.without_url());
    let mut answer = reqwest::get(url)
        .await
        .and_then(reqwest::Response::error_for_status)
        .map_err(said)?;
    let mut data = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(said)? {
        data.extend_from_slice(&chunk);
        if data.len() as u64 > MAX {
            break;
        }
    }
    bounded(data)
}

fn bounded(data: Vec<u8>) -> Result<Vec<u8>, String> {
    match data.len() as u64 > MAX {
        true => Err(format!("it has more than {MAX} bytes")),
        false => Ok(data),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
