//! All services of the world, behind a proxy on this machine that answers in their place, also over TLS.

use std::sync::{Arc, Mutex};

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::service::{Asked, Reply};
use crate::target::{Target, Tls};

/// The proxy.
pub(crate) struct World {
    proxy: String,
    certificate: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl World {
    /// Stands for these hosts, and answers like this. What is asked has a whole URL for a path.
    pub(crate) async fn start(
        hosts: &[&str],
        answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let names: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let certified = rcgen::generate_simple_self_signed(names).unwrap();
        let acceptor = acceptor(&certified);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (kept, answer) = (asked.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (kept, answer, acceptor) = (kept.clone(), answer.clone(), acceptor.clone());
                tokio::spawn(async move {
                    let reply = move |asked: Asked| {
                        kept.lock().unwrap().push(asked.clone());
                        answer(&asked)
                    };
                    serve(stream, &acceptor, reply).await;
                });
            }
        });
        Self {
            proxy,
            certificate: certified.cert.pem(),
            asked,
        }
    }

    /// The target as it is reached through the proxy.
    pub(crate) fn within(&self, target: Target) -> Target {
        Target {
            proxy: Some(self.proxy.clone()),
            tls: Some(Tls {
                ca: Some(self.certificate.clone().into()),
                certificate: None,
            }),
            ..target
        }
    }

    /// Takes the requests since the last call.
    pub(crate) fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

fn acceptor(certified: &rcgen::CertifiedKey<rcgen::KeyPair>) -> TlsAcceptor {
    let key = rustls_pki_types::PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(mut stream: TcpStream, acceptor: &TlsAcceptor, reply: impl FnOnce(Asked) -> Reply) {
    let Some(asked) = request(&mut stream).await else {
        return;
    };
    if asked.method != http::Method::CONNECT {
        return respond(&mut stream, reply(asked)).await;
    }
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    let host = asked.path.trim_end_matches(":443").to_owned();
    // A client that does not trust us goes.
    let Ok(mut stream) = acceptor.accept(stream).await else {
        return;
    };
    if let Some(mut asked) = request(&mut stream).await {
        asked.path = format!("https://{host}{}", asked.path);
        respond(&mut stream, reply(asked)).await;
    }
}

/// One request of HTTP/1.1, with a length.
async fn request<S: AsyncRead + Unpin>(stream: &mut S) -> Option<Asked> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.parse().unwrap(), first.next()?.to_owned());
    let headers: HeaderMap = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| {
            (
                name.parse::<HeaderName>().unwrap(),
                HeaderValue::from_str(value).unwrap(),
            )
        })
        .collect();
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.to_str().unwrap().parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Asked {
        method,
        path,
        headers,
        body: body.into(),
    })
}

async fn respond<S: AsyncWrite + Unpin>(stream: &mut S, (status, headers, body): Reply) {
    let headers: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}
