//! Callers that hang up, that do not read, and that send much; time passes when everybody waits.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};

use api::notification::{EventSourceKind, ReceiverResource};
use controller_kit::ObjectKey;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use webhook::ReceiverType;
use webhook::filter::Filter;

use super::super::fixture;
use super::*;

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A server whose API server annotates an object for each permit of the gate.
struct World {
    server: Arc<Server>,
    connections: Connections,
    asked: fixture::Asked,
    annotated: Arc<AtomicUsize>,
    gate: Arc<Semaphore>,
}

impl World {
    fn new() -> Self {
        let (gate, annotated) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicUsize::new(0)));
        let (gated, count) = (Arc::clone(&gate), Arc::clone(&annotated));
        let (client, asked) = fixture::client(move |_| {
            let (gate, count) = (Arc::clone(&gated), Arc::clone(&count));
            async move {
                gate.acquire().await.unwrap().forget();
                count.fetch_add(1, Ordering::SeqCst);
                (200, object())
            }
        });
        let server = Arc::new(Server::new(fixture::context(client, [])));
        for type_ in [
            ReceiverType::CdEvents,
            ReceiverType::GitHub,
            ReceiverType::Generic,
        ] {
            open(&server.context, type_, Filter::default());
        }
        Self {
            server,
            connections: Connections::new(8),
            asked,
            annotated,
            gate,
        }
    }

    /// Opens a connection with buffers of this size.
    async fn connect(&self, buffer: usize) -> (DuplexStream, JoinHandle<()>) {
        let (client, stream) = duplex(buffer);
        let free = self.connections.free().await.unwrap();
        let slot = self.connections.take(free, PEER).unwrap();
        let connection = Arc::clone(&self.server).connection(stream, PEER, slot, CancellationToken::new());
        (client, tokio::spawn(connection))
    }

    /// Sends bytes, and says what was answered until the connection ended.
    async fn send(&self, request: &str) -> String {
        let (mut client, _) = self.connect(1 << 20).await;
        client.write_all(request.as_bytes()).await.unwrap();
        read_all(&mut client).await
    }
}

fn open(context: &Context, type_: ReceiverType, filter: Filter) {
    let resource = ReceiverResource {
        kind: EventSourceKind::GitRepository,
        name: "app".to_owned(),
        ..ReceiverResource::default()
    };
    let receiver = Compiled {
        uid: type_.to_string(),
        name: type_.to_string(),
        namespace: "apps".to_owned(),
        type_,
        resources: vec![(resource, filter)],
        secret: Some(Arc::new(BTreeMap::from([("token".to_owned(), b"t".to_vec())]))),
        ..Compiled::default()
    };
    let (key, path) = (ObjectKey::new("apps", &receiver.name), format!("/hook/{type_}"));
    let entry = Entry::Open(Arc::new(receiver));
    context.index.set(&key, Timestamp::UNIX_EPOCH, &path, entry);
}

fn object() -> Value {
    json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": {"name": "app"}})
}

async fn read_all(client: &mut DuplexStream) -> String {
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    answer
}

fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// A call that is known when it comes again.
fn event() -> String {
    let context = json!({"version": "0.4.1", "id": "1", "source": "/s", "type": "dev.cdevents.change.merged.0.2.0", "timestamp": "2026-03-20T14:27:05Z"});
    let subject = json!({"id": "1", "type": "change", "content": {}});
    post(
        "/hook/cdevents",
        &json!({"context": context, "subject": subject}).to_string(),
    )
}

#[tokio::test(start_paused = true)]
async fn a_call_is_done_though_its_caller_has_hung_up() {
    let world = World::new();
    let (mut client, connection) = world.connect(1 << 20).await;
    client.write_all(event().as_bytes()).await.unwrap();
    while world.asked.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    drop(client);
    connection.await.unwrap();
    assert_eq!(world.connections.left(), 7, "it takes its slot until it ends");
    // Whether it is done is not known yet.
    let answer = world.send(&event()).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    world.gate.add_permits(1);
    while world.annotated.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    let answer = world.send(&event()).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(world.asked.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_given_up_may_come_again() {
    let world = World::new();
    let answer = world.send(&event()).await;
    assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
    world.gate.add_permits(1);
    let answer = world.send(&event()).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(world.asked.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_for_one_call() {
    let world = World::new();
    let answer = world.send(&post("/hook/0", "").repeat(2)).await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
}

#[tokio::test(start_paused = true)]
async fn who_does_not_read_the_answer_loses_the_connection() {
    let world = World::new();
    let (mut client, connection) = world.connect(1).await;
    client.write_all(post("/hook/0", "").as_bytes()).await.unwrap();
    let (started, patience) = (tokio::time::Instant::now(), 2 * CONNECTION_TIMEOUT);
    timeout(patience, connection).await.unwrap().unwrap();
    assert!(started.elapsed() <= CONNECTION_TIMEOUT);
    assert_eq!(world.connections.left(), 8);
}

#[tokio::test(start_paused = true)]
async fn callers_of_one_receiver_leave_room_for_those_of_another() {
    let world = World::new();
    let large = "x".repeat(MAX_BODY_BYTES);
    let mut unfinished = Vec::new();
    for _ in 0..2 {
        let (mut client, _) = world.connect(1 << 10).await;
        let request = post("/hook/github", &large);
        client
            .write_all(&request.as_bytes()[..request.len() - 1])
            .await
            .unwrap();
        unfinished.push(client);
    }
    let (third, _) = world.connect(1 << 10).await;
    let (mut reader, mut writer) = tokio::io::split(third);
    let request = post("/hook/github", &large);
    let write = async { drop(writer.write_all(request.as_bytes()).await) };
    let mut answer = [0; 12];
    let (_, read) = tokio::join!(write, reader.read_exact(&mut answer));
    read.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 503");
    // What is wrong with this is not the room.
    let answer = world.send(&post("/hook/cdevents", "{}")).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    // Nothing looks at this one, and it is not kept.
    world.gate.add_permits(1);
    let (mut client, _) = world.connect(1 << 10).await;
    client
        .write_all(post("/hook/generic", &large).as_bytes())
        .await
        .unwrap();
    let answer = read_all(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_body_becomes_values_only_for_filters_and_so_many_at_once() {
    let world = World::new();
    let json = |body: &str| {
        post("/hook/generic", body).replace("Host: a", "Host: a\r\nContent-Type: application/json")
    };
    world.gate.add_permits(3);
    // Nothing looks at it.
    let answer = world.send(&json("{")).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let filter = Filter::parse("size(req) == 1", false).unwrap();
    open(&world.server.context, ReceiverType::Generic, filter);
    let answer = world.send(&json("{")).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    let values = &world.server.context.values;
    let others = values
        .acquire_many(answer::MOST_VALUES_AT_ONCE as u32 - 2)
        .await
        .unwrap();
    let answer = world.send(&json(r#"{"a":1}"#)).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // Waits for room until it is given up.
    let answer = world.send(&json(r#"{"a":[1]}"#)).await;
    assert!(answer.starts_with("HTTP/1.1 500"), "{answer}");
    drop(others);
    assert_eq!(values.available_permits(), answer::MOST_VALUES_AT_ONCE);
}

#[tokio::test]
async fn an_address_takes_half_of_the_connections() {
    let world = World::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let token = CancellationToken::new();
    let context = Arc::clone(&world.server.context);
    let serving = tokio::spawn(serve(context, listener, Connections::new(4), token.clone()));
    let connect = || tokio::net::TcpStream::connect(address);
    let (first, _second) = (connect().await.unwrap(), connect().await.unwrap());
    let mut third = connect().await.unwrap();
    assert_eq!(third.read(&mut [0; 1]).await.unwrap_or(0), 0);
    drop(first);
    let answered = async {
        loop {
            let mut fourth = connect().await.unwrap();
            drop(fourth.write_all(post("/hook/0", "").as_bytes()).await);
            let mut answer = String::new();
            if fourth.read_to_string(&mut answer).await.is_ok() && !answer.is_empty() {
                return answer;
            }
        }
    };
    let answer = timeout(Duration::from_secs(10), answered).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    token.cancel();
    serving.await.unwrap();
}
