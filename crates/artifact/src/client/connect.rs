//! Connections to the artifact service: TLS against the authority that is trusted at that moment.
//!
//! tonic's own TLS is set up once and for all. Here each connection takes the authority as it is then, so that a rotated one
//! needs no restart; connections that are open stay.

use std::{io, sync::Arc, time::Duration};

use hyper_util::rt::TokioIo;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs, pki_types};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::transport::{Channel, Endpoint, Uri};

use super::Supply;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// More certificates than this are no bundle of one service.
const MAX_AUTHORITIES: usize = 100;

/// A channel to the endpoint that connects when it is first used; over TLS if the endpoint says `https`. The name in its certificate is
/// that of the endpoint unless another is given.
pub(super) fn channel(
    endpoint: &str,
    server_name: Option<&str>,
    authority: &Supply,
    keep_alive: Duration,
) -> Result<Channel, tonic::transport::Error> {
    let uri = Endpoint::from_shared(endpoint.to_owned())?.uri().clone();
    let host = uri.host().filter(|_| uri.scheme_str() == Some("https"));
    let Some(host) = host else {
        let endpoint = Endpoint::from_shared(endpoint.to_owned())?.connect_timeout(CONNECT_TIMEOUT);
        return Ok(kept_alive(endpoint, keep_alive).connect_lazy());
    };
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = uri.port_u16().unwrap_or(443);
    let authority = authority.clone();
    let server_name = server_name.unwrap_or(&host).to_owned();
    let connector = tower::service_fn(move |_: Uri| {
        let (host, server_name, authority) = (host.clone(), server_name.clone(), authority.clone());
        async move {
            let connecting = connect(&host, port, server_name, &authority);
            let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
            connected
                .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
                .map(TokioIo::new)
        }
    });
    // tonic refuses https without its own TLS: it gets http, and the requests say https.
    let plain = endpoint.replacen("https://", "http://", 1);
    let endpoint = Endpoint::from_shared(plain)?.origin(uri);
    Ok(kept_alive(endpoint, keep_alive).connect_with_connector_lazy(connector))
}

fn kept_alive(endpoint: Endpoint, interval: Duration) -> Endpoint {
    endpoint
        .http2_keep_alive_interval(interval)
        .keep_alive_timeout(interval)
}

async fn connect(
    host: &str,
    port: u16,
    server_name: String,
    authority: &Supply,
) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(server_name)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the host is no name for TLS"))?;
    let config = config(authority).await?;
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// Trusts the supplied authority and no one else: the public ones have no say in what runs in a cluster.
async fn config(authority: &Supply) -> io::Result<ClientConfig> {
    let unknown = |reason: String| {
        let message = format!("failed to read the authority of the artifact service: {reason}");
        io::Error::new(io::ErrorKind::InvalidData, message)
    };
    let bundle = authority
        .get()
        .await
        .map_err(|error| unknown(error.to_string()))?;
    let bundle = bundle.ok_or_else(|| unknown("none is given".to_owned()))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()).take(MAX_AUTHORITIES) {
        let certificate = certificate.map_err(|error: pki_types::pem::Error| unknown(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| unknown(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unknown("it has no certificate".to_owned()));
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| unknown(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}
