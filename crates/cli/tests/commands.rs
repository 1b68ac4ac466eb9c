//! The commands that speak to a cluster, where none is: how they end. What they do with one is tested in tests/cluster.

use std::process::Command;

/// Runs the command without any way to a cluster; returns its exit code and what it said.
fn run(words: &[&str]) -> (i32, String) {
    let home = tempfile::tempdir().expect("temporary folder");
    let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
        .args(words)
        .env_remove("KUBECONFIG")
        .env_remove("KUBERNETES_SERVICE_HOST")
        .env("HOME", home.path())
        .output()
        .expect("the command runs");
    let said = [output.stdout, output.stderr].concat();
    let code = output.status.code().expect("an exit code");
    (code, String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn wrong_usage_ends_with_2_before_a_cluster_is_looked_for() {
    for (words, expected) in [
        (
            vec!["get", "pods"],
            "Error: \"pods\" is no kind of Flux; there are gitrepository",
        ),
        (vec!["get", "--foo"], "Error: unknown flag: --foo"),
        (
            vec!["get", "--status-selector", "ready"],
            "expected status selector in type=status format",
        ),
        (
            vec!["why", "ks"],
            "Error: name an object, for example kustomization/app",
        ),
        (vec!["why", "ks/a", "ks/b"], "Error: name one object only"),
        (
            vec!["tree", "git/app"],
            "Error: gitrepositories have no inventory",
        ),
        (
            vec!["reconcile", "alert/chat"],
            "Error: alerts are never reconciled by themselves",
        ),
        (
            vec!["reconcile", "ks/app", "--force"],
            "Error: --force and --reset are for HelmReleases",
        ),
        (
            vec!["reconcile", "ks/app", "--timeout", "soon"],
            "\"soon\" is no duration",
        ),
        (
            vec!["suspend", "ks"],
            "Error: name objects, or one kind with --all",
        ),
        (
            vec!["wait", "--revision", "abc"],
            "Error: --revision: give at least 7 characters",
        ),
        (vec!["wait"], "--revision <REVISION>"),
        (
            vec!["install", "--set", "image"],
            "Error: failed parsing --set data: key \"image\" has no value",
        ),
        (
            vec!["takeover", "-f", "/nowhere/values.yaml"],
            "Error: open /nowhere/values.yaml: no such file or directory",
        ),
        (
            vec!["check", "-o", "name"],
            "[possible values: text, json, yaml, sarif, junit]",
        ),
        (
            vec!["nonsense"],
            "Error: unknown command \"nonsense\" for \"windlass\"",
        ),
    ] {
        let (code, said) = run(&words);
        assert_eq!(code, 2, "{words:?}: {said}");
        assert!(said.contains(expected), "{words:?}: {said}");
    }
}

#[test]
fn without_a_cluster_it_is_said_how_to_name_one() {
    let (code, said) = run(&["get", "ks"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.starts_with("Error: failed to find a cluster: "), "{said}");
    assert!(
        said.contains("name a kubeconfig with --kubeconfig or $KUBECONFIG"),
        "{said}"
    );
}

#[test]
fn a_cluster_that_does_not_answer_is_told_with_its_address() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let kubeconfig = folder.path().join("config");
    // Nothing listens on the port that is reserved for no one.
    let text = "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n\
                clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n";
    std::fs::write(&kubeconfig, text).expect("file");
    let kubeconfig = kubeconfig.to_str().expect("UTF-8");
    let (code, said) = run(&["get", "ks", "--kubeconfig", kubeconfig]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.starts_with("Error: failed to list kustomizations: "),
        "{said}"
    );
    let (code, said) = run(&["get", "ks", "--kubeconfig", kubeconfig, "--context", "b"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("failed to find a cluster"), "{said}");
}

#[test]
fn help_lists_the_exit_codes_and_shells_get_their_scripts() {
    let (code, said) = run(&["--help"]);
    assert_eq!(code, 0);
    assert!(said.contains("124 timeout"), "{said}");
    for shell in ["bash", "zsh", "fish"] {
        let (code, said) = run(&["completion", shell]);
        assert_eq!(code, 0, "{said}");
        assert!(
            said.contains("reconcile") && said.contains("with-source"),
            "{shell}"
        );
    }
}
