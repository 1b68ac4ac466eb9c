//! The CRDs in `charts/windlass/files/crds/` are those of the types.

use std::path::Path;

use super::trees;

#[test]
fn the_shipped_crds_are_not_stale() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/windlass/files");
    for (folder, wanted) in [("crds", trees::of_the_types()), ("crds-weave", trees::of_weave())] {
        let shipped = trees::in_folder(&files.join(folder));
        let stale: Vec<_> = shipped
            .keys()
            .chain(wanted.keys())
            .filter(|name| shipped.get(*name) != wanted.get(*name))
            .collect();
        assert!(stale.is_empty(), "run `make generate`: {stale:?}");
    }
}

#[test]
fn every_field_says_what_it_is_for() {
    let mut silent = Vec::new();
    for (file, crd) in trees::of_the_types().into_iter().chain(trees::of_weave()) {
        let versions = crd["spec"]["versions"].as_array().unwrap();
        for schema in versions
            .iter()
            .map(|version| &version["schema"]["openAPIV3Schema"])
        {
            collect_silent(&file, schema, &mut silent);
        }
    }
    assert!(silent.is_empty(), "without a description:\n{}", silent.join("\n"));
}

fn collect_silent(path: &str, schema: &serde_json::Value, silent: &mut Vec<String>) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path} {name}");
        // The API server describes metadata itself.
        let described = field["description"]
            .as_str()
            .is_some_and(|text| text.ends_with('.'));
        if !described && name != "metadata" {
            silent.push(path.clone());
        }
        collect_silent(&path, field, silent);
        collect_silent(&path, &field["items"], silent);
        collect_silent(&path, &field["additionalProperties"], silent);
    }
}
