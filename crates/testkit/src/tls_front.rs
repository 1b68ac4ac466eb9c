//! TLS in front of any server on loopback: an own authority, and client certificates if they are wanted.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

/// Ends TLS for 127.0.0.1 and localhost and hands the bytes on; gone when dropped.
#[derive(Debug)]
pub struct TlsFront {
    address: SocketAddr,
    authority: String,
    client: Pair,
    task: JoinHandle<()>,
}

/// A certificate and its key, both PEM.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

/// Flaw of the server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// It was valid once.
    Expired,
    /// It will be valid.
    NotYetValid,
    /// It is for a server of another name, `elsewhere.example`.
    OtherName,
}

impl TlsFront {
    /// Starts before the server at `behind`. With `wants_client` only clients with [`TlsFront::client`] get through.
    pub async fn start(behind: SocketAddr, wants_client: bool) -> Result<Self> {
        Self::start_with(behind, wants_client, None).await
    }

    /// Starts before the server at `behind` with a certificate that no one should trust.
    pub async fn start_flawed(behind: SocketAddr, flaw: Flaw) -> Result<Self> {
        Self::start_with(behind, false, Some(flaw)).await
    }

    async fn start_with(behind: SocketAddr, wants_client: bool, flaw: Option<Flaw>) -> Result<Self> {
        let authority = Authority::new()?;
        let (server, client) = (authority.sign("server", flaw)?, authority.sign("client", None)?);
        let acceptor = TlsAcceptor::from(Arc::new(settings(&authority, &server, wants_client)?));
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("failed to listen for TLS")?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                // Failed handshakes are what tests are about: the client tells of them.
                tokio::spawn(async move {
                    let mut near = acceptor.accept(stream).await?;
                    let mut far = TcpStream::connect(behind).await?;
                    tokio::io::copy_bidirectional(&mut near, &mut far).await
                });
            }
        });
        Ok(Self {
            address,
            authority: authority.pem,
            client,
            task,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The authority that signed the server's certificate, PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// A client certificate that it accepts.
    pub fn client(&self) -> &Pair {
        &self.client
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Result<Self> {
        let key = KeyPair::generate().context("failed to make the authority's key")?;
        let mut parameters = CertificateParams::default();
        parameters
            .distinguished_name
            .push(DnType::CommonName, "windlass-testkit");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let pem = parameters
            .self_signed(&key)
            .context("failed to sign the authority")?
            .pem();
        Ok(Self {
            pem,
            issuer: Issuer::new(parameters, key),
        })
    }

    fn sign(&self, name: &str, flaw: Option<Flaw>) -> Result<Pair> {
        let key = KeyPair::generate().context("failed to make a key")?;
        let names = match flaw {
            Some(Flaw::OtherName) => vec!["elsewhere.example".to_owned()],
            _ => vec!["localhost".to_owned(), "127.0.0.1".to_owned()],
        };
        let mut parameters = CertificateParams::new(names).context("failed to describe a certificate")?;
        match flaw {
            Some(Flaw::Expired) => parameters.not_after = rcgen::date_time_ymd(2020, 1, 1),
            Some(Flaw::NotYetValid) => parameters.not_before = rcgen::date_time_ymd(2120, 1, 1),
            Some(Flaw::OtherName) | None => {}
        }
        parameters.distinguished_name.push(DnType::CommonName, name);
        let certificate = parameters
            .signed_by(&key, &self.issuer)
            .context("failed to sign")?;
        Ok(Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

fn settings(authority: &Authority, server: &Pair, wants_client: bool) -> Result<ServerConfig> {
    let certificate = CertificateDer::from_pem_slice(server.certificate.as_bytes())?;
    let key = PrivateKeyDer::from_pem_slice(server.key.as_bytes())?;
    let builder =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?;
    let builder = if wants_client {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.pem.as_bytes())?)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
        builder.with_client_cert_verifier(verifier)
    } else {
        builder.with_no_client_auth()
    };
    Ok(builder.with_single_cert(vec![certificate], key)?)
}
