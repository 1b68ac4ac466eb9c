//! Connections of the artifact service: accepted, and wrapped in TLS.
//!
//! The certificate is asked for at each handshake, so a new one needs no restart. It is either our own authority's
//! ([`keeper`], over the pure [`authority`]) or read from files ([`certificate`]).

pub mod authority;
pub mod certificate;
pub mod keeper;

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use rustls::{ServerConfig, crypto::aws_lc_rs};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use self::certificate::Certificate;

/// Handshakes that are under way at a time; more are cut off.
const MOST_HANDSHAKES: usize = 128;
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// After a failed accept, which is most often too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// A connection, encrypted or not.
pub enum Connection {
    /// As it came.
    Plain(TcpStream, SocketAddr),
    /// After the handshake.
    Tls(Box<TlsStream<TcpStream>>, SocketAddr),
}

/// The other end of a connection; an extension of its requests.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

/// The connections of a listener. With a certificate they are encrypted, and those whose handshake fails are left out.
pub fn incoming(
    listener: TcpListener,
    certificate: Option<Arc<Certificate>>,
) -> Result<ReceiverStream<io::Result<Connection>>, rustls::Error> {
    let encrypt = certificate.map(|certificate| {
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(certificate.clone());
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok::<_, rustls::Error>((TlsAcceptor::from(Arc::new(config)), certificate))
    });
    let (accepted, connections) = mpsc::channel(1);
    tokio::spawn(accept(listener, encrypt.transpose()?, accepted));
    Ok(ReceiverStream::new(connections))
}

async fn accept(
    listener: TcpListener,
    encrypt: Option<(TlsAcceptor, Arc<Certificate>)>,
    accepted: mpsc::Sender<io::Result<Connection>>,
) {
    let handshakes = Arc::new(Semaphore::new(MOST_HANDSHAKES));
    loop {
        let connection = tokio::select! {
            connection = listener.accept() => connection,
            () = accepted.closed() => return,
        };
        let Ok((stream, peer)) = connection else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // Small messages must not wait for the next one. A socket that refuses this still works.
        stream.set_nodelay(true).ok();
        let Some((acceptor, certificate)) = encrypt.clone() else {
            // An error says that the server ended, which the next round sees.
            accepted.send(Ok(Connection::Plain(stream, peer))).await.ok();
            continue;
        };
        let Ok(turn) = handshakes.clone().try_acquire_owned() else {
            continue;
        };
        let accepted = accepted.clone();
        tokio::spawn(async move {
            let _turn = turn;
            certificate.refresh().await;
            match tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => drop(accepted.send(Ok(Connection::Tls(Box::new(stream), peer))).await),
                Ok(Err(error)) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
                Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
            }
        });
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        match self {
            Self::Plain(_, peer) | Self::Tls(_, peer) => Peer(*peer),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream, _) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream, _) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream, _) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream, _) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream, _) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream, _) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream, _) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream, _) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
