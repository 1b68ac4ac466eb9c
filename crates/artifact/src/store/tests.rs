//! The store on a real disk: crashes, damage, sharing, concurrency.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, thread};

use tempfile::TempDir;

use super::*;

struct Fixture {
    folder: TempDir,
    store: Store,
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let (store, report) = Store::open(folder.path(), Options::default()).unwrap();
    assert_eq!(report, IntegrityReport::default());
    Fixture { folder, store }
}

impl Fixture {
    /// Opens the folder again, as after a crash: nothing of the old store is written in between.
    fn reopen(self) -> (Self, IntegrityReport) {
        let (store, report) = Store::open(self.folder.path(), Options::default()).unwrap();
        (
            Self {
                folder: self.folder,
                store,
            },
            report,
        )
    }

    fn names(&self, folder: &str) -> BTreeSet<String> {
        let entries = fs::read_dir(self.folder.path().join(folder)).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    fn counts(&self) -> [usize; 4] {
        ["records", "archives", "directories", "blobs"].map(|folder| self.names(folder).len())
    }
}

fn meta(name: &str, revision: &str) -> RecordMeta {
    RecordMeta {
        kind: "GitRepository".to_owned(),
        namespace: "apps".to_owned(),
        name: name.to_owned(),
        revision: format!("main@sha1:{revision}"),
        filename: format!("{revision}.tar.gz"),
        metadata: BTreeMap::from([("key".to_owned(), "value".to_owned())]),
    }
}

fn put(store: &Store, name: &str, revision: &str, files: &[(&str, &str)]) -> Record {
    let mut ingest = store.ingest();
    for (path, content) in files {
        ingest.add_file(path, false, content.as_bytes()).unwrap();
    }
    ingest.finish(meta(name, revision)).unwrap()
}

fn text(mut content: Content) -> String {
    let mut text = String::new();
    content.read_to_string(&mut text).unwrap();
    text
}

/// Every file of the artifact, read through the store.
fn files_of(store: &Store, record: &Record) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![(String::new(), record.tree)];
    while let Some((path, digest)) = folders.pop() {
        for entry in store.directory(&digest).unwrap().entries() {
            let path = format!("{path}/{}", entry.name);
            if entry.kind.is_directory() {
                folders.push((path, entry.digest));
            } else {
                files.insert(path, text(store.read_blob(&entry.digest, 0).unwrap()));
            }
        }
    }
    files
}

#[test]
fn an_artifact_is_found_by_object_digest_and_path() {
    let fixture = fixture();
    let store = &fixture.store;
    let record = put(store, "web", "1", &[("app.yaml", "a: 1"), ("base/b.yaml", "b")]);
    assert_eq!(record.path, "gitrepository/apps/web/1.tar.gz");
    assert_eq!(record.last_update_time.subsec_nanosecond(), 0);
    assert_eq!(
        store.current("GitRepository", "apps", "web").as_ref(),
        Some(&record)
    );
    assert_eq!(
        store.current("gitrepository", "apps", "web").as_ref(),
        Some(&record)
    );
    let web = ObjectKey::new("GitRepository", "apps", "web");
    assert_eq!(store.held(&web, &record.digest).as_ref(), Some(&record));
    let other = ObjectKey::new("GitRepository", "apps", "other");
    assert_eq!(store.held(&other, &record.digest), None);
    assert_eq!(store.by_path(&record.path).as_ref(), Some(&record));
    assert_eq!(
        store.by_path("gitrepository/apps/web/latest.tar.gz").as_ref(),
        Some(&record)
    );
    for path in [
        "GitRepository/apps/web/1.tar.gz",
        "gitrepository/apps/web",
        "gitrepository/apps/web/../web/1.tar.gz",
        "",
    ] {
        assert_eq!(store.by_path(path), None, "{path}");
    }
    assert_eq!(store.current("GitRepository", "other", "web"), None);
    let files: Vec<_> = files_of(store, &record).into_iter().collect();
    assert_eq!(
        files,
        [
            ("/app.yaml".to_owned(), "a: 1".to_owned()),
            ("/base/b.yaml".to_owned(), "b".to_owned())
        ]
    );

    let mut archive = Vec::new();
    store
        .open_archive(&record.digest)
        .unwrap()
        .read_to_end(&mut archive)
        .unwrap();
    assert_eq!(
        (Digest::from_content(&archive), archive.len() as u64),
        (record.digest, record.size)
    );
}

#[test]
fn blobs_are_read_from_an_offset() {
    let fixture = fixture();
    put(&fixture.store, "web", "1", &[("a", "0123456789")]);
    let digest = Digest::from_content(b"0123456789");
    assert_eq!(text(fixture.store.read_blob(&digest, 4).unwrap()), "456789");
    assert_eq!(text(fixture.store.read_blob(&digest, 10).unwrap()), "");
    assert!(matches!(
        fixture.store.read_blob(&digest, 11),
        Err(Error::Offset { size: 10, .. })
    ));
    assert!(matches!(
        fixture.store.read_blob(&Digest::from_content(b"x"), 0),
        Err(Error::NotFound { .. })
    ));
}

#[test]
fn equal_content_is_stored_once() {
    let fixture = fixture();
    let store = &fixture.store;
    let first = put(store, "web", "1", &[("a", "1"), ("b/c", "2")]);
    let again = put(store, "web", "2", &[("b/c", "2"), ("a", "1")]);
    let other = put(store, "other", "1", &[("a", "1"), ("b/c", "2"), ("d", "1")]);
    assert_eq!((first.digest, first.tree), (again.digest, again.tree));
    assert_ne!(first.revision, again.revision);
    assert_eq!(
        store.current("GitRepository", "apps", "web").unwrap().revision,
        "main@sha1:2"
    );
    assert_ne!(first.digest, other.digest);
    // Three records; two archives; two roots and "b"; the blobs "1" and "2".
    assert_eq!(fixture.counts(), [3, 2, 3, 2]);
}

#[test]
fn an_artifact_with_the_same_file_name_is_replaced() {
    let fixture = fixture();
    put(&fixture.store, "web", "1", &[("a", "old")]);
    let record = put(&fixture.store, "web", "1", &[("a", "new")]);
    assert_eq!(fixture.store.records(), std::slice::from_ref(&record));
    assert_eq!(fixture.counts(), [1, 1, 1, 1]);
    let (fixture, report) = fixture.reopen();
    assert_eq!(
        report,
        IntegrityReport {
            artifacts: 1,
            ..IntegrityReport::default()
        }
    );
    assert_eq!(fixture.store.records(), [record]);
}

#[test]
fn a_dropped_or_failed_ingest_leaves_nothing() {
    struct Broken;
    impl io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("connection lost"))
        }
    }
    let fixture = fixture();
    let kept = put(&fixture.store, "web", "1", &[("shared", "s")]);
    let mut ingest = fixture.store.ingest();
    ingest.add_file("shared", false, b"s".as_slice()).unwrap();
    ingest
        .add_file("big", false, vec![7; 300_000].as_slice())
        .unwrap();
    let error = ingest.add_file("x", false, Broken).unwrap_err();
    assert!(
        matches!(&error, Error::ReadSource { path, .. } if path == "x"),
        "{error}"
    );
    assert!(matches!(
        ingest.add_file("../x", false, b"".as_slice()),
        Err(Error::AddFile(_))
    ));
    assert!(matches!(
        ingest.add_file("shared/x", false, b"1".as_slice()),
        Err(Error::AddFile(_))
    ));
    drop(ingest);
    assert_eq!(fixture.counts(), [1, 1, 1, 1]);
    assert!(fixture.names("temporary").is_empty());
    assert_eq!(files_of(&fixture.store, &kept).len(), 1);
}

#[test]
fn names_that_cannot_be_in_a_path_are_refused() {
    let fixture = fixture();
    for (namespace, name, filename) in [
        ("..", "a", "f"),
        ("a", "", "f"),
        ("a", "b/c", "f"),
        ("a", "b", "../f"),
        ("a", "b", "."),
        ("a", "b c", "f"),
    ] {
        let meta = RecordMeta {
            kind: "Bucket".to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            filename: filename.to_owned(),
            ..RecordMeta::default()
        };
        assert!(
            matches!(fixture.store.ingest().finish(meta), Err(Error::Name(_))),
            "{namespace} {name} {filename}"
        );
    }
    assert_eq!(fixture.counts(), [0, 0, 0, 0]);
}

#[test]
fn retain_drops_files_after_they_were_added() {
    let fixture = fixture();
    let mut ingest = fixture.store.ingest();
    ingest.add_file("keep", false, b"1".as_slice()).unwrap();
    ingest.add_file("drop", false, b"2".as_slice()).unwrap();
    ingest.retain(|path, _| path == "keep");
    assert_eq!(ingest.file_count(), 1);
    let record = ingest.finish(meta("web", "1")).unwrap();
    assert_eq!(files_of(&fixture.store, &record).len(), 1);
    assert_eq!(fixture.counts(), [1, 1, 1, 1]);
}

#[test]
fn an_archive_that_is_taken_as_it_is_keeps_its_bytes() {
    let fixture = fixture();
    let mut ingest = fixture.store.ingest();
    ingest.set_archive(b"chart".as_slice()).unwrap();
    let record = ingest.finish(meta("chart", "1")).unwrap();
    assert_eq!((record.digest, record.size), (Digest::from_content(b"chart"), 5));
    // An artifact with the same (empty) tree gets a real archive.
    let empty = put(&fixture.store, "empty", "1", &[]);
    assert_ne!(empty.digest, record.digest);
    let (fixture, report) = fixture.reopen();
    assert_eq!((report.artifacts, report.dropped.len()), (2, 0));
    assert_eq!(text(fixture.store.open_archive(&record.digest).unwrap()), "chart");
}

#[test]
fn garbage_collection_removes_what_only_old_artifacts_need() {
    let fixture = fixture();
    let store = &fixture.store;
    put(store, "web", "1", &[("a", "1"), ("same", "s")]);
    put(store, "web", "2", &[("a", "2"), ("same", "s")]);
    let current = put(store, "web", "3", &[("a", "3"), ("same", "s")]);
    let now = Timestamp::now();
    assert_eq!(store.collect_garbage(now).unwrap().records, 1, "more than two");
    assert_eq!(fixture.counts(), [2, 2, 2, 3]);
    let later = now + Duration::from_secs(61);
    assert_eq!(
        store.collect_garbage(later).unwrap().records,
        1,
        "older than a minute"
    );
    assert_eq!(store.collect_garbage(later).unwrap(), Collected::default());
    assert_eq!(fixture.counts(), [1, 1, 1, 2]);
    assert_eq!(files_of(store, &current).len(), 2);
}

#[test]
fn removing_an_object_keeps_what_others_share() {
    let fixture = fixture();
    let store = &fixture.store;
    put(store, "web", "1", &[("a", "1")]);
    put(store, "web", "2", &[("a", "2")]);
    let other = put(store, "other", "1", &[("a", "2")]);
    assert_eq!(store.remove_object("GitRepository", "apps", "web").unwrap(), 2);
    assert_eq!(store.remove_object("GitRepository", "apps", "web").unwrap(), 0);
    assert_eq!(store.records(), std::slice::from_ref(&other));
    assert_eq!(fixture.counts(), [1, 1, 1, 1]);
    assert_eq!(files_of(store, &other)["/a"], "2");
    let (_, report) = fixture.reopen();
    assert_eq!(
        report,
        IntegrityReport {
            artifacts: 1,
            ..IntegrityReport::default()
        }
    );
}

#[test]
fn garbage_collection_leaves_alone_what_an_ingest_found() {
    let fixture = fixture();
    let store = &fixture.store;
    put(store, "web", "1", &[("a", "shared"), ("d/x", "deep")]);
    let mut ingest = store.ingest();
    ingest.add_file("a", false, b"shared".as_slice()).unwrap();
    ingest.add_file("d/x", false, b"deep".as_slice()).unwrap();
    store.remove_object("GitRepository", "apps", "web").unwrap();
    let record = ingest.finish(meta("new", "1")).unwrap();
    assert_eq!(files_of(store, &record).len(), 2);
    let (fixture, report) = fixture.reopen();
    assert_eq!(
        report,
        IntegrityReport {
            artifacts: 1,
            ..IntegrityReport::default()
        }
    );
    assert_eq!(fixture.counts(), [1, 1, 2, 2]);
}

#[test]
fn concurrent_ingests_and_collections_lose_nothing() {
    let fixture = fixture();
    let store = &fixture.store;
    thread::scope(|scope| {
        for worker in 0..6 {
            scope.spawn(move || {
                for round in 0..15 {
                    let own = format!("{worker} {round}");
                    // "common" is equal for all, "round" for some, and objects come and go.
                    let files = [
                        ("common/a", "c"),
                        ("common/b/c", "d"),
                        ("own", own.as_str()),
                        ("round", &own[2..]),
                    ];
                    let name = format!("object-{worker}");
                    let record = put(store, &name, &round.to_string(), &files);
                    assert_eq!(files_of(store, &record).len(), 4);
                    if round % 5 == 4 {
                        store.remove_object("GitRepository", "apps", &name).unwrap();
                    }
                    store
                        .collect_garbage(Timestamp::now() + Duration::from_secs(61))
                        .unwrap();
                    drop(store.ingest());
                }
            });
        }
    });
    for worker in 0..6 {
        put(store, &format!("object-{worker}"), "last", &[("common/a", "c")]);
    }
    store
        .collect_garbage(Timestamp::now() + Duration::from_secs(61))
        .unwrap();
    assert_eq!(fixture.counts(), [6, 1, 2, 1]);
    let (_, report) = fixture.reopen();
    assert_eq!(
        report,
        IntegrityReport {
            artifacts: 6,
            ..IntegrityReport::default()
        }
    );
}

#[test]
fn what_a_crash_left_is_swept() {
    let fixture = fixture();
    let record = put(&fixture.store, "web", "1", &[("a", "1")]);
    fs::write(fixture.path("temporary/.tmpABC"), "half a file").unwrap();
    fs::write(
        fixture.path("blobs").join(Digest::from_content(b"orphan").hex()),
        "orphan",
    )
    .unwrap();
    fs::write(
        fixture
            .path("archives")
            .join(Digest::from_content(b"orphan").hex() + ".tar.gz"),
        "orphan",
    )
    .unwrap();
    fs::write(fixture.path("directories/not-a-digest"), "").unwrap();
    let (fixture, report) = fixture.reopen();
    assert_eq!(
        report,
        IntegrityReport {
            artifacts: 1,
            swept: 4,
            ..IntegrityReport::default()
        }
    );
    assert_eq!(fixture.store.records(), [record]);
    assert_eq!(fixture.counts(), [1, 1, 1, 1]);
    assert!(fixture.names("temporary").is_empty());
}

/// Damages one file of an artifact "1" that shares the file "s" with an artifact "2".
fn damaged(damage: impl Fn(&Fixture, &Record)) -> (Fixture, IntegrityReport) {
    let fixture = fixture();
    let record = put(
        &fixture.store,
        "one",
        "1",
        &[("a", "only one"), ("d/s", "shared")],
    );
    put(
        &fixture.store,
        "two",
        "1",
        &[("b", "only two"), ("d/s", "shared")],
    );
    damage(&fixture, &record);
    fixture.reopen()
}

#[test]
fn missing_and_torn_blobs_and_folders_are_rebuilt_from_the_archive() {
    let blob = |content: &str| format!("blobs/{}", Digest::from_content(content.as_bytes()).hex());
    let table = [
        ("own blob", Some(blob("only one"))),
        ("shared blob", Some(blob("shared"))),
        ("root folder", None),
    ];
    for (what, path) in table {
        let path_of = |record: &Record| {
            path.clone()
                .unwrap_or(format!("directories/{}", record.tree.hex()))
        };
        for content in [
            None,
            Some(""),
            Some("only onE"),
            Some("something longer than before"),
        ] {
            let (fixture, report) = damaged(|fixture, record| match content {
                None => fs::remove_file(fixture.path(&path_of(record))).unwrap(),
                Some(content) => fs::write(fixture.path(&path_of(record)), content).unwrap(),
            });
            assert_eq!(
                report.repaired,
                ["gitrepository/apps/one/1.tar.gz"],
                "{what} {content:?}"
            );
            assert_eq!(
                (report.artifacts, report.dropped.len()),
                (2, 0),
                "{what} {content:?}"
            );
            for record in fixture.store.records() {
                assert_eq!(
                    files_of(&fixture.store, &record)["/d/s"],
                    "shared",
                    "{what} {content:?}"
                );
            }
            let (_, report) = fixture.reopen();
            assert_eq!(
                report,
                IntegrityReport {
                    artifacts: 2,
                    ..IntegrityReport::default()
                },
                "{what} {content:?}"
            );
        }
    }
}

#[test]
fn artifacts_with_a_damaged_archive_or_record_are_dropped_and_reported() {
    let archive = |record: &Record| format!("archives/{}.tar.gz", record.digest.hex());
    let record_file = |record: &Record| {
        format!(
            "records/{}.json",
            Digest::from_content(record.path.as_bytes()).hex()
        )
    };
    let truncate = |path: PathBuf| {
        let bytes = fs::read(&path).unwrap();
        fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    };
    let flip = |path: PathBuf| {
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    type Damage<'a> = Box<dyn Fn(&Fixture, &Record) + 'a>;
    let table: Vec<(&str, Damage<'_>, &str)> = vec![
        (
            "archive missing",
            Box::new(|f, r| fs::remove_file(f.path(&archive(r))).unwrap()),
            "archive is missing",
        ),
        (
            "archive cut",
            Box::new(|f, r| truncate(f.path(&archive(r)))),
            "archive is missing or damaged",
        ),
        (
            "archive flipped",
            Box::new(|f, r| flip(f.path(&archive(r)))),
            "archive is missing or damaged",
        ),
        (
            "record cut",
            Box::new(|f, r| truncate(f.path(&record_file(r)))),
            "record cannot be read",
        ),
        (
            "record empty",
            Box::new(|f, r| fs::write(f.path(&record_file(r)), "").unwrap()),
            "record cannot be read",
        ),
        (
            "record not JSON",
            Box::new(|f, r| fs::write(f.path(&record_file(r)), [0xff; 100]).unwrap()),
            "record cannot be read",
        ),
        (
            "record of another path",
            Box::new(|f, r| {
                let text = fs::read_to_string(f.path(&record_file(r))).unwrap();
                fs::write(
                    f.path(&record_file(r)),
                    text.replace("one/1.tar.gz", "one/../../1.tar.gz"),
                )
                .unwrap();
            }),
            "record cannot be read",
        ),
        (
            "record with another tree",
            Box::new(|f, r| {
                let text = fs::read_to_string(f.path(&record_file(r))).unwrap();
                let other = Digest::from_content(b"unknown").to_string();
                fs::write(f.path(&record_file(r)), text.replace(&r.tree.to_string(), &other)).unwrap();
            }),
            "the archive does not have it",
        ),
        (
            "record huge",
            Box::new(|f, r| fs::write(f.path(&record_file(r)), vec![b' '; 2 << 20]).unwrap()),
            "record cannot be read",
        ),
    ];
    for (what, damage, expected) in table {
        let (fixture, report) = damaged(damage);
        assert_eq!(report.artifacts, 1, "{what}");
        assert_eq!(report.dropped.len(), 1, "{what}");
        assert!(report.dropped[0].reason.contains(expected), "{what}: {report:?}");
        let left = fixture.store.records();
        assert_eq!((left.len(), left[0].name.as_str()), (1, "two"), "{what}");
        assert_eq!(files_of(&fixture.store, &left[0])["/d/s"], "shared", "{what}");
        assert_eq!(fixture.counts(), [1, 1, 2, 2], "{what}");
        let (_, report) = fixture.reopen();
        assert_eq!(
            report,
            IntegrityReport {
                artifacts: 1,
                ..IntegrityReport::default()
            },
            "{what}"
        );
    }
}

#[test]
fn order_survives_a_restart() {
    let fixture = fixture();
    for revision in ["c", "a", "b"] {
        put(&fixture.store, "web", revision, &[("a", revision)]);
    }
    let before = fixture.store.records();
    let (fixture, _) = fixture.reopen();
    assert_eq!(fixture.store.records(), before);
    assert_eq!(
        fixture
            .store
            .current("GitRepository", "apps", "web")
            .unwrap()
            .revision,
        "main@sha1:b"
    );
    put(&fixture.store, "web", "0", &[]);
    let (fixture, _) = fixture.reopen();
    assert_eq!(
        fixture
            .store
            .current("GitRepository", "apps", "web")
            .unwrap()
            .revision,
        "main@sha1:0"
    );
}

#[test]
fn subscribers_see_what_becomes_current_and_what_goes() {
    let fixture = fixture();
    let mut changes = fixture.store.subscribe();
    let first = put(&fixture.store, "web", "1", &[("a", "1")]);
    let second = put(&fixture.store, "web", "2", &[("a", "2")]);
    fixture
        .store
        .collect_garbage(Timestamp::now() + Duration::from_secs(61))
        .unwrap();
    fixture
        .store
        .remove_object("GitRepository", "apps", "web")
        .unwrap();
    assert_eq!(changes.try_recv().unwrap(), Change::Stored(first));
    assert_eq!(changes.try_recv().unwrap(), Change::Stored(second.clone()));
    assert_eq!(changes.try_recv().unwrap(), Change::Removed(second));
    assert!(changes.try_recv().is_err());
}

#[test]
fn a_hundred_small_artifacts_take_less_than_seconds() {
    let fixture = fixture();
    let store = &fixture.store;
    let begin = std::time::Instant::now();
    thread::scope(|scope| {
        for worker in 0..4 {
            scope.spawn(move || {
                for index in 0..25 {
                    let files: Vec<(String, String)> = (0..5)
                        .map(|file| (format!("apps/{file}.yaml"), format!("{worker} {index} {file}")))
                        .collect();
                    let files: Vec<_> = files
                        .iter()
                        .map(|(path, text)| (path.as_str(), text.as_str()))
                        .collect();
                    put(store, &format!("object-{worker}-{index}"), "1", &files);
                }
            });
        }
    });
    let elapsed = begin.elapsed();
    println!("100 artifacts of 5 files: {elapsed:?}");
    // Two synced files each. The bound is for the slowest disk of a loaded machine; it was 0.1 s on an idle one.
    assert!(elapsed < Duration::from_secs(20), "{elapsed:?}");
    assert_eq!(store.records().len(), 100);
}
