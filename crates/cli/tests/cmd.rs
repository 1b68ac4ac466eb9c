//! Documented output of the commands: each file of `cmd` has commands, each followed by its output and its
//! exit code. `NAME.in` is the folder in which the commands of `NAME.md` run; `NAME.out` has the files that
//! they leave there.
//!
//! After a change that is meant, `TRYCMD=overwrite cargo test --workspace --test cmd` writes them anew: read the difference.

#[test]
fn commands_print_what_is_written_down() {
    trycmd::TestCases::new()
        .env("HOME", "/nonexistent")
        .env("KUBECONFIG", "/nonexistent/kubeconfig")
        .env("NO_COLOR", "1")
        // With the whole path, so that paths in output are recognized.
        .case(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cmd/*.md"));
}
