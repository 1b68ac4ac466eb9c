//! Packages beside those of the real helm: the same files under the same names in the same order, and what is rendered of
//! a package is what is rendered of the folder.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot go on should stop where it is"
)]

#[path = "support/disk.rs"]
mod disk;

use std::cell::RefCell;
use std::error::Error as StdError;
use std::io::Read as _;
use std::path::PathBuf;

use disk::Disk;
use helm_chart::{Helm, load_archive};
use helm_package::dependencies::{Fetch, Fetched};
use helm_package::{Built, Error, Limits, Options, Step, local, remote};
use helm_render::{Options as RenderOptions, Release, Renderer};
use tempfile::TempDir;

/// Repositories with packages, by the name of the chart; notes what was asked for.
#[derive(Default)]
struct Shelf {
    packages: Vec<(&'static str, Vec<u8>)>,
    asked: RefCell<Vec<String>>,
}

impl Fetch for Shelf {
    fn fetch(
        &self,
        repository: &str,
        name: &str,
        version: &str,
    ) -> Result<Fetched, Box<dyn StdError + Send + Sync>> {
        self.asked
            .borrow_mut()
            .push(format!("{repository} {name} {version}"));
        let found = self.packages.iter().find(|(known, _)| *known == name);
        let (_, archive) = found.ok_or("no chart name found")?;
        Ok(Fetched {
            version: "9.9.9".to_owned(),
            archive: archive.clone(),
        })
    }
}

type TextFiles<'a> = Vec<(&'a str, &'a str)>;

fn fixture() -> Disk {
    Disk(PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/source"
    )))
}

fn build(files: &Disk, chart: &str, options: &Options, fetch: &dyn Fetch) -> Result<(Built, Vec<u8>), Error> {
    let mut archive = Vec::new();
    let built = local::find(files, chart, options)?.build(files, options, fetch, &mut archive)?;
    Ok((built, archive))
}

fn entries(archive: &[u8]) -> Vec<(String, String)> {
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    let entries = tar.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        (path, text)
    });
    entries.collect()
}

fn recorded(text: &str) -> Vec<(String, String)> {
    let parts = text.split("=== ").skip(1);
    let parts = parts.map(|part| part.split_once('\n').unwrap());
    parts
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .collect()
}

fn values_options(files: &[&str]) -> Options {
    Options {
        values_files: files.iter().map(|file| (*file).to_owned()).collect(),
        ..Options::default()
    }
}

/// A source on the disk with these files.
fn source(files: &[(&str, &str)]) -> (TempDir, Disk) {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let disk = Disk(directory.path().to_owned());
    (directory, disk)
}

fn message(error: Error) -> (Step, String) {
    (error.step, format!("{error}: {}", error.source))
}

fn refused(files: &[(&str, &str)], options: &Options) -> (Step, String) {
    let (_directory, disk) = source(files);
    message(build(&disk, "app", options, &Shelf::default()).unwrap_err())
}

#[test]
fn a_package_holds_what_the_package_of_helm_holds() {
    let (built, archive) = build(&fixture(), "charts/app", &Options::default(), &Shelf::default()).unwrap();
    assert_eq!(entries(&archive), recorded(include_str!("recorded/app.txt")));
    let expected = Built {
        name: "app".to_owned(),
        version: "1.2.3".to_owned(),
        values_files: Vec::new(),
        packaged: true,
        resolved_dependencies: 1,
    };
    assert_eq!(built, expected);
    // RFC 1952: extra field and comment; no time.
    assert_eq!(&archive[..8], b"\x1f\x8b\x08\x14\0\0\0\0");
    let again = build(
        &fixture(),
        "./charts//app/",
        &Options::default(),
        &Shelf::default(),
    )
    .unwrap()
    .1;
    assert_eq!(archive, again, "the same chart gives the same bytes");
}

#[test]
fn a_package_renders_like_its_folder() {
    let (_, archive) = build(&fixture(), "charts/app", &Options::default(), &Shelf::default()).unwrap();
    let chart = load_archive(archive.as_slice(), Helm::V4, &mut Vec::new()).unwrap();
    let given = helm_chart::values::read(b"replicas: 3", Helm::V4).unwrap();
    let rendered = Renderer::new(chart, Helm::V4)
        .render(&given, &RenderOptions::new(Release::new("demo", "default")))
        .unwrap();
    let manifests: Vec<(&str, &str)> = rendered
        .manifests
        .iter()
        .map(|manifest| (&*manifest.path, &*manifest.content))
        .collect();
    let config = manifests
        .iter()
        .find(|(path, _)| *path == "app/templates/config.yaml")
        .unwrap()
        .1;
    assert!(config.contains("name: \"app-1.2.3\""), "{config}");
    assert!(config.contains("\\\"exported\\\":1"), "{config}");
    assert!(config.contains("file: \"text\\n\""), "{config}");
    assert!(
        manifests
            .iter()
            .any(|(path, text)| *path == "app/charts/shared/templates/c.yaml"
                && text.contains("metadata: {name: shared}\nsize: 10"))
    );
    assert!(
        manifests
            .iter()
            .any(|(path, _)| *path == "app/charts/vendored/templates/v.yaml")
    );
}

#[test]
fn values_files_become_the_defaults_of_the_chart() {
    let options = Options {
        version_metadata: "abc.3".to_owned(),
        ..values_options(&["env/base.yaml", "./env/production.yaml"])
    };
    let (built, archive) = build(&fixture(), "charts/app", &options, &Shelf::default()).unwrap();
    assert_eq!(built.version, "1.2.3+abc.3");
    assert_eq!(built.values_files, ["env/base.yaml", "./env/production.yaml"]);
    let entries = entries(&archive);
    let text = |path: &str| entries.iter().find(|(known, _)| known == path).unwrap().1.clone();
    let values = "image:\n  pull: Always\n  tag: null\nlarge: 1000000\nratio: 0.5\nreplicas: 2\n";
    assert_eq!(text("app/values.yaml"), values);
    assert!(text("app/Chart.yaml").ends_with("version: 1.2.3+abc.3\n"));
    // values.yaml alone is what the chart has anyway, and in a folder it is not even read.
    let (built, _) = build(
        &fixture(),
        "charts/app",
        &values_options(&["values.yaml"]),
        &Shelf::default(),
    )
    .unwrap();
    assert_eq!(built.values_files, [""; 0]);
}

#[test]
fn values_files_that_are_not_there_are_an_error_unless_that_is_fine() {
    let mut options = values_options(&["env/base.yaml", "../none.yaml"]);
    let error = build(&fixture(), "charts/app", &options, &Shelf::default()).unwrap_err();
    let words =
        "values files merge error: no values file found at path '/none.yaml' (reference '../none.yaml')";
    assert_eq!(message(error), (Step::Values, words.to_owned()));
    options.ignore_missing_values_files = true;
    let (built, _) = build(&fixture(), "charts/app", &options, &Shelf::default()).unwrap();
    assert_eq!(built.values_files, ["env/base.yaml"]);
    // When none of them is there, the chart has no defaults, as in Flux.
    let options = Options {
        ignore_missing_values_files: true,
        ..values_options(&["none.yaml"])
    };
    let (_, archive) = build(&fixture(), "charts/app", &options, &Shelf::default()).unwrap();
    let values = entries(&archive)
        .into_iter()
        .find(|(path, _)| path == "app/values.yaml")
        .unwrap();
    assert_eq!(values.1, "");
}

#[test]
fn a_packaged_chart_of_a_source_is_copied_or_packaged_anew() {
    let (_, archive) = build(&fixture(), "charts/app", &Options::default(), &Shelf::default()).unwrap();
    let (directory, disk) = source(&[("values/a.yaml", "replicas: 5")]);
    std::fs::write(directory.path().join("app.tgz"), &archive).unwrap();
    let (built, copied) = build(&disk, "app.tgz", &Options::default(), &Shelf::default()).unwrap();
    assert!(!built.packaged);
    assert_eq!(copied, archive);
    let (built, changed) = build(
        &disk,
        "app.tgz",
        &values_options(&["values/a.yaml"]),
        &Shelf::default(),
    )
    .unwrap();
    assert!(built.packaged);
    assert!(entries(&changed).contains(&("app/values.yaml".to_owned(), "replicas: 5\n".to_owned())));
    let options = Options {
        limits: Limits {
            archive: 100,
            ..Limits::default()
        },
        ..Options::default()
    };
    let (step, words) = message(build(&disk, "app.tgz", &options, &Shelf::default()).unwrap_err());
    assert_eq!(step, Step::Reference);
    assert_eq!(
        words,
        "invalid chart reference: size of chart 'app.tgz' exceeds '100' bytes limit"
    );
}

#[test]
fn charts_of_repositories_get_values_of_their_own_files() {
    let (_directory, disk) = source(&[
        ("app/Chart.yaml", "{apiVersion: v2, name: app, version: 1.0.0}"),
        ("app/values.yaml", "a: 1\nb: {c: 2}\n"),
        ("app/ci/prod.yaml", "b: {d: 3}"),
    ]);
    let (_, archive) = build(&disk, "app", &Options::default(), &Shelf::default()).unwrap();
    let options = values_options(&["values.yaml", "ci/prod.yaml"]);
    let mut output = Vec::new();
    let built = remote::package(archive.as_slice(), "1.0.0+7", &options, &mut output).unwrap();
    assert_eq!((built.version.as_str(), built.packaged), ("1.0.0+7", true));
    assert!(entries(&output).contains(&(
        "app/values.yaml".to_owned(),
        "a: 1\nb:\n  c: 2\n  d: 3\n".to_owned()
    )));
    let error =
        remote::package(archive.as_slice(), "1.0.0", &values_options(&["x"]), Vec::new()).unwrap_err();
    let words = "values files merge error: failed to merge chart values: no values file found at path 'x'";
    assert_eq!(message(error), (Step::Values, words.to_owned()));
    let limits = Limits::default();
    assert_eq!(remote::check(archive.as_slice(), &limits).unwrap().name, "app");
    assert!(remote::check(&b"no chart"[..], &limits).is_err());
    let small = Limits { file: 10, ..limits };
    let words = "chart pull error: failed to load chart metadata from written chart: size of 'app/Chart.yaml' exceeds '10' bytes limit";
    let error = remote::check(archive.as_slice(), &small).unwrap_err();
    assert_eq!(message(error), (Step::Pull, words.to_owned()));
}

#[test]
fn values_are_merged_and_written_as_flux_does() {
    let parts = recorded(include_str!("recorded/values.txt"));
    assert!(parts.len() >= 5 * 15);
    for case in parts.chunks(5) {
        let name = case[0].0.split_once(' ').unwrap().0;
        let [defaults, one, two, of_source, of_chart] = [0, 1, 2, 3, 4].map(|part| case[part].1.as_str());
        let chart = ("app/Chart.yaml", "{apiVersion: v2, name: app, version: 1.0.0}");
        let values = ("app/values.yaml", defaults);
        let (_directory, disk) = source(&[chart, values, ("one.yaml", one), ("two.yaml", two)]);
        let options = values_options(&["one.yaml", "two.yaml"]);
        let built = build(&disk, "app", &options, &Shelf::default()).map(|(_, archive)| archive);
        assert_eq!(outcome(built), of_source, "{name}, of a source");

        let (_directory, disk) = source(&[chart, values, ("app/one.yaml", one), ("app/two.yaml", two)]);
        let (_, archive) = build(&disk, "app", &Options::default(), &Shelf::default()).unwrap();
        let options = values_options(&["values.yaml", "one.yaml", "two.yaml"]);
        let mut output = Vec::new();
        let built = remote::package(archive.as_slice(), "1.0.0+1", &options, &mut output);
        assert_eq!(
            outcome(built.map(|_| output)),
            of_chart,
            "{name}, of a repository"
        );
    }
}

/// The values of a chart, or why there are none.
fn outcome(archive: Result<Vec<u8>, Error>) -> String {
    match archive {
        Ok(archive) => {
            let all = entries(&archive).into_iter();
            let mut values = all.filter(|(path, _)| path == "app/values.yaml");
            values.next().unwrap().1
        }
        Err(error) => {
            let words = message(error).1;
            let words = words.trim_start_matches("values files merge error: ");
            format!(
                "error: {}\n",
                words.trim_start_matches("failed to merge chart values: ")
            )
        }
    }
}

#[test]
fn missing_dependencies_are_fetched_and_those_that_are_there_stay() {
    let (_directory, library) =
        source(&[("app/Chart.yaml", "{apiVersion: v2, name: redis, version: 7.1.0}")]);
    let redis = build(&library, "app", &Options::default(), &Shelf::default())
        .unwrap()
        .1;
    let shelf = Shelf {
        packages: vec![("redis", redis)],
        ..Shelf::default()
    };
    let (_directory, disk) = source(&[
        (
            "app/Chart.yaml",
            "apiVersion: v2\nname: app\nversion: 1.0.0\ndependencies:\n\
             - {name: redis, version: ^7, repository: 'https://charts.example.com/a', alias: cache}\n\
             - {name: redis, version: ^7, repository: '@team', alias: queue}\n\
             - {name: kept, version: '1', repository: 'https://charts.example.com/b'}\n",
        ),
        (
            "app/charts/kept/Chart.yaml",
            "{apiVersion: v2, name: kept, version: 0.5.0}",
        ),
    ]);
    let (built, archive) = build(&disk, "app", &Options::default(), &shelf).unwrap();
    assert_eq!(built.resolved_dependencies, 2);
    assert_eq!(
        *shelf.asked.borrow(),
        ["https://charts.example.com/a redis ^7", "@team redis ^7"]
    );
    let paths: Vec<String> = entries(&archive).into_iter().map(|(path, _)| path).collect();
    assert_eq!(
        paths,
        [
            "app/Chart.yaml",
            "app/charts/kept/Chart.yaml",
            "app/charts/redis/Chart.yaml"
        ]
    );
    let chart = load_archive(archive.as_slice(), Helm::V4, &mut Vec::new()).unwrap();
    helm_chart::check(&chart, Helm::V4, &mut Vec::new()).expect("helm misses no dependency");
}

#[test]
fn the_lock_file_decides_the_versions() {
    let shelf = Shelf::default();
    let (_directory, disk) = source(&[
        (
            "app/Chart.yaml",
            "{apiVersion: v2, name: app, version: 1.0.0, dependencies: [{name: d, version: ^1, repository: 'oci://h/c'}]}",
        ),
        (
            "app/Chart.lock",
            "dependencies: [{name: d, version: 1.2.3, repository: 'oci://h/c'}]\ngenerated: '2026-01-01T00:00:00Z'",
        ),
    ]);
    let (step, words) = message(build(&disk, "app", &Options::default(), &shelf).unwrap_err());
    assert_eq!(*shelf.asked.borrow(), ["oci://h/c d 1.2.3"]);
    let expected = "dependency build error: failed to add remote dependency 'd': no chart name found";
    assert_eq!((step, words.as_str()), (Step::Dependencies, expected));
}

#[test]
fn dependencies_that_cannot_be_had_are_told_with_their_name() {
    let chart = |dependency: &str| {
        format!("{{apiVersion: v2, name: app, version: 1.0.0, dependencies: [{{name: d, {dependency}}}]}}")
    };
    let cases = [
        (
            "version: '1', repository: 'file://../../../etc'",
            "failed to add local dependency 'd': no chart found at '/etc' (reference 'file://../../../etc')",
        ),
        (
            "version: '2', repository: 'file://../d'",
            "failed to add local dependency 'd': can't get a valid version for constraint '2'",
        ),
        (
            "version: 'what?', repository: 'file://../d'",
            "failed to add local dependency 'd': invalid version/constraint format 'what?': improper constraint: \"what?\"",
        ),
        (
            "version: '1', repository: ''",
            "failed to add local dependency 'd': no chart found at '/app/charts/d' (reference '')",
        ),
        (
            "version: '1', repository: 'ftp://h/c', alias: e",
            "failed to add remote dependency 'e': invalid dependency repository URL: ftp://h/c",
        ),
    ];
    for (dependency, expected) in cases {
        let chart = chart(dependency);
        let files = [
            ("app/Chart.yaml", chart.as_str()),
            ("d/Chart.yaml", "{apiVersion: v2, name: d, version: 1.0.0}"),
        ];
        let (step, words) = refused(&files, &Options::default());
        assert_eq!(
            (step, words),
            (Step::Dependencies, format!("dependency build error: {expected}"))
        );
    }
}

#[test]
fn what_is_no_chart_is_refused_where_it_is_referred_to() {
    let none = Options::default();
    let cases: [(&[(&str, &str)], &str); 4] = [
        (&[("x", "")], "stat app: no such file or directory"),
        (&[("app/x", "")], "open app/Chart.yaml: no such file or directory"),
        (
            &[("app/Chart.yaml", "name: app")],
            "validation: chart.metadata.version is required",
        ),
        (
            &[("app", "text")],
            "stream does not appear to be a valid chart file (details: unexpected EOF)",
        ),
    ];
    for (files, expected) in cases.into_iter().take(3) {
        assert_eq!(
            refused(files, &none),
            (Step::Reference, format!("invalid chart reference: {expected}"))
        );
    }
    assert_eq!(refused(cases[3].0, &none).0, Step::Reference);
    let metadata = Options {
        version_metadata: "a_b".to_owned(),
        ..Options::default()
    };
    let chart = [("app/Chart.yaml", "{apiVersion: v2, name: app, version: 1.0.0}")];
    assert_eq!(refused(&chart, &metadata).0, Step::Metadata);
}

#[test]
fn broken_and_oversized_charts_are_refused() {
    let chart = ("app/Chart.yaml", "{apiVersion: v2, name: app, version: 1.0.0}");
    let small = Options {
        limits: Limits {
            file: 64,
            files: 2,
            ..Limits::default()
        },
        ..Options::default()
    };
    let large = "x".repeat(65);
    let cases: [(TextFiles<'_>, &Options, &str); 4] = [
        (
            vec![chart, ("app/templates/a", &large)],
            &small,
            "failed to load files from /app: cannot load file templates/a as file size (65) exceeds limit (64)",
        ),
        (
            vec![chart, ("app/a", ""), ("app/b", "")],
            &small,
            "failed to load files from /app: chart has more than 2 files",
        ),
        (
            vec![chart, ("app/values.yaml", "[")],
            &Options::default(),
            "failed to load chart from /app: cannot load values.yaml: ",
        ),
        (
            vec![chart, ("app/values.schema.json", "{")],
            &Options::default(),
            "invalid JSON in values.schema.json",
        ),
    ];
    for (files, options, expected) in cases {
        let (step, words) = refused(&files, options);
        assert_eq!(step, Step::Package, "{words}");
        assert!(
            words.starts_with(&format!("chart package error: {expected}")),
            "{words}"
        );
    }
    // What is ignored may be as large as it likes.
    let files = [chart, ("app/.helmignore", "a"), ("app/a", large.as_str())];
    let (_directory, disk) = source(&files);
    build(&disk, "app", &small, &Shelf::default()).unwrap();
}

#[test]
fn hostile_archives_are_refused() {
    let pack = |entries: &[(&str, &[u8])]| {
        let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        let mut tar = tar::Builder::new(gzip);
        for (path, data) in entries {
            let mut header = tar::Header::new_ustar();
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_size(data.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            tar.append(&header, *data).unwrap();
        }
        tar.into_inner().unwrap().finish().unwrap()
    };
    let chart: (&str, &[u8]) = ("app/Chart.yaml", b"{apiVersion: v2, name: app, version: 1.0.0}");
    let bomb = vec![0; 101 << 20];
    let cases = [
        (
            pack(&[chart, ("app/../../x", b"")]),
            "chart illegally references parent directory",
        ),
        (
            pack(&[chart, ("app//x", b"")]),
            "chart illegally contains absolute paths",
        ),
        (pack(&[("app/x", b"")]), "no 'Chart.yaml' found"),
        (pack(&[("app/Chart.yaml", &bomb)]), "larger than the maximum size"),
    ];
    for (archive, expected) in cases {
        let words = message(remote::check(archive.as_slice(), &Limits::default()).unwrap_err()).1;
        assert!(words.contains(expected), "{words}");
    }
    let archive = pack(&[chart, ("app/x", &bomb)]);
    let error = remote::package(archive.as_slice(), "1.0.0", &Options::default(), Vec::new()).unwrap_err();
    assert_eq!(error.step, Step::Package);
}
