//! TLS for a server: a certificate of an authority made for it, and a listener that speaks TLS.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::serve::Listener;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Puts TLS in front of a listener. Answers the authority's certificate, PEM, too.
pub(super) fn listener(inner: TcpListener) -> Result<(String, TlsListener)> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let authority_key = KeyPair::generate().context("failed to make the authority's key")?;
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_pem = authority
        .self_signed(&authority_key)
        .context("failed to sign the authority's certificate")?
        .pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().context("failed to make the server's key")?;
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let certificate = CertificateParams::new(names)
        .context("failed to describe the server's certificate")?
        .signed_by(&key, &issuer)
        .context("failed to sign the server's certificate")?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .context("failed to use the server's certificate")?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    Ok((authority_pem, TlsListener { inner, acceptor }))
}

/// A listener whose connections speak TLS; those that fail to are passed over.
pub(super) struct TlsListener {
    inner: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.inner).await;
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.inner.local_addr()
    }
}
