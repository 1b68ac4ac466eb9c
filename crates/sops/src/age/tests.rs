//! The test vectors of age's authors (C2SP/CCTV, `age`), in tests/age.

use std::io::Read as _;
use std::path::Path;

use aws_lc_rs::digest::{SHA256, digest};

use super::*;

struct Vector {
    fields: Vec<(String, String)>,
    file: Vec<u8>,
}

impl Vector {
    fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let end = bytes.windows(2).position(|two| two == b"\n\n").unwrap();
        let text = std::str::from_utf8(&bytes[..end]).unwrap();
        let fields = text.lines().map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_owned(), value.to_owned())
        });
        let fields: Vec<_> = fields.collect();
        let mut file = bytes[end + 2..].to_vec();
        if fields
            .iter()
            .any(|(name, value)| name == "compressed" && value == "zlib")
        {
            let mut packed = flate2::read::ZlibDecoder::new(&bytes[end + 2..]);
            file.clear();
            packed.read_to_end(&mut file).unwrap();
        }
        Self { fields, file }
    }

    fn get(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(field, _)| field == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// An identity of each kind and its recipient, made by age-keygen.
const PAIRS: [(&str, &str); 2] = [
    (include_str!("../../tests/keys/one.agekey"), "X25519"),
    (include_str!("../../tests/keys/hybrid.agekey"), "mlkem768x25519"),
];

/// As age-keygen writes it into the comment above an identity.
fn recipient_in(file: &str) -> &str {
    let line = file.lines().find_map(|line| line.strip_prefix("# public key: "));
    line.unwrap()
}

#[test]
fn what_is_sealed_is_opened_by_its_recipient_alone() {
    let other = x25519::Identity::generate().unwrap();
    for (file, kind) in PAIRS {
        let mut identities = Identities::default();
        identities.import(file).unwrap();
        let recipient = Recipient::parse(recipient_in(file)).unwrap();
        for length in [0, 1, 32, (64 << 10) - 1, 64 << 10, (64 << 10) + 1, 200_000] {
            let content = vec![7; length];
            let sealed = recipient.seal(&content).unwrap();
            assert_eq!(*identities.open(&sealed).unwrap(), content, "{kind} {length}");
            assert_ne!(sealed, recipient.seal(&content).unwrap());
        }
        let sealed = recipient.seal(b"secret").unwrap();
        let binary = armor::decode(&sealed).unwrap();
        let header = format!("age-encryption.org/v1\n-> {kind} ");
        assert!(binary.starts_with(header.as_bytes()));
        let stranger = Identities(vec![Identity::X25519(x25519::Identity::generate().unwrap())]);
        assert!(
            stranger
                .open(&sealed)
                .unwrap_err()
                .0
                .contains("no identity matched")
        );
        let mut tampered = binary.clone();
        *tampered.last_mut().unwrap() ^= 1;
        assert!(identities.open(&armor::encode(&tampered)).is_err());
    }
    assert!(other.agree(&[0; 32]).is_none(), "a point of low order");
}

#[test]
fn recipients_are_read_and_others_are_refused_by_name() {
    for (file, _) in PAIRS {
        let text = recipient_in(file);
        assert_eq!(Recipient::parse(text).unwrap().to_string(), text);
    }
    for (text, problem) in [
        ("ssh-ed25519 AAAA", "keys of SSH are not supported"),
        (
            "age1yubikey1qwt50d05nh5vutpdzmlg5wn80xq5negm4uj9ghv0snvdd3yysf5yw3rhl3t",
            "plugins are not supported",
        ),
        ("age1xyz", "it is malformed"),
        ("", "it is malformed"),
        ("a12uel5l", "its kind is unknown"),
    ] {
        let error = Recipient::parse(text).unwrap_err().to_string();
        assert!(error.contains(problem), "{text}: {error}");
    }
}

#[test]
fn the_vectors_of_age_come_out_as_its_authors_say() {
    let (mut opened, mut refused) = (0, 0);
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/age")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let vector = Vector::read(&path);
        let is_foreign = name.contains("scrypt") || vector.get("passphrase").is_some();
        if is_foreign || vector.get("identity").is_none() {
            continue;
        }
        let mut identities = Identities::default();
        for (field, value) in &vector.fields {
            if field == "identity" {
                identities
                    .import(value)
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
            }
        }
        let found = if vector.get("armored") == Some("yes") {
            match std::str::from_utf8(&vector.file) {
                Ok(text) => identities.open(text).map_err(|error| error.0),
                Err(error) => Err(error.to_string()),
            }
        } else {
            identities.open_binary(&vector.file).map_err(str::to_owned)
        };
        if vector.get("expect") == Some("success") {
            let plain = found.unwrap_or_else(|error| panic!("{name}: {error}"));
            let hash = digest(&SHA256, &plain);
            let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(Some(hash.as_str()), vector.get("payload"), "{name}");
            opened += 1;
        } else {
            assert!(
                found.is_err(),
                "{name} must be refused: {:?}",
                vector.get("comment")
            );
            refused += 1;
        }
    }
    assert!(opened >= 24 && refused > 70, "{opened} opened, {refused} refused");
}

#[test]
fn what_is_no_identity_is_refused_without_quoting_it() {
    for text in [
        "hunter2",
        "AGE-PLUGIN-YUBIKEY-1QQPQYQQZGG",
        "AGE-SECRET-KEY-1EGTZVFFV20835NWYV6270LXYVK2VKNX2MMDKWYKLMGR48UAWX40Q2P2LM1",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
    ] {
        let error = Identities::default()
            .import(&format!("# comment\n\n{text}"))
            .unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("failed to parse and add to age identities: line 3: "),
            "{error}"
        );
        assert!(!error.contains(text), "{error}");
    }
}
