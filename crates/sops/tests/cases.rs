//! Files that SOPS encrypted, and what SOPS makes of them: recorded by hack/oracle/sops.

#![allow(clippy::unwrap_used, reason = "tests only")]

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use sops::age::Identities;
use sops::openpgp::SecretKeys;
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
