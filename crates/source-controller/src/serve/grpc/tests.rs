//! The service over a real connection, with the generated client and with our own.

use std::collections::{BTreeMap, BTreeSet};

use artifact::{
    Digest,
    store::{Options, Record, RecordMeta},
    tree::Directory,
};
use artifact_proto::v1::{artifact_service_client::ArtifactServiceClient, watch_response::Type};
use futures::StreamExt as _;
use tokio::{sync::oneshot, task::JoinHandle};
use tonic::{Code, transport::Channel};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};

use super::*;

const MIB: usize = 1024 * 1024;

struct Fixture {
    _folder: tempfile::TempDir,
    store: Arc<Store>,
    record: Record,
    channel: Channel,
    client: ArtifactServiceClient<Channel>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), Error>>,
}

fn big() -> Vec<u8> {
    (0..MIB).map(|index| (index % 251) as u8).collect()
}

fn put(store: &Store, name: &str, files: &[(&str, &[u8])]) -> Record {
    let mut ingest = store.ingest();
    for (path, content) in files {
        ingest.add_file(path, false, *content).unwrap();
    }
    let meta = RecordMeta {
        kind: "GitRepository".to_owned(),
        namespace: "apps".to_owned(),
        name: name.to_owned(),
        revision: "main@sha1:1".to_owned(),
        filename: "1.tar.gz".to_owned(),
        metadata: BTreeMap::from([("key".to_owned(), "value".to_owned())]),
    };
    ingest.finish(meta).unwrap()
}

async fn fixture_with(access: Access) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(folder.path(), Options::default()).unwrap();
    let files: [(&str, &[u8]); 5] = [
        ("apps/a.yaml", b"a: 1"),
        ("apps/base/b.yaml", b"b"),
        ("copy/b.yaml", b"b"),
        ("empty", b""),
        ("big", &big()),
    ];
    let record = put(&store, "web", &files);
    let store = Arc::new(store);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (stop, stopped) = oneshot::channel();
    let shutdown = async { stopped.await.unwrap_or_default() };
    let plane = Plane {
        access,
        certificate: None,
    };
    let served = Served::default();
    let task = tokio::spawn(serve(
        listener,
        Arrivals::none(store.clone()),
        plane,
        served.clone(),
        shutdown,
    ));
    let channel = Channel::from_shared(endpoint).unwrap().connect().await.unwrap();
    let client = ArtifactServiceClient::new(channel.clone());
    Fixture {
        _folder: folder,
        store,
        record,
        channel,
        client,
        stop: Some(stop),
        task,
    }
}

async fn fixture() -> Fixture {
    fixture_with(Access::open(0)).await
}

async fn collect<T>(stream: Result<Response<tonic::Streaming<T>>, Status>) -> Result<Vec<T>, Status> {
    let mut stream = stream?.into_inner();
    let mut messages = Vec::new();
    while let Some(message) = stream.message().await? {
        messages.push(message);
    }
    Ok(messages)
}

impl Fixture {
    async fn tree(&mut self, tree: &str, path: &str, recursive: bool) -> Result<Vec<v1::Directory>, Status> {
        let request = v1::GetTreeRequest {
            tree: tree.to_owned(),
            path: path.to_owned(),
            recursive,
            root: String::new(),
        };
        let answers = collect(self.client.get_tree(request).await).await?;
        Ok(answers
            .into_iter()
            .flat_map(|answer| answer.directories)
            .collect())
    }

    async fn blobs(&mut self, digests: &[String], offset: i64) -> Result<Vec<v1::ReadBlobsResponse>, Status> {
        let request = v1::ReadBlobsRequest {
            digests: digests.to_vec(),
            offset,
            root: String::new(),
        };
        collect(self.client.read_blobs(request).await).await
    }

    async fn watch(&mut self, kind: &str, namespace: &str) -> tonic::Streaming<v1::WatchResponse> {
        let request = v1::WatchRequest {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
        };
        self.client.watch(request).await.unwrap().into_inner()
    }
}

fn digest_of(content: &[u8]) -> String {
    Digest::from_content(content).to_string()
}

fn code<T>(result: Result<T, Status>) -> Code {
    result.err().map_or(Code::Ok, |status| status.code())
}

#[tokio::test]
async fn stat_describes_an_artifact_by_digest_and_by_object() {
    let mut fixture = fixture().await;
    let digest = v1::stat_request::Of::Digest(fixture.record.digest.to_string());
    let object = |name: &str| {
        let (kind, namespace) = ("GitRepository".to_owned(), "apps".to_owned());
        v1::stat_request::Of::Object(v1::Object {
            kind,
            namespace,
            name: name.to_owned(),
        })
    };
    for of in [digest, object("web")] {
        let answer = fixture
            .client
            .stat(v1::StatRequest {
                of: Some(of),
                held: String::new(),
            })
            .await
            .unwrap()
            .into_inner();
        let artifact = answer.artifact.unwrap();
        assert_eq!(artifact, convert::artifact(&fixture.record, false));
        assert_eq!(artifact.path, "gitrepository/apps/web/1.tar.gz");
        assert!(artifact.last_update_time.ends_with('Z') && artifact.last_update_time.len() == 20);
        assert_eq!(artifact.metadata["key"], "value");
    }
    // As one that an object has: nothing for an object that does not have it, whoever else has.
    for (name, held, expected) in [
        ("web", fixture.record.digest.to_string(), Code::Ok),
        ("web", digest_of(b"unknown"), Code::NotFound),
        ("other", fixture.record.digest.to_string(), Code::NotFound),
        ("web", "sha512:0".to_owned(), Code::InvalidArgument),
    ] {
        let asked = v1::StatRequest {
            of: Some(object(name)),
            held,
        };
        let answer = fixture.client.stat(asked).await;
        assert_eq!(
            answer.map_or_else(|status| status.code(), |_| Code::Ok),
            expected,
            "{name}"
        );
    }
    let missing = v1::stat_request::Of::Digest(digest_of(b"unknown"));
    for (of, expected) in [
        (Some(missing), Code::NotFound),
        (Some(object("other")), Code::NotFound),
        (
            Some(v1::stat_request::Of::Digest("sha512:0".to_owned())),
            Code::InvalidArgument,
        ),
        (None, Code::InvalidArgument),
    ] {
        assert_eq!(
            code(
                fixture
                    .client
                    .stat(v1::StatRequest {
                        of,
                        held: String::new()
                    })
                    .await
            ),
            expected
        );
    }
}

#[tokio::test]
async fn a_tree_is_listed_parents_first_and_each_folder_once() {
    let mut fixture = fixture().await;
    let root = fixture.record.tree.to_string();
    let all = fixture.tree(&root, "", true).await.unwrap();
    let digests: Vec<&str> = all.iter().map(|directory| directory.digest.as_str()).collect();
    // "apps/base" and "copy" have the same content, so there are the root, apps, and one for both.
    assert_eq!(digests.len(), 3);
    assert_eq!(digests[0], root);
    assert_eq!(digests.iter().collect::<BTreeSet<_>>().len(), 3);
    for directory in &all {
        let lines = directory.entries.iter().map(|entry| {
            let kind = if entry.kind() == v1::entry::Kind::Directory {
                "d"
            } else {
                "f"
            };
            format!("{kind} {} {} {}\n", entry.digest, entry.size, entry.name)
        });
        let text: String = lines.collect();
        assert_eq!(
            Directory::parse(&text).unwrap().digest().to_string(),
            directory.digest
        );
    }
    let one = fixture.tree(&root, "apps/base", false).await.unwrap();
    assert_eq!((one.len(), one[0].entries[0].name.as_str()), (1, "b.yaml"));
    let one = fixture.tree(&root, "", false).await.unwrap();
    assert_eq!(one.len(), 1);
    for (tree, path, expected) in [
        (root.as_str(), "missing", Code::NotFound),
        (&root, "empty", Code::NotFound),
        (&root, "../x", Code::InvalidArgument),
        (&root, "/", Code::InvalidArgument),
        (&digest_of(b"unknown"), "", Code::NotFound),
        ("no digest", "", Code::InvalidArgument),
    ] {
        assert_eq!(
            code(fixture.tree(tree, path, true).await),
            expected,
            "{tree} {path}"
        );
    }
}

#[tokio::test]
async fn blobs_come_in_order_and_in_bounded_chunks() {
    let mut fixture = fixture().await;
    let digests = [
        digest_of(b"a: 1"),
        digest_of(&big()),
        digest_of(b""),
        digest_of(b"b"),
    ];
    let answers = fixture.blobs(&digests, 0).await.unwrap();
    let mut contents: Vec<(String, Vec<u8>)> = Vec::new();
    let mut last = true;
    for answer in answers {
        assert!(answer.data.len() <= 256 * 1024);
        if last {
            contents.push((answer.digest.clone(), Vec::new()));
        }
        let (digest, content) = contents.last_mut().unwrap();
        assert_eq!(
            (digest.as_str(), content.len() as i64),
            (answer.digest.as_str(), answer.offset)
        );
        content.extend(&answer.data);
        last = answer.last;
    }
    assert!(last);
    let expected: Vec<(String, Vec<u8>)> = digests
        .into_iter()
        .zip([b"a: 1".to_vec(), big(), Vec::new(), b"b".to_vec()])
        .collect();
    assert!(contents == expected);
}

#[tokio::test]
async fn blobs_are_resumed_and_a_missing_one_is_named_after_those_before_it() {
    let mut fixture = fixture().await;
    let big_digest = digest_of(&big());
    let answers = fixture
        .blobs(&[big_digest.clone(), digest_of(b"b")], 1_000_000)
        .await
        .unwrap();
    assert_eq!(
        (answers.len(), answers[0].offset, answers[1].offset),
        (2, 1_000_000, 0)
    );
    assert!(answers[0].data == big()[1_000_000..]);
    assert_eq!(
        fixture
            .blobs(std::slice::from_ref(&big_digest), MIB as i64)
            .await
            .unwrap()[0]
            .data
            .len(),
        0
    );

    let missing = digest_of(b"missing");
    let request = v1::ReadBlobsRequest {
        digests: vec![digest_of(b"b"), missing.clone()],
        offset: 0,
        root: String::new(),
    };
    let mut stream = fixture.client.read_blobs(request).await.unwrap().into_inner();
    assert_eq!(stream.message().await.unwrap().unwrap().data, "b");
    let status = stream.message().await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert!(status.message().contains(&missing), "{status}");

    assert_eq!(
        code(
            fixture
                .blobs(std::slice::from_ref(&big_digest), MIB as i64 + 1)
                .await
        ),
        Code::OutOfRange
    );
    assert_eq!(code(fixture.blobs(&[big_digest], -1).await), Code::OutOfRange);
    assert_eq!(
        code(fixture.blobs(&["x".to_owned()], 0).await),
        Code::InvalidArgument
    );
    assert_eq!(fixture.blobs(&[], 0).await.unwrap(), []);
}

#[tokio::test]
async fn an_archive_is_downloaded_whole_and_from_an_offset() {
    let mut fixture = fixture().await;
    let digest = fixture.record.digest.to_string();
    for offset in [0, 1000, fixture.record.size as i64] {
        let request = v1::DownloadRequest {
            digest: digest.clone(),
            offset,
        };
        let answers = collect(fixture.client.download(request).await).await.unwrap();
        assert_eq!(answers[0].offset, offset);
        let bytes: Vec<u8> = answers.iter().flat_map(|answer| answer.data.to_vec()).collect();
        assert_eq!(bytes.len() as i64, fixture.record.size as i64 - offset);
        assert!(offset > 0 || Digest::from_content(&bytes) == fixture.record.digest);
    }
    let request = v1::DownloadRequest {
        digest: digest_of(b"unknown"),
        offset: 0,
    };
    assert_eq!(
        code(collect(fixture.client.download(request).await).await),
        Code::NotFound
    );
}

#[tokio::test]
async fn a_watch_lists_syncs_and_follows() {
    let mut fixture = fixture().await;
    let mut watch = fixture.watch("", "").await;
    let mut other = fixture.watch("Bucket", "").await;
    let mut same = fixture.watch("gitrepository", "apps").await;
    assert_eq!(other.message().await.unwrap().unwrap().r#type(), Type::Synced);
    for watch in [&mut watch, &mut same] {
        let first = watch.message().await.unwrap().unwrap();
        assert_eq!(
            (first.r#type(), first.artifact.unwrap()),
            (Type::Stored, convert::artifact(&fixture.record, false))
        );
        let second = watch.message().await.unwrap().unwrap();
        assert_eq!((second.r#type(), second.artifact), (Type::Synced, None));
    }
    let store = fixture.store.clone();
    let changed = put(&store, "web", &[("a", b"2")]);
    let stored = watch.message().await.unwrap().unwrap();
    assert_eq!(
        (stored.r#type(), stored.artifact.unwrap()),
        (Type::Stored, convert::artifact(&changed, false))
    );
    store.remove_object("GitRepository", "apps", "web").unwrap();
    let removed = watch.message().await.unwrap().unwrap();
    assert_eq!(
        (removed.r#type(), removed.artifact.unwrap()),
        (Type::Removed, convert::artifact(&changed, false))
    );
}

/// Without a connection, whose buffers would take it all.
#[tokio::test]
async fn a_slow_watch_loses_no_final_state() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(Store::open(folder.path(), Options::default()).unwrap().0);
    put(&store, "one", &[]);
    let (_stop, running) = signal::channel(());
    let metadata = tonic::metadata::MetadataMap::new();
    let admitted = Access::open(0)
        .admit(&metadata, [127, 0, 0, 1].into())
        .await
        .unwrap();
    let request = v1::WatchRequest::default();
    let watch = watch::watch(store.clone(), request, running, admitted);
    let mut watch = std::pin::pin!(watch);
    // Reads the first message, so that the watch has begun, and then nothing while more happens than is kept for it.
    let mut next = async || watch.next().await.unwrap().unwrap();
    assert_eq!(next().await.r#type(), Type::Stored);
    let changed = store.clone();
    let change = move || {
        for round in 0..30 {
            for name in ["one", "two", "three"] {
                put(&changed, name, &[("a", format!("{round}").as_bytes())]);
            }
        }
        changed.remove_object("GitRepository", "apps", "one").unwrap();
        put(&changed, "end", &[]);
    };
    tokio::task::spawn_blocking(change).await.unwrap();

    let expected: BTreeMap<String, v1::Artifact> = store
        .current_records()
        .iter()
        .map(|record| (record.name.clone(), convert::artifact(record, false)))
        .collect();
    let mut known = BTreeMap::from([("one".to_owned(), v1::Artifact::default())]);
    let mut messages = 0;
    while known != expected {
        let message = next().await;
        messages += 1;
        let kind = message.r#type();
        let Some(artifact) = message.artifact else {
            continue;
        };
        let name = artifact.object.clone().unwrap().name;
        match kind {
            Type::Removed => known.remove(&name),
            _ => known.insert(name, artifact),
        };
    }
    assert!(messages < 40, "{messages}: states in between are left out");
}

#[tokio::test]
async fn health_and_reflection_answer_and_stopping_ends_watches() {
    let mut fixture = fixture().await;
    let mut health = HealthClient::new(fixture.channel.clone());
    for service in ["", "windlass.artifact.v1.ArtifactService"] {
        let request = HealthCheckRequest {
            service: service.to_owned(),
        };
        assert_eq!(
            health.check(request).await.unwrap().into_inner().status,
            1,
            "{service}"
        );
    }
    let mut reflection = tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient::new(
        fixture.channel.clone(),
    );
    let request = tonic_reflection::pb::v1::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(
            tonic_reflection::pb::v1::server_reflection_request::MessageRequest::FileContainingSymbol(
                "windlass.artifact.v1.ArtifactService".to_owned(),
            ),
        ),
    };
    let requests = futures::stream::iter([request]);
    let answers = collect(reflection.server_reflection_info(requests).await)
        .await
        .unwrap();
    assert_eq!(answers.len(), 1);

    let mut watch = fixture.watch("", "").await;
    while watch.message().await.unwrap().unwrap().r#type() != Type::Synced {}
    let began = std::time::Instant::now();
    fixture.stop.take().unwrap().send(()).unwrap();
    assert_eq!(code(watch.message().await), Code::Unavailable);
    drop((watch, health, reflection));
    (&mut fixture.task).await.unwrap().unwrap();
    assert!(began.elapsed() < GRACE, "an idle server stops at once");
}

#[tokio::test]
async fn a_caller_with_too_many_calls_is_told_when_to_try_again() {
    let mut fixture = fixture_with(Access::open(1)).await;
    let root = fixture.record.tree.to_string();
    // A watch runs as long as the client wants.
    let mut watch = fixture.watch("", "").await;
    while watch.message().await.unwrap().unwrap().r#type() != Type::Synced {}
    let refused = fixture.tree(&root, "", true).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert_eq!(refused.metadata().get("retry-after").unwrap(), "1");
    drop(watch);
    let began = std::time::Instant::now();
    while fixture.tree(&root, "", true).await.is_err() {
        assert!(
            began.elapsed() < GRACE,
            "the place is free once the watch is gone"
        );
    }
}
