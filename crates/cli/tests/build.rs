//! `windlass build` as a process: what it prints and where, and with which exit code it ends. What it builds is the
//! engine's business and tested there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";
const PREFIXED: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x-a\n";

/// An overlay `over` on a base `base`, and a link `link` to the overlay.
fn tree() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let root = folder.path().canonicalize().expect("canonical");
    for (path, content) in [
        ("base/kustomization.yaml", "resources: [cm.yaml]\n"),
        ("base/cm.yaml", CONFIG_MAP),
        (
            "deep/over/kustomization.yaml",
            "namePrefix: x-\nresources: [../../base]\n",
        ),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        fs::write(path, content).expect("file");
    }
    std::os::unix::fs::symlink("deep/over", root.join("link")).expect("link");
    (folder, root)
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.arg("build").args(arguments).current_dir(folder);
    command
        .env_remove("PWD")
        .env_remove("KUSTOMIZE_ENABLE_MANAGEDBY_LABEL");
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().expect("the command runs")
}

fn printed(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn error(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_folder_may_be_given_in_all_ways_that_paths_have() {
    let (_folder, root) = tree();
    let over = root.join("deep/over");
    let absolute = over.to_str().expect("UTF-8");
    for (from, arguments) in [
        (&over, vec![]),
        (&over, vec!["."]),
        (&root, vec!["deep/over"]),
        (&root, vec!["./deep//over/"]),
        (&root, vec!["base/../deep/over"]),
        (&root, vec!["link"]),
        (&root, vec![absolute]),
        (&over, vec!["../over"]),
    ] {
        assert_eq!(
            printed(&run(from, &arguments)),
            PREFIXED,
            "{arguments:?} in {from:?}"
        );
    }
}

#[test]
fn errors_are_one_line_with_absolute_paths() {
    let (_folder, root) = tree();
    fs::write(root.join("base/kustomization.yaml"), "resources: [none.yaml]\n").expect("file");
    let (shown, at) = (
        root.join("base").display().to_string(),
        root.join("base/none.yaml").display().to_string(),
    );
    let missing = format!("evalsymlink failure on '{at}' : lstat {at}: no such file or directory");
    let accumulation = format!(
        "Error: accumulating resources: accumulation err='accumulating resources from '../../base': '{shown}' must \
         resolve to a file': recursed accumulation of path '{shown}': accumulating resources: accumulation \
         err='accumulating resources from 'none.yaml': {missing}': must build at directory: not a valid directory: \
         {missing}\n"
    );
    assert_eq!(error(&run(&root, &["link"])), accumulation);
    let explained = error(&run(&root, &["link", "--explain"]));
    let rest = explained
        .strip_prefix(&accumulation)
        .expect("the same line first");
    assert!(
        rest.contains(&format!("in file {shown}/kustomization.yaml:1\n")),
        "{rest}"
    );
    assert!(
        rest.contains(&format!("through kustomization {shown}\n")),
        "{rest}"
    );
}

#[test]
fn a_folder_that_is_not_there_is_named_as_it_was_typed() {
    let (_folder, root) = tree();
    let root_shown = root.display();
    for (path, words) in [
        (
            "none/x",
            format!(
                "not a valid directory: evalsymlink failure on 'none/x' : lstat {root_shown}/none: no such file or directory"
            ),
        ),
        ("base/cm.yaml", "'base/cm.yaml': file is not directory".to_owned()),
        ("", "directory path cannot be empty".to_owned()),
    ] {
        assert_eq!(
            error(&run(&root, &[path])),
            format!("Error: must build at directory: {words}\n")
        );
    }
}

#[test]
fn the_result_goes_to_a_file_or_one_by_one_into_a_folder() {
    let (_folder, root) = tree();
    let read = |path: &str| fs::read_to_string(root.join(path)).expect("written");
    assert_eq!(printed(&run(&root, &["link", "-o", "all.yaml"])), "");
    assert_eq!(read("all.yaml"), PREFIXED);
    fs::create_dir(root.join("out")).expect("folder");
    assert_eq!(printed(&run(&root, &["link", "--output=out"])), "");
    assert_eq!(read("out/v1_configmap_x-a.yaml"), PREFIXED);
    let refused = error(&run(&root, &["link", "-o", "none/x.yaml"]));
    assert_eq!(refused, "Error: open none/x.yaml: no such file or directory\n");
    let full = fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("a device of Linux");
    let output = command(&root, &["link"])
        .stdout(full)
        .output()
        .expect("the command runs");
    assert_eq!(
        error(&output),
        "Error: write /dev/stdout: no space left on device\n"
    );
}

#[test]
fn files_outside_of_the_folder_are_read_only_when_that_is_allowed() {
    let (_folder, root) = tree();
    fs::write(
        root.join("deep/over/kustomization.yaml"),
        "resources: [../../base/cm.yaml]\n",
    )
    .expect("file");
    assert!(error(&run(&root, &["link"])).contains("security; file"));
    assert_eq!(
        printed(&run(
            &root,
            &["link", "--load-restrictor", "LoadRestrictionsNone"]
        )),
        CONFIG_MAP
    );
}

#[test]
fn wrong_command_lines_are_refused_as_kustomize_refuses_them() {
    let (_folder, root) = tree();
    for (arguments, words) in [
        (vec!["a", "b"], "specify one path to kustomization.yaml"),
        (vec!["--foo"], "unknown flag: --foo"),
        (vec!["--foo=1"], "unknown flag: --foo"),
        (vec!["-zx"], "unknown shorthand flag: 'z' in -zx"),
        (
            vec!["--load-restrictor", "none"],
            "illegal flag value --load-restrictor none; legal values: [LoadRestrictionsRootOnly LoadRestrictionsNone]",
        ),
        (
            vec!["--enable-helm=x"],
            "invalid argument \"x\" for \"--enable-helm\" flag: strconv.ParseBool: parsing \"x\": invalid syntax",
        ),
        (vec!["--output"], "flag needs an argument: --output"),
        (vec!["-o"], "flag needs an argument: 'o' in -o"),
        (
            vec!["https://example.com/x"],
            "remote resources are not supported: 'https://example.com/x'; fetch it with --allow-remote",
        ),
    ] {
        assert_eq!(error(&run(&root, &arguments)), format!("Error: {words}\n"));
    }
}

#[test]
fn what_is_not_supported_is_refused_with_the_reason_and_only_when_asked_for() {
    let (_folder, root) = tree();
    for (flag, reason) in [
        ("--enable-alpha-plugins", "by design"),
        ("--network", "by design"),
        ("-e=A=b", "by design"),
    ] {
        let refused = error(&run(&root, &["link", flag]));
        assert!(refused.contains(reason), "{flag}: {refused}");
    }
    assert_eq!(
        printed(&run(&root, &["--enable-helm=false", "link", "--network=f"])),
        PREFIXED
    );
}

#[test]
fn deprecated_flags_work_and_say_so() {
    let (_folder, root) = tree();
    let output = run(&root, &["base", "--enable-managedby-label", "--reorder=none"]);
    assert!(printed(&output).contains("app.kubernetes.io/managed-by: kustomize-v5.8.3"));
    let warnings = String::from_utf8_lossy(&output.stderr);
    assert!(
        warnings.starts_with("Flag --reorder has been deprecated, use the new"),
        "{warnings}"
    );
    assert!(
        warnings.contains("\nFlag --enable-managedby-label has been deprecated, "),
        "{warnings}"
    );
}

#[test]
fn deprecated_fields_are_told_on_standard_error_also_when_the_build_fails() {
    let (_folder, root) = tree();
    for (kustomization, succeeds) in [("bases: [../../base]\n", true), ("bases: [../none]\n", false)] {
        fs::write(root.join("deep/over/kustomization.yaml"), kustomization).expect("file");
        let output = run(&root, &["link"]);
        assert_eq!(output.status.success(), succeeds);
        let warnings = String::from_utf8_lossy(&output.stderr);
        let warning = "# Warning: 'bases' is deprecated. Please use 'resources' instead. Run 'kustomize edit fix' to \
                       update your Kustomization automatically.\n";
        assert!(warnings.starts_with(warning), "{warnings}");
    }
}

#[test]
fn a_reader_that_went_away_is_no_failure_to_tell_of() {
    let (_folder, root) = tree();
    // More than a pipe holds, so that the command is still writing when the reader goes.
    let value = "x".repeat(1 << 20);
    fs::write(
        root.join("base/cm.yaml"),
        format!("{CONFIG_MAP}data:\n  key: {value}\n"),
    )
    .expect("file");
    let mut command = command(&root, &["base"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
