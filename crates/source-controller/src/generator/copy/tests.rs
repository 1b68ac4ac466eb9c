//! Copy operations against those of source-watcher 2.2.1's builder: 356 recorded with its applyCopyOperations, with the
//! files that came out and their checksum, or the error.

use std::collections::BTreeMap;

use artifact::store::{Options, RecordMeta};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::generator::filename::{Adler, checksum};

#[derive(Deserialize)]
struct Recorded {
    sources: BTreeMap<String, BTreeMap<String, String>>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    copy: Vec<CopyOperation>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    hash: String,
    error: Option<String>,
}

/// Words of Go's system calls and libraries, which are not ours.
const FOREIGN_WORDS: [&str; 4] = ["statat", "mkdirat", "openat", "unmarshal"];

fn store() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(directory.path(), Options::default()).unwrap();
    (directory, store)
}

fn add_source(store: &Store, name: &str, files: &BTreeMap<String, String>) -> Source {
    let mut ingest = store.ingest();
    for (path, text) in files {
        let bytes = match text.strip_prefix("b64:") {
            Some(encoded) => STANDARD.decode(encoded).unwrap(),
            None => text.clone().into_bytes(),
        };
        match path.strip_suffix('/') {
            Some(folder) => ingest.add_directory(folder).unwrap(),
            None => ingest.add_file(path, false, bytes.as_slice()).unwrap(),
        }
    }
    let meta = RecordMeta {
        kind: "GitRepository".to_owned(),
        namespace: "team".to_owned(),
        name: name.to_owned(),
        filename: "1.tar.gz".to_owned(),
        ..RecordMeta::default()
    };
    let record = ingest.finish(meta).unwrap();
    Source::stored(store.clone(), record.tree)
}

type Outcome = std::result::Result<(BTreeMap<String, String>, String), String>;

fn run(copy: &[CopyOperation], sources: &HashMap<String, Source>, store: &Store, steps: u64) -> Outcome {
    let budget = Budget::new(steps);
    let copier = Copier {
        store,
        sources,
        budget: &budget,
    };
    let mut ingest = store.ingest();
    let stage = copier
        .apply(copy, &mut ingest)
        .map_err(|error| error_chain::chain(&error))?;
    let (mut files, mut sums) = (BTreeMap::new(), Vec::new());
    for (path, file) in stage.entries() {
        let Some(file) = file else {
            files.insert(path + "/", String::new());
            continue;
        };
        let mut bytes = Vec::new();
        let mut content = store.read_blob(&file.digest, 0).unwrap();
        content.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, file.size);
        sums.push((path.clone(), Adler::from_reader(bytes.as_slice()).unwrap()));
        files.insert(path, String::from_utf8_lossy(&bytes).into_owned());
    }
    Ok((files, checksum("out", &sums).to_string()))
}

#[test]
fn operations_do_what_those_of_source_watcher_do() {
    let recorded: Recorded = serde_json::from_str(include_str!("recorded.json")).unwrap();
    let (_directory, store) = store();
    let sources = recorded.sources.iter();
    let sources: HashMap<String, Source> = sources
        .map(|(alias, files)| (alias.clone(), add_source(&store, alias, files)))
        .collect();
    let mut wrong = Vec::new();
    for case in &recorded.cases {
        let found = run(&case.copy, &sources, &store, 1 << 30);
        let as_recorded = match (&found, &case.error) {
            (Ok((files, hash)), None) => {
                // What is no text went through a lossy conversion in both.
                let known = |path: &String, text: &String| files.get(path).is_some_and(|own| own == text);
                files.len() == case.files.len()
                    && case.files.iter().all(|(path, text)| {
                        known(path, text) || (path.to_lowercase().ends_with("gz") && files.contains_key(path))
                    })
                    && *hash == case.hash
            }
            (Err(own), Some(theirs)) => {
                own == theirs || FOREIGN_WORDS.iter().any(|word| theirs.contains(word))
            }
            _ => false,
        };
        if !as_recorded {
            let names = found.map(|(files, _)| files);
            wrong.push(format!(
                "{:?}\n  ours:   {names:?}\n  theirs: {:?} {:?}",
                case.copy, case.files, case.error
            ));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(recorded.cases.len(), 356);
}

#[test]
fn nothing_leaves_the_artifact() {
    let (_directory, store) = store();
    let files = BTreeMap::from([("a".to_owned(), "x".to_owned())]);
    let sources = HashMap::from([("s".to_owned(), add_source(&store, "s", &files))]);
    for (from, to) in [
        ("@s/a", "@artifact/../x"),
        ("@s/a", "@artifact//etc/passwd"),
        ("@s/*", "@artifact/b/../../x/"),
        ("@s/../../a", "@artifact/"),
    ] {
        let copy = serde_json::from_value(json!([{"from": from, "to": to}])).unwrap();
        let copy: Vec<CopyOperation> = copy;
        match run(&copy, &sources, &store, 1 << 20) {
            Ok((files, _)) => assert!(files.keys().all(|path| path.starts_with("etc")), "{files:?}"),
            Err(message) => assert!(message.contains("escapes"), "{message}"),
        }
    }
}

#[test]
fn work_without_end_is_given_up() {
    let (_directory, store) = store();
    let files = BTreeMap::from([("a".repeat(60), "x".to_owned())]);
    let sources = HashMap::from([("s".to_owned(), add_source(&store, "s", &files))]);
    let copy = json!([{"from": "@s/*", "to": "@artifact/", "exclude": ["{a,a}".repeat(60) + "b"]}]);
    let copy: Vec<CopyOperation> = serde_json::from_value(copy).unwrap();
    let message = run(&copy, &sources, &store, 1 << 20).unwrap_err();
    assert!(message.contains("more work than"), "{message}");
}
