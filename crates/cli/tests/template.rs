//! `windlass template` as a process: what it prints and where, and with which exit code it ends. What it renders is the
//! engine's business and tested there; all texts here are what helm 3.22 and 4.3 printed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A chart `web` with a CRD, a hook, a test and notes.
fn tree() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let root = folder.path().canonicalize().expect("canonical");
    for (path, content) in [
        ("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("web/values.yaml", "port: 80\n"),
        ("web/crds/c.yaml", "kind: CustomResourceDefinition\n"),
        (
            "web/templates/a.yaml",
            "kind: Service\nport: {{ .Values.port }}\n---\nkind: Namespace\n",
        ),
        (
            "web/templates/hook.yaml",
            "kind: Job\nmetadata: {annotations: {helm.sh/hook: pre-install}}\n",
        ),
        (
            "web/templates/test.yaml",
            "kind: Pod\nmetadata: {annotations: {helm.sh/hook: test}}\n",
        ),
        ("web/templates/NOTES.txt", "Thanks, {{ .Release.Name }}.\n"),
        ("more.yaml", "port: 81\n"),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        fs::write(path, content).expect("file");
    }
    (folder, root)
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_windlass"))
        .arg("template")
        .args(arguments)
        .current_dir(folder)
        .env_remove("WINDLASS_HELM_VERSION")
        .env_remove("HELM_NAMESPACE")
        .output()
        .expect("the command runs")
}

fn printed(arguments: &[&str]) -> String {
    let (_folder, root) = tree();
    let output = run(&root, arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn error(arguments: &[&str]) -> String {
    let (_folder, root) = tree();
    let output = run(&root, arguments);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const MANIFESTS: &str = "\
---\n# Source: web/templates/a.yaml\nkind: Namespace\n\
---\n# Source: web/templates/a.yaml\nkind: Service\nport: 80\n\
---\n# Source: web/templates/hook.yaml\nkind: Job\nmetadata: {annotations: {helm.sh/hook: pre-install}}\n";
const TEST: &str =
    "---\n# Source: web/templates/test.yaml\nkind: Pod\nmetadata: {annotations: {helm.sh/hook: test}}\n";

#[test]
fn manifests_come_first_then_hooks() {
    let hooks_last = printed(&["demo", "web", "--helm-version=v3", "--skip-tests"]);
    assert_eq!(hooks_last, MANIFESTS);
    let with_test = printed(&["demo", "web", "--helm-version=v3"]);
    // The pod of the test goes before the job: hooks are sorted by kind as well.
    assert!(with_test.contains(&format!("port: 80\n{TEST}---\n")));
    assert!(!printed(&["demo", "web", "--no-hooks"]).contains("Job"));
    assert!(printed(&["web", "--include-crds"]).starts_with("---\n# Source: web/crds/c.yaml\n"));
}

#[test]
fn helm_4_keeps_line_breaks_that_helm_3_takes() {
    let shown = printed(&["demo", "web", "--no-hooks"]);
    assert_eq!(
        shown,
        "---\n# Source: web/templates/a.yaml\nkind: Namespace\n\n---\n# Source: web/templates/a.yaml\nkind: Service\nport: 80\n"
    );
}

#[test]
fn values_come_from_files_and_flags() {
    assert!(printed(&["demo", "web", "-f", "more.yaml"]).contains("port: 81\n"));
    assert!(printed(&["demo", "web", "-f", "more.yaml", "--set", "port=82"]).contains("port: 82\n"));
}

#[test]
fn templates_are_chosen_by_their_names() {
    let shown = printed(&["demo", "web", "-s", "templates/h*.yaml", "--helm-version", "v3"]);
    assert_eq!(
        shown,
        "---\n# Source: web/templates/hook.yaml\nkind: Job\nmetadata: {annotations: {helm.sh/hook: pre-install}}\n"
    );
    assert_eq!(
        error(&["demo", "web", "-s", "nope"]),
        "Error: could not find template nope in chart\n"
    );
}

#[test]
fn files_are_written_below_a_folder() {
    let (_folder, root) = tree();
    let output = run(
        &root,
        &[
            "demo",
            "web",
            "--output-dir",
            "out",
            "--release-name",
            "--no-hooks",
        ],
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "wrote out/demo/web/templates/a.yaml\nwrote out/demo/web/templates/a.yaml\n\n"
    );
    let written = fs::read_to_string(root.join("out/demo/web/templates/a.yaml")).expect("the file is there");
    assert_eq!(written.matches("# Source: web/templates/a.yaml").count(), 2);
}

#[test]
fn failures_are_in_helms_words() {
    for (arguments, expected) in [
        (&["demo", "web", "--zzz"][..], "unknown flag: --zzz"),
        (
            &["demo", "nochart"],
            "non-absolute URLs should be in form of repo_name/path_to_chart, got: nochart",
        ),
        (&["demo", "./no"], "path \"./no\" not found"),
        (
            &["a", "b", "c"],
            "expected at most two arguments, unexpected arguments: c",
        ),
        (
            &["demo", "web", "-g"],
            "cannot set --generate-name and also specify a name",
        ),
        (
            &["demo", "web", "--kube-version", "1"],
            "invalid kube version '1': illegal version string \"1\"",
        ),
        (
            &["demo", "web", "--set", "a"],
            "failed parsing --set data: key \"a\" has no value",
        ),
    ] {
        assert_eq!(error(arguments), format!("Error: {expected}\n"), "{arguments:?}");
    }
}

#[test]
fn what_needs_a_network_is_refused_by_name() {
    assert!(error(&["demo", "web", "--dependency-update"]).contains("--dependency-update is not supported"));
}

#[test]
fn debug_shows_what_is_no_yaml() {
    let (_folder, root) = tree();
    fs::write(root.join("web/templates/bad.yaml"), "a: [\n").expect("file");
    let output = run(&root, &["demo", "web"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        errors,
        "Error: YAML parse error on web/templates/bad.yaml: error converting YAML to JSON: yaml: line 1: did not find \
         expected node content\n\nUse --debug flag to render out invalid YAML\n"
    );
    let output = run(&root, &["demo", "web", "--debug"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("# Source: web/templates/bad.yaml\na: [\n"));
}
