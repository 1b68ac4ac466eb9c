//! The limits of a substitution hold for all objects together, not for each.

use std::collections::BTreeMap;

use api::kustomize::{KustomizationSpec, PostBuild};
use flux_spec::build::{Mode, build, substitute};
use kustomize_build::MemoryFs;

fn refused(uses: &str, value: String) -> String {
    let object = |number: usize| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a{number}}}\ndata:\n  a: {uses}\n")
    };
    let mut files = MemoryFs::default();
    files.insert("all.yaml", (0..100).map(object).collect::<Vec<_>>().join("---\n"));
    let mut objects = build(&files, "", &KustomizationSpec::default()).expect("it is small");
    let post_build = PostBuild {
        substitute: BTreeMap::from([("v".to_owned(), value)]),
        ..PostBuild::default()
    };
    let refused = substitute(&mut objects, &post_build, Mode::Lenient, &|_| None);
    let error = refused.expect_err("it is too much");
    let source = std::error::Error::source(&error).map(ToString::to_string);
    let cause = std::error::Error::source(&error).and_then(std::error::Error::source);
    format!("{error}: {source:?}: {cause:?}")
}

#[test]
fn the_text_of_all_objects_is_bounded() {
    let said = refused("${v}", "x".repeat(1_000_000));
    assert!(said.contains("TooLarge"), "{said}");
}

#[test]
fn the_values_of_all_objects_are_bounded() {
    let said = refused("${v}", format!("[{}x]", "x,".repeat(100_000)));
    assert!(said.contains("values") || said.contains("nodes"), "{said}");
}
