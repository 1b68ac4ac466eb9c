use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::HelmRepository;

use super::*;

const LATER: &str = "2999-01-01T00:00:00Z";
/// DER prefix of a public key on the curve P-256 (RFC 5480).
const P256: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Signs all roles of a repository.
struct Signer {
    pair: EcdsaKeyPair,
    key: Value,
    id: String,
}

impl Signer {
    fn new() -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap();
        let der = [&P256[..], pair.public_key().as_ref()].concat();
        let text = base64::engine::general_purpose::STANDARD.encode(der);
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n");
        let key = json!({"keytype": "ecdsa", "scheme": "ecdsa-sha2-nistp256", "keyval": {"public": pem}});
        let id = serde_json::from_value::<sigstore_tuf::Key>(key.clone())
            .unwrap()
            .key_id()
            .unwrap();
        Self { pair, key, id }
    }

    fn sign(&self, type_: &str, version: u64, rest: Value) -> Vec<u8> {
        let mut signed =
            json!({"_type": type_, "spec_version": "1.0.0", "version": version, "expires": LATER});
        signed
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        let text = sigstore_tuf::canonical_json::to_canonical_bytes(&signed).unwrap();
        let signature = self.pair.sign(&SystemRandom::new(), &text).unwrap();
        let signature = json!({"keyid": self.id, "sig": hex(signature.as_ref())});
        json!({"signed": signed, "signatures": [signature]})
            .to_string()
            .into_bytes()
    }

    fn root(&self) -> Vec<u8> {
        let role = json!({"keyids": [self.id], "threshold": 1});
        let roles = json!({"root": role, "timestamp": role, "snapshot": role, "targets": role});
        let keys = json!({self.id.clone(): self.key});
        self.sign(
            "root",
            1,
            json!({"consistent_snapshot": false, "keys": keys, "roles": roles}),
        )
    }

    /// Publishes a trusted root in the repository.
    fn publish(&self, repository: &HelmRepository, version: u64, target: &[u8]) {
        let file = |bytes: &[u8]| {
            json!({"version": version, "length": bytes.len(),
            "hashes": {"sha256": hex(&Sha256::digest(bytes))}})
        };
        let targets = self.sign("targets", version, json!({"targets": {TARGET: file(target)}}));
        let snapshot = self.sign(
            "snapshot",
            version,
            json!({"meta": {"targets.json": file(&targets)}}),
        );
        let timestamp = self.sign(
            "timestamp",
            version,
            json!({"meta": {"snapshot.json": file(&snapshot)}}),
        );
        for (name, bytes) in [
            ("targets.json", &targets[..]),
            ("snapshot.json", &snapshot),
            ("timestamp.json", &timestamp),
            ("targets/trusted_root.json", target),
        ] {
            repository.set_file(name, Some(bytes.to_vec()));
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A trusted root that can be recognized by its name.
fn installation(name: &str) -> Vec<u8> {
    json!({"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1", "tlogs": [], "ctlogs": [],
        "certificateAuthorities": [], "timestampAuthorities": [], "name": name})
    .to_string()
    .into_bytes()
}

async fn known(mirror: &Arc<Mutex<Mirror>>) -> Option<Vec<u8>> {
    let mut mirror = mirror.lock().await;
    mirror.trusted_root().await.unwrap();
    mirror.json.clone()
}

#[tokio::test]
async fn what_the_repository_signs_is_trusted_and_older_or_foreign_things_are_not() {
    _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let (signer, repository) = (Signer::new(), HelmRepository::start().await.unwrap());
    let mirror = Mirror::shared(Url::parse(repository.url()).unwrap(), signer.root());
    let ask_again = async || mirror.lock().await.due = None;

    // The repository is empty: the built-in root is used, and there is no immediate retry.
    assert_eq!(known(&mirror).await, None);
    assert!(!repository.take_requests().is_empty());
    assert_eq!(known(&mirror).await, None);
    assert_eq!(repository.take_requests(), []);

    signer.publish(&repository, 2, &installation("two"));
    ask_again().await;
    assert_eq!(known(&mirror).await, Some(installation("two")));
    // There is no second refresh within a day.
    assert!(!repository.take_requests().is_empty());
    assert_eq!(known(&mirror).await, Some(installation("two")));
    assert_eq!(repository.take_requests(), []);

    // Older metadata, a modified target and metadata signed with another key are rejected.
    signer.publish(&repository, 1, &installation("one"));
    ask_again().await;
    assert_eq!(known(&mirror).await, Some(installation("two")));
    signer.publish(&repository, 3, &installation("three"));
    repository.set_file("targets/trusted_root.json", Some(installation("forged")));
    ask_again().await;
    assert_eq!(known(&mirror).await, Some(installation("two")));
    Signer::new().publish(&repository, 4, &installation("four"));
    ask_again().await;
    assert_eq!(known(&mirror).await, Some(installation("two")));

    signer.publish(&repository, 5, &installation("five"));
    ask_again().await;
    assert_eq!(known(&mirror).await, Some(installation("five")));
}

#[tokio::test]
async fn the_root_that_is_built_in_is_one() {
    _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    assert!(
        Updater::new(
            Remote::new(&Url::parse("http://127.0.0.1:1").unwrap(), &Clients::default()).unwrap(),
            PUBLIC_ROOT
        )
        .is_ok()
    );
}
