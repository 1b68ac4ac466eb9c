//! Entries as OpenSSH writes them, and texts that no one writes.

use proptest::prelude::*;

use super::*;

const ED25519: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIKBPJQvHVlF3qYL3K7aGPdHKUKZqQeBuW4XFyR7Xq9M";
const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
const RSA: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAQA=";

fn bytes(key: &str) -> Vec<u8> {
    STANDARD.decode(key.split(' ').nth(1).unwrap()).unwrap()
}

fn known(text: &str) -> KnownHosts {
    KnownHosts::parse(text.as_bytes()).unwrap()
}

#[test]
fn a_key_is_known_for_the_hosts_of_its_entry_only() {
    let cases = [
        ("example.com", "example.com", 22, Verdict::Known),
        ("Example.COM", "example.com", 22, Verdict::Known),
        ("example.com", "EXAMPLE.com", 22, Verdict::Known),
        ("example.com", "example.com", 2222, Verdict::UnknownHost),
        ("[example.com]:2222", "example.com", 2222, Verdict::Known),
        ("[example.com]:2222", "example.com", 22, Verdict::UnknownHost),
        ("a,b,example.com", "b", 22, Verdict::Known),
        (
            "*.example.com,!git.example.com",
            "a.example.com",
            22,
            Verdict::Known,
        ),
        (
            "*.example.com,!git.example.com",
            "git.example.com",
            22,
            Verdict::UnknownHost,
        ),
        (
            "!git.example.com,*.example.com",
            "git.example.com",
            22,
            Verdict::UnknownHost,
        ),
        ("!example.com", "other.com", 22, Verdict::UnknownHost),
        ("[::1]:2222", "[::1]", 2222, Verdict::Known),
        ("::1", "::1", 22, Verdict::Known),
    ];
    for (names, host, port, verdict) in cases {
        let known = known(&format!("{names} {ED25519} a comment"));
        assert_eq!(
            known.check(host, port, &bytes(ED25519)),
            verdict,
            "{names} {host} {port}"
        );
    }
}

/// Lines made by `ssh-keygen -H` of OpenSSH 9.2.
#[test]
fn hashed_names_are_found() {
    let text = include_str!("testdata/hashed");
    let known = known(text);
    for (host, port) in [
        ("example.com", 22),
        ("example.com", 2222),
        ("192.0.2.1", 22),
        ("2001:db8::1", 22),
    ] {
        assert_eq!(
            known.check(host, port, &bytes(ED25519)),
            Verdict::Known,
            "{host} {port}"
        );
    }
    assert_eq!(
        known.check("example.org", 22, &bytes(ED25519)),
        Verdict::UnknownHost
    );
}

#[test]
fn a_host_may_have_several_keys_also_of_one_type() {
    let known = known(&format!(
        "h {ED25519}\n\n# comment\n  h {OTHER}  \nh {RSA}\nother {RSA}\r\n"
    ));
    for key in [ED25519, OTHER, RSA] {
        assert_eq!(known.check("h", 22, &bytes(key)), Verdict::Known);
    }
    assert_eq!(known.check("other", 22, &bytes(OTHER)), Verdict::Mismatch);
    assert_eq!(known.key_types("h", 22), ["ssh-ed25519", "ssh-rsa"]);
    assert_eq!(known.key_types("nobody", 22), Vec::<&str>::new());
}

#[test]
fn a_revoked_key_is_refused_wherever_it_is_known() {
    let known = known(&format!("h {ED25519}\n@revoked * {ED25519}\n"));
    assert_eq!(known.check("h", 22, &bytes(ED25519)), Verdict::Revoked);
    assert_eq!(known.check("elsewhere", 22, &bytes(ED25519)), Verdict::Revoked);
}

#[test]
fn an_authority_vouches_for_its_hosts_and_is_no_key_of_theirs() {
    let known = known(&format!("@cert-authority *.example.com {ED25519}"));
    assert_eq!(
        known.check("a.example.com", 22, &bytes(ED25519)),
        Verdict::UnknownHost
    );
    assert!(known.trusts_authority("a.example.com", 22, &bytes(ED25519)));
    assert!(!known.trusts_authority("a.example.org", 22, &bytes(ED25519)));
    assert!(!known.trusts_authority("a.example.com", 22, &bytes(OTHER)));
}

#[test]
fn a_line_that_cannot_be_read_is_named() {
    let cases = [
        ("h", "it has no key type"),
        ("h ssh-ed25519", "it has no key"),
        ("h ssh-ed25519 !!!!", "its key is not base64"),
        ("h ssh-ed25519 AAAA", "its key is cut or of no known form"),
        (
            "h ssh-ed25519 AAAAC3NzaC1lZDI1NTE5",
            "its key is cut or of no known form",
        ),
        ("@revoked", "it names no host"),
        ("@other h ssh-ed25519 AAAA", "its marker is not known"),
        (
            "!, ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA==",
            "it negates no name",
        ),
        (
            "|1|a ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA==",
            "its hashed name has not three parts",
        ),
        (
            "|2|YQ==|YQ== ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA==",
            "its name is hashed in an unknown way",
        ),
        (
            "|1|a|b ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA==",
            "its hashed name is not base64",
        ),
    ];
    for (line, problem) in cases {
        let error = KnownHosts::parse(format!("# first\n{line}\n").as_bytes()).unwrap_err();
        assert_eq!(error, ParseError { line: 2, problem }, "{line}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in any::<Vec<u8>>(), host in ".*", port: u16) {
        if let Ok(known) = KnownHosts::parse(&text) {
            known.check(&host, port, &text);
        }
    }

    /// Made of the pieces of real entries, so that the deeper parts are reached.
    #[test]
    fn no_entry_makes_the_parser_panic(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "@revoked", "@cert-authority", "|1|", "|", "YQ==", "[", "]", ":", "!", "*", "?", ",", "h", "22",
                "ssh-ed25519", "AAAAC3NzaC1lZDI1NTE5AAAAIA==", " ", " ", "\n", "#", "\u{fc}", "\t",
            ]),
            0..40,
        ),
        host in "[h*?:\\[\\]\u{fc}]{0,5}",
    ) {
        if let Ok(known) = KnownHosts::parse(words.concat().as_bytes()) {
            known.check(&host, 22, b"x");
            known.key_types(&host, 22);
            known.trusts_authority(&host, 22, b"x");
        }
    }
}
