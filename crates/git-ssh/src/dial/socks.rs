//! SOCKS5 (RFC 1928), with user and password (RFC 1929).

use std::io;
use std::net::IpAddr;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
const CONNECT: u8 = 1;

/// Has the proxy connect to the server.
pub(super) async fn open<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    host: &str,
    port: u16,
    credentials: Option<(&str, &str)>,
) -> io::Result<()> {
    let methods: &[u8] = match credentials {
        Some(_) => &[NO_AUTHENTICATION, USER_AND_PASSWORD],
        None => &[NO_AUTHENTICATION],
    };
    stream
        .write_all(&[&[VERSION, methods.len() as u8], methods].concat())
        .await?;
    match (read::<2, _>(stream).await?, credentials) {
        ([VERSION, NO_AUTHENTICATION], _) => {}
        ([VERSION, USER_AND_PASSWORD], Some((user, password))) => sign_in(stream, user, password).await?,
        ([VERSION, _], _) => return Err(io::Error::other("it asks for other credentials than are given")),
        _ => return Err(io::Error::other("it does not speak SOCKS5")),
    }
    let request = [
        &[VERSION, CONNECT, 0][..],
        &destination(host)?,
        &port.to_be_bytes(),
    ]
    .concat();
    stream.write_all(&request).await?;
    let [version, reply, _, kind] = read(stream).await?;
    if version != VERSION {
        return Err(io::Error::other("it does not speak SOCKS5"));
    }
    if reply != 0 {
        return Err(io::Error::other(refusal(reply)));
    }
    skip_address(stream, kind).await
}

async fn sign_in<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    user: &str,
    password: &str,
) -> io::Result<()> {
    let request = [&[1][..], &counted(user)?, &counted(password)?].concat();
    stream.write_all(&request).await?;
    match read(stream).await? {
        [_, 0] => Ok(()),
        [_, _] => Err(io::Error::other("it does not accept the user and password")),
    }
}

/// The address that the proxy is to connect to; a name is resolved by the proxy.
fn destination(host: &str) -> io::Result<Vec<u8>> {
    Ok(match host.parse() {
        Ok(IpAddr::V4(address)) => [&[1][..], &address.octets()].concat(),
        Ok(IpAddr::V6(address)) => [&[4][..], &address.octets()].concat(),
        Err(_) => [&[3][..], &counted(host)?].concat(),
    })
}

fn counted(text: &str) -> io::Result<Vec<u8>> {
    let length = u8::try_from(text.len()).map_err(|_| io::Error::other("a name is too long for SOCKS5"))?;
    Ok([&[length], text.as_bytes()].concat())
}

/// The address at the proxy's other side is of no use to us.
async fn skip_address<S: AsyncRead + Unpin>(stream: &mut S, kind: u8) -> io::Result<()> {
    let length = match kind {
        1 => 4,
        4 => 16,
        3 => usize::from(read::<1, _>(stream).await?[0]),
        _ => return Err(io::Error::other("it does not speak SOCKS5")),
    };
    let mut rest = [0; 257];
    stream.read_exact(&mut rest[..length + 2]).await?;
    Ok(())
}

async fn read<const N: usize, S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

fn refusal(reply: u8) -> &'static str {
    match reply {
        2 => "it is not allowed there",
        3 => "the network is unreachable",
        4 => "the host is unreachable",
        5 => "connection refused",
        6 => "it took too long",
        _ => "it cannot connect there",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The proxy's answer, the credentials, the expected problem.
    type Case = (&'static [u8], Option<(&'static str, &'static str)>, &'static str);

    async fn against(answer: &[u8], credentials: Option<(&str, &str)>) -> (Result<(), String>, Vec<u8>) {
        let (mut near, mut far) = tokio::io::duplex(1024);
        far.write_all(answer).await.unwrap();
        let opened = open(&mut near, "git.example.com", 22, credentials).await;
        drop(near);
        let mut sent = Vec::new();
        let mut far = far;
        far.read_to_end(&mut sent).await.unwrap();
        (opened.map_err(|error| error.to_string()), sent)
    }

    #[tokio::test]
    async fn the_name_is_given_to_the_proxy() {
        let (opened, sent) = against(b"\x05\x00\x05\x00\x00\x01\x7f\0\0\x01\x04\x38", None).await;
        opened.unwrap();
        assert_eq!(sent, b"\x05\x01\x00\x05\x01\x00\x03\x0fgit.example.com\x00\x16");
    }

    #[tokio::test]
    async fn a_proxy_that_refuses_or_talks_nonsense_is_told() {
        let cases: [Case; 6] = [
            (b"HTTP/1.1 400", None, "it does not speak SOCKS5"),
            (b"\x05\xff", None, "it asks for other credentials than are given"),
            (b"\x05\x02", None, "it asks for other credentials than are given"),
            (
                b"\x05\x02\x01\x01",
                Some(("u", "p")),
                "it does not accept the user and password",
            ),
            (b"\x05\x00\x05\x05\x00\x01", None, "connection refused"),
            (b"\x05\x00\x05\x00\x00\x09", None, "it does not speak SOCKS5"),
        ];
        for (answer, credentials, problem) in cases {
            assert_eq!(against(answer, credentials).await.0.unwrap_err(), problem);
        }
    }
}
