//! Requests over a real connection, written as they are, because clients tidy up paths before they send them.

use std::{collections::BTreeMap, io::Read as _};

use artifact::store::{Options, RecordMeta};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use super::*;
use crate::metrics::Served;

struct Fixture {
    _folder: tempfile::TempDir,
    store: Arc<Store>,
    record: Record,
    archive: Vec<u8>,
    address: String,
    task: JoinHandle<()>,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn fixture() -> Fixture {
    fixture_with(Limiter::new(0)).await
}

async fn fixture_with(downloads: Limiter) -> Fixture {
    fixture_of(downloads, false).await
}

/// A store that is a copy of the leader's, or not.
async fn fixture_of(downloads: Limiter, is_copy: bool) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(folder.path(), Options::default()).unwrap();
    let record = put(&store, "1", &"some content, ".repeat(20_000));
    let mut archive = Vec::new();
    store
        .open_archive(&record.digest)
        .unwrap()
        .read_to_end(&mut archive)
        .unwrap();
    let store = Arc::new(store);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let arrivals = Arrivals::new(store.clone(), tokio::sync::watch::channel(is_copy).1);
    let service =
        router(arrivals, downloads, Served::default()).into_make_service_with_connect_info::<Peer>();
    let task = tokio::spawn(async move { axum::serve(Listener(listener), service).await.unwrap() });
    Fixture {
        _folder: folder,
        store,
        record,
        archive,
        address,
        task,
    }
}

fn put(store: &Store, revision: &str, content: &str) -> Record {
    let mut ingest = store.ingest();
    ingest.add_file("a.yaml", false, content.as_bytes()).unwrap();
    let meta = RecordMeta {
        kind: "OCIRepository".to_owned(),
        namespace: "apps".to_owned(),
        name: "web".to_owned(),
        revision: revision.to_owned(),
        filename: format!("{revision}.tar.gz"),
        metadata: BTreeMap::new(),
    };
    ingest.finish(meta).unwrap()
}

struct Reply {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Fixture {
    async fn request(&self, method: &str, path: &str, headers: &str) -> Reply {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).await.unwrap();
        let end = reply.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(reply[..end].to_vec()).unwrap();
        let (status, headers) = head.split_once("\r\n").unwrap();
        let header = |line: &str| {
            line.split_once(": ")
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        Reply {
            status: status.split(' ').nth(1).unwrap().parse().unwrap(),
            headers: headers.split("\r\n").filter_map(header).collect(),
            body: reply[end + 4..].to_vec(),
        }
    }

    async fn get(&self, path: &str) -> Reply {
        self.request("GET", path, "").await
    }

    fn path(&self) -> String {
        format!("/{}", self.record.path)
    }
}

#[tokio::test]
async fn the_archive_is_at_the_path_of_the_record() {
    let fixture = fixture().await;
    for path in [
        fixture.path(),
        "/ocirepository/apps/web/latest.tar.gz".to_owned(),
        "/ocirepository/apps/%77eb/1.tar.gz".to_owned(),
    ] {
        let reply = fixture.get(&path).await;
        assert_eq!(reply.status, 200, "{path}");
        assert!(reply.body == fixture.archive, "{path}");
        assert_eq!(reply.headers["etag"], format!("\"{}\"", fixture.record.digest));
        assert_eq!(reply.headers["content-length"], fixture.record.size.to_string());
        assert_eq!(reply.headers["content-type"], "application/gzip");
        assert_eq!(reply.headers["accept-ranges"], "bytes");
        assert!(
            reply.headers["last-modified"].ends_with(" GMT"),
            "{}",
            reply.headers["last-modified"]
        );
    }
}

#[tokio::test]
async fn the_digest_is_beside_the_archive() {
    let fixture = fixture().await;
    let hex = fixture.record.digest.hex();
    let reply = fixture.get(&(fixture.path() + ".sha256")).await;
    assert_eq!(
        (reply.status, reply.body),
        (200, format!("{hex}  1.tar.gz\n").into_bytes())
    );
    let reply = fixture.get("/ocirepository/apps/web/latest.tar.gz.sha256").await;
    assert_eq!(
        (reply.status, reply.body),
        (200, format!("{hex}  latest.tar.gz\n").into_bytes())
    );
}

#[tokio::test]
async fn head_gives_the_headers_of_get() {
    let fixture = fixture().await;
    let (get, head) = (
        fixture.get(&fixture.path()).await,
        fixture.request("HEAD", &fixture.path(), "").await,
    );
    assert_eq!((head.status, head.body.len()), (200, 0));
    for name in [
        "etag",
        "content-length",
        "content-type",
        "last-modified",
        "accept-ranges",
    ] {
        assert_eq!(head.headers.get(name), get.headers.get(name), "{name}");
    }
}

#[tokio::test]
async fn other_paths_are_not_found_and_nothing_is_listed() {
    let fixture = fixture().await;
    let digest = fixture.record.digest.hex();
    let paths = [
        "/",
        "/ocirepository",
        "/ocirepository/",
        "/ocirepository/apps/web/",
        "/ocirepository/apps/web/2.tar.gz",
        "/ocirepository/other/web/1.tar.gz",
        "/OCIRepository/apps/web/1.tar.gz",
        "/../../etc/passwd",
        "/ocirepository/apps/web/../web/1.tar.gz",
        "/ocirepository/apps/web/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/records",
        "/.sha256",
        "/ocirepository/apps/web/1.tar.gz%00",
        &format!("/archives/{digest}.tar.gz"),
        &format!("/blobs/{digest}"),
    ];
    for path in paths {
        let reply = fixture.get(path).await;
        assert_eq!((reply.status, reply.body.len()), (404, 0), "{path}");
    }
    assert_eq!(fixture.get("/a/%ff").await.status, 400, "not UTF-8");
    assert_eq!(
        fixture
            .request("POST", &fixture.path(), "content-length: 0\r\n")
            .await
            .status,
        405
    );
}

#[tokio::test]
async fn parts_are_served() {
    let fixture = fixture().await;
    let size = fixture.archive.len();
    let reply = fixture
        .request("GET", &fixture.path(), "range: bytes=100-199\r\n")
        .await;
    assert_eq!(reply.status, 206);
    assert_eq!(reply.headers["content-range"], format!("bytes 100-199/{size}"));
    assert_eq!(reply.headers["content-length"], "100");
    assert!(reply.body == fixture.archive[100..200]);
    let reply = fixture
        .request("GET", &fixture.path(), "range: bytes=-7\r\n")
        .await;
    assert_eq!(
        (reply.status, reply.body),
        (206, fixture.archive[size - 7..].to_vec())
    );
    let reply = fixture
        .request("GET", &fixture.path(), &format!("range: bytes={size}-\r\n"))
        .await;
    assert_eq!(
        (reply.status, reply.headers["content-range"].as_str()),
        (416, format!("bytes */{size}").as_str())
    );
}

#[tokio::test]
async fn conditions_compare_the_digest() {
    let fixture = fixture().await;
    let tag = format!("\"{}\"", fixture.record.digest);
    for condition in [
        format!("if-none-match: {tag}\r\n"),
        format!("if-none-match: \"x\", W/{tag}\r\n"),
    ] {
        let reply = fixture.request("GET", &fixture.path(), &condition).await;
        assert_eq!((reply.status, reply.body.len()), (304, 0), "{condition}");
    }
    let reply = fixture
        .request("GET", &fixture.path(), "if-none-match: \"x\"\r\n")
        .await;
    assert_eq!(reply.status, 200);
    let range = format!("range: bytes=5-\r\nif-range: {tag}\r\n");
    assert_eq!(fixture.request("GET", &fixture.path(), &range).await.status, 206);
    let reply = fixture
        .request("GET", &fixture.path(), "range: bytes=5-\r\nif-range: \"x\"\r\n")
        .await;
    assert_eq!(
        reply.status, 200,
        "the whole, because the part that the client has is of something else"
    );
}

#[tokio::test]
async fn a_removed_archive_is_gone() {
    let fixture = fixture().await;
    let newer = put(&fixture.store, "2", "other");
    let latest = fixture.get("/ocirepository/apps/web/latest.tar.gz").await;
    assert_eq!(latest.headers["etag"], format!("\"{}\"", newer.digest));
    assert_eq!(fixture.get(&fixture.path()).await.status, 200);
    fixture
        .store
        .remove_object("OCIRepository", "apps", "web")
        .unwrap();
    assert_eq!(fixture.get(&fixture.path()).await.status, 404);
    assert_eq!(
        fixture.get("/ocirepository/apps/web/latest.tar.gz").await.status,
        404
    );
}

#[tokio::test]
async fn who_waits_for_an_archive_that_is_on_its_way_has_a_place() {
    let downloads = Limiter::new(1);
    let fixture = Arc::new(fixture_of(downloads.clone(), true).await);
    let waiting = tokio::spawn({
        let fixture = fixture.clone();
        async move { fixture.get("/ocirepository/apps/web/2.tar.gz").await.status }
    });
    while downloads.begin("127.0.0.1").is_some() {
        tokio::task::yield_now().await;
    }
    // Nothing is gained by asking for what does not exist.
    assert_eq!(
        fixture.get("/ocirepository/apps/web/none.tar.gz").await.status,
        429
    );
    put(&fixture.store, "2", "newer");
    assert_eq!(waiting.await.unwrap(), 200);
}

#[tokio::test]
async fn an_address_with_too_many_downloads_is_told_when_to_try_again() {
    let downloads = Limiter::new(1);
    let fixture = fixture_with(downloads.clone()).await;
    let path = format!("/{}", fixture.record.path);
    let running = downloads.begin("127.0.0.1").unwrap();
    let reply = fixture.request("GET", &path, "").await;
    assert_eq!((reply.status, reply.headers["retry-after"].as_str()), (429, "1"));
    drop(running);
    // One after the other is no matter: each ends before the next begins.
    for _ in 0..3 {
        assert_eq!(fixture.request("GET", &path, "").await.status, 200);
    }
}
