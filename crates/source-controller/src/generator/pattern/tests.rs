use std::collections::{BTreeMap, HashMap};

use api::source_extensions::ArtifactGeneratorSpec;
use artifact::tree;
use serde_json::json;

use super::*;

fn source(folders: &[&str]) -> HashMap<String, Source> {
    let mut builder = tree::Builder::new();
    for folder in folders {
        builder.folder(folder).unwrap();
    }
    HashMap::from([("repo".to_owned(), Source::unpacked(builder.finish().0))])
}

fn expanded(pattern: &str, name: &str, folders: &[&str]) -> Result<Vec<Wanted>, String> {
    let spec = json!({
        "sources": [],
        "pathPattern": pattern,
        "artifacts": [{"name": name, "copy": [{"from": "@repo/apps/{app}/**", "to": "@artifact/{app}/"}]}],
    });
    let spec: ArtifactGeneratorSpec = serde_json::from_value(spec).unwrap();
    expand(&spec, &source(folders)).map_err(|error| {
        assert!(error.is_terminal());
        error.to_string()
    })
}

#[test]
fn each_folder_gives_an_artifact_with_lower_case_labels_and_its_own_paths() {
    let wanted = expanded(
        "@repo/apps/{app}",
        "x-{app}",
        &["apps/Auth/sub", "apps/web", "libs/z"],
    )
    .unwrap();
    let found: Vec<_> = wanted
        .iter()
        .map(|wanted| {
            let copy = &wanted.output.copy[0];
            (wanted.output.name.as_str(), copy.from.as_str(), copy.to.as_str())
        })
        .collect();
    assert_eq!(
        found,
        [
            ("x-auth", "@repo/apps/Auth/**", "@artifact/Auth/"),
            ("x-web", "@repo/apps/web/**", "@artifact/web/")
        ]
    );
    assert_eq!(
        wanted[0].labels,
        BTreeMap::from([("app".to_owned(), "auth".to_owned())])
    );
}

#[test]
fn captures_share_a_part_of_the_path_greedily() {
    let wanted = expanded("@repo/{app}-{env}", "{app}.{env}", &["a-b-c", "a.b"]).unwrap();
    assert_eq!(wanted.len(), 1);
    assert_eq!(wanted[0].output.name, "a-b.c");
}

#[test]
fn what_is_wrong_with_a_pattern_is_said() {
    let cases = [
        ("repo/{app}", "x", "invalid pathPattern format: repo/{app}"),
        (
            "@other/{app}",
            "x",
            "source alias other not found in local sources",
        ),
        (
            "@repo/{app",
            "x",
            "invalid capture starting at offset 0: missing closing brace",
        ),
        (
            "@repo/a}",
            "x",
            "invalid capture ending at offset 1: missing opening brace",
        ),
        ("@repo/{}", "x", "empty capture variable"),
        (
            "@repo/{1a}",
            "x",
            "capture variable \"1a\" must be a valid capture name matching",
        ),
        ("@repo/{a}/{a}", "x", "duplicate capture variable \"a\""),
        (
            "@repo/{_app}",
            "x",
            "capture variable \"_app\" is not a valid Kubernetes label key",
        ),
        (
            "@repo/apps/{app}",
            "x",
            "directories \"apps/A\" and \"apps/a\" both resolve to artifact name \"x\"",
        ),
        ("@repo/apps/{app}", "{app}", "both resolve to artifact name \"a\""),
        (
            "@repo/apps/{app}",
            "{other}",
            "capture variable \"other\" is not defined by pathPattern",
        ),
        (
            "@repo/apps/{app}",
            "{app",
            "failed to render artifact {app for match apps/A: invalid template",
        ),
        (
            "@repo/apps/{app}",
            "_{app}",
            "is not a valid Kubernetes object name",
        ),
        (
            "@repo/odd/{app}",
            "{app}",
            "captured value \".hidden\" for variable \"app\" is not a valid",
        ),
    ];
    for (pattern, name, expected) in cases {
        let message = expanded(pattern, name, &["apps/A", "apps/a", "odd/.hidden"]).unwrap_err();
        assert!(message.contains(expected), "{pattern}: {message}");
    }
}

#[test]
fn the_number_of_artifacts_is_bounded() {
    let folders: Vec<String> = (0..=MAX_ARTIFACTS)
        .map(|index| format!("apps/a{index}"))
        .collect();
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    let message = expanded("@repo/apps/{app}", "{app}", &folders).unwrap_err();
    assert_eq!(message, "more than 5000 artifacts of one generator");
}

#[test]
fn pattern_characters_mean_themselves() {
    assert_eq!(expanded("@repo/a.b/{app}", "{app}", &["axb/c"]).unwrap(), []);
    assert_eq!(expanded("@repo/apps/{app}/", "{app}", &["apps/a"]).unwrap(), []);
}
