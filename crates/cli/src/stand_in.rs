//! A server for tests of what is asked over HTTP, and with which credentials.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A recorded request.
pub(crate) struct Request {
    /// `GET /path?query`
    pub(crate) what: String,
    pub(crate) host: String,
    /// Empty without.
    pub(crate) authorization: String,
}

/// An answer: the status, headers that end with a line feed each, and the body.
pub(crate) type Answer = (u16, String, String);

/// Starts one, and returns its address and what it was asked.
pub(crate) fn serve(
    answer: impl Fn(&Request) -> Answer + Send + 'static,
) -> (String, Arc<Mutex<Vec<Request>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let Some(request) = read(&client) else { continue };
            let (status, headers, body) = answer(&request);
            log.lock().unwrap().push(request);
            let headers = headers.replace('\n', "\r\n");
            let head = format!("HTTP/1.1 {status} Said\r\nConnection: close\r\n{headers}\r\n");
            _ = client.write_all(format!("{head}{body}").as_bytes());
        }
    });
    (address, asked)
}

/// Reads a request whole: what is left unread breaks the connection off, and the answer with it.
fn read(client: &TcpStream) -> Option<Request> {
    let mut client = BufReader::new(client);
    // Not one that tries TLS first, which would wait for an answer in turn.
    client
        .fill_buf()
        .ok()?
        .first()
        .filter(|byte| byte.is_ascii_uppercase())?;
    let mut first = String::new();
    client.read_line(&mut first).ok()?;
    let what = first.trim_end().rsplit_once(' ')?.0.to_owned();
    let (mut host, mut authorization, mut length) = (String::new(), String::new(), 0);
    loop {
        let mut header = String::new();
        client.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "host" => value.clone_into(&mut host),
            "authorization" => value.clone_into(&mut authorization),
            "content-length" => length = value.parse().ok()?,
            _ => {}
        }
    }
    client.read_exact(&mut vec![0; length]).ok()?;
    Some(Request {
        what,
        host,
        authorization,
    })
}
