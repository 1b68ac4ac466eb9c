//! Tests of what the library reports besides the objects: inputs of a build, origins of objects, and
//! refusals.

use std::collections::BTreeSet;

use kustomize_build::{Budget, ErrorKind, MemoryFs, Options, OverlayFs, build};

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";

fn tree(files: &[(&str, &str)]) -> MemoryFs {
    let mut tree = MemoryFs::default();
    for (path, content) in files {
        tree.insert(*path, *content);
    }
    tree
}

fn reads(tree: &MemoryFs, folder: &str) -> BTreeSet<String> {
    build(tree, folder, &Options::default()).expect("valid").reads
}

#[test]
fn a_build_tells_every_path_that_it_looked_at() {
    let tree = tree(&[
        (
            "over/kustomization.yaml",
            "resources: [../base]\npatches: [{path: patch.yaml}]\n",
        ),
        (
            "over/patch.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n",
        ),
        ("base/Kustomization", "resources: [cm.yaml]\n"),
        ("base/cm.yaml", CONFIG_MAP),
        ("other/file", ""),
    ]);
    let expected = [
        "base",
        "base/Kustomization",
        "base/cm.yaml",
        "base/kustomization.yaml",
        "base/kustomization.yml",
        "over",
        "over/Kustomization",
        "over/kustomization.yaml",
        "over/kustomization.yml",
        "over/patch.yaml",
    ];
    assert_eq!(reads(&tree, "over"), expected.map(str::to_owned).into());
}

#[test]
fn objects_keep_the_place_where_they_were_written() {
    let two = format!(
        "# comment\n---\n{CONFIG_MAP}---\n{}",
        CONFIG_MAP.replace("name: a", "name: b")
    );
    let tree = tree(&[
        (
            "app/kustomization.yaml",
            "namePrefix: x-\nresources: [two.yaml]\nconfigMapGenerator: [{name: g, literals: [a=b]}]\n\
             patches:\n- target: {kind: ConfigMap}\n  patch: '[{\"op\": \"add\", \"path\": \"/data\", \"value\": {}}]'\n",
        ),
        ("app/two.yaml", &two),
    ]);
    let built = build(&tree, "app", &Options::default()).expect("valid");
    let places: Vec<String> = built
        .objects
        .iter()
        .map(|o| format!("{} {}", o.name(), o.origin().expect("known")))
        .collect();
    assert_eq!(places[0], "x-a app/two.yaml:3");
    assert_eq!(places[1], "x-b app/two.yaml:8");
    assert!(places[2].ends_with(" app/kustomization.yaml"), "{}", places[2]);
}

#[test]
fn what_is_wrong_is_placed_where_it_can_be_put_right() {
    let bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned()
        + &(1..10)
            .map(|level| {
                let (here, below) = (char::from(b'a' + level), char::from(b'a' + level - 1));
                format!("{here}: &{here} [{}]\n", vec![format!("*{below}"); 10].join(", "))
            })
            .collect::<String>();
    let deep = format!("{CONFIG_MAP}data:\n  a: {}\n", "[".repeat(20_000));
    let files = tree(&[
        ("cm.yaml", CONFIG_MAP),
        (
            "missing/kustomization.yaml",
            "namePrefix: a-\nresources:\n- gone.yaml\n",
        ),
        ("absolute/kustomization.yaml", "resources:\n\n- /base\n"),
        ("out/kustomization.yaml", "resources:\n- ../cm.yaml\n"),
        (
            "component/kustomization.yaml",
            "resources: []\ncomponents:\n  - gone\n",
        ),
        ("cycle/a/kustomization.yaml", "resources:\n- ../b\n"),
        (
            "cycle/b/kustomization.yaml",
            "namePrefix: a-\nresources:\n- ../a\n",
        ),
        ("patch/kustomization.yaml", "patches:\n- path: gone.yaml\n"),
        (
            "inline/kustomization.yaml",
            "resources: []\npatches:\n- patch: |\n    # of nothing\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: no}\n",
        ),
        ("crds/kustomization.yaml", "crds:\n- gone.json\n"),
        ("bomb/kustomization.yaml", "resources: [bomb.yaml]\n"),
        ("bomb/bomb.yaml", &format!("{CONFIG_MAP}{bomb}")),
        ("deep/kustomization.yaml", "resources: [deep.yaml]\n"),
        ("deep/deep.yaml", &deep),
        ("typed/kustomization.yaml", "resources: [typed.yaml]\n"),
        (
            "typed/typed.yaml",
            &format!("{CONFIG_MAP}---\n\nkind: A\nmetadata: {{}}\n"),
        ),
    ]);
    for (folder, file, line, chain) in [
        ("missing", "missing/kustomization.yaml", 3, &[][..]),
        ("absolute", "absolute/kustomization.yaml", 3, &[]),
        ("out", "out/kustomization.yaml", 2, &[]),
        ("component", "component/kustomization.yaml", 3, &[]),
        ("cycle/a", "cycle/b/kustomization.yaml", 3, &["cycle/b"]),
        ("patch", "patch/kustomization.yaml", 2, &[]),
        ("inline", "inline/kustomization.yaml", 5, &[]),
        ("crds", "crds/kustomization.yaml", 2, &[]),
        ("bomb", "bomb/bomb.yaml", 1, &[]),
        ("deep", "deep/deep.yaml", 6, &[]),
        ("typed", "typed/typed.yaml", 7, &[]),
    ] {
        let error = build(&files, folder, &Options::default()).expect_err(folder);
        let place = (error.file(), error.line(), error.chain().to_vec());
        let chain: Vec<String> = chain.iter().map(|folder: &&str| (*folder).to_owned()).collect();
        assert_eq!(place, (Some(file), line, chain), "{folder}: {error}");
    }
}

#[test]
fn errors_name_file_line_and_the_way_there() {
    let tree = tree(&[
        ("over/kustomization.yaml", "resources: [../base]\n"),
        ("base/kustomization.yaml", "resources: [bad.yaml]\n"),
        (
            "base/bad.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a: b\n",
        ),
    ]);
    let error = build(&tree, "over", &Options::default()).expect_err("malformed");
    assert_eq!(
        (error.kind(), error.file(), error.line()),
        (ErrorKind::Invalid, Some("base/bad.yaml"), 4)
    );
    assert_eq!(error.chain(), ["base"]);
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    for (kustomization, words) in [
        (
            "resources: [https://example.com/x.yaml]\n",
            "remote resources are not supported",
        ),
        (
            "resources: ['github.com/a/b//c?ref=v1']\n",
            "remote resources are not supported",
        ),
        ("helmCharts: [{name: x}]\n", "must specify --enable-helm"),
        ("transformers: [plugin.yaml]\n", "external plugins disabled"),
    ] {
        let tree = tree(&[
            ("kustomization.yaml", kustomization),
            (
                "plugin.yaml",
                "apiVersion: example.com/v1\nkind: Exec\nmetadata: {name: x}\n",
            ),
        ]);
        let error = build(&tree, "", &Options::default()).expect_err("unsupported");
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{kustomization}: {error}");
        assert!(error.to_string().contains(words), "{kustomization}: {error}");
    }
}

#[test]
fn a_build_that_fails_tells_what_it_looked_at_and_warned_of() {
    let tree = tree(&[
        ("app/kustomization.yaml", "bases: [../base]\n"),
        (
            "base/kustomization.yaml",
            "commonLabels: {a: b}\nresources: [gone.yaml]\n",
        ),
    ]);
    let error = build(&tree, "app", &Options::default()).expect_err("missing");
    for path in [
        "app/kustomization.yaml",
        "base/kustomization.yaml",
        "base/gone.yaml",
    ] {
        assert!(error.reads().contains(path), "{path}: {:?}", error.reads());
    }
    let fields: Vec<&str> = error
        .warnings()
        .iter()
        .filter_map(|warning| warning.split('\'').nth(1))
        .collect();
    assert_eq!(fields, ["bases", "commonLabels"]);
}

#[test]
fn bases_that_double_at_every_level_come_to_an_end() {
    let mut tree = tree(&[
        ("l0/kustomization.yaml", "resources: [cm.yaml]\n"),
        ("l0/cm.yaml", CONFIG_MAP),
    ]);
    for level in 1..40 {
        let below = level - 1;
        for side in ["a", "b"] {
            let content = format!("namePrefix: {side}-\nresources: [../../l{below}]\n");
            tree.insert(format!("l{level}/{side}/kustomization.yaml"), content);
        }
        tree.insert(format!("l{level}/kustomization.yaml"), "resources: [a, b]\n");
    }
    let error = build(&tree, "l39", &Options::default()).expect_err("too many");
    assert!(error.to_string().contains("bases below each other"), "{error}");
}

#[test]
fn files_laid_over_a_tree_are_read_in_place_of_its_own() {
    let base = tree(&[
        ("app/cm.yaml", CONFIG_MAP),
        ("app/kustomization.yaml", "resources: [none]\n"),
    ]);
    let over = OverlayFs::new(
        &base,
        tree(&[("app/kustomization.yaml", "resources: [cm.yaml]\n")]),
    );
    assert_eq!(
        build(&over, "app", &Options::default())
            .expect("valid")
            .objects
            .len(),
        1
    );
}

#[test]
fn messages_show_the_root_of_the_tree_as_the_caller_wants_it() {
    let tree = tree(&[("app/kustomization.yaml", "resources: [none.yaml, ../../x]\n")]);
    for (root, place) in [
        ("", "app/none.yaml"),
        ("/srv/repo", "/srv/repo/app/none.yaml"),
        ("/", "/app/none.yaml"),
    ] {
        let options = Options {
            shown_root: root.to_owned(),
            ..Options::default()
        };
        let error = build(&tree, "app", &options).expect_err("missing");
        let words = format!("evalsymlink failure on '{place}' : lstat {place}: no such file or directory");
        assert!(error.to_string().contains(&words), "{error}");
        assert_eq!(error.file(), Some("app/kustomization.yaml"));
    }
}

#[test]
fn objects_go_to_files_with_the_names_that_kustomize_gives_them() {
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: D.x, namespace: Foo}\n";
    let custom = "apiVersion: my.io/v1\nkind: Blub\nmetadata: {name: foo}\n";
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: foo}\n";
    let names = |files: &[&str]| -> Vec<String> {
        let tree = tree(&[
            ("kustomization.yaml", "resources: [all.yaml]\n"),
            ("all.yaml", &files.join("---\n")),
        ]);
        let built = build(&tree, "", &Options::default()).expect("valid");
        built.to_files().into_keys().collect()
    };
    let of_two_namespaces = [
        "default_my.io_v1_blub_foo.yaml",
        "foo_apps_v1_deployment_d.x.yaml",
        "v1_namespace_foo.yaml",
    ];
    assert_eq!(names(&[deployment, custom, namespace]), of_two_namespaces);
    assert_eq!(
        names(&[custom, namespace]),
        ["my.io_v1_blub_foo.yaml", "v1_namespace_foo.yaml"]
    );
}

#[test]
fn a_caller_may_ask_for_the_label_of_the_builder() {
    let tree = tree(&[
        ("kustomization.yaml", "resources: [cm.yaml]\n"),
        ("cm.yaml", CONFIG_MAP),
    ]);
    let options = Options {
        managed_by_label: true,
        ..Options::default()
    };
    let built = build(&tree, "", &options).expect("valid");
    assert_eq!(
        built.objects[0].label("app.kubernetes.io/managed-by"),
        Some("kustomize-v5.8.3")
    );
}

#[test]
fn a_build_with_a_budget_ends_when_it_makes_more() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: some, b: text}\n";
    let doubled = |from: &str, to: &str, number: usize| {
        format!(
            "- source: {{kind: ConfigMap, name: a, fieldPath: data.{from}}}\n  targets:\n  - select: {{name: a}}\n    \
             fieldPaths: [data.{to}]\n    options: {{delimiter: ',', index: {}}}\n",
            1000 + number
        )
    };
    let replacements = (0..40).map(|number| doubled("a", "b", number) + &doubled("b", "a", number));
    let copies = (0..40).map(|number| {
        format!(
            "    - {{op: copy, from: /data, path: /new}}\n    - {{op: move, from: /new, path: /data/k{number}}}\n"
        )
    });
    let labels = format!("labels: [{{pairs: {{a: \"{}\"}}}}]\n", "x".repeat(100_000));
    let many = (0..1000).map(|number| map.replace("name: a", &format!("name: a{number}")));
    let anchors = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n\
                   d: [*c,*c,*c,*c,*c,*c,*c,*c]\n";
    let aliases = (0..100)
        .map(|number| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a{number}}}\n{anchors}"));
    for (what, kustomization, resources) in [
        (
            "text that doubles",
            format!("replacements:\n{}", replacements.collect::<String>()),
            map.to_owned(),
        ),
        (
            "values that double",
            format!(
                "patches:\n- target: {{kind: ConfigMap}}\n  patch: |\n{}",
                copies.collect::<String>()
            ),
            map.to_owned(),
        ),
        ("a label of each", labels, many.collect::<Vec<_>>().join("---\n")),
        (
            "what aliases stand for",
            String::new(),
            aliases.collect::<Vec<_>>().join("---\n"),
        ),
    ] {
        let tree = tree(&[
            (
                "kustomization.yaml",
                &format!("resources: [all.yaml]\n{kustomization}"),
            ),
            ("all.yaml", &resources),
        ]);
        let options = Options {
            budget: Some(Budget {
                bytes: 16 << 20,
                large: None,
            }),
            ..Options::default()
        };
        let error = build(&tree, "", &options).expect_err(what);
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::Limit, "the build makes more than 16 MiB of objects"),
            "{what}"
        );
        assert!(error.reads().contains("all.yaml"), "{what}");
    }
}
