//! TLS to a NATS server: with the certificates of the Provider, or else those of the system.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::error::Error;
use crate::target::Tls;

/// Speaks TLS from here on.
pub(super) async fn secured(
    stream: TcpStream,
    host: &str,
    tls: Option<&Tls>,
) -> Result<TlsStream<TcpStream>, Error> {
    let connector = TlsConnector::from(Arc::new(config(tls)?));
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| Error::invalid("the name of the server is no name for TLS"))?;
    let secured = connector.connect(name, stream).await;
    secured.map_err(|error| Error::passing(format!("error connecting to server: TLS: {error}")))
}

fn config(tls: Option<&Tls>) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let problem = |error: rustls::Error| Error::invalid(format!("failed to get TLS config: {error}"));
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(problem)?;
    let builder = match tls.and_then(|tls| tls.ca.as_ref()) {
        Some(ca) => builder.with_root_certificates(roots(ca)?),
        None => builder.with_platform_verifier().map_err(problem)?,
    };
    match tls.and_then(|tls| tls.certificate.as_ref()) {
        None => Ok(builder.with_no_client_auth()),
        Some((certificate, key)) => {
            // What is wrong with a key must not quote it.
            let unusable =
                || Error::invalid("failed to get TLS config: the client certificate and its key are not PEM");
            let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
            let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| unusable())?;
            builder
                .with_client_auth_cert(certificates.map_err(|_| unusable())?, key)
                .map_err(|_| unusable())
        }
    }
}

fn roots(pem: &[u8]) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let added = certificate
            .ok()
            .and_then(|certificate| roots.add(certificate).ok());
        added.ok_or_else(no_authority)?;
    }
    if roots.is_empty() {
        return Err(no_authority());
    }
    Ok(roots)
}

fn no_authority() -> Error {
    Error::invalid("failed to get TLS config: the certificate authority holds no PEM certificate")
}
