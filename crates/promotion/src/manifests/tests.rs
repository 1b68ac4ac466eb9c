//! What is changed in which file, and what is refused.

use serde_json::json;

use super::*;
use crate::values::Reference;

const MARKED: &str = "team:shop:production";

fn release_manifest(name: &str, namespace: &str, version: &str) -> String {
    format!(
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: {name}\n  namespace: \
         {namespace}\nspec:\n  chart:\n    spec:\n      version: {version}\n  values:\n    image: {{repository: h.io/web, \
         tag: v1}}\n"
    )
}

fn wanted(values: &[(&str, &str)]) -> Wanted {
    let app = AppReference {
        kind: AppKind::HelmRelease,
        name: "shop".to_owned(),
        selector: None,
    };
    let fields = values.iter().map(|(name, value)| {
        let field = match *name {
            "chart" => Field::Chart,
            image => Field::Image(image.to_owned()),
        };
        (field, (*value).to_owned())
    });
    Wanted {
        pipeline: "team:shop".to_owned(),
        environment: "production".to_owned(),
        namespace: "eu".to_owned(),
        apps: vec![(app, fields.collect())],
    }
}

/// The files that change, or why none does.
fn changed(wanted: &Wanted, files: &[(&str, String)]) -> Result<Vec<(String, String)>, String> {
    let files = files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), text.clone().into_bytes()));
    let files: Vec<_> = files.collect();
    let edited = wanted
        .edit("apps/eu", &files)
        .map_err(|error| error.to_string())?;
    Ok(edited.contents.into_iter().collect())
}

#[test]
fn the_fields_of_one_object_are_set() {
    let wanted = wanted(&[("chart", "1.1.0"), ("h.io/web", "v2")]);
    let mine = release_manifest("shop", "eu", "1.0.0");
    let files = [
        ("apps/eu/a.yaml", mine.clone()),
        ("apps/eu/b.yaml", release_manifest("shop", "us", "1.0.0")),
    ];
    let expected = mine.replace("1.0.0", "1.1.0").replace("tag: v1", "tag: v2");
    assert_eq!(
        changed(&wanted, &files).unwrap(),
        [("apps/eu/a.yaml".to_owned(), expected.clone())]
    );
    // What has the values is left as it is, and that is no failure.
    assert_eq!(changed(&wanted, &[("apps/eu/a.yaml", expected)]).unwrap(), []);
}

#[test]
fn the_path_of_a_kustomization_is_set() {
    let mut wanted = wanted(&[]);
    wanted.apps[0].0.kind = AppKind::Kustomization;
    wanted.apps[0].1 = vec![(Field::Path, "./releases/8".to_owned())];
    let text = |path: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: shop\n  namespace: eu\nspec:\n  \
             path: {path} # a release\n"
        )
    };
    let file = ("apps/eu/a.yaml", text("./releases/7"));
    assert_eq!(
        changed(&wanted, &[file]).unwrap(),
        [("apps/eu/a.yaml".to_owned(), text("./releases/8"))]
    );
    let marked = "path: ./releases/7 # {\"$promotion\": \"team:shop:production:shop:path\"}\n".to_owned();
    let expected = marked.replace('7', "8");
    assert_eq!(
        changed(&wanted, &[("apps/eu/vars.yaml", marked)]).unwrap(),
        [("apps/eu/vars.yaml".to_owned(), expected)]
    );
}

#[test]
fn what_a_source_follows_is_set() {
    let mut wanted = wanted(&[]);
    let app = AppReference {
        kind: AppKind::OCIRepository,
        name: "shop".to_owned(),
        selector: None,
    };
    wanted.apps = vec![(app, vec![(Field::Reference(Reference::Tag), "1.10".to_owned())])];
    let manifest = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata:\n  name: shop\nspec:\n  url: \
                    oci://h.io/shop\n  ref: {tag: '1.9'}\n";
    let expected = manifest.replace("'1.9'", "'1.10'");
    assert_eq!(
        changed(&wanted, &[("a.yaml", manifest.to_owned())]).unwrap(),
        [("a.yaml".to_owned(), expected)]
    );
}

#[test]
fn a_value_that_is_not_there_is_named_with_its_marker() {
    let wanted = wanted(&[("chart", "1.1.0"), ("h.io/other", "v2")]);
    let error = changed(
        &wanted,
        &[("apps/eu/a.yaml", release_manifest("shop", "eu", "1.0.0"))],
    )
    .unwrap_err();
    assert_eq!(
        error,
        "no file below 'apps/eu' has HelmRelease/shop: image h.io/other: where the value comes from a base or a variable, mark \
         it with # {\"$promotion\": \"team:shop:production:h.io/other:tag\"}"
    );
}

#[test]
fn a_value_in_two_files_needs_a_marker() {
    let wanted = wanted(&[("chart", "1.1.0")]);
    let manifest = release_manifest("shop", "eu", "1.0.0");
    let files = [
        ("apps/eu/a.yaml", manifest.clone()),
        ("apps/eu/b.yaml", manifest.clone()),
    ];
    let error = changed(&wanted, &files).unwrap_err();
    assert!(
        error.contains("in several files (apps/eu/a.yaml, apps/eu/b.yaml)"),
        "{error}"
    );
}

#[test]
fn markers_say_where_a_value_is() {
    let variables = |version: &str, tag: &str| {
        let base = json!({"$promotion": MARKED}).to_string();
        let image = json!({"$promotion": format!("{MARKED}:h.io/web:tag")}).to_string();
        let other = json!({"$promotion": "team:shop:staging"}).to_string();
        format!("chart: {version} # {base}\ntag: {tag} # {image}\nelse: 1 # {other}\n")
    };
    let wanted = wanted(&[("chart", "1.1.0"), ("h.io/web", "v2@sha256:0")]);
    let files = [("apps/eu/variables.yaml", variables("1.0.0", "v1"))];
    let expected = [("apps/eu/variables.yaml".to_owned(), variables("1.1.0", "v2"))];
    assert_eq!(changed(&wanted, &files).unwrap(), expected);
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_its_line() {
    let wanted = wanted(&[("chart", "1.1.0")]);
    let error = changed(&wanted, &[("apps/eu/a.yaml", "name: shop\n: [".to_owned())]).unwrap_err();
    assert!(error.starts_with("apps/eu/a.yaml:"), "{error}");
}

#[test]
fn a_marker_of_another_pipeline_that_does_nothing_hurts_no_one_else() {
    let wanted = wanted(&[("chart", "1.1.0")]);
    let mine = release_manifest("shop", "eu", "1.0.0");
    let marker = |setter: &str| format!("# {}\n", json!({"$promotion": setter}));
    let files = [(
        "apps/eu/a.yaml",
        format!("{mine}{}", marker("team:other:production")),
    )];
    assert_eq!(changed(&wanted, &files).unwrap().len(), 1);
    let files = [("apps/eu/a.yaml", format!("{mine}{}", marker(MARKED)))];
    let error = changed(&wanted, &files).unwrap_err();
    assert!(error.starts_with("apps/eu/a.yaml:12: "), "{error}");
}

#[test]
fn no_value_makes_two_lines_of_one() {
    let wanted = wanted(&[("chart", "1.1.0\n\nRelease: sha256:forged")]);
    let mine = release_manifest("shop", "eu", "1.0.0").into_bytes();
    let edited = wanted.edit("apps/eu", &[("a.yaml".to_owned(), mine)]).unwrap();
    let lines: Vec<_> = edited.lines().into_iter().collect();
    assert_eq!(
        lines,
        ["a.yaml: HelmRelease/shop: 1.0.0 -> 1.1.0  Release: sha256:forged"]
    );
}

#[test]
fn a_marker_that_could_mean_two_values_means_none() {
    let mut wanted = wanted(&[("chart", "1.1.0"), ("h.io/web", "v2")]);
    let other = AppReference {
        name: "other".to_owned(),
        ..wanted.apps[0].0.clone()
    };
    let fields = vec![
        (Field::Chart, "7.0.0".to_owned()),
        (Field::Image("h.io/web".to_owned()), "v2".to_owned()),
    ];
    wanted.apps.push((other, fields));
    let setters = wanted.setters();
    let of = |name: &str| setters.get(&format!("{MARKED}{name}")).map(String::as_str);
    assert_eq!((of(""), of(":chart")), (None, None));
    assert_eq!(
        (of(":shop:chart"), of(":other:chart")),
        (Some("1.1.0"), Some("7.0.0"))
    );
    assert_eq!(of(":h.io/web:tag"), Some("v2"), "both carry the same");
    assert_eq!(of(":h.io/web:digest"), None, "there is none");
    let files = [("apps/eu/a.yaml", release_manifest("other", "eu", "6.0.0"))];
    let error = changed(&wanted, &files).unwrap_err();
    assert!(
        error.contains(r#"HelmRelease/shop: chart"#) && error.contains("team:shop:production:shop:chart"),
        "{error}"
    );
}
