//! Files that SOPS encrypted, and what SOPS makes of them: recorded by hack/oracle/sops.

#![allow(clippy::unwrap_used, reason = "tests only")]

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use sops::age::{Identities, Recipient};
use sops::openpgp::SecretKeys;
use sops::rules;
use sops::{Decryptor, Error, Format, Integrity, Keys};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");

#[derive(Deserialize)]
struct Case {
    name: String,
    format: String,
    output: Option<String>,
    encrypted: String,
    plain: Option<String>,
    plain_base64: Option<String>,
    mac: Option<String>,
    error: Option<String>,
}

impl Case {
    fn all() -> Vec<Self> {
        let text = std::fs::read_to_string(format!("{FOLDER}/cases.jsonl")).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    fn plain(&self) -> Vec<u8> {
        match &self.plain_base64 {
            Some(text) => STANDARD.decode(text).unwrap(),
            None => self.plain.clone().unwrap_or_default().into_bytes(),
        }
    }

    fn decrypt(&self, integrity: Integrity) -> Result<Vec<u8>, Error> {
        let decryptor = Decryptor::new(keys(), integrity);
        let input = format(&self.format);
        let output = self.output.as_deref().map_or(input, format);
        now(decryptor.convert(self.encrypted.as_bytes(), input, output))
    }

    /// Fingerprints of its keys of OpenPGP, the other kind that the cases have.
    fn others(&self) -> Vec<String> {
        let is_fingerprint =
            |word: &&str| [40, 64].contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let words = self.encrypted.split(|c: char| !c.is_ascii_alphanumeric());
        let mut found: Vec<String> = words.filter(is_fingerprint).map(str::to_owned).collect();
        found.dedup();
        found
    }

    /// Returns whether its keys are not those that the tests have, which the recorder does not look at.
    fn is_locked(&self) -> bool {
        let ends = [" for a stranger", " in too few groups"];
        ends.iter().any(|end| self.name.ends_with(end))
            || ["tampered key", "tampered age text"].contains(&self.name.as_str())
    }
}

fn format(name: &str) -> Format {
    match name {
        "binary" => Format::Binary,
        "dotenv" => Format::Dotenv,
        "ini" => Format::Ini,
        "json" => Format::Json,
        "yaml" => Format::Yaml,
        other => panic!("{other}"),
    }
}

/// All keys of the tests but the stranger's.
fn keys() -> Keys {
    let mut identities = Identities::default();
    let mut secret_keys = SecretKeys::default();
    for entry in std::fs::read_dir(format!("{FOLDER}/keys")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("agekey") if path.file_stem().unwrap() != "stranger" => {
                identities.import(std::str::from_utf8(&bytes).unwrap()).unwrap();
            }
            Some("asc") => secret_keys.import(&bytes).unwrap(),
            _ => {}
        }
    }
    let mut keys = Keys::default();
    keys.add(identities);
    keys.add(secret_keys);
    keys
}

struct NoWaker;

impl Wake for NoWaker {
    fn wake(self: Arc<Self>) {}
}

/// Keys that are here need no waiting.
fn now<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(NoWaker));
    match pin!(future).poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}

fn check(case: &Case) -> Result<(), String> {
    let found = case.decrypt(Integrity::Ignored);
    if case.is_locked() {
        return match found {
            Err(Error::DataKey(_)) => Ok(()),
            Err(error) => Err(format!("wrong error: {error}")),
            Ok(_) => Err("it must stay locked".to_owned()),
        };
    }
    match (&case.error, &found) {
        (Some(_), Err(_)) => return Ok(()),
        (Some(error), Ok(_)) => return Err(format!("it must fail: {error}")),
        (None, Err(error)) => return Err(error.to_string()),
        (None, Ok(plain)) if *plain != case.plain() => {
            return Err(format!(
                "--- expected\n{}\n--- found\n{}",
                String::from_utf8_lossy(&case.plain()),
                String::from_utf8_lossy(plain)
            ));
        }
        (None, Ok(_)) => {}
    }
    match (case.mac.as_deref(), case.decrypt(Integrity::Checked)) {
        (Some("ok"), Ok(_)) | (Some("mismatch"), Err(Error::Integrity)) => Ok(()),
        (Some("ok"), Err(error)) => Err(format!("the mac is right: {error}")),
        (Some("mismatch"), _) => Err("the mac must not match".to_owned()),
        (_, Err(Error::Mac(_))) => Ok(()),
        (problem, _) => Err(format!("the mac must be refused: {problem:?}")),
    }
}

#[test]
fn files_are_decrypted_as_sops_decrypts_them() {
    let cases = Case::all();
    let mut failures = BTreeMap::new();
    for case in &cases {
        if let Err(problem) = check(case) {
            failures.insert(&case.name, problem);
        }
    }
    for (name, problem) in &failures {
        eprintln!("==== {name}\n{problem}");
    }
    assert!(cases.len() > 150, "{}", cases.len());
    assert!(
        failures.is_empty(),
        "{} of {} fail: {:?}",
        failures.len(),
        cases.len(),
        failures.keys()
    );
}

#[test]
fn no_error_shows_what_was_encrypted() {
    for case in Case::all() {
        if let Err(error) = case.decrypt(Integrity::Checked) {
            let text = format!("{error} {error:?}");
            for line in String::from_utf8_lossy(&case.plain()).lines() {
                let value = line
                    .rsplit_once([':', '='])
                    .map_or(line, |(_, value)| value)
                    .trim();
                assert!(value.len() < 8 || !text.contains(value), "{}: {text}", case.name);
            }
            assert!(
                !text.contains("hunter2") && !text.contains(": first"),
                "{}: {text}",
                case.name
            );
        }
    }
}

fn recipient(name: &str) -> Recipient {
    let text = std::fs::read_to_string(format!("{FOLDER}/keys/{name}.agekey")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("# public key: "));
    Recipient::parse(line.unwrap()).unwrap()
}

/// Returns whether a file has comments, which stand in lines of their own once they are encrypted and decrypted, in SOPS, too.
fn is_commented(case: &Case) -> bool {
    case.format == "yaml" && case.plain().contains(&b'#')
}

/// The keys of a rule with these recipients of age.
fn only(recipients: &[Recipient]) -> rules::Keys {
    rules::Keys {
        recipients: recipients.to_vec(),
        ..rules::Keys::default()
    }
}

/// A time that no case has.
fn later() -> jiff::Timestamp {
    "2027-01-02T03:04:05Z".parse().unwrap()
}

/// The cases that SOPS decrypts, that were not changed since, and that have one group of keys.
fn sound() -> Vec<Case> {
    let is_sound = |case: &Case| {
        case.error.is_none()
            && case.mac.as_deref() == Some("ok")
            && case.output.is_none()
            && !case.is_locked()
            && !case.encrypted.contains("key_groups")
    };
    let cases: Vec<Case> = Case::all().into_iter().filter(is_sound).collect();
    assert!(cases.len() >= 100, "{}", cases.len());
    cases
}

#[test]
fn what_gets_another_recipient_is_written_as_sops_writes_it() {
    let decryptor = Decryptor::new(keys(), Integrity::Checked);
    let (mut same, mut foreign) = (0, 0);
    for case in sound() {
        let format = format(&case.format);
        let before = case.encrypted.as_bytes();
        let stranger = recipient("stranger").to_string();
        if case.encrypted.contains(&stranger) {
            continue;
        }
        // Those of the file, and one more.
        let mut wanted: Vec<Recipient> = ["one", "two", "three", "hybrid"]
            .into_iter()
            .map(recipient)
            .filter(|one| case.encrypted.contains(&one.to_string()))
            .collect();
        if wanted.is_empty() {
            foreign += 1;
        }
        wanted.push(recipient("stranger"));
        // Keys of other kinds stay, if the rule names them.
        let wanted = rules::Keys {
            others: case.others(),
            ..only(&wanted)
        };
        let rotated = now(decryptor.rotate(before, format, &wanted, false, later()));
        let rotated = rotated
            .unwrap_or_else(|error| panic!("{}: {error}", case.name))
            .unwrap();
        assert_eq!(
            rotated.added,
            [recipient("stranger").to_string()],
            "{}",
            case.name
        );
        assert!(rotated.removed.is_empty() && !rotated.is_renewed, "{}", case.name);
        let plain = now(decryptor.decrypt(&rotated.content, format)).unwrap();
        assert_eq!(plain, case.plain(), "{}", case.name);
        // Without the lines of the new key nothing differs from what SOPS wrote.
        // But for the comment in an empty mapping, which SOPS loses, too, as soon as it decrypts.
        if format == Format::Yaml && case.name != "yaml comments around empty" {
            let text = String::from_utf8(rotated.content).unwrap();
            let added = text
                .lines()
                .filter(|line| !case.encrypted.lines().any(|old| old == *line));
            let added = added.count();
            assert!(
                added <= 10 * text.lines().filter(|line| *line == "sops:").count(),
                "{}: {text}",
                case.name
            );
            assert!(
                case.encrypted
                    .lines()
                    .all(|old| text.lines().any(|line| line == old)),
                "{}:\n{text}\n{}",
                case.name,
                case.encrypted
            );
            same += 1;
        }
    }
    assert!(same > 40 && foreign > 0, "{same} {foreign}");
}

#[test]
fn who_is_removed_cannot_open_what_is_written_then() {
    let stranger = only(&[recipient("stranger")]);
    let decryptor = Decryptor::new(keys(), Integrity::Checked);
    let strangers = {
        let mut identities = Identities::default();
        identities
            .import(&std::fs::read_to_string(format!("{FOLDER}/keys/stranger.agekey")).unwrap())
            .unwrap();
        let mut keys = Keys::default();
        keys.add(identities);
        Decryptor::new(keys, Integrity::Checked)
    };
    let (mut renewed, mut of_openpgp) = (0, 0);
    for case in sound() {
        let format = format(&case.format);
        let rotation = decryptor.rotate(case.encrypted.as_bytes(), format, &stranger, false, later());
        let Some(rotated) = now(rotation).unwrap_or_else(|error| panic!("{}: {error}", case.name)) else {
            assert!(
                case.encrypted.contains(&recipient("stranger").to_string()),
                "{}",
                case.name
            );
            continue;
        };
        if !case.others().is_empty() {
            of_openpgp += 1;
            let kept = rules::Keys {
                others: case.others(),
                ..only(&[recipient("stranger")])
            };
            let kept = decryptor.rotate(case.encrypted.as_bytes(), format, &kept, true, later());
            assert!(matches!(now(kept), Err(Error::ForeignKey(_))), "{}", case.name);
        }
        renewed += 1;
        assert!(!rotated.removed.is_empty());
        // All values, the comments among them, are encrypted anew.
        let old: Vec<&str> = case.encrypted.split("ENC[").skip(1).collect();
        let text = String::from_utf8_lossy(&rotated.content).into_owned();
        assert!(
            old.iter().all(|value| !text.contains(value)),
            "{}: {text}",
            case.name
        );
        assert_eq!(text.matches("ENC[").count(), old.len(), "{}: {text}", case.name);
        assert!(text.contains("2027-01-02T03:04:05Z"));
        let failed = now(decryptor.decrypt(&rotated.content, format));
        assert!(matches!(failed, Err(Error::DataKey(_))), "{}", case.name);
        let plain = now(strangers.decrypt(&rotated.content, format));
        let plain = plain.unwrap_or_else(|error| panic!("{}: {error}\n{text}", case.name));
        assert_eq!(
            String::from_utf8_lossy(&plain),
            String::from_utf8_lossy(&case.plain()),
            "{}",
            case.name
        );
    }
    assert!(renewed > 70 && of_openpgp > 0, "{renewed}, {of_openpgp}");
}

#[test]
fn plain_files_are_encrypted_and_come_back() {
    let decryptor = Decryptor::new(keys(), Integrity::Checked);
    let recipients = [recipient("one"), recipient("hybrid")];
    let mut count = 0;
    for case in sound().iter().filter(|case| !is_commented(case)) {
        let (format, plain) = (format(&case.format), case.plain());
        let Ok(encrypted) = sops::encrypt(&plain, format, &recipients, None, later()) else {
            panic!("{}", case.name);
        };
        assert!(
            format == Format::Binary || format.is_encrypted(&encrypted),
            "{}: {}",
            case.name,
            String::from_utf8_lossy(&encrypted)
        );
        let again = sops::encrypt(&encrypted, format, &recipients, None, later());
        if matches!(format, Format::Yaml | Format::Json) {
            assert!(matches!(again, Err(Error::Encrypted)), "{}", case.name);
        }
        let back = now(decryptor.decrypt(&encrypted, format));
        let back = back.unwrap_or_else(|error| panic!("{}: {error}", case.name));
        assert_eq!(
            String::from_utf8_lossy(&back),
            String::from_utf8_lossy(&plain),
            "{}",
            case.name
        );
        count += 1;
    }
    assert!(count > 70, "{count}");

    let secret = b"apiVersion: v1\nkind: Secret\nmetadata:\n    name: s\ndata:\n    a: aHVudGVyMg==\n";
    let encrypted = sops::encrypt(
        secret,
        Format::Yaml,
        &recipients,
        Some("^(data|stringData)$"),
        later(),
    );
    let text = String::from_utf8(encrypted.unwrap()).unwrap();
    assert!(
        text.starts_with("apiVersion: v1\nkind: Secret\nmetadata:\n    name: s\ndata:\n    a: ENC["),
        "{text}"
    );
    assert!(
        text.ends_with("    encrypted_regex: ^(data|stringData)$\n    version: 3.13.2\n"),
        "{text}"
    );
    let none = sops::encrypt(secret, Format::Yaml, &[], None, later());
    assert!(matches!(none, Err(Error::NoRecipient)));
}

#[test]
fn what_was_changed_by_others_is_not_made_authentic() {
    let one = only(&[recipient("one")]);
    let decryptor = Decryptor::new(keys(), Integrity::Checked);
    let mut count = 0;
    for case in Case::all() {
        let is_bad = case.mac.as_deref().is_some_and(|mac| mac != "ok") && case.output.is_none();
        if !is_bad || case.is_locked() {
            continue;
        }
        let rotation = decryptor.rotate(
            case.encrypted.as_bytes(),
            format(&case.format),
            &one,
            true,
            later(),
        );
        let error = now(rotation).err();
        assert!(
            matches!(
                error,
                Some(Error::Integrity | Error::Mac(_) | Error::ForeignKey(_) | Error::KeyGroups)
            ),
            "{}: {error:?}",
            case.name
        );
        count += 1;
    }
    assert!(count > 0);
    // With nothing to do, nothing is done.
    let case = sound()
        .into_iter()
        .find(|case| case.name == "yaml with one")
        .unwrap();
    let same = decryptor.rotate(case.encrypted.as_bytes(), Format::Yaml, &one, false, later());
    assert!(now(same).unwrap().is_none());
}
