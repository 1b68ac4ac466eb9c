//! Crash tests of the store: a disk that is full at any step, and a process that is killed at any instant.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use super::*;

/// Where the child of the kill test has its store.
const CHILD_STORE: &str = "WINDLASS_TEST_CHILD_STORE";
const ROUNDS: u64 = 12;

fn meta(name: &str, revision: u64) -> RecordMeta {
    RecordMeta {
        kind: "GitRepository".to_owned(),
        namespace: "apps".to_owned(),
        name: name.to_owned(),
        revision: revision.to_string(),
        filename: format!("{revision}.tar.gz"),
        metadata: BTreeMap::new(),
    }
}

/// Stores an artifact with folders, small files, one that is bigger than a buffer, and one that all have.
fn put(store: &Store, name: &str, revision: u64) -> Result<Record> {
    let mut ingest = store.ingest();
    let big: Vec<u8> = (0..100_000_u64)
        .map(|index| (index * 7 + revision) as u8)
        .collect();
    let small = format!("{name} {revision}");
    for (path, content) in [
        ("deploy/app.yaml", small.as_bytes()),
        ("deploy/base/same.yaml", b"the same in all"),
        ("big.bin", &big),
    ] {
        ingest.add_file(path, false, content)?;
    }
    ingest.finish(meta(name, revision))
}

/// Reads the whole artifact and compares each digest.
fn is_whole(store: &Store, record: &Record) -> bool {
    let mut archive = Vec::new();
    store
        .open_archive(&record.digest)
        .unwrap()
        .read_to_end(&mut archive)
        .unwrap();
    let mut folders = vec![record.tree];
    while let Some(folder) = folders.pop() {
        for entry in store.directory(&folder).unwrap().entries() {
            if entry.kind.is_directory() {
                folders.push(entry.digest);
                continue;
            }
            let mut content = Vec::new();
            store
                .read_blob(&entry.digest, 0)
                .unwrap()
                .read_to_end(&mut content)
                .unwrap();
            if Digest::from_content(&content) != entry.digest {
                return false;
            }
        }
    }
    Digest::from_content(&archive) == record.digest
}

fn files_in(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_disk_that_is_full_at_any_step_leaves_the_old_artifact_and_nothing_torn() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(folder.path(), Options::default()).unwrap();
    let old = put(&store, "web", 1).unwrap();
    let counts = || {
        ["records", "archives", "directories", "blobs", "temporary"]
            .map(|name| files_in(&folder.path().join(name)))
    };
    let before = counts();
    let room = &store.inner.files.room;
    let mut failures = 0;
    for left in (0..40).chain((40..120_000).step_by(977)) {
        room.set(left);
        let stored = put(&store, "web", 2);
        room.set(u64::MAX);
        let Err(error) = stored else { break };
        failures += 1;
        assert!(matches!(error, Error::Full { .. }), "{left}: {error:?}");
        assert!(error.to_string().contains("volume is full"), "{error}");
        assert_eq!(
            store.current("GitRepository", "apps", "web").as_ref(),
            Some(&old),
            "{left}"
        );
        assert_eq!(counts(), before, "{left}: what was written in vain takes no room");
        assert!(is_whole(&store, &old));
    }
    assert!(failures > 100, "{failures} steps were tried");
    // When there is room again, the same artifact is stored as if nothing had been.
    let new = put(&store, "web", 3).unwrap();
    assert!(is_whole(&store, &new));
    drop(store);
    let (store, report) = Store::open(folder.path(), Options::default()).unwrap();
    assert!(
        report.dropped.is_empty() && report.repaired.is_empty() && report.swept == 0,
        "{report:?}"
    );
    assert_eq!(store.current("GitRepository", "apps", "web"), Some(new));
}

/// Not a test of its own: what the test below kills.
#[test]
fn the_child_that_stores_until_it_is_killed() {
    let Some(root) = std::env::var_os(CHILD_STORE) else {
        return;
    };
    let options = Options {
        retention_ttl: Duration::ZERO,
        ..Options::default()
    };
    let (store, _) = Store::open(Path::new(&root), options).unwrap();
    let first = store
        .records()
        .iter()
        .filter_map(|record| record.revision.parse::<u64>().ok())
        .max();
    for revision in first.unwrap_or_default() + 1.. {
        let name = ["one", "two", "three"][(revision % 3) as usize];
        let record = put(&store, name, revision).unwrap();
        // The test harness's own output may be captured; this is not.
        writeln!(std::io::stderr(), "stored {name} {}", record.revision).unwrap();
        if revision % 5 == 0 {
            store.collect_garbage(Timestamp::MAX).unwrap();
        }
        if revision % 11 == 0 {
            store.remove_object("GitRepository", "apps", "three").unwrap();
        }
    }
}

fn start_child(root: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "store::crash_tests::the_child_that_stores_until_it_is_killed",
            "--exact",
            "--nocapture",
        ])
        .env(CHILD_STORE, root)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn a_process_that_is_killed_at_any_instant_loses_nothing_that_it_said_was_stored() {
    let folder = tempfile::tempdir().unwrap();
    let mut said: BTreeMap<String, u64> = BTreeMap::new();
    for round in 0..ROUNDS {
        let mut child = start_child(folder.path());
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut told = Vec::from_iter(lines.next());
        // At other instants each time: a prime number of microseconds hits every step sooner or later.
        std::thread::sleep(Duration::from_micros(1 + round * 7919));
        child.kill().unwrap();
        child.wait().unwrap();
        told.extend(lines);
        for line in told.into_iter().map_while(std::result::Result::ok) {
            if let Some((name, revision)) = line.strip_prefix("stored ").and_then(|rest| rest.split_once(' '))
            {
                said.insert(name.to_owned(), revision.parse().unwrap());
            }
        }
        let (store, report) = Store::open(folder.path(), Options::default()).unwrap();
        assert!(report.dropped.is_empty(), "round {round}: {report:?}");
        for record in store.records() {
            assert!(is_whole(&store, &record), "round {round}: {record:?}");
        }
        for (name, revision) in &said {
            // "three" is removed now and then.
            if let Some(current) = store.current("GitRepository", "apps", name) {
                assert!(
                    current.revision.parse::<u64>().unwrap() >= *revision,
                    "round {round}: {name}"
                );
            } else {
                assert_eq!(name, "three", "round {round}");
            }
        }
        drop(store);
        let (_, again) = Store::open(folder.path(), Options::default()).unwrap();
        assert!(
            again.repaired.is_empty() && again.dropped.is_empty() && again.swept == 0,
            "{again:?}"
        );
    }
    assert!(
        said.values().sum::<u64>() > ROUNDS,
        "the children stored something"
    );
}
