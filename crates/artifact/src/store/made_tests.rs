//! Artifacts that are made of what the store has: files that are held, taken, replaced, and named by their content.

use std::{collections::BTreeMap, fs};

use tempfile::TempDir;

use super::*;

fn fixture() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(folder.path(), Options::default()).unwrap();
    (folder, store)
}

fn meta(kind: &str, name: &str) -> RecordMeta {
    RecordMeta {
        kind: kind.to_owned(),
        namespace: "apps".to_owned(),
        name: name.to_owned(),
        revision: "given".to_owned(),
        filename: "1.tar.gz".to_owned(),
        metadata: BTreeMap::new(),
    }
}

fn put(store: &Store, name: &str, files: &[(&str, &str)]) -> Record {
    let mut ingest = store.ingest();
    for (path, content) in files {
        ingest.add_file(path, false, content.as_bytes()).unwrap();
    }
    ingest.finish(meta("GitRepository", name)).unwrap()
}

fn count(folder: &TempDir, of: &str) -> usize {
    fs::read_dir(folder.path().join(of)).unwrap().count()
}

#[test]
fn a_stored_file_is_taken_without_a_copy_and_outlives_where_it_came_from() {
    let (folder, store) = fixture();
    let source = put(&store, "source", &[("a", "1"), ("b", "2")]);
    let digest = Digest::from_content(b"1");
    let mut ingest = store.ingest();
    ingest.add_stored("deploy/run", true, digest, 1).unwrap();
    let made = ingest.finish(meta("ExternalArtifact", "made")).unwrap();
    assert_eq!(count(&folder, "blobs"), 2);
    let deploy = store.directory(&made.tree).unwrap().entries()[0].digest;
    let entry = store.directory(&deploy).unwrap().entries()[0].clone();
    assert_eq!(
        (entry.digest, entry.size, entry.kind),
        (digest, 1, tree::EntryKind::Executable)
    );

    store.remove_object("GitRepository", "apps", "source").unwrap();
    assert!(store.read_blob(&digest, 0).is_ok());
    assert!(store.read_blob(&Digest::from_content(b"2"), 0).is_err());
    store.remove_object("ExternalArtifact", "apps", "made").unwrap();
    assert_eq!((count(&folder, "blobs"), count(&folder, "directories")), (0, 0));
    assert!(store.holders_of_archive(&source.digest).is_empty());
}

#[test]
fn what_is_taken_while_its_artifact_goes_stays_until_the_ingest_ends() {
    let (folder, store) = fixture();
    put(&store, "source", &[("a", "1")]);
    let digest = Digest::from_content(b"1");
    let mut ingest = store.ingest();
    ingest.add_stored("a", false, digest, 1).unwrap();
    store.remove_object("GitRepository", "apps", "source").unwrap();
    assert!(store.read_blob(&digest, 0).is_ok());
    drop(ingest);
    assert_eq!(count(&folder, "blobs"), 0);
    let error = store.ingest().add_stored("a", false, digest, 1).unwrap_err();
    assert!(
        matches!(error, Error::NotFound { what: What::Blob, digest: d } if d == digest),
        "{error}"
    );
}

#[test]
fn a_held_file_has_no_place_until_it_is_given_one() {
    let (folder, store) = fixture();
    let mut ingest = store.ingest();
    let (kept, size) = ingest.hold_file("values.yaml", &b"kept"[..]).unwrap();
    let (left, _) = ingest.hold_file("values.yaml", &b"left out"[..]).unwrap();
    assert_eq!((ingest.file_count(), size), (0, 4));
    ingest.add_stored("values.yaml", false, kept, size).unwrap();
    let record = ingest.finish(meta("ExternalArtifact", "made")).unwrap();
    let root = store.directory(&record.tree).unwrap();
    assert_eq!(root.entries().len(), 1);
    assert_eq!(root.entries()[0].digest, kept);
    assert!(store.read_blob(&left, 0).is_err(), "nobody holds it any more");
    assert_eq!(count(&folder, "blobs"), 1);
}

#[test]
fn a_path_that_leads_elsewhere_is_refused_and_holds_nothing() {
    let (folder, store) = fixture();
    let mut ingest = store.ingest();
    let (digest, size) = ingest.hold_file("x", &b"1"[..]).unwrap();
    for path in ["../a", "/a", "", "a/../../b"] {
        let error = ingest.add_stored(path, false, digest, size).unwrap_err();
        assert!(matches!(error, Error::AddFile(_)), "{path:?}: {error}");
    }
    drop(ingest);
    assert_eq!(count(&folder, "blobs"), 0);
}

#[test]
fn an_artifact_can_be_named_by_its_content() {
    let (_folder, store) = fixture();
    let mut ingest = store.ingest();
    ingest.add_file("a", false, &b"1"[..]).unwrap();
    let name = |digest: &Digest| format!("latest@{digest}");
    let record = ingest
        .finish_named(meta("ExternalArtifact", "made"), name)
        .unwrap();
    assert_eq!(record.revision, format!("latest@{}", record.digest));
    assert_eq!(store.current("ExternalArtifact", "apps", "made"), Some(record));
}

#[test]
fn an_archive_that_is_taken_as_it_is_is_known_as_such_after_a_restart_too() {
    let (folder, store) = fixture();
    let mut ingest = store.ingest();
    ingest.add_file("a", false, &b"1"[..]).unwrap();
    ingest.set_archive(&b"somebody else's bytes"[..]).unwrap();
    let verbatim = ingest.finish(meta("HelmChart", "chart")).unwrap();
    let made = put(&store, "source", &[("a", "1")]);
    assert_eq!(
        (store.is_verbatim(&verbatim), store.is_verbatim(&made)),
        (true, false)
    );
    drop(store);
    let (store, report) = Store::open(folder.path(), Options::default()).unwrap();
    assert_eq!((report.artifacts, report.dropped.len()), (2, 0));
    assert_eq!(
        (store.is_verbatim(&verbatim), store.is_verbatim(&made)),
        (true, false)
    );
    let another = Record {
        revision: "another".to_owned(),
        ..made
    };
    assert!(
        store.is_verbatim(&another),
        "of what is not known the tree is not believed"
    );
}

#[test]
fn everybody_who_has_the_same_content_holds_it() {
    let (_folder, store) = fixture();
    let one = put(&store, "one", &[("a", "1")]);
    let two = put(&store, "two", &[("a", "1")]);
    assert_eq!(one.tree, two.tree);
    let both = BTreeSet::from(["one", "two"].map(|name| ObjectKey::new("GitRepository", "apps", name)));
    assert_eq!(store.holders_of_archive(&one.digest), both);
    assert_eq!(store.holders_of_tree(&one.tree), both);
    store.remove_object("GitRepository", "apps", "one").unwrap();
    assert_eq!(store.holders_of_tree(&one.tree).len(), 1);
}
