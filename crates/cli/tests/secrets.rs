//! `windlass secrets rotate` over a repository in a folder.

#![allow(clippy::unwrap_used, reason = "tests only")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PLAIN: &str =
    "apiVersion: v1\nkind: Secret\nmetadata:\n    name: shop\nstringData:\n    password: hunter2\n";

struct Repository {
    folder: tempfile::TempDir,
}

impl Repository {
    /// A repository with a Secret that is encrypted for Ana and Ben, whose keys lie beside it.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let repository = Self { folder };
        fs::create_dir_all(repository.path("fleet/.git")).unwrap();
        repository.rule(&["one", "two"]);
        let recipients = [recipient("one"), recipient("two")];
        for (path, format, content) in [
            ("fleet/shop/secret.yaml", sops::Format::Yaml, PLAIN),
            ("fleet/shop/shop.env", sops::Format::Dotenv, "PASSWORD=hunter2\n"),
        ] {
            let recipients: Vec<_> = recipients
                .iter()
                .map(|text| sops::age::Recipient::parse(text).unwrap())
                .collect();
            let now = jiff::Timestamp::UNIX_EPOCH;
            let encrypted = sops::encrypt(content.as_bytes(), format, &recipients, None, now).unwrap();
            fs::create_dir_all(repository.path(path).parent().unwrap()).unwrap();
            fs::write(repository.path(path), encrypted).unwrap();
        }
        repository
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// Has `.sops.yaml` name the recipients of these keys.
    fn rule(&self, keys: &[&str]) {
        let keys: Vec<_> = keys.iter().map(|key| recipient(key)).collect();
        let rules = format!(
            "creation_rules:\n  - path_regex: ^shop/\n    age: {}\n",
            keys.join(",")
        );
        fs::write(self.path("fleet/.sops.yaml"), rules).unwrap();
    }

    /// Runs it with the key of someone. Returns the exit code and all output.
    fn rotate(&self, key: &str, words: &[&str]) -> (i32, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .current_dir(self.path("fleet"))
            .args(["secrets", "rotate"])
            .args(words)
            .env_remove("SOPS_AGE_KEY")
            .env("SOPS_AGE_KEY_FILE", key_file(key))
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(text).unwrap())
    }

    fn opens(&self, key: &str) -> bool {
        // A rotation that changes nothing still needs no key; renewing does.
        let (code, text) = self.rotate(key, &["--renew", "--exit-code"]);
        assert!([1, 5].contains(&code), "{text}");
        code == 5
    }
}

fn key_file(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sops/tests/keys");
    folder.join(format!("{name}.agekey"))
}

fn recipient(name: &str) -> String {
    let text = fs::read_to_string(key_file(name)).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("# public key: "));
    line.unwrap().to_owned()
}

#[test]
fn nothing_is_written_without_consent() {
    let repository = Repository::new();
    let before = repository.text("fleet/shop/secret.yaml");
    let (code, text) = repository.rotate("one", &[]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("0 of 2 files would be rotated"), "{text}");

    // Someone adds a key of their own to the rules.
    repository.rule(&["one", "two", "stranger"]);
    let (code, text) = repository.rotate("one", &["--exit-code"]);
    assert_eq!(code, 5, "{text}");
    assert!(
        text.contains(&format!("added: {}\n", recipient("stranger"))),
        "{text}"
    );
    assert!(text.contains("nothing was written"), "{text}");
    assert_eq!(repository.text("fleet/shop/secret.yaml"), before);
    assert!(!repository.opens("stranger"));
}

#[test]
fn a_new_recipient_opens_the_files_and_values_stay() {
    let repository = Repository::new();
    repository.rule(&["one", "two", "hybrid"]);
    let values = |text: &str| {
        text.lines()
            .find(|line| line.contains("password"))
            .unwrap()
            .to_owned()
    };
    let before = repository.text("fleet/shop/secret.yaml");
    let (code, text) = repository.rotate("two", &["--yes"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("2 of 2 files rotated"), "{text}");
    let after = repository.text("fleet/shop/secret.yaml");
    assert_eq!(
        values(&before),
        values(&after),
        "only the list of recipients changes"
    );
    assert!(repository.opens("hybrid"));
}

#[test]
fn a_removed_recipient_opens_nothing_any_more() {
    let repository = Repository::new();
    repository.rule(&["one"]);
    let before = repository.text("fleet/shop/secret.yaml");
    let (code, text) = repository.rotate("one", &["--yes", "shop"]);
    assert_eq!(code, 0, "{text}");
    assert!(
        text.contains("new data key") && text.contains("change the secrets themselves"),
        "{text}"
    );
    assert!(!text.contains("hunter2"));
    assert_ne!(before, repository.text("fleet/shop/secret.yaml"));
    assert!(!repository.opens("two"));
    assert!(repository.opens("one"));
}

#[test]
fn what_cannot_be_rotated_is_named_and_stays() {
    let repository = Repository::new();
    repository.rule(&["one"]);
    // Changed by someone without a key.
    let tampered = repository
        .text("fleet/shop/secret.yaml")
        .replace("name: shop", "name: other");
    // All values are encrypted: the name, too.
    assert_eq!(tampered, repository.text("fleet/shop/secret.yaml"));
    let env = repository
        .text("fleet/shop/shop.env")
        .replace("PASSWORD=", "OTHER=");
    fs::write(repository.path("fleet/shop/shop.env"), &env).unwrap();
    fs::create_dir(repository.path("fleet/other")).unwrap();
    let outside = repository.text("fleet/shop/secret.yaml");
    fs::write(repository.path("fleet/other/secret.yaml"), &outside).unwrap();

    let (code, text) = repository.rotate("one", &["--yes"]);
    assert_eq!(code, 1, "{text}");
    let line = |file: &str| {
        text.lines()
            .find(|line| line.starts_with(file))
            .unwrap()
            .to_owned()
    };
    assert!(
        line("shop/shop.env").contains("message authentication failed"),
        "{text}"
    );
    assert!(line("other/secret.yaml").contains("no rule in"), "{text}");
    assert!(text.contains("1 of 3 files rotated"), "{text}");
    assert!(text.contains("2 files were skipped"), "{text}");
    assert_eq!(repository.text("fleet/shop/shop.env"), env);
    assert_eq!(repository.text("fleet/other/secret.yaml"), outside);

    // With a key that opens nothing.
    let (code, text) = repository.rotate("stranger", &["--renew", "shop/secret.yaml"]);
    assert_eq!(code, 1);
    assert!(
        text.contains("no identity matched any of the recipients"),
        "{text}"
    );
}

#[test]
fn rules_above_the_repository_do_not_count() {
    let repository = Repository::new();
    fs::remove_file(repository.path("fleet/.sops.yaml")).unwrap();
    // In a folder that others can write to, such as /tmp.
    let rules = format!("creation_rules:\n  - age: {}\n", recipient("stranger"));
    fs::write(repository.path(".sops.yaml"), rules).unwrap();
    let (code, text) = repository.rotate("one", &["--yes"]);
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("there is no .sops.yaml for it") && text.contains("0 of 2 files"),
        "{text}"
    );
    assert!(!repository.opens("stranger"));
}

#[test]
fn a_recipient_that_was_forged_into_a_file_is_listed() {
    let repository = Repository::new();
    // The rules name the stranger, and the file lists it with an invalid data key.
    let one = recipient("one");
    let path = repository.path("fleet/shop/secret.yaml");
    let text = fs::read_to_string(&path).unwrap();
    let forged = text.replace(
        "    age:\n",
        &format!(
            "    age:\n        - enc: none\n          recipient: {}\n",
            recipient("stranger")
        ),
    );
    assert_ne!(text, forged);
    fs::write(&path, forged).unwrap();
    repository.rule(&["one", "stranger"]);
    let (code, text) = repository.rotate("one", &["shop/secret.yaml"]);
    assert_eq!(code, 0, "{text}");
    let kept: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("kept: "))
        .collect();
    assert!(
        kept.contains(&one.as_str()) && kept.contains(&recipient("stranger").as_str()),
        "{text}"
    );
}
