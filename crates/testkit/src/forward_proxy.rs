//! A proxy as operators run them: HTTP `CONNECT` and requests with a whole URL, or SOCKS5, with or without credentials.
//!
//! Each is a few lines of TCP, independent of the clients that are tested with it. It counts who was let through, so that
//! a test can say that nothing went around it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Protocol of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// HTTP.
    Http,
    /// SOCKS5.
    Socks5,
}

/// A proxy on a free port of 127.0.0.1, gone when dropped.
#[derive(Debug)]
pub struct ForwardProxy {
    address: SocketAddr,
    kind: Kind,
    passed: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Rules {
    kind: Kind,
    credentials: Option<(String, String)>,
}

impl ForwardProxy {
    /// Starts a proxy that lets through whoever has the credentials, or everybody when there are none.
    pub async fn start(kind: Kind, credentials: Option<(&str, &str)>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .context("failed to listen for the proxy")?;
        let address = listener.local_addr()?;
        let credentials = credentials.map(|(user, password)| (user.to_owned(), password.to_owned()));
        let rules = Arc::new(Rules { kind, credentials });
        let passed = Arc::new(AtomicUsize::new(0));
        let counter = passed.clone();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (rules, counter) = (rules.clone(), counter.clone());
                // A client that is refused, or leaves, is no one's error.
                tokio::spawn(async move { serve(client, &rules, &counter).await });
            }
        });
        Ok(Self {
            address,
            kind,
            passed,
            task,
        })
    }

    /// Its address as a Secret has it.
    pub fn url(&self) -> String {
        let scheme = match self.kind {
            Kind::Http => "http",
            Kind::Socks5 => "socks5",
        };
        format!("{scheme}://{}", self.address)
    }

    /// How many connections it made for others.
    pub fn passed(&self) -> usize {
        self.passed.load(Ordering::Relaxed)
    }
}

impl Drop for ForwardProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut client: TcpStream, rules: &Rules, passed: &AtomicUsize) -> Result<()> {
    let mut server = match rules.kind {
        Kind::Http => http(&mut client, rules).await?,
        Kind::Socks5 => socks(&mut client, rules).await?,
    };
    passed.fetch_add(1, Ordering::Relaxed);
    tokio::io::copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}

async fn http(client: &mut TcpStream, rules: &Rules) -> Result<TcpStream> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await?);
    }
    let head = String::from_utf8(head)?;
    if let Some((user, password)) = &rules.credentials {
        let expected = format!("basic {}", STANDARD.encode(format!("{user}:{password}")));
        let given = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("proxy-authorization").then_some(value)
        });
        let is_right = |given: &str| given.get(6..) == expected.get(6..);
        if !given.is_some_and(is_right) {
            let refusal = "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n";
            client.write_all(refusal.as_bytes()).await?;
            bail!("refused");
        }
    }
    let target = head.split(' ').nth(1).context("no target")?;
    if head.starts_with("CONNECT ") {
        let server = TcpStream::connect(target).await?;
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
        return Ok(server);
    }
    // A plain request with the whole URL; this connection is for that server from now on.
    let rest = target.strip_prefix("http://").context("not http")?;
    let authority = rest.split('/').next().unwrap_or_default();
    let mut server = TcpStream::connect(authority).await?;
    server.write_all(head.as_bytes()).await?;
    Ok(server)
}

async fn socks(client: &mut TcpStream, rules: &Rules) -> Result<TcpStream> {
    let [_, count] = read::<2>(client).await?;
    let mut methods = vec![0; count.into()];
    client.read_exact(&mut methods).await?;
    let method = if rules.credentials.is_some() { 2 } else { 0 };
    if !methods.contains(&method) {
        client.write_all(&[5, 0xff]).await?;
        bail!("refused");
    }
    client.write_all(&[5, method]).await?;
    if let Some((user, password)) = &rules.credentials {
        let [_, length] = read::<2>(client).await?;
        let given = (counted(client, length).await?, {
            let [length] = read::<1>(client).await?;
            counted(client, length).await?
        });
        let is_right = given == (user.clone(), password.clone());
        client.write_all(&[1, u8::from(!is_right)]).await?;
        if !is_right {
            bail!("refused");
        }
    }
    let [_, _, _, kind] = read::<4>(client).await?;
    let host = match kind {
        1 => std::net::Ipv4Addr::from(read::<4>(client).await?).to_string(),
        4 => std::net::Ipv6Addr::from(read::<16>(client).await?).to_string(),
        _ => {
            let [length] = read::<1>(client).await?;
            counted(client, length).await?
        }
    };
    let port = u16::from_be_bytes(read::<2>(client).await?);
    match TcpStream::connect((host, port)).await {
        Ok(server) => {
            client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
            Ok(server)
        }
        Err(error) => {
            client.write_all(&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]).await?;
            Err(error.into())
        }
    }
}

async fn read<const N: usize>(stream: &mut TcpStream) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

async fn counted(stream: &mut TcpStream, length: u8) -> Result<String> {
    let mut bytes = vec![0; length.into()];
    stream.read_exact(&mut bytes).await?;
    Ok(String::from_utf8(bytes)?)
}
