//! Whole artifacts: names, revisions and metadata, sharing with the sources, and what is not stored twice.

use std::collections::{BTreeMap, HashMap};

use api::source_extensions::ArtifactGeneratorSpec;
use artifact::store::{Options, RecordMeta, Store};
use serde_json::json;

use super::*;
use crate::generator::observe::Content;

struct World {
    _directory: tempfile::TempDir,
    store: Store,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(directory.path(), Options::default()).unwrap();
        Self {
            _directory: directory,
            store,
        }
    }

    fn commit(&self, revision: &str, files: &[(&str, &str)]) -> Record {
        let mut ingest = self.store.ingest();
        for (path, text) in files {
            ingest.add_file(path, false, text.as_bytes()).unwrap();
        }
        ingest
            .finish(RecordMeta {
                kind: "GitRepository".to_owned(),
                namespace: "team".to_owned(),
                name: "repo".to_owned(),
                revision: revision.to_owned(),
                filename: "repo.tar.gz".to_owned(),
                ..RecordMeta::default()
            })
            .unwrap()
    }

    fn build(&self, source: &Record, output: serde_json::Value) -> Result<Vec<Built>, Error> {
        self.build_beside(source, output, &BTreeMap::new())
    }

    fn build_beside(
        &self,
        source: &Record,
        output: serde_json::Value,
        foreign: &BTreeMap<String, String>,
    ) -> Result<Vec<Built>, Error> {
        let spec = json!({"sources": [], "artifacts": [output]});
        let spec: ArtifactGeneratorSpec = serde_json::from_value(spec).unwrap();
        let input = Input {
            digest: source.digest.to_string(),
            revision: source.revision.clone(),
            url: String::new(),
            origin_revision: None,
            content: Content::Tree(source.tree),
        };
        let inputs = BTreeMap::from([("repo".to_owned(), input)]);
        let files = Source::stored(self.store.clone(), source.tree);
        let sources = HashMap::from([("repo".to_owned(), files)]);
        build("team", &spec, foreign, &inputs, &sources, &self.store)
    }
}

fn output(change: serde_json::Value) -> serde_json::Value {
    let mut output = json!({"name": "out", "copy": [{"from": "@repo/deploy/**", "to": "@artifact/"}]});
    output
        .as_object_mut()
        .unwrap()
        .extend(change.as_object().unwrap().clone());
    output
}

#[test]
fn an_artifact_is_named_by_its_content_and_shares_it_with_its_source() {
    let world = World::new();
    let source = world.commit("main@sha1:1", &[("deploy/a.yaml", "a: 1\n"), ("other", "x")]);
    let built = world.build(&source, output(json!({}))).unwrap();
    let record = &built[0].record;
    assert_eq!(record.revision, format!("latest@{}", record.digest));
    // Adler-32 over "<adler of the file>  out/a.yaml\n", as source-watcher's DirHash has it.
    assert_eq!(record.path, "externalartifact/team/out/978912738.tar.gz");
    let tree = world.store.directory(&record.tree).unwrap();
    let names: Vec<&str> = tree.entries().iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["a.yaml"]);
    assert!(record.metadata.is_empty());
}

#[test]
fn a_commit_elsewhere_changes_nothing() {
    let world = World::new();
    let source = world.commit("main@sha1:1", &[("deploy/a.yaml", "a: 1\n"), ("other", "x")]);
    let first = world.build(&source, output(json!({}))).unwrap();
    let source = world.commit("main@sha1:2", &[("deploy/a.yaml", "a: 1\n"), ("other", "y")]);
    let mut changes = world.store.subscribe();
    let second = world.build(&source, output(json!({}))).unwrap();
    assert_eq!(first[0].record, second[0].record);
    assert!(changes.try_recv().is_err());

    let source = world.commit("main@sha1:3", &[("deploy/a.yaml", "a: 2\n")]);
    let third = world.build(&source, output(json!({}))).unwrap();
    assert_ne!(first[0].record.digest, third[0].record.digest);
}

#[test]
fn revisions_come_from_the_sources_that_are_named() {
    let world = World::new();
    let source = world.commit("main@sha1:1", &[("deploy/a.yaml", "a: 1\n")]);
    let change = json!({"revision": "@repo", "originRevision": "@repo"});
    let built = world.build(&source, output(change)).unwrap();
    let record = &built[0].record;
    assert_eq!(record.revision, "main@sha1:1");
    assert_eq!(record.metadata[ORIGIN_REVISION_KEY], "main@sha1:1");
}

#[test]
fn what_flux_never_archives_is_left_out() {
    let world = World::new();
    let files = [
        ("deploy/a.yaml", "a"),
        ("deploy/x.png", "p"),
        ("deploy/.git/x", "g"),
    ];
    let source = world.commit("main@sha1:1", &files);
    let built = world.build(&source, output(json!({}))).unwrap();
    let tree = world.store.directory(&built[0].record.tree).unwrap();
    let names: Vec<&str> = tree.entries().iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["a.yaml"]);
}

#[test]
fn an_artifact_of_somebody_else_is_not_touched() {
    let world = World::new();
    let source = world.commit("main@sha1:1", &[("deploy/a.yaml", "a: 1\n")]);
    let foreign = BTreeMap::from([("out".to_owned(), "ArtifactGenerator/team/other".to_owned())]);
    let error = world
        .build_beside(&source, output(json!({})), &foreign)
        .unwrap_err();
    assert!(!error.is_certain());
    assert!(
        error
            .to_string()
            .contains("belongs to ArtifactGenerator/team/other")
    );
    assert_eq!(world.store.current(KIND, "team", "out"), None);
}

#[test]
fn a_build_that_would_fail_again_is_told_from_one_that_may_not() {
    let world = World::new();
    let source = world.commit("main@sha1:1", &[("deploy/a.yaml", "a: 1\n")]);
    let copy = json!({"copy": [{"from": "@repo/nope", "to": "@artifact/"}]});
    let error = world.build(&source, output(copy)).unwrap_err();
    assert!(error.is_certain());
    assert_eq!(
        error_chain::chain(&error),
        "out build failed: failed to apply copy operations: failed to apply copy operation from '@repo/nope' to \
         '@artifact/': source 'nope' does not exist"
    );
}
