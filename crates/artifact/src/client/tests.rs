//! The client against servers in this process: an artifact service over a real store, and a plain HTTP server, both
//! of which can be made to fail.

mod http;
mod service;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::time::Duration;

use self::{
    http::{Answer, HttpServer},
    service::{Fault, FaultyService},
};

use super::*;
use crate::archive::Limits;
use crate::store::{Options, Record, RecordMeta, Store};

/// Long enough for several chunks of the test server.
const BIG: usize = 100_000;

struct Fixture {
    _folder: tempfile::TempDir,
    store: Store,
    record: Record,
}

fn big() -> Vec<u8> {
    (0..BIG / 64)
        .flat_map(|index: usize| Digest::from_content(&index.to_le_bytes()).hex().into_bytes())
        .collect()
}

fn fixture() -> Fixture {
    // Fails when another test was first.
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .ok();
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(folder.path(), Options::default()).unwrap();
    let mut ingest = store.ingest();
    for (path, content) in [
        ("apps/a.yaml", "a: 1"),
        ("apps/base/b.yaml", "b: 2"),
        ("empty", ""),
        ("same", "a: 1"),
    ] {
        ingest.add_file(path, path == "same", content.as_bytes()).unwrap();
    }
    ingest.add_file("big", false, big().as_slice()).unwrap();
    ingest.add_directory("nothing").unwrap();
    let meta = RecordMeta {
        kind: "GitRepository".to_owned(),
        namespace: "apps".to_owned(),
        name: "web".to_owned(),
        revision: "main@sha1:1".to_owned(),
        filename: "1.tar.gz".to_owned(),
        metadata: BTreeMap::new(),
    };
    let record = ingest.finish(meta).unwrap();
    Fixture {
        _folder: folder,
        store,
        record,
    }
}

impl Fixture {
    fn archive(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.store
            .open_archive(&self.record.digest)
            .unwrap()
            .read_to_end(&mut bytes)
            .unwrap();
        bytes
    }

    /// The object that the store has the artifact of.
    fn object(&self) -> SourceObject {
        SourceObject::new(&self.record.kind, &self.record.namespace, &self.record.name)
    }

    fn reference(&self, url: &str) -> ArtifactRef {
        ArtifactRef {
            object: self.object(),
            url: url.to_owned(),
            digest: self.record.digest.to_string(),
            revision: self.record.revision.clone(),
        }
    }

    async fn service(&self) -> FaultyService {
        FaultyService::start(self.store.clone()).await
    }

    async fn open(&self, service: &FaultyService) -> RemoteTree {
        client(Some(&service.endpoint))
            .open(&self.reference("http://127.0.0.1:1/none"))
            .await
            .unwrap()
    }
}

fn options(endpoint: Option<&str>) -> ClientOptions {
    ClientOptions {
        grpc_endpoint: endpoint.map(str::to_owned),
        http_retries: 2,
        retry_min: Duration::from_millis(1),
        retry_max: Duration::from_millis(2),
        ..ClientOptions::default()
    }
}

fn client(endpoint: Option<&str>) -> Client {
    Client::new(options(endpoint)).unwrap()
}

async fn assert_is_the_tree(tree: &RemoteTree, fixture: &Fixture) {
    assert_eq!(tree.root(), fixture.record.tree);
    let names: Vec<_> = tree
        .list("")
        .await
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["apps", "big", "empty", "nothing", "same"]);
    assert_eq!(tree.list("apps/").await.unwrap().len(), 2);
    assert_eq!(tree.list("nothing").await.unwrap(), []);
    assert_eq!(
        tree.entry("same").await.unwrap().unwrap().kind,
        EntryKind::Executable
    );
    assert_eq!(
        tree.entry("./apps/base").await.unwrap().unwrap().kind,
        EntryKind::Directory
    );
    for missing in ["apps/x", "x/y", "same/x", ""] {
        assert_eq!(tree.entry(missing).await.unwrap(), None, "{missing}");
    }
    assert_eq!(tree.read("apps/base/b.yaml").await.unwrap(), "b: 2");
    assert_eq!(tree.read("empty").await.unwrap(), "");
    assert!(tree.read("big").await.unwrap() == big());
    assert!(matches!(tree.read("x").await, Err(Error::NotFound { .. })));
    assert!(matches!(tree.list("x").await, Err(Error::NotFound { .. })));
    assert!(matches!(tree.read("apps").await, Err(Error::Kind { .. })));
    assert!(matches!(tree.list("same").await, Err(Error::Kind { .. })));
    assert!(matches!(tree.entry("../x").await, Err(Error::Path(_))));
    tree.prefetch("apps").await.unwrap();
    assert!(matches!(tree.prefetch("x").await, Err(Error::NotFound { .. })));
}

#[tokio::test]
async fn a_tree_is_read_through_the_service() {
    let fixture = fixture();
    let service = fixture.service().await;
    assert_is_the_tree(&fixture.open(&service).await, &fixture).await;
}

#[tokio::test]
async fn a_tree_is_read_from_the_downloaded_archive() {
    let fixture = fixture();
    let http = HttpServer::start(vec![Answer::ok(&fixture.archive())]).await;
    let tree = client(None).open(&fixture.reference(&http.url)).await.unwrap();
    assert_is_the_tree(&tree, &fixture).await;
}

#[tokio::test]
async fn what_was_prefetched_needs_no_request() {
    let fixture = fixture();
    let service = fixture.service().await;
    let tree = fixture.open(&service).await;
    assert_eq!(
        tree.prefetch("").await.unwrap(),
        Prefetched {
            blobs: 4,
            bytes: big().len() as u64 + 8
        }
    );
    let calls = service.calls();
    for path in ["apps/a.yaml", "apps/base/b.yaml", "big", "same", "empty"] {
        tree.read(path).await.unwrap();
    }
    tree.list("apps/base").await.unwrap();
    assert_eq!(tree.prefetch("apps").await.unwrap(), Prefetched::default());
    assert_eq!(service.calls(), calls);
    assert_eq!(calls["GetTree"], 1, "{calls:?}");
    assert_eq!(calls["ReadBlobs"], 1, "{calls:?}");
}

#[tokio::test]
async fn a_second_artifact_costs_only_what_changed() {
    let fixture = fixture();
    let service = fixture.service().await;
    let client = client(Some(&service.endpoint));
    let tree = client
        .open(&fixture.reference("http://127.0.0.1:1/none"))
        .await
        .unwrap();
    tree.prefetch("").await.unwrap();
    let mut ingest = fixture.store.ingest();
    for (path, content) in [("apps/a.yaml", "a: 1"), ("apps/base/b.yaml", "b: 3")] {
        ingest.add_file(path, false, content.as_bytes()).unwrap();
    }
    let meta = RecordMeta {
        kind: "Bucket".to_owned(),
        namespace: "a".to_owned(),
        name: "b".to_owned(),
        filename: "c".to_owned(),
        ..RecordMeta::default()
    };
    let digest = ingest.finish(meta).unwrap().digest.to_string();
    let reference = ArtifactRef {
        object: SourceObject::new("Bucket", "a", "b"),
        digest,
        ..fixture.reference("http://127.0.0.1:1/none")
    };
    let tree = client.open(&reference).await.unwrap();
    assert_eq!(
        tree.prefetch("").await.unwrap(),
        Prefetched { blobs: 1, bytes: 4 }
    );
}

#[tokio::test]
async fn a_corrupted_blob_is_refused_and_never_cached() {
    let fixture = fixture();
    let service = fixture.service().await;
    let tree = fixture.open(&service).await;
    // So that the faults meet the blobs.
    tree.list("apps/base").await.unwrap();
    for _ in 0..2 {
        service.inject(Fault::FlipBlobByte);
        let error = tree.read("apps/a.yaml").await.unwrap_err();
        let expected = Digest::from_content(b"a: 1");
        assert!(
            matches!(&error, Error::DigestMismatch { expected: e, actual, .. } if *e == expected && *actual != *e),
            "{error}"
        );
        service.inject(Fault::FlipBlobByte);
        assert!(matches!(
            tree.prefetch("apps").await,
            Err(Error::DigestMismatch { .. })
        ));
    }
    assert_eq!(tree.read("apps/a.yaml").await.unwrap(), "a: 1");
}

#[tokio::test]
async fn a_blob_that_is_too_long_or_too_short_is_refused() {
    let fixture = fixture();
    let service = fixture.service().await;
    let tree = fixture.open(&service).await;
    tree.list("").await.unwrap();
    for fault in [Fault::AppendToBlob, Fault::CutBlob] {
        service.inject(fault);
        let error = tree.read("big").await.unwrap_err();
        assert!(
            matches!(error, Error::DigestMismatch { .. }),
            "{fault:?}: {error}"
        );
    }
    service.inject(Fault::WrongOffset);
    let result = tree.read("big").await.map(|content| content.len());
    assert!(matches!(result, Err(Error::Answer { .. })), "{result:?}");
    assert!(tree.read("big").await.unwrap() == big());
}

#[tokio::test]
async fn a_corrupted_folder_is_refused_and_never_cached() {
    let fixture = fixture();
    let service = fixture.service().await;
    let tree = fixture.open(&service).await;
    service.inject(Fault::RenameEntry);
    assert!(matches!(tree.list("").await, Err(Error::DigestMismatch { .. })));
    service.inject(Fault::OtherDirectory);
    assert!(matches!(tree.list("").await, Err(Error::Answer { .. })));
    assert_eq!(tree.list("").await.unwrap().len(), 5);
}

#[tokio::test]
async fn a_broken_stream_is_resumed_where_it_broke() {
    let fixture = fixture();
    let service = fixture.service().await;
    let tree = fixture.open(&service).await;
    tree.list("").await.unwrap();
    for _ in 0..4 {
        // More breaks than retries: each one got somewhere.
        service.inject(Fault::BreakAfterOneChunk);
    }
    assert!(tree.read("big").await.unwrap() == big());
    let offsets = service.offsets();
    assert_eq!(offsets.len(), 5, "{offsets:?}");
    assert_eq!(offsets[0], 0);
    assert!(offsets.windows(2).all(|pair| pair[0] < pair[1]), "{offsets:?}");
}

#[tokio::test]
async fn a_service_that_fails_for_a_moment_is_asked_again() {
    let fixture = fixture();
    let service = fixture.service().await;
    let tree = fixture.open(&service).await;
    service.inject(Fault::Unavailable);
    service.inject(Fault::Unavailable);
    assert_eq!(tree.list("").await.unwrap().len(), 5);
    for _ in 0..3 {
        service.inject(Fault::Unavailable);
    }
    assert!(matches!(tree.read("same").await, Err(Error::Call { .. })));
}

#[tokio::test]
async fn a_part_that_is_not_there_any_more_is_not_a_path_that_never_was() {
    let fixture = fixture();
    let service = fixture.service().await;
    let tree = fixture.open(&service).await;
    let record = &fixture.record;
    fixture
        .store
        .remove_object(&record.kind, &record.namespace, &record.name)
        .unwrap();
    fixture
        .store
        .collect_garbage(jiff::Timestamp::now() + Duration::from_secs(3600))
        .unwrap();
    for error in [
        tree.entry("apps/a.yaml").await.unwrap_err(),
        tree.read("apps/x").await.unwrap_err(),
        tree.list("x").await.unwrap_err(),
        tree.prefetch("").await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::Gone { .. }) && error.is_gone(), "{error}");
    }
}

#[tokio::test]
async fn what_the_service_does_not_know_is_downloaded_only_of_a_kind_that_others_make() {
    let fixture = fixture();
    let empty = tempfile::tempdir().unwrap();
    let other = FaultyService::start(Store::open(empty.path(), Options::default()).unwrap().0).await;
    let http = HttpServer::start(vec![Answer::ok(&fixture.archive())]).await;
    let external = ArtifactRef {
        object: SourceObject::new("ExternalArtifact", "ns", "made"),
        ..fixture.reference(&http.url)
    };
    let tree = client(Some(&other.endpoint)).open(&external).await.unwrap();
    assert_is_the_tree(&tree, &fixture).await;
    let heads = http.heads();
    assert!(
        heads[0].contains("windlass-external-artifact: ns/made"),
        "{heads:?}"
    );
    // What was downloaded for one is not there for another that knows its digest.
    let stranger = ArtifactRef {
        object: SourceObject::new("ExternalArtifact", "theirs", "made"),
        url: "http://127.0.0.1:1/none".to_owned(),
        ..external.clone()
    };
    assert!(client(Some(&other.endpoint)).open(&stranger).await.is_err());
    let own = fixture.reference(&http.url);
    let refused = client(Some(&other.endpoint)).open(&own).await.unwrap_err();
    assert!(matches!(refused, Error::NotFound { .. }), "{refused}");
    // Nor is it taken from anywhere when the service cannot be asked.
    assert!(client(Some("http://127.0.0.1:1")).open(&external).await.is_err());
    assert_eq!(http.requests().len(), 1);
}

#[tokio::test]
async fn an_archive_of_one_object_is_not_for_another_that_names_its_digest() {
    let fixture = fixture();
    let service = fixture.service().await;
    let http = HttpServer::start(vec![Answer::status(404)]).await;
    let client = client(Some(&service.endpoint));
    assert_is_the_tree(
        &client.open(&fixture.reference(&http.url)).await.unwrap(),
        &fixture,
    )
    .await;
    for kind in ["GitRepository", "ExternalArtifact"] {
        let thief = ArtifactRef {
            object: SourceObject::new(kind, "thieves", "den"),
            ..fixture.reference(&http.url)
        };
        let refused = client.open(&thief).await.unwrap_err();
        assert!(matches!(refused, Error::NotFound { .. }), "{refused}");
        assert!(client.archive(&thief, 1 << 20).await.is_err());
        assert!(!client.is_held(&thief).await.unwrap_or_default());
    }
}

#[tokio::test]
async fn a_status_that_leads_back_to_the_service_is_not_followed_and_learns_no_digest() {
    let fixture = fixture();
    let service = fixture.service().await;
    let mut external = fixture.reference("");
    external.object = SourceObject::new("ExternalArtifact", "thieves", "den");
    external.digest = Digest::from_content(b"something else").to_string();
    external.url = format!("{}/latest.tar.gz", service.endpoint);
    let refused = client(Some(&service.endpoint)).open(&external).await.unwrap_err();
    assert!(matches!(refused, Error::Forbidden { .. }), "{refused}");
    // A redirect elsewhere is not followed.
    let target = HttpServer::start(vec![Answer::ok(&fixture.archive())]).await;
    let http = HttpServer::start(vec![Answer::redirect(&target.url)]).await;
    external.url.clone_from(&http.url);
    assert!(client(Some(&service.endpoint)).open(&external).await.is_err());
    assert!(target.requests().is_empty());
    let http = HttpServer::start(vec![Answer::ok(&fixture.archive())]).await;
    external.url.clone_from(&http.url);
    let refused = client(Some(&service.endpoint)).open(&external).await.unwrap_err();
    assert!(
        !refused.to_string().contains(&fixture.record.digest.hex()),
        "{refused}"
    );
}

#[tokio::test]
async fn a_missing_artifact_is_not_found_at_once() {
    let fixture = fixture();
    let http = HttpServer::start(vec![Answer::status(404)]).await;
    let error = client(None)
        .open(&fixture.reference(&http.url))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::NotFound { what } if *what == http.url),
        "{error}"
    );
    assert_eq!(http.requests().len(), 1);
}

#[tokio::test]
async fn a_corrupted_archive_is_refused() {
    let fixture = fixture();
    let mut archive = fixture.archive();
    let middle = archive.len() / 2;
    archive[middle] ^= 1;
    let cut = &fixture.archive()[..middle];
    let http = HttpServer::start(vec![
        Answer::ok(&archive),
        Answer::ok(cut),
        Answer::ok(&fixture.archive()),
    ])
    .await;
    let client = client(None);
    for _ in 0..2 {
        let error = client.open(&fixture.reference(&http.url)).await.unwrap_err();
        let expected = fixture.record.digest;
        assert!(
            matches!(&error, Error::DigestMismatch { expected: e, .. } if *e == expected),
            "{error}"
        );
    }
    assert_is_the_tree(
        &client.open(&fixture.reference(&http.url)).await.unwrap(),
        &fixture,
    )
    .await;
}

#[tokio::test]
async fn failing_servers_are_tried_again_and_then_given_up() {
    let fixture = fixture();
    let http = HttpServer::start(vec![
        Answer::status(503),
        Answer::status(500),
        Answer::ok(&fixture.archive()),
    ])
    .await;
    client(None).open(&fixture.reference(&http.url)).await.unwrap();
    let http = HttpServer::start(vec![Answer::status(502)]).await;
    let error = client(None)
        .open(&fixture.reference(&http.url))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Status { status: 502, .. }), "{error}");
    assert_eq!(http.requests().len(), 3);
    let error = client(None)
        .open(&fixture.reference("http://127.0.0.1:1/x"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Download { .. }), "{error}");
    let http = HttpServer::start(vec![Answer::status(403)]).await;
    client(None)
        .open(&fixture.reference(&http.url))
        .await
        .unwrap_err();
    assert_eq!(http.requests().len(), 1, "no use in asking again");
}

#[tokio::test]
async fn a_broken_download_is_continued() {
    let fixture = fixture();
    let archive = fixture.archive();
    for ranges in [true, false] {
        let answers = vec![
            Answer::cut(&archive, 1000),
            Answer::cut(&archive, 700).ranges(ranges),
            Answer::ok(&archive).ranges(ranges),
        ];
        let http = HttpServer::start(answers).await;
        let tree = client(None).open(&fixture.reference(&http.url)).await.unwrap();
        assert_is_the_tree(&tree, &fixture).await;
        let expected = if ranges {
            ["", "bytes=1000-", "bytes=1700-"]
        } else {
            ["", "bytes=1000-", "bytes=700-"]
        };
        assert_eq!(http.requests(), expected, "ranges: {ranges}");
    }
}

#[tokio::test]
async fn an_archive_that_is_too_big_or_hostile_is_refused() {
    let fixture = fixture();
    let http = HttpServer::start(vec![Answer::ok(&fixture.archive())]).await;
    let limits = Limits {
        max_total_bytes: 1000,
        ..Limits::default()
    };
    let client = Client::new(ClientOptions {
        limits,
        ..options(None)
    })
    .unwrap();
    let error = client.open(&fixture.reference(&http.url)).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: 1000, .. }), "{error}");

    let hostile = b"this is no archive";
    let http = HttpServer::start(vec![Answer::ok(hostile)]).await;
    let reference = ArtifactRef {
        digest: Digest::from_content(hostile).to_string(),
        ..fixture.reference(&http.url)
    };
    let error = self::client(None).open(&reference).await.unwrap_err();
    assert!(matches!(error, Error::Unpack(_)), "{error}");
}

#[tokio::test]
async fn a_file_that_is_too_big_for_memory_is_refused_before_it_is_fetched() {
    let fixture = fixture();
    let service = fixture.service().await;
    let options = ClientOptions {
        max_file_bytes: 1000,
        ..options(Some(&service.endpoint))
    };
    let tree = Client::new(options)
        .unwrap()
        .open(&fixture.reference(""))
        .await
        .unwrap();
    assert!(matches!(
        tree.read("big").await,
        Err(Error::TooLarge { limit: 1000, .. })
    ));
    assert_eq!(service.calls().get("ReadBlobs"), None);
}

#[tokio::test]
async fn prefetch_leaves_what_does_not_fit_into_the_cache() {
    let fixture = fixture();
    let service = fixture.service().await;
    let options = ClientOptions {
        cache_bytes: 10_000,
        ..options(Some(&service.endpoint))
    };
    let tree = Client::new(options)
        .unwrap()
        .open(&fixture.reference(""))
        .await
        .unwrap();
    assert_eq!(
        tree.prefetch("").await.unwrap(),
        Prefetched { blobs: 3, bytes: 8 }
    );
    assert!(tree.read("big").await.unwrap() == big());
}

#[tokio::test]
async fn the_hostname_can_be_replaced() {
    let fixture = fixture();
    let http = HttpServer::start(vec![Answer::ok(&fixture.archive())]).await;
    let hostname = http
        .url
        .trim_start_matches("http://")
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    let client = Client::new(ClientOptions {
        hostname: Some(hostname),
        ..options(None)
    })
    .unwrap();
    let reference = fixture.reference("http://source-controller.flux-system.svc.cluster.local./x.tar.gz");
    client.open(&reference).await.unwrap();
}

#[tokio::test]
async fn digests_and_endpoints_that_are_none_are_refused() {
    let fixture = fixture();
    for digest in ["", "sha512:00", "sha256:zz", "00"] {
        let reference = ArtifactRef {
            digest: digest.to_owned(),
            ..fixture.reference("http://127.0.0.1:1/x")
        };
        assert!(
            matches!(client(None).open(&reference).await, Err(Error::ParseDigest(_))),
            "{digest}"
        );
    }
    assert!(matches!(
        Client::new(options(Some("not a url"))),
        Err(Error::Endpoint { .. })
    ));
    let error = client(None)
        .open(&fixture.reference("not a url"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Url { .. }), "{error}");
}
