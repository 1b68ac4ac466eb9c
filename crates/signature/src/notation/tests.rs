//! Signatures made with the libraries of the Notary Project, and the verdicts of notation-go about them
//! (hack/oracle/notation).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::*;

const CASES: &str = include_str!("../../testdata/notation/cases.json");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    name: String,
    media_type: String,
    envelope: String,
    policy: serde_json::Value,
    certificates: Vec<String>,
    artifact: Target,
    verdict: String,
    #[serde(default)]
    error: String,
}

impl Case {
    fn envelope(&self) -> Vec<u8> {
        STANDARD.decode(&self.envelope).unwrap()
    }

    fn verify(&self, envelope: &[u8]) -> Result<Verdict, Error> {
        let policy = TrustPolicy::parse(self.policy.to_string().as_bytes()).unwrap();
        let trusted: Vec<_> = self
            .certificates
            .iter()
            .map(|pem| certificate(pem.as_bytes()))
            .collect();
        let artifact = Artifact {
            media_type: self.artifact.media_type.clone(),
            digest: self.artifact.digest.clone(),
            size: self.artifact.size,
        };
        let statement = policy.statement("registry.example.com/org/app").unwrap();
        let now = "2026-11-22T00:00:00Z".parse().unwrap();
        verify(&self.media_type, envelope, statement, &trusted, &artifact, now)
    }
}

fn cases() -> Vec<Case> {
    serde_json::from_str(CASES).unwrap()
}

#[test]
fn verdicts_are_those_of_notation_go() {
    for case in cases() {
        let verdict = case.verify(&case.envelope());
        let shown = match &verdict {
            Ok(Verdict::Trusted) => "trusted",
            Ok(Verdict::Untrusted) => "untrusted",
            Err(_) => "refused",
        };
        assert_eq!(
            shown, case.verdict,
            "{}: {verdict:?}, there: {}",
            case.name, case.error
        );
    }
}

#[test]
fn a_refusal_says_why() {
    let problem = |name: &str| {
        let case = cases().into_iter().find(|case| case.name == name).unwrap();
        case.verify(&case.envelope()).unwrap_err().to_string()
    };
    for (name, expected) in [
        (
            "jws: another authority",
            "does not contain any trusted certificate",
        ),
        ("cose: tampered", "signature is invalid"),
        ("jws: another digest", "content descriptor mismatch"),
        ("cose: expired", "digital signature has expired on \"2020-07-01"),
        (
            "jws: an expired certificate",
            "verification time is after certificate",
        ),
        (
            "jws: another identity",
            "does not match the X.509 trusted identities",
        ),
        (
            "cose: revocation cannot be asked for",
            "revocation status is unknown",
        ),
        ("jws: a plugin is demanded", "plugin unsupported"),
        (
            "jws: an authority in the wrong store",
            "no trusted certificates are found",
        ),
    ] {
        let problem = problem(name);
        assert!(problem.contains(expected), "{name}: {problem}");
    }
}

#[test]
fn no_change_of_an_envelope_makes_it_better() {
    // Each byte in turn: neither a panic, nor a signature that is good though it was changed. What is not signed may
    // change: who made the envelope, and the spelling of base64 and JSON.
    for name in ["cose: good", "jws: good"] {
        let case = cases().into_iter().find(|case| case.name == name).unwrap();
        let envelope = case.envelope();
        for position in 0..envelope.len() {
            let mut changed = envelope.clone();
            changed[position] ^= 1;
            let _ = case.verify(&changed);
            let _ = case.verify(&envelope[..position]);
        }
    }
}

#[test]
fn what_is_no_envelope_is_named() {
    let case = cases().swap_remove(0);
    let policy = TrustPolicy::parse(case.policy.to_string().as_bytes()).unwrap();
    let statement = policy.statement("h.io/a").unwrap();
    let artifact = Artifact {
        media_type: String::new(),
        digest: String::new(),
        size: 0,
    };
    let problem = |media_type: &str, envelope: &[u8]| {
        let now = Timestamp::UNIX_EPOCH;
        verify(media_type, envelope, statement, &[], &artifact, now)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        problem("text/plain", b""),
        "signature envelope format with media type \"text/plain\" is not supported"
    );
    for (media_type, envelope) in [
        ("application/jose+json", &b"{"[..]),
        (
            "application/jose+json",
            br#"{"payload":"?","protected":"?","header":{},"signature":""}"#,
        ),
        ("application/cose", b"\xd2\x80"),
        ("application/cose", b""),
    ] {
        let problem = problem(media_type, envelope);
        assert!(problem.starts_with("failed to parse"), "{problem}");
    }
}
