//! From a real remote into a real store: what of a source becomes its artifact.

mod failures;

use std::io::Read as _;

use api::source::{GitRepository, OCIRepository};
use artifact::store::{Options, Record, Store};
use controller_kit::ObjectKey;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::git::{Change, GitServer, Repository};
use testkit::registry::{Artifact as Pushed, CONTENT_MEDIA_TYPE, Layer, Registry, tar_gz};

use super::*;
use crate::reconcile::store::store;
use remote_access::identity::Identities;

pub(super) struct Peer {
    pub(super) store: Store,
    pub(super) fetcher: Fetcher,
    directory: TempDir,
}

impl Peer {
    pub(super) fn new() -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let directory = tempfile::tempdir().unwrap();
        let fetching = directory.path().join("fetching");
        std::fs::create_dir(&fetching).unwrap();
        let (store, _) = Store::open(&directory.path().join("store"), Options::default()).unwrap();
        let identities = Identities::new(0, std::time::Duration::ZERO, false, "");
        Self {
            store,
            fetcher: Fetcher::new(fetching, directory.path().join("indexes"), identities),
            directory,
        }
    }

    /// Fetches and stores an object with this spec; the chain of the error if that fails.
    pub(super) async fn take<K: Kind<References: Default>>(&self, mut spec: Value) -> Result<Record, String> {
        spec["interval"] = "1m".into();
        let object = json!({"metadata": {"name": "app", "namespace": "apps"}, "spec": spec});
        let object: K = serde_json::from_value(object).unwrap();
        let message = |failure: Failure| failure.error.message();
        let fetch = object
            .fetch(&K::References::default(), None, &self.fetcher)
            .await
            .map_err(message)?;
        let Fetch::New(fetched) = fetch else {
            panic!("nothing is known yet")
        };
        let stored = store::<K>(
            &ObjectKey::from_object(&object),
            fetched,
            &self.store,
            &self.fetcher,
        )
        .await
        .map_err(message);
        let left = std::fs::read_dir(self.directory.path().join("fetching"))
            .unwrap()
            .count();
        assert_eq!(left, 0, "temporary files are gone");
        stored
    }

    /// Paths in the archive of a record; folders end with a slash, executable files with a star.
    pub(super) fn paths(&self, record: &Record) -> Vec<String> {
        let archive = self.store.open_archive(&record.digest).unwrap();
        let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(archive));
        let mut paths = Vec::new();
        for entry in tar.entries().unwrap() {
            let entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            match entry.header().entry_type() {
                _ if path == "." => {}
                tar::EntryType::Directory => paths.push(format!("{path}/")),
                _ if entry.header().mode().unwrap() & 0o100 != 0 => paths.push(format!("{path}*")),
                _ => paths.push(path),
            }
        }
        paths.sort();
        paths
    }
}

async fn git() -> (Peer, GitServer, Repository) {
    let peer = Peer::new();
    let server = GitServer::start().await.unwrap();
    let repository = server.create_repository("app").unwrap();
    (peer, server, repository)
}

#[tokio::test]
async fn a_commit_becomes_an_artifact_without_what_is_ignored() {
    let (peer, _server, repository) = git().await;
    let changes = [
        Change::write("app.yaml", "a"),
        Change::write("docs/readme.md", "r"),
        Change::write("docs/logo.png", "p"),
        Change::write("deploy/keep.yaml", "k"),
        Change::write("deploy/drop.yaml", "d"),
        Change::WriteExecutable("run.sh".to_owned(), b"#!/bin/sh".to_vec()),
        Change::Link("link".to_owned(), "../../etc/passwd".to_owned()),
        Change::write(".gitignore", "x"),
    ];
    let commit = repository.commit("main", "one", &changes).unwrap();
    let branch = json!({"branch": "main"});
    let url = repository.url();

    let record = peer
        .take::<GitRepository>(json!({"url": url, "ref": branch}))
        .await
        .unwrap();
    assert_eq!(record.path, format!("gitrepository/apps/app/{commit}.tar.gz"));
    let paths = peer.paths(&record);
    let expected = [
        "app.yaml",
        "deploy/",
        "deploy/drop.yaml",
        "deploy/keep.yaml",
        "docs/",
        "docs/readme.md",
        "run.sh*",
    ];
    assert_eq!(paths, expected);

    let ignore = json!({"url": url, "ref": branch, "ignore": "/*\n!/deploy\n/deploy/drop.yaml"});
    let paths = peer.paths(&peer.take::<GitRepository>(ignore).await.unwrap());
    assert!(paths.contains(&"deploy/keep.yaml".to_owned()), "{paths:?}");
    assert!(
        !paths
            .iter()
            .any(|path| path.contains("drop") || path.contains("app.yaml")),
        "{paths:?}"
    );

    let files = [Change::write("deploy/.sourceignore", "drop.yaml")];
    repository.commit("main", "two", &files).unwrap();
    let paths = peer.paths(
        &peer
            .take::<GitRepository>(json!({"url": url, "ref": branch}))
            .await
            .unwrap(),
    );
    assert!(!paths.contains(&"deploy/drop.yaml".to_owned()), "{paths:?}");
    // As with Flux, a rule of the user's own sets the default exclusions aside.
    assert!(paths.contains(&"docs/logo.png".to_owned()), "{paths:?}");
}

#[tokio::test]
async fn sparse_folders_are_all_that_is_taken() {
    let (peer, _server, repository) = git().await;
    let changes = ["a/x/1", "a/y/2", "ab/3", "top"].map(|path| Change::write(path, "c"));
    repository.commit("main", "one", &changes).unwrap();
    let spec =
        |sparse: Value| json!({"url": repository.url(), "ref": {"branch": "main"}, "sparseCheckout": sparse});
    // The server can leave out what is not wanted, or cannot: that makes no difference to what is stored.
    for filters in ["false", "true"] {
        repository
            .git(&["config", "uploadpack.allowFilter", filters])
            .unwrap();
        let paths = peer.paths(&peer.take::<GitRepository>(spec(json!(["./a/x"]))).await.unwrap());
        let files: Vec<_> = paths.iter().filter(|path| !path.ends_with('/')).collect();
        assert_eq!(files, ["a/x/1"]);
    }
    let error = peer
        .take::<GitRepository>(spec(json!(["a", "gone"])))
        .await
        .unwrap_err();
    assert_eq!(
        error,
        "failed to sparse checkout directories : sparse checkout dir 'gone' does not exist in repository"
    );
}

#[tokio::test]
async fn a_tree_with_names_that_lead_elsewhere_is_refused() {
    let (peer, _server, repository) = git().await;
    repository
        .commit("main", "one", &[Change::write("a", "1")])
        .unwrap();
    let blob = repository.git(&["rev-parse", "main:a"]).unwrap();
    let id = git_client::ObjectId::from_hex(blob.trim().as_bytes()).unwrap();
    for name in ["..", ".git", "a/../../b", "."] {
        let tree = [b"100644 ", name.as_bytes(), b"\0", id.as_bytes()].concat();
        let file = peer.directory.path().join("tree");
        std::fs::write(&file, tree).unwrap();
        let file = file.display().to_string();
        let tree = repository
            .git(&["hash-object", "-t", "tree", "--literally", "-w", &file])
            .unwrap();
        let commit = repository
            .git(&["commit-tree", "-m", "hostile", tree.trim()])
            .unwrap();
        repository
            .git(&["update-ref", "refs/heads/hostile", commit.trim()])
            .unwrap();
        let spec = json!({"url": repository.url(), "ref": {"branch": "hostile"}});
        let error = peer.take::<GitRepository>(spec).await.unwrap_err();
        assert!(error.contains("is not a valid file name"), "{name}: {error}");
    }
    assert_eq!(peer.store.records().len(), 0, "nothing of it is stored");
}

/// A registry with one artifact of one layer.
async fn oci(layer: Vec<u8>) -> (Peer, Registry, String) {
    let peer = Peer::new();
    let registry = Registry::start().await.unwrap();
    let mut artifact = Pushed::from_files("main@sha1:1", &[]).unwrap();
    artifact.layers = vec![Layer {
        media_type: CONTENT_MEDIA_TYPE.to_owned(),
        data: layer,
    }];
    let digest = registry.push("app", &["latest"], &artifact).await.unwrap();
    (peer, registry, digest)
}

#[tokio::test]
async fn a_layer_is_extracted_without_what_is_ignored_or_copied_as_it_is() {
    let files = [
        ("app.yaml", "a"),
        ("deploy/x.yaml", "x"),
        ("deploy/.sourceignore", "x.yaml"),
        ("b/y.md", "y"),
    ];
    let layer = tar_gz(&files).unwrap();
    let (peer, registry, digest) = oci(layer.clone()).await;
    let url = registry.url("app");
    let record = peer
        .take::<OCIRepository>(json!({"url": url, "ignore": "*.md"}))
        .await
        .unwrap();
    assert_eq!(record.path, format!("ocirepository/apps/app/{digest}.tar.gz"));
    assert_eq!(record.revision, format!("latest@{digest}"));
    assert_eq!(
        record.metadata["org.opencontainers.image.revision"],
        "main@sha1:1"
    );
    let paths = peer.paths(&record);
    let files: Vec<_> = paths.iter().filter(|path| !path.ends_with('/')).collect();
    assert_eq!(files, ["app.yaml", "deploy/.sourceignore"]);

    let copy = json!({"url": url, "layerSelector": {"operation": "copy"}});
    let record = peer.take::<OCIRepository>(copy).await.unwrap();
    let mut archive = Vec::new();
    peer.store
        .open_archive(&record.digest)
        .unwrap()
        .read_to_end(&mut archive)
        .unwrap();
    assert_eq!(archive, layer);
    let root = peer.store.directory(&record.tree).unwrap();
    assert_eq!(root.entries().len(), 3, "its files can be had one by one too");
}

#[tokio::test]
async fn a_layer_that_is_no_archive_can_be_copied_but_not_extracted() {
    let (peer, registry, _) = oci(b"not an archive".to_vec()).await;
    let url = registry.url("app");
    let error = peer.take::<OCIRepository>(json!({"url": url})).await.unwrap_err();
    assert!(
        error.starts_with("failed to extract layer contents from artifact: "),
        "{error}"
    );
    let copy = json!({"url": url, "layerSelector": {"operation": "copy"}});
    let record = peer.take::<OCIRepository>(copy).await.unwrap();
    assert_eq!(record.size, 14);
}

#[tokio::test]
async fn a_hostile_layer_leaves_nothing_behind() {
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(
        Vec::new(),
        flate2::Compression::fast(),
    ));
    let mut header = tar::Header::new_gnu();
    header.as_gnu_mut().unwrap().name[..9].copy_from_slice(b"../escape");
    header.set_size(1);
    header.set_cksum();
    tar.append(&header, &b"x"[..]).unwrap();
    let layer = tar.into_inner().unwrap().finish().unwrap();
    let (peer, registry, _) = oci(layer).await;
    let error = peer
        .take::<OCIRepository>(json!({"url": registry.url("app")}))
        .await
        .unwrap_err();
    assert!(
        error.starts_with("failed to extract layer contents from artifact: "),
        "{error}"
    );
    assert!(error.contains("escape"), "{error}");
    assert_eq!(peer.store.records().len(), 0);
}
