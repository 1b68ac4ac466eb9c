//! Remote resources, with a stand-in for what fetches them; and where links of a real tree may lead.

use std::collections::BTreeMap;
use std::time::Duration;

use kustomize_build::{
    DirectoryFs, ErrorKind, Fetch, FetchError, FileSystem, LoadRestrictions, MemoryFs, Options, Repository,
    build, build_fetching,
};

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";

fn tree(files: &[(&str, &str)]) -> MemoryFs {
    let mut tree = MemoryFs::default();
    for (path, content) in files {
        tree.insert(*path, *content);
    }
    tree
}

/// Repositories by what would be cloned, and files by URL.
#[derive(Default)]
struct Internet {
    repositories: BTreeMap<&'static str, MemoryFs>,
    files: BTreeMap<&'static str, &'static str>,
}

impl Fetch for Internet {
    fn repository(&self, repository: &Repository) -> Result<Box<dyn FileSystem>, FetchError> {
        let found = self.repositories.get(repository.clone_url().as_str());
        let gone = || FetchError::Failed(format!("failed to clone {}", repository.clone_url()));
        found
            .map(|tree| -> Box<dyn FileSystem> { Box::new(tree.clone()) })
            .ok_or_else(gone)
    }

    fn file(&self, url: &str) -> Result<Vec<u8>, FetchError> {
        let gone = FetchError::Status {
            code: 404,
            reason: "Not Found".to_owned(),
        };
        self.files
            .get(url)
            .map(|text| text.as_bytes().to_vec())
            .ok_or(gone)
    }
}

fn internet() -> Internet {
    let repository = tree(&[
        (
            "base/kustomization.yaml",
            "namePrefix: p-\nresources: [cm.yaml, ../other]\n",
        ),
        ("base/cm.yaml", CONFIG_MAP),
        (
            "other/kustomization.yaml",
            "configMapGenerator: [{name: o, literals: [a=b]}]\n",
        ),
        ("out/kustomization.yaml", "resources: [../../x]\n"),
        ("up/kustomization.yaml", "resources: [../base/cm.yaml]\n"),
        (
            "cycle/kustomization.yaml",
            "resources: ['https://github.com/org/repo//cycle']\n",
        ),
    ]);
    Internet {
        repositories: [("https://github.com/org/repo", repository)].into(),
        files: [("https://example.com/cm.yaml", CONFIG_MAP)].into(),
    }
}

fn build_with(kustomization: &str) -> Result<String, String> {
    let tree = tree(&[("kustomization.yaml", kustomization)]);
    build_fetching(&tree, "", &Options::default(), &internet())
        .map(|built| built.to_yaml())
        .map_err(|error| error.to_string())
}

#[test]
fn names_of_repositories_are_read_as_kustomize_reads_them() {
    // Each line is what kustomize's own function (api v0.21.3, internal/git) says of a name, in Go's quotes.
    let unquote = |text: &str| text.trim_matches('"').to_owned();
    for line in include_str!("data/repositories.tsv").lines() {
        let columns: Vec<String> = line.split('\t').map(unquote).collect();
        let actual = Repository::parse(&columns[0]);
        let expected = match &columns[1..] {
            [url, path, reference, submodules, milliseconds] => Some((
                url.clone(),
                path.clone(),
                reference.clone(),
                submodules == "true",
                Duration::from_millis(milliseconds.parse().expect("a number")),
            )),
            _ => None,
        };
        let parts = actual.as_ref().map(|r| {
            let (path, reference) = (r.path().to_owned(), r.reference().to_owned());
            (r.clone_url(), path, reference, r.submodules(), r.timeout())
        });
        assert_eq!(parts, expected, "{}", columns[0]);
    }
}

#[test]
fn a_base_in_a_repository_is_built_with_its_own_bases_and_known_by_its_origin() {
    let built = build_with(
        "buildMetadata: [originAnnotations]\nresources: ['https://github.com/org/repo//base?ref=v1']\n",
    );
    assert_eq!(
        built.unwrap(),
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  annotations:\n    config.kubernetes.io/origin: |\n      \
         path: base/cm.yaml\n      repo: https://github.com/org/repo\n      ref: v1\n  name: p-a\n---\n\
         apiVersion: v1\ndata:\n  a: b\nkind: ConfigMap\nmetadata:\n  annotations:\n    config.kubernetes.io/origin: |\n      \
         repo: https://github.com/org/repo\n      ref: v1\n      configuredIn: other/kustomization.yaml\n      \
         configuredBy:\n        apiVersion: builtin\n        kind: ConfigMapGenerator\n  name: p-o-4h2mbtbbt6\n"
    );
}

#[test]
fn files_are_fetched_by_http_and_everything_fetched_is_told() {
    let tree = tree(&[(
        "kustomization.yaml",
        "resources: ['https://example.com/cm.yaml']\ncomponents: []\n",
    )]);
    let built = build_fetching(&tree, "", &Options::default(), &internet()).unwrap();
    assert_eq!(built.to_yaml(), CONFIG_MAP);
    assert!(built.fetched.contains("https://example.com/cm.yaml"));
}

#[test]
fn what_cannot_be_fetched_fails_in_kustomizes_words() {
    for (entry, end) in [
        (
            "https://example.com/none.yaml",
            "accumulating resources from 'https://example.com/none.yaml': HTTP Error: status code 404 (Not Found)",
        ),
        (
            "https://example.com/a/none",
            "accumulation err='accumulating resources from 'https://example.com/a/none': URL is a git repository': \
             failed to clone https://example.com/a/none",
        ),
        (
            "https://github.com/org/repo//base/cm.yaml",
            "'https://github.com/org/repo/base/cm.yaml' refers to file 'cm.yaml'; expecting directory",
        ),
        (
            "https://github.com/org/repo//up",
            "security; file 'https://github.com/org/repo/base/cm.yaml' is not in or below \
             'https://github.com/org/repo/up'': must build at directory: \
             'https://github.com/org/repo/base/cm.yaml': file is not directory",
        ),
        (
            "https://github.com/org/repo//cycle",
            "cycle detected: URI 'https://github.com/org/repo//cycle' referenced by previous URI \
             'https://github.com/org/repo//cycle'",
        ),
        (
            "https://github.com/org/repo//out",
            "security; bases in kustomizations found in cloned git repos must be within the repo, but base '../../x' \
             is outside 'https://github.com/org/repo'",
        ),
    ] {
        let error = build_with(&format!("resources: ['{entry}']\n")).expect_err("fails");
        assert!(error.ends_with(end), "{entry}: {error}");
    }
}

#[test]
fn nothing_is_fetched_unless_the_caller_allows_it() {
    for entry in [
        "https://example.com/cm.yaml",
        "github.com/org/repo//base?ref=v1",
        "git@example.com:org/repo",
    ] {
        let tree = tree(&[
            ("app/kustomization.yaml", "resources: [../base]\n"),
            ("base/kustomization.yaml", &format!("resources: ['{entry}']\n")),
        ]);
        let error = build(&tree, "app", &Options::default()).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{entry}");
        assert!(
            error
                .to_string()
                .contains(&format!("remote resources are not supported: '{entry}'")),
            "{error}"
        );
        assert_eq!(error.file(), Some("base/kustomization.yaml"));
        assert_eq!(error.chain(), ["base"]);
    }
}

#[test]
fn messages_show_absolute_paths_when_the_root_has_a_name() {
    let tree = tree(&[
        ("srv/app/kustomization.yaml", "resources: [../base, gone.yaml]\n"),
        ("srv/base/kustomization.yaml", "resources: [/srv/base/cm.yaml]\n"),
        ("srv/base/cm.yaml", CONFIG_MAP),
    ]);
    let options = Options {
        shown_root: "/".to_owned(),
        ..Options::default()
    };
    let error = build(&tree, "srv/app", &options).expect_err("missing");
    assert_eq!(
        error.to_string(),
        "accumulating resources: accumulation err='accumulating resources from 'gone.yaml': evalsymlink failure on \
         '/srv/app/gone.yaml' : lstat /srv/app/gone.yaml: no such file or directory': must build at directory: not a \
         valid directory: evalsymlink failure on '/srv/app/gone.yaml' : lstat /srv/app/gone.yaml: no such file or \
         directory"
    );
}

#[test]
fn files_that_are_missing_are_opened_in_vain_without_restrictions() {
    let tree = tree(&[("kustomization.yaml", "resources: [a.yaml]\n")]);
    let options = Options {
        load_restrictions: LoadRestrictions::None,
        ..Options::default()
    };
    let error = build(&tree, "", &options).expect_err("missing").to_string();
    assert!(
        error.contains("'a.yaml': open a.yaml: no such file or directory'"),
        "{error}"
    );
}

#[test]
fn links_are_followed_before_it_is_asked_where_they_lead() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, content: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    let link = |target: &str, path: &str| {
        std::os::unix::fs::symlink(target, folder.path().join(path)).unwrap();
    };
    write("app/kustomization.yaml", "resources: [linked, inside.yaml]\n");
    write("app/files/b.yaml", &CONFIG_MAP.replace("name: a", "name: b"));
    write("far/base/kustomization.yaml", "resources: [cm.yaml, ../side]\n");
    write("far/base/cm.yaml", CONFIG_MAP);
    write(
        "far/side/kustomization.yaml",
        "configMapGenerator: [{name: s, literals: [a=b]}]\n",
    );
    link("../far/base", "app/linked");
    link("files/b.yaml", "app/inside.yaml");
    let files = DirectoryFs::new(folder.path()).unwrap();
    let built = build(&files, "app", &Options::default()).unwrap();
    let names: Vec<&str> = built.objects.iter().map(manifest::Object::name).collect();
    assert_eq!(names, ["a", "b", "s-4h2mbtbbt6"]);
    assert!(built.reads.contains("app/linked") && built.reads.contains("far/base/cm.yaml"));

    write("app/kustomization.yaml", "resources: [outside.yaml]\n");
    link("../far/base/cm.yaml", "app/outside.yaml");
    let error = build(&files, "app", &Options::default()).expect_err("outside");
    let words = "security; file 'app/outside.yaml' is not in or below 'app'";
    assert!(error.to_string().contains(words), "{error}");

    let root = DirectoryFs::new(folder.path().join("app")).unwrap();
    let error = build(&root, "", &Options::default()).expect_err("out of the tree");
    let words = "security; file 'outside.yaml' is not in or below '.'";
    assert!(error.to_string().contains(words), "{error}");
}
