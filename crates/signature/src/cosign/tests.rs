//! Verdicts about signatures of the public installation, recorded, and of keys made here.

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P521_SHA256_ASN1_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sigstore_verify::trust_root::SigstoreInstance;

use super::*;

const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const OTHER: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
/// Subject of the recorded attestations.
const RECORDED: &str = "sha256:54303491a8418fbed24344b513546182c29b43bf282ceb433af65e2299f9271f";
/// The last error of a bundle that is otherwise right: these are attestations, as there are few public
/// signatures.
const ATTESTED: &str = "the bundle is an attestation of type \
                        'https://schemas.conda.org/attestations-publish-1.schema.json', and no signature";
const REKOR_1: &str = include_str!("../../testdata/cosign/public-rekor1.json");
const REKOR_2: &str = include_str!("../../testdata/cosign/public-rekor2.json");
const BLOB_BUNDLE: &str = include_str!("../../testdata/cosign/public-blob.json");
const BLOB: &str = include_str!("../../testdata/cosign/public-blob.txt");

/// A key of one of the kinds that cosign makes or imports; one with P-384 is among what was recorded.
enum Signer {
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

impl Signer {
    fn ecdsa(algorithm: &'static EcdsaSigningAlgorithm) -> Self {
        Self::Ecdsa(EcdsaKeyPair::generate(algorithm).unwrap())
    }

    fn each_kind() -> Vec<Self> {
        vec![
            Self::ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING),
            Self::ecdsa(&ECDSA_P521_SHA256_ASN1_SIGNING),
            Self::Ed25519(Ed25519KeyPair::generate().unwrap()),
            Self::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()),
        ]
    }

    fn sign(&self, message: &[u8]) -> String {
        let random = SystemRandom::new();
        let signature = match self {
            Self::Ecdsa(key) => key.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Ed25519(key) => key.sign(message).as_ref().to_vec(),
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .unwrap();
                signature
            }
        };
        STANDARD.encode(signature)
    }

    fn pem(&self) -> String {
        let der = match self {
            Self::Ecdsa(key) => key.public_key().as_der().unwrap().as_ref().to_vec(),
            Self::Ed25519(key) => key.public_key().as_der().unwrap().as_ref().to_vec(),
            Self::Rsa(key) => key.public_key().as_der().unwrap().as_ref().to_vec(),
        };
        pem("PUBLIC KEY", &der)
    }

    fn public_key(&self) -> PublicKey {
        PublicKey::from_pem(self.pem().as_bytes()).unwrap()
    }

    fn simple(&self, digest: &str) -> SimpleSignature {
        let payload = json!({"critical": {
            "identity": {"docker-reference": "h.io/app"},
            "image": {"docker-manifest-digest": digest},
            "type": "cosign container image signature",
        }, "optional": null});
        let payload = payload.to_string().into_bytes();
        SimpleSignature {
            signature: self.sign(&payload),
            payload,
            ..Default::default()
        }
    }

    fn bundle(&self, digest: &str) -> Value {
        self.statement(digest, "https://sigstore.dev/cosign/sign/v1")
    }

    fn statement(&self, digest: &str, predicate_type: &str) -> Value {
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"digest": {"sha256": digest.strip_prefix("sha256:").unwrap()}}],
            "predicateType": predicate_type,
            "predicate": {},
        });
        let (kind, payload) = ("application/vnd.in-toto+json", statement.to_string());
        let message = format!("DSSEv1 {} {kind} {} {payload}", kind.len(), payload.len());
        json!({
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {"publicKey": {"hint": "h"}},
            "dsseEnvelope": {
                "payload": STANDARD.encode(&payload), "payloadType": kind,
                "signatures": [{"sig": self.sign(message.as_bytes())}],
            },
        })
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let base64 = STANDARD.encode(der);
    let lines: Vec<_> = base64
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    format!(
        "-----BEGIN {label}-----\n{}\n-----END {label}-----\n",
        lines.join("\n")
    )
}

/// "good", or why not.
fn verdict_of<T>(verdict: Result<T, Error>) -> String {
    verdict.map_or_else(|error| error.to_string(), |_| "good".to_owned())
}

fn keyless(root: &TrustedRoot, json: &str, digest: &str, identities: &[(&str, &str)]) -> String {
    let identities: Vec<_> = identities
        .iter()
        .map(|(issuer, subject)| Identity::new(issuer, subject).unwrap())
        .collect();
    let authority = Authority::Keyless {
        root,
        identities: &identities,
    };
    verdict_of(authority.verify_bundle(json.as_bytes(), digest))
}

#[test]
fn each_kind_of_key_is_understood() {
    for signer in Signer::each_kind() {
        let key = signer.public_key();
        let authority = Authority::Key(&key);
        assert_eq!(
            verdict_of(authority.verify_simple(&signer.simple(DIGEST), DIGEST)),
            "good",
            "{}",
            signer.pem()
        );
        let bundle = signer.bundle(DIGEST).to_string();
        assert!(is_bundle(bundle.as_bytes()));
        assert_eq!(
            verdict_of(authority.verify_bundle(bundle.as_bytes(), DIGEST)),
            "good",
            "{}",
            signer.pem()
        );
    }
}

#[test]
fn a_signature_by_another_key_or_about_something_else_is_not_good() {
    let signer = Signer::ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING);
    let other = Signer::ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING);
    let key = signer.public_key();
    let authority = Authority::Key(&key);
    let wrong_key = "invalid signature when validating with the public key";
    let wrong_digest = format!("invalid or missing digest in claim: '{OTHER}' instead of '{DIGEST}'");
    assert_eq!(
        verdict_of(authority.verify_simple(&other.simple(DIGEST), DIGEST)),
        wrong_key
    );
    assert_eq!(
        verdict_of(authority.verify_simple(&signer.simple(OTHER), DIGEST)),
        wrong_digest
    );
    let bundle = |bundle: Value| verdict_of(authority.verify_bundle(bundle.to_string().as_bytes(), DIGEST));
    assert_eq!(bundle(other.bundle(DIGEST)), wrong_key);
    assert_eq!(bundle(signer.bundle(OTHER)), wrong_digest);
}

#[test]
fn what_was_tampered_with_is_not_good() {
    let signer = Signer::ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING);
    let key = signer.public_key();
    let authority = Authority::Key(&key);
    // The digest of the payload was exchanged after it was signed.
    let mut simple = signer.simple(OTHER);
    simple.payload = signer.simple(DIGEST).payload;
    let wrong_key = "invalid signature when validating with the public key";
    assert_eq!(verdict_of(authority.verify_simple(&simple, DIGEST)), wrong_key);
    let mut bundle = signer.bundle(OTHER);
    bundle["dsseEnvelope"]["payload"] = signer.bundle(DIGEST)["dsseEnvelope"]["payload"].clone();
    assert_eq!(
        verdict_of(authority.verify_bundle(bundle.to_string().as_bytes(), DIGEST)),
        wrong_key
    );
    let mut bundle = signer.bundle(DIGEST);
    bundle["dsseEnvelope"]["payloadType"] = "text/plain".into();
    assert_eq!(
        verdict_of(authority.verify_bundle(bundle.to_string().as_bytes(), DIGEST)),
        wrong_key
    );
}

#[test]
fn nonsense_is_named() {
    let signer = Signer::ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING);
    let key = signer.public_key();
    let authority = Authority::Key(&key);
    let bundle = |change: fn(&mut Value)| {
        let mut bundle = signer.bundle(DIGEST);
        change(&mut bundle);
        verdict_of(authority.verify_bundle(bundle.to_string().as_bytes(), DIGEST))
    };
    assert_eq!(
        bundle(|b| b["mediaType"] = "text/plain".into()),
        "failed to parse the bundle"
    );
    assert_eq!(
        bundle(|b| b["verificationMaterial"] = json!({"certificate": {"rawBytes": ""}})),
        "expected key signature, not certificate"
    );
    assert_eq!(
        bundle(|b| b["dsseEnvelope"] = Value::Null),
        "bundle does not contain a DSSE envelope"
    );
    assert_eq!(
        bundle(|b| b["dsseEnvelope"]["signatures"] = json!([])),
        "failed to parse the envelope, which must have one signature"
    );
    let mut simple = signer.simple(DIGEST);
    simple.payload = b"{}".to_vec();
    assert_eq!(
        verdict_of(authority.verify_simple(&simple, DIGEST)),
        "failed to parse the payload"
    );
    let mut simple = signer.simple(DIGEST);
    simple.signature = "?".to_owned();
    assert_eq!(
        verdict_of(authority.verify_simple(&simple, DIGEST)),
        "failed to parse the signature"
    );
    assert!(!is_bundle(b"{}") && !is_bundle(b"nonsense"));
}

#[test]
fn what_a_key_says_of_an_artifact_is_no_signature() {
    let signer = Signer::ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING);
    let key = signer.public_key();
    let authority = Authority::Key(&key);
    let told_of = |predicate_type: &str| {
        let json = signer.statement(DIGEST, predicate_type).to_string();
        let verdict = verdict_of(authority.verify_bundle(json.as_bytes(), DIGEST));
        (is_attestation(json.as_bytes()), verdict)
    };
    for predicate_type in [
        "https://cosign.sigstore.dev/attestation/vuln/v1",
        "https://slsa.dev/provenance/v1",
        "",
    ] {
        let refused = format!("the bundle is an attestation of type '{predicate_type}', and no signature");
        assert_eq!(told_of(predicate_type), (true, refused));
    }
    assert_eq!(
        told_of("https://sigstore.dev/cosign/sign/v1"),
        (false, "good".to_owned())
    );
    assert!(!is_attestation(b"nonsense"));
}

/// An attestation in the form of cosign 1 and 2, of the same parts as the bundle.
fn as_layer(bundle: &Value) -> Attestation {
    Attestation::Envelope {
        json: bundle["dsseEnvelope"].to_string().into_bytes(),
        witness: match bundle["verificationMaterial"]["certificate"].is_object() {
            true => witness(bundle),
            false => Witness::default(),
        },
    }
}

fn as_bundle(bundle: &Value) -> Attestation {
    Attestation::Bundle(bundle.to_string().into_bytes())
}

#[test]
fn an_attestation_by_a_key_is_good_for_its_type_and_digest_alone() {
    const SCAN: &str = "https://cosign.sigstore.dev/attestation/vuln/v1";
    let signer = Signer::ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING);
    let other = Signer::ecdsa(&ECDSA_P256_SHA256_ASN1_SIGNING);
    let key = signer.public_key();
    let authority = Authority::Key(&key);
    for form in [as_bundle, as_layer] {
        let verdict = |bundle: &Value, digest: &str, kind: &str| {
            verdict_of(authority.verify_attestation(&form(bundle), digest, kind))
        };
        let scan = signer.statement(DIGEST, SCAN);
        let attested = authority.verify_attestation(&form(&scan), DIGEST, SCAN).unwrap();
        assert_eq!(attested.predicate, json!({}));
        assert_eq!(attested.verified.recorded_at, None);
        assert_eq!(
            verdict(&scan, DIGEST, "https://slsa.dev/provenance/v1"),
            format!("the attestation is of type '{SCAN}'")
        );
        assert_eq!(
            verdict(&scan, OTHER, SCAN),
            format!("invalid or missing digest in claim: '{DIGEST}' instead of '{OTHER}'")
        );
        assert_eq!(
            verdict(&other.statement(DIGEST, SCAN), DIGEST, SCAN),
            "invalid signature when validating with the public key"
        );
        // A signature says nothing of what a scanner found.
        assert_eq!(
            verdict(&signer.bundle(DIGEST), DIGEST, SCAN),
            "the attestation is of type 'https://sigstore.dev/cosign/sign/v1'"
        );
        let mut nonsense = signer.statement(DIGEST, SCAN);
        nonsense["dsseEnvelope"] = json!([]);
        assert!(verdict(&nonsense, DIGEST, SCAN).starts_with("failed to parse"));
    }
}

#[test]
fn an_attestation_of_the_public_installation_is_good_in_both_forms() {
    const PUBLISHED: &str = "https://schemas.conda.org/attestations-publish-1.schema.json";
    let recorded: Value = serde_json::from_str(REKOR_1).unwrap();
    let root = TrustedRoot::public_good().unwrap();
    let verdict = |attestation: &Attestation, digest: &str, who: &str| {
        let identities = [Identity::new("^https://token.actions.githubusercontent.com$", who).unwrap()];
        let authority = Authority::Keyless {
            root: &root,
            identities: &identities,
        };
        authority.verify_attestation(attestation, digest, PUBLISHED)
    };
    for form in [as_bundle, as_layer] {
        let good = verdict(&form(&recorded), RECORDED, "^https://github.com/prefix-dev/").unwrap();
        assert_eq!(
            good.predicate["targetChannel"],
            "https://prefix.dev/sigstore-example"
        );
        assert!(good.verified.recorded_at.is_some());
        let refused = verdict_of(verdict(&form(&recorded), RECORDED, "^https://github.com/other/"));
        assert!(
            refused.starts_with("none of the expected identities matched"),
            "{refused}"
        );
        let refused = verdict_of(verdict(&form(&recorded), DIGEST, ""));
        assert!(refused.contains("does not match any subject"), "{refused}");
        let mut changed = recorded.clone();
        let later = json!("1756728840");
        changed["verificationMaterial"]["tlogEntries"][0]["integratedTime"] = later;
        let refused = verdict_of(verdict(&form(&changed), RECORDED, ""));
        assert!(refused.contains("SET verification failed"), "{refused}");
    }
}

#[test]
fn keys_that_are_none_are_named() {
    let problem = |pem: &str| PublicKey::from_pem(pem.as_bytes()).unwrap_err().to_string();
    assert_eq!(problem("nonsense"), "PEM decoding failed");
    assert_eq!(problem(&pem("PUBLIC KEY", b"nonsense")), "PEM decoding failed");
    assert_eq!(
        problem(&pem("PRIVATE KEY", b"x")),
        "unknown Public key PEM file type: PRIVATE KEY. Are you passing the correct public key?"
    );
}

#[test]
fn bundles_of_the_public_installation_are_verified_without_a_network() {
    let actions = (
        "^https://token.actions.githubusercontent.com$",
        "^https://github.com/prefix-dev/",
    );
    let person = ("^https://github.com/login/oauth$", "^[a-z]+@goto.fi$");
    let public = TrustedRoot::public_good().unwrap();
    // The second log was in use at the staging installation first.
    let staging = SigstoreInstance::Staging.embedded_trusted_root_json();
    let staging = TrustedRoot::from_json(staging.as_bytes()).unwrap();
    for (root, json, who, other) in [
        (&public, REKOR_1, actions, person),
        (&staging, REKOR_2, person, actions),
    ] {
        assert!(is_bundle(json.as_bytes()));
        assert_eq!(keyless(root, json, RECORDED, &[]), ATTESTED);
        assert_eq!(keyless(root, json, RECORDED, &[other, who]), ATTESTED);
        assert!(is_attestation(json.as_bytes()));
        let refused = keyless(root, json, RECORDED, &[other, (who.0, "^nobody$")]);
        assert!(
            refused.starts_with("none of the expected identities matched"),
            "{refused}"
        );
        let refused = keyless(root, json, DIGEST, &[]);
        assert!(refused.contains("does not match any subject"), "{refused}");
    }
    assert_eq!(
        keyless(&public, BLOB_BUNDLE, RECORDED, &[]),
        "bundle does not contain a DSSE envelope"
    );
}

#[test]
fn a_bundle_that_was_changed_is_refused_for_what_is_wrong_with_it() {
    let changed = |change: fn(&mut Value)| {
        let mut bundle: Value = serde_json::from_str(REKOR_1).unwrap();
        change(&mut bundle);
        let root = TrustedRoot::public_good().unwrap();
        keyless(&root, &bundle.to_string(), RECORDED, &[])
    };
    type Case = (&'static str, fn(&mut Value), &'static str);
    let cases: [Case; 5] = [
        (
            "no log",
            |b| b["verificationMaterial"]["tlogEntries"] = json!([]),
            "inclusion proof",
        ),
        (
            "a later time",
            |b| b["verificationMaterial"]["tlogEntries"][0]["integratedTime"] = "1756728840".into(),
            "SET verification failed",
        ),
        (
            "another proof",
            |b| {
                b["verificationMaterial"]["tlogEntries"][0]["inclusionProof"]["hashes"][0] =
                    STANDARD.encode([0; 32]).into();
            },
            "inclusion proof verification failed",
        ),
        (
            "another signature",
            |b| {
                let other: Value = serde_json::from_str(REKOR_2).unwrap();
                b["dsseEnvelope"]["signatures"] = other["dsseEnvelope"]["signatures"].clone();
            },
            "signature",
        ),
        (
            "another certificate",
            |b| {
                let other: Value = serde_json::from_str(REKOR_2).unwrap();
                b["verificationMaterial"]["certificate"] =
                    other["verificationMaterial"]["certificate"].clone();
            },
            "",
        ),
    ];
    for (name, change, problem) in cases {
        let told = changed(change);
        assert!(told != "good" && told.contains(problem), "{name}: {told}");
    }
}

/// What cosign 2 writes beside a signature, of the same parts as the bundle.
fn witness(bundle: &Value) -> Witness {
    let material = &bundle["verificationMaterial"];
    let entry = &material["tlogEntries"][0];
    let number = |value: &Value| value.as_str().unwrap().parse::<i64>().unwrap();
    let decoded = |value: &Value| STANDARD.decode(value.as_str().unwrap()).unwrap();
    let log_entry = json!({
        "SignedEntryTimestamp": entry["inclusionPromise"]["signedEntryTimestamp"],
        "Payload": {
            "body": entry["canonicalizedBody"], "integratedTime": number(&entry["integratedTime"]),
            "logIndex": number(&entry["logIndex"]), "logID": hex::encode(decoded(&entry["logId"]["keyId"])),
        },
    });
    Witness {
        certificate: Some(pem("CERTIFICATE", &decoded(&material["certificate"]["rawBytes"]))),
        chain: None,
        log_entry: Some(log_entry.to_string()),
    }
}

/// A signed blob has the same parts as an image's signature of cosign 2.
fn recorded_simple() -> SimpleSignature {
    let bundle: Value = serde_json::from_str(BLOB_BUNDLE).unwrap();
    SimpleSignature {
        payload: BLOB.as_bytes().to_vec(),
        signature: bundle["messageSignature"]["signature"]
            .as_str()
            .unwrap()
            .to_owned(),
        witness: witness(&bundle),
    }
}

#[test]
fn a_promise_of_the_public_log_is_enough_for_the_old_form() {
    let root = TrustedRoot::public_good().unwrap();
    let verdict = |change: fn(&mut SimpleSignature)| {
        let mut signature = recorded_simple();
        change(&mut signature);
        verdict_of(simple::verify_keyless(&signature, &root, &[]))
    };
    assert_eq!(verdict(|_| ()), "good");
    let verified = simple::verify_keyless(&recorded_simple(), &root, &[]).unwrap();
    let blob: Value = serde_json::from_str(BLOB_BUNDLE).unwrap();
    let logged = &blob["verificationMaterial"]["tlogEntries"][0]["integratedTime"];
    let logged: i64 = logged.as_str().unwrap().parse().unwrap();
    assert_eq!(verified.recorded_at.map(Timestamp::as_second), Some(logged));
    let nobody = [Identity::new("^https://nobody$", ".*").unwrap()];
    let refused = verdict_of(simple::verify_keyless(&recorded_simple(), &root, &nobody));
    assert!(
        refused.starts_with("none of the expected identities matched"),
        "{refused}"
    );
    assert_eq!(
        verdict(|s| s.witness.certificate = None),
        "no certificate found on signature"
    );
    assert_eq!(
        verdict(|s| s.witness.log_entry = None),
        "no entry of the transparency log found on signature"
    );
    assert_eq!(
        verdict(|s| s.witness.log_entry = Some("{}".to_owned())),
        "failed to parse the entry of the transparency log"
    );
    assert_eq!(
        verdict(|s| s.witness.certificate = Some("x".to_owned())),
        "failed to parse certificate"
    );
    let changed = verdict(|s| s.payload.push(b'x'));
    assert!(
        changed.contains("signature") || changed.contains("hash"),
        "{changed}"
    );
    let changed = verdict(|s| {
        let entry = s.witness.log_entry.take().unwrap();
        s.witness.log_entry = Some(entry.replace("\"integratedTime\":17", "\"integratedTime\":16"));
    });
    assert!(changed != "good", "{changed}");
    // The claim is looked at before anything else: a blob is no image.
    let authority = Authority::Keyless {
        root: &root,
        identities: &[],
    };
    assert_eq!(
        verdict_of(authority.verify_simple(&recorded_simple(), DIGEST)),
        "failed to parse the payload"
    );
}

#[test]
fn a_trusted_root_that_is_none_is_named() {
    for json in [&b""[..], b"{", b"\xff", b"[]"] {
        let error = TrustedRoot::from_json(json).unwrap_err();
        assert!(
            error.to_string().starts_with("unable to parse trusted root: "),
            "{error}"
        );
    }
}

#[test]
fn only_the_given_installation_is_trusted() {
    let verdict = |instance: SigstoreInstance| {
        let root = TrustedRoot::from_json(instance.embedded_trusted_root_json().as_bytes()).unwrap();
        let authority = Authority::Keyless {
            root: &root,
            identities: &[],
        };
        verdict_of(authority.verify_bundle(REKOR_1.as_bytes(), RECORDED))
    };
    assert_eq!(verdict(SigstoreInstance::PublicGood), ATTESTED);
    let refused = verdict(SigstoreInstance::Staging);
    assert!(refused.contains("No log key"), "{refused}");
}

/// Verdicts about the signatures in a recorded repository, the newer form before the older one.
fn recorded_verdicts(case: &Value) -> Vec<Result<Verified, Error>> {
    let decoded = |value: &Value| STANDARD.decode(value.as_str().unwrap()).unwrap();
    let digest = case["digest"].as_str().unwrap();
    let key = PublicKey::from_pem(case["key"].as_str().unwrap().as_bytes()).unwrap();
    let authority = Authority::Key(&key);
    let (mut bundles, mut simple) = (Vec::new(), Vec::new());
    for manifest in case["manifests"].as_object().unwrap().values() {
        let manifest: Value = serde_json::from_slice(&decoded(&manifest["content"])).unwrap();
        for layer in manifest["layers"].as_array().into_iter().flatten() {
            let text = |name: &str| layer["annotations"][name].as_str().map(str::to_owned);
            let blob = || decoded(&case["blobs"][layer["digest"].as_str().unwrap()]);
            if layer["mediaType"]
                .as_str()
                .unwrap()
                .starts_with("application/vnd.dev.sigstore.bundle")
            {
                bundles.push(authority.verify_bundle(&blob(), digest));
            } else if let Some(signature) = text("dev.cosignproject.cosign/signature") {
                let signature = SimpleSignature {
                    payload: blob(),
                    signature,
                    ..Default::default()
                };
                simple.push(authority.verify_simple(&signature, digest));
            }
        }
    }
    if bundles.is_empty() { simple } else { bundles }
}

#[test]
fn what_cosign_signed_is_judged_as_cosign_judges_it() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../../testdata/cosign/cases.json")).unwrap();
    assert_eq!(cases.len(), 18);
    for case in &cases {
        let verdicts = recorded_verdicts(case);
        let good = verdicts.iter().any(Result::is_ok);
        let name = case["name"].as_str().unwrap();
        // The one difference: the signature of another image is good for cosign, when it is asked as Flux asks.
        let expected = case["verdict"] == "good" && name != "simple: about another image";
        assert_eq!(good, expected, "{name}: {verdicts:?}");
    }
}
