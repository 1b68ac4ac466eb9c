//! Copies: an artifact of one store in another, and what is refused.

use std::{collections::BTreeMap, fs};

use tempfile::TempDir;

use super::*;

struct Pair {
    folders: [TempDir; 2],
    theirs: Store,
    ours: Store,
}

fn pair() -> Pair {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let open = |folder: &TempDir| Store::open(folder.path(), Options::default()).unwrap().0;
    let (theirs, ours) = (open(&folders[0]), open(&folders[1]));
    Pair {
        folders,
        theirs,
        ours,
    }
}

impl Pair {
    fn put(&self, name: &str, file: &str, verbatim: Option<&[u8]>, files: &[(&str, &str)]) -> Record {
        let mut ingest = self.theirs.ingest();
        for (path, content) in files {
            ingest.add_file(path, *path == "run", content.as_bytes()).unwrap();
        }
        if let Some(bytes) = verbatim {
            ingest.set_archive(bytes).unwrap();
        }
        let meta = RecordMeta {
            kind: "GitRepository".to_owned(),
            namespace: "apps".to_owned(),
            name: name.to_owned(),
            revision: file.to_owned(),
            filename: format!("{file}.tar.gz"),
            metadata: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
        };
        ingest.finish(meta).unwrap()
    }

    fn begin(&self, record: &Record) -> Copy {
        self.ours
            .copy(record.clone(), self.theirs.is_verbatim(record))
            .unwrap()
    }

    fn copy(&self, record: &Record) -> Record {
        let mut copy = self.begin(record);
        if copy.wants_archive() {
            copy.set_archive(self.theirs.open_archive(&record.digest).unwrap())
                .unwrap();
        }
        assert!(copy.unpack().unwrap());
        copy.finish().unwrap()
    }

    /// What is in the folders of one of them.
    fn files(&self, index: usize) -> Vec<String> {
        let mut names = Vec::new();
        for folder in ["archives", "blobs", "directories", "records", "temporary"] {
            for entry in fs::read_dir(self.folders[index].path().join(folder)).unwrap() {
                names.push(format!(
                    "{folder}/{}",
                    entry.unwrap().file_name().to_string_lossy()
                ));
            }
        }
        names.sort();
        names
    }
}

#[test]
fn a_copy_is_equal_and_current_and_shares_what_is_there() {
    let pair = pair();
    let first = pair.put("app", "1", None, &[("a/b", "1"), ("run", "x"), ("same", "s")]);
    assert_eq!(pair.copy(&first), first);
    assert_eq!(pair.files(0), pair.files(1));
    assert_eq!(
        pair.ours.current("GitRepository", "apps", "app"),
        Some(first.clone())
    );
    assert!(!pair.ours.is_verbatim(&first));

    // The same content for another object needs no bytes at all.
    let other = pair.put("other", "1", None, &[("a/b", "1"), ("run", "x"), ("same", "s")]);
    let mut copy = pair.begin(&other);
    assert!(!copy.wants_archive() && copy.unpack().unwrap());
    copy.finish().unwrap();

    // It becomes the current one, also where the other store went back to what it had.
    let second = pair.put("app", "2", None, &[("a/b", "2")]);
    pair.copy(&second);
    let again = pair.put("app", "1", None, &[("a/b", "1"), ("run", "x"), ("same", "s")]);
    pair.copy(&again);
    assert_eq!(pair.ours.current("GitRepository", "apps", "app"), Some(again));
    let reopened = Store::open(pair.folders[1].path(), Options::default()).unwrap().1;
    assert_eq!((reopened.artifacts, reopened.dropped.len()), (3, 0));
}

#[test]
fn an_archive_that_was_taken_as_it_is_stays_what_it_is() {
    let pair = pair();
    let index = pair.put("index", "1", Some(b"apiVersion: v1"), &[]);
    pair.copy(&index);
    assert!(pair.ours.is_verbatim(&index));
    // The tree is not in the archive: it comes file by file, or not at all.
    let chart = pair.put(
        "chart",
        "1",
        Some(b"no archive"),
        &[("web/Chart.yaml", "name: web")],
    );
    let mut copy = pair.begin(&chart);
    copy.set_archive(&b"no archive"[..]).unwrap();
    assert!(!copy.unpack().unwrap());
    copy.add_directory("web").unwrap();
    copy.add_file("web/Chart.yaml", false, &b"name: web"[..]).unwrap();
    copy.finish().unwrap();
    assert_eq!(pair.files(0), pair.files(1));

    // Or all at once, in an archive that is made for it.
    pair.ours.remove_object("GitRepository", "apps", "chart").unwrap();
    let mut tree = Vec::new();
    pair.theirs.write_tree(&chart.tree, &mut tree).unwrap();
    let mut copy = pair.begin(&chart);
    copy.set_archive(&b"no archive"[..]).unwrap();
    assert!(!copy.unpack().unwrap() && copy.unpack_from(tree.as_slice()).unwrap());
    copy.finish().unwrap();
    assert_eq!(pair.files(0), pair.files(1));
}

#[test]
fn what_is_not_what_its_record_says_is_refused_and_leaves_nothing() {
    let pair = pair();
    let record = pair.put("app", "1", None, &[("a", "1")]);
    let other = pair.put("other", "1", None, &[("a", "2")]);
    let mut copy = pair.begin(&record);
    let wrong = pair.theirs.open_archive(&other.digest).unwrap();
    assert!(matches!(
        copy.set_archive(wrong),
        Err(Error::Corrupt {
            what: What::Archive,
            ..
        })
    ));
    drop(copy);

    // A record that names the tree of another.
    let mut forged = record.clone();
    forged.tree = other.tree;
    let mut copy = pair.begin(&forged);
    copy.set_archive(pair.theirs.open_archive(&record.digest).unwrap())
        .unwrap();
    assert!(!copy.unpack().unwrap());
    assert!(matches!(
        copy.finish(),
        Err(Error::Corrupt {
            what: What::Directory,
            ..
        })
    ));

    for path in [
        "gitrepository/apps/other/1.tar.gz",
        "gitrepository/apps/app/../x",
        "gitrepository/apps/app/",
        "1",
    ] {
        let mut forged = record.clone();
        path.clone_into(&mut forged.path);
        assert!(pair.ours.copy(forged, false).is_err(), "{path}");
    }
    assert_eq!(pair.files(1), Vec::<String>::new());
}
