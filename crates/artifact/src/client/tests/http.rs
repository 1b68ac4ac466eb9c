//! A plain HTTP server that gives prepared answers, one per request; the last one for all that follow.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

#[derive(Debug, Clone)]
pub(super) struct Answer {
    status: u16,
    body: Vec<u8>,
    /// Bytes after which the connection breaks.
    cut: Option<usize>,
    ranges: bool,
    location: Option<String>,
}

impl Answer {
    pub(super) fn ok(body: &[u8]) -> Self {
        Self {
            status: 200,
            body: body.to_vec(),
            cut: None,
            ranges: false,
            location: None,
        }
    }

    pub(super) fn status(status: u16) -> Self {
        Self {
            status,
            ..Self::ok(b"")
        }
    }

    pub(super) fn redirect(location: &str) -> Self {
        Self {
            location: Some(location.to_owned()),
            ..Self::status(302)
        }
    }

    pub(super) fn cut(body: &[u8], cut: usize) -> Self {
        Self {
            cut: Some(cut),
            ..Self::ok(body)
        }
    }

    pub(super) fn ranges(self, ranges: bool) -> Self {
        Self { ranges, ..self }
    }
}

/// A recorded request.
struct Request {
    range: String,
    head: String,
}

pub(super) struct HttpServer {
    pub(super) url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    task: JoinHandle<()>,
}

impl HttpServer {
    pub(super) async fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!(
            "http://{}/gitrepository/apps/web/1.tar.gz",
            listener.local_addr().unwrap()
        );
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let index = seen.lock().unwrap().len().min(answers.len() - 1);
                answer(stream, &answers[index], &seen).await;
            }
        });
        Self { url, requests, task }
    }

    /// The Range header of each request; empty for none.
    /// The ranges that were asked for.
    pub(super) fn requests(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|request| request.range.clone()).collect()
    }

    /// Requests with all headers, in small letters.
    pub(super) fn heads(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|request| request.head.clone()).collect()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(mut stream: TcpStream, answer: &Answer, seen: &Mutex<Vec<Request>>) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await.unwrap());
    }
    let request = String::from_utf8(request).unwrap().to_lowercase();
    let range = request
        .lines()
        .find_map(|line| line.strip_prefix("range: "))
        .unwrap_or_default()
        .to_owned();
    let start = range
        .trim_start_matches("bytes=")
        .trim_end_matches('-')
        .parse()
        .ok()
        .filter(|_| answer.ranges);
    seen.lock().unwrap().push(Request { range, head: request });

    let mut head = format!(
        "HTTP/1.1 {} X\r\nconnection: close\r\n",
        start.map_or(answer.status, |_| 206)
    );
    if let Some(location) = &answer.location {
        head += &format!("location: {location}\r\n");
    }
    if let Some(start) = start {
        let length = answer.body.len();
        head += &format!("content-range: bytes {start}-{}/{length}\r\n", length - 1);
    }
    let body = &answer.body[start.unwrap_or(0)..];
    head += &format!("content-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await.unwrap();
    // The client may have seen enough.
    stream
        .write_all(&body[..answer.cut.unwrap_or(body.len())])
        .await
        .ok();
    stream.shutdown().await.ok();
}
