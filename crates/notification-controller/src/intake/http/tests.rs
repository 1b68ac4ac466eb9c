use std::sync::Mutex;

use controller_kit::metrics::Metrics;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::*;

const BODY: &str = r#"{"message": "broken"}"#;

/// An endpoint that takes events when it is let, one each time.
struct Bench {
    address: std::net::SocketAddr,
    begun: Arc<Notify>,
    allowed: Arc<Notify>,
    taken: Arc<Mutex<Vec<String>>>,
    token: CancellationToken,
    serving: tokio::task::JoinHandle<()>,
}

impl Bench {
    async fn start(limits: Limits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (begun, allowed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let taken = Arc::new(Mutex::new(Vec::new()));
        let state = (Arc::clone(&begun), Arc::clone(&allowed), Arc::clone(&taken));
        let take = move |event: Event| {
            let (begun, allowed, taken) = state.clone();
            async move {
                begun.notify_one();
                allowed.notified().await;
                taken.lock().unwrap().push(event.message);
                Verdict::New
            }
        };
        let metrics = HttpMetrics::register(&Metrics::default(), "gotk_event", false);
        let token = CancellationToken::new();
        let serving = tokio::spawn(serve(listener, limits, metrics, token.clone(), take));
        Self {
            address,
            begun,
            allowed,
            taken,
            token,
            serving,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends what may be a part of a call, and returns the connection.
    async fn send(&self, text: &str) -> TcpStream {
        let mut stream = self.connect().await;
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// The status that is answered; None if the connection is closed without.
    async fn status(&self, text: &str) -> Option<u16> {
        answered(self.send(text).await).await
    }

    async fn stop(self) -> Vec<String> {
        self.token.cancel();
        self.serving.await.unwrap();
        std::mem::take(&mut *self.taken.lock().unwrap())
    }
}

async fn answered(mut stream: TcpStream) -> Option<u16> {
    let mut answer = [0; 12];
    timeout(Duration::from_secs(20), stream.read_exact(&mut answer))
        .await
        .unwrap()
        .ok()?;
    let answer = std::str::from_utf8(&answer).unwrap();
    answer.strip_prefix("HTTP/1.1 ")?.parse().ok()
}

fn call(length: usize, body: &str) -> String {
    format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}")
}

#[tokio::test]
async fn what_was_posted_is_taken_although_its_sender_leaves() {
    let bench = Bench::start(LIMITS).await;
    let stream = bench.send(&call(BODY.len(), BODY)).await;
    bench.begun.notified().await;
    drop(stream);
    // The server sees that its sender is gone before it is let go on.
    tokio::time::sleep(Duration::from_millis(50)).await;
    bench.allowed.notify_one();
    assert_eq!(bench.stop().await, ["broken"]);
}

#[tokio::test]
async fn answers_are_fluxs() {
    let limits = Limits {
        body_bytes: 100,
        body_timeout: Duration::from_millis(50),
        ..LIMITS
    };
    let bench = Bench::start(limits).await;
    bench.allowed.notify_one();
    assert_eq!(bench.status(&call(BODY.len(), BODY)).await, Some(202));
    assert_eq!(bench.status(&call(7, "no JSON")).await, Some(400));
    assert_eq!(bench.status(&call(101, &" ".repeat(101))).await, Some(413));
    let late = bench.status(&call(BODY.len() + 1, BODY)).await;
    assert_eq!(late, Some(400), "it never ends");
    let header = format!("GET / HTTP/1.1\r\nlong: {}\r\n", "x".repeat(300 << 10));
    assert_eq!(bench.status(&header).await, Some(431));
    assert_eq!(bench.stop().await, ["broken"]);
}

#[tokio::test]
async fn all_bodies_together_take_no_more_than_there_is_room_for() {
    let limits = Limits {
        bodies_bytes: 30,
        ..LIMITS
    };
    let bench = Bench::start(limits).await;
    let mut first = bench.send(&call(BODY.len(), &BODY[..20])).await;
    let mut answer = None;
    // The first has to be read before the second finds no room.
    for _ in 0..100 {
        bench.allowed.notify_one();
        answer = bench.status(&call(BODY.len(), BODY)).await;
        if answer == Some(503) {
            break;
        }
    }
    assert_eq!(answer, Some(503));
    bench.allowed.notify_one();
    first.write_all(&BODY.as_bytes()[20..]).await.unwrap();
    assert_eq!(answered(first).await, Some(202));
}

#[tokio::test]
async fn what_is_being_taken_keeps_the_place_of_its_sender() {
    let limits = Limits {
        connections: connections::Limits {
            connections: 1,
            ..LIMITS.connections
        },
        ..LIMITS
    };
    let bench = Bench::start(limits).await;
    let text = call(BODY.len(), BODY);
    let stream = bench.send(&text).await;
    bench.begun.notified().await;
    drop(stream);
    let mut next = std::pin::pin!(bench.status(&text));
    let early = timeout(Duration::from_millis(100), next.as_mut()).await;
    assert!(
        early.is_err()
            && timeout(Duration::from_millis(1), bench.begun.notified())
                .await
                .is_err()
    );
    bench.allowed.notify_one();
    bench.begun.notified().await;
    bench.allowed.notify_one();
    assert_eq!(next.await, Some(202));
}

#[tokio::test]
async fn a_connection_that_is_silent_is_closed_and_only_so_many_are_open() {
    let limits = Limits {
        connections: connections::Limits {
            connections: 1,
            header_timeout: Duration::from_millis(200),
            ..LIMITS.connections
        },
        ..LIMITS
    };
    let bench = Bench::start(limits).await;
    let silent = bench.send("POST / HTTP/1.1\r\n").await;
    bench.allowed.notify_one();
    let started = Instant::now();
    assert_eq!(bench.status(&call(BODY.len(), BODY)).await, Some(202));
    assert!(
        started.elapsed() >= Duration::from_millis(100),
        "it waited for the other"
    );
    assert_eq!(answered(silent).await, None);
    assert_eq!(bench.stop().await, ["broken"]);
}
