//! What the commands print, as documents: each file of `cmd` has commands, and below each what it prints and with which code it
//! ends. `NAME.in` is the folder that the commands of `NAME.md` are typed in; what they leave there is in `NAME.out`.
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
