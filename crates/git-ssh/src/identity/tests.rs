//! Keys as the real ssh-keygen and openssl write them.

use std::path::Path;
use std::process::Command;

use super::*;

/// Runs a program in a folder of its own and gives back the file `key` that it leaves there.
fn made_by(commands: &[&[&str]]) -> String {
    let directory = tempfile::tempdir().unwrap();
    for command in commands {
        run(directory.path(), command);
    }
    std::fs::read_to_string(directory.path().join("key")).unwrap()
}

fn run(directory: &Path, command: &[&str]) {
    let output = Command::new(command[0])
        .args(&command[1..])
        .current_dir(directory)
        .output();
    let output = output.unwrap_or_else(|error| panic!("failed to run {}: {error}", command[0]));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A key that ssh-keygen made, of whose number it wrote 31 bytes only.
const SHORT: &str = "\
-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAaAAAABNlY2RzYS
1zaGEyLW5pc3RwMjU2AAAACG5pc3RwMjU2AAAAQQSsGvPMXKRxRT7xNzG65BRG2lHWX2bN
6Cf6YTY+K8MtaJfCFHX+SRsMC89AiUjIvJri+15vRB8OYJeXI6mfk90BAAAAmEL/1zJC/9
cyAAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBKwa88xcpHFFPvE3
MbrkFEbaUdZfZs3oJ/phNj4rwy1ol8IUdf5JGwwLz0CJSMi8muL7Xm9EHw5gl5cjqZ+T3Q
EAAAAfU5ovh+1gIjS69tD7N1dt7pU2+MXv1vbIRo8pgkeEPwAAAAAB
-----END OPENSSH PRIVATE KEY-----
";

fn key_type(text: &str, passphrase: Option<&str>) -> Result<String, ParseError> {
    Identity::parse(text.as_bytes(), passphrase).map(|identity| identity.key_type())
}

#[test]
fn keys_of_all_types_and_forms_are_read() {
    let cases: [(&[&str], &str); 9] = [
        (&["-t", "ed25519"], "ssh-ed25519"),
        (&["-t", "ecdsa", "-b", "256"], "ecdsa-sha2-nistp256"),
        (&["-t", "ecdsa", "-b", "384"], "ecdsa-sha2-nistp384"),
        (&["-t", "ecdsa", "-b", "521"], "ecdsa-sha2-nistp521"),
        (&["-t", "rsa", "-b", "2048"], "ssh-rsa"),
        (&["-t", "rsa", "-b", "2048", "-m", "PEM"], "ssh-rsa"),
        (&["-t", "rsa", "-b", "2048", "-m", "PKCS8"], "ssh-rsa"),
        (&["-t", "ecdsa", "-b", "384", "-m", "PEM"], "ecdsa-sha2-nistp384"),
        (
            &["-t", "ecdsa", "-b", "256", "-m", "PKCS8"],
            "ecdsa-sha2-nistp256",
        ),
    ];
    for (arguments, expected) in cases {
        for passphrase in ["", "correct horse"] {
            let base = ["ssh-keygen", "-q", "-a", "4", "-f", "key", "-N", passphrase];
            let text = made_by(&[&[&base[..], arguments].concat()]);
            let given = Some(passphrase).filter(|given| !given.is_empty());
            assert_eq!(
                key_type(&text, given).as_deref(),
                Ok(expected),
                "{arguments:?} {passphrase:?}\n{text}"
            );
            if passphrase.is_empty() {
                assert_eq!(
                    key_type(&text, Some("not needed")).as_deref(),
                    Ok(expected),
                    "{arguments:?}"
                );
            } else {
                assert_eq!(
                    key_type(&text, None),
                    Err(ParseError::NeedsPassphrase),
                    "{arguments:?}"
                );
                assert_eq!(
                    key_type(&text, Some("")),
                    Err(ParseError::NeedsPassphrase),
                    "{arguments:?}"
                );
                assert_eq!(
                    key_type(&text, Some("wrong")),
                    Err(ParseError::WrongPassphrase),
                    "{arguments:?}"
                );
            }
        }
    }
}

#[test]
fn keys_of_openssl_are_read() {
    let plain = made_by(&[&["openssl", "genpkey", "-algorithm", "ed25519", "-out", "key"]]);
    assert_eq!(key_type(&plain, None).as_deref(), Ok("ssh-ed25519"));
    for cipher in ["-aes128", "-aes192", "-aes256"] {
        let text = made_by(&[&[
            "openssl",
            "genrsa",
            "-traditional",
            cipher,
            "-passout",
            "pass:p",
            "-out",
            "key",
            "2048",
        ]]);
        assert!(text.contains("DEK-Info"), "{text}");
        assert_eq!(key_type(&text, Some("p")).as_deref(), Ok("ssh-rsa"), "{cipher}");
        assert_eq!(
            key_type(&text, Some("q")),
            Err(ParseError::WrongPassphrase),
            "{cipher}"
        );
    }
    let convert = [
        "openssl", "pkcs8", "-topk8", "-in", "plain", "-out", "key", "-passout", "pass:p",
    ];
    let generate = [
        "openssl",
        "ecparam",
        "-name",
        "prime256v1",
        "-genkey",
        "-noout",
        "-out",
        "plain",
    ];
    let text = made_by(&[
        &generate,
        &[&convert[..], &["-v2", "aes-256-cbc", "-iter", "5000"]].concat(),
    ]);
    assert_eq!(key_type(&text, Some("p")).as_deref(), Ok("ecdsa-sha2-nistp256"));
    let text = made_by(&[&generate, &[&convert[..], &["-scrypt"]].concat()]);
    assert_eq!(key_type(&text, Some("p")).as_deref(), Ok("ecdsa-sha2-nistp256"));
    // A passphrase that takes long to try.
    let text = made_by(&[
        &generate,
        &[&convert[..], &["-v2", "aes-256-cbc", "-iter", "2000001"]].concat(),
    ]);
    assert_eq!(key_type(&text, Some("p")), Err(ParseError::TooExpensive));
}

#[test]
fn a_key_is_read_through_blanks_and_comments_around_it() {
    let text = made_by(&[&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "key"]]);
    let indented: String = text.lines().map(|line| format!("  {line} \r\n")).collect();
    assert_eq!(
        key_type(&format!("# deploy key\n{indented}"), None).as_deref(),
        Ok("ssh-ed25519")
    );
}

#[test]
fn what_is_no_usable_key_is_told_apart() {
    let public = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIKBPJQvHVlF3qYL3K7aGPdHKUKZqQeBuW4XFyR7Xq9M";
    let text = made_by(&[&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "key"]]);
    let cut = text.replacen("AAAA", "", 1);
    let unended = text.replace("-----END OPENSSH PRIVATE KEY-----", "");
    let large = "x".repeat(MAX_TEXT + 1);
    let unknown = "-----BEGIN OTHER PRIVATE KEY-----\nAAAA\n-----END OTHER PRIVATE KEY-----\n";
    let dsa = "-----BEGIN DSA PRIVATE KEY-----\nAAAA\n-----END DSA PRIVATE KEY-----\n";
    let cases = [
        ("", "ssh: no key found: 'identity' holds no private key in PEM"),
        (
            public,
            "ssh: no key found: 'identity' holds no private key in PEM",
        ),
        (
            &unended,
            "ssh: no key found: 'identity' holds no private key in PEM",
        ),
        (&cut, "ssh: the private key in 'identity' cannot be read"),
        (&large, "'identity' is larger than 16384 bytes"),
        (unknown, "ssh: unsupported key: it is in a form that is not known"),
        (
            dsa,
            "ssh: unsupported key: keys of type DSA are not secure any more",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(key_type(text, None).unwrap_err().to_string(), message);
    }
}

#[test]
fn a_key_with_too_many_rounds_is_refused_before_they_are_computed() {
    let text = made_by(&[&[
        "ssh-keygen",
        "-q",
        "-t",
        "ed25519",
        "-a",
        "4",
        "-N",
        "p",
        "-f",
        "key",
    ]]);
    let block = Block::find(&text).unwrap();
    let mut bytes = block.bytes().unwrap();
    // The rounds are the four bytes after a salt of sixteen.
    let at = bytes
        .windows(4)
        .position(|window| window == [0, 0, 0, 16])
        .unwrap()
        + 20;
    assert_eq!(bytes[at..at + 4], [0, 0, 0, 4]);
    bytes[at..at + 4].copy_from_slice(&[0xff; 4]);
    let text = pem("OPENSSH PRIVATE KEY", &bytes);
    assert_eq!(key_type(&text, Some("p")), Err(ParseError::TooExpensive));
}

#[test]
fn nothing_of_a_key_is_shown() {
    let text = made_by(&[&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "key"]]);
    let identity = Identity::parse(text.as_bytes(), None).unwrap();
    let shown = format!("{identity:?}");
    assert!(
        shown.starts_with("Identity(\"SHA256:") && shown.len() < 80,
        "{shown}"
    );
}

#[test]
fn signatures_of_all_types_are_verified_by_ssh_keygen() {
    let cases: [&[&str]; 4] = [
        &["-t", "ed25519"],
        &["-t", "ecdsa", "-b", "256"],
        &["-t", "ecdsa", "-b", "384"],
        &["-t", "rsa", "-b", "2048"],
    ];
    for arguments in cases {
        let folder = tempfile::tempdir().unwrap();
        let mut generate = vec!["ssh-keygen", "-q", "-N", "", "-C", "x", "-f", "key"];
        generate.extend(arguments);
        run(folder.path(), &generate);
        signs(folder.path(), None);
    }
}

/// Checks that a signature by the key of a folder is one of its public key for the real program.
fn signs(folder: &Path, passphrase: Option<&str>) {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let identity = Identity::parse(read("key").as_bytes(), passphrase).unwrap();
    let signature = identity.sign("git", b"payload\n").unwrap();
    std::fs::write(folder.join("signature"), signature).unwrap();
    std::fs::write(folder.join("payload"), "payload\n").unwrap();
    std::fs::write(folder.join("allowed"), format!("bot {}", read("key.pub"))).unwrap();
    let verify = "ssh-keygen -Y verify -f allowed -I bot -n git -s signature < payload";
    run(folder, &["sh", "-c", verify]);
}

#[test]
fn a_key_whose_number_begins_with_zeros_signs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, SHORT).unwrap();
    run(folder.path(), &["chmod", "600", "key"]);
    run(folder.path(), &["sh", "-c", "ssh-keygen -y -f key > key.pub"]);
    signs(folder.path(), None);
    // Of all ciphers that ssh-keygen has had as its default.
    for cipher in ["aes256-ctr", "aes256-cbc", "aes128-ctr"] {
        std::fs::write(&file, SHORT).unwrap();
        let lock = [
            "ssh-keygen",
            "-q",
            "-p",
            "-a",
            "4",
            "-N",
            "right",
            "-Z",
            cipher,
            "-f",
            "key",
        ];
        run(folder.path(), &lock);
        signs(folder.path(), Some("right"));
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(key_type(&text, None), Err(ParseError::NeedsPassphrase));
        assert_eq!(key_type(&text, Some("wrong")), Err(ParseError::WrongPassphrase));
    }
    // A file that was cut off stays broken.
    let block = Block::find(SHORT).unwrap().bytes().unwrap();
    for end in 0..block.len() - 4 {
        assert!(openssh(&block[..end], None).is_err(), "{end}");
    }
}
