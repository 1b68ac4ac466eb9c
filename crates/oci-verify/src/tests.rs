//! Verification against registries: signatures that cosign and notation made, recorded with their verdicts, and what
//! registries do wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use api::meta::LocalObjectReference;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use oci_client::name::Name;
use oci_client::registry::{Memory, Repository};
use serde_json::{Value, json};
use testkit::scripted_registry::{Content, ScriptedRegistry};
use tokio::time::Instant;
use transport::http;

use super::material::NamedSecret;
use super::*;

/// Someone's public key.
const KEY: &str = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE6gS7RyyA0J9t81jjfMTkVRj8gGM7\n9C7WveRsxrrGfkF0TUN6bSuXpZ4kNHVFyOZX3SjZxCCUKxvLkTydPxYlGA==\n-----END PUBLIC KEY-----\n";
const ATTESTATIONS: &str = include_str!("../../signature/testdata/cosign/attestations.json");
const NOTATION: &str = include_str!("../../signature/testdata/notation/cases.json");

fn secret(entries: &[(&str, &[u8])]) -> Option<NamedSecret> {
    let entries = entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.to_vec()));
    Some(NamedSecret {
        name: "apps/trust".to_owned(),
        data: entries.collect(),
    })
}

fn wants(provider: SignatureProvider, with_secret: bool) -> ArtifactVerification {
    ArtifactVerification {
        provider,
        secret_ref: with_secret.then(|| LocalObjectReference {
            name: "trust".to_owned(),
        }),
        ..Default::default()
    }
}

/// The outcome, or the whole error.
async fn told(
    registry: &ScriptedRegistry,
    digest: Digest,
    specification: &ArtifactVerification,
    material: &Material,
) -> Result<Outcome, String> {
    told_with(
        registry,
        digest,
        specification,
        material,
        &SigstoreRoot::default(),
    )
    .await
}

async fn scripted(content: Content) -> ScriptedRegistry {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    ScriptedRegistry::start(content).await.unwrap()
}

/// The one repository of a registry, seen by someone without credentials.
fn repository(registry: &ScriptedRegistry) -> Repository {
    Repository {
        name: Name::parse(&registry.url()).unwrap(),
        insecure: true,
        credentials: None,
        client: http::Clients::default()
            .get(&http::Settings::default().towards("127.0.0.1"))
            .unwrap(),
        memory: Memory::default(),
        deadline: Instant::now() + Duration::from_secs(30),
    }
}

async fn told_with(
    registry: &ScriptedRegistry,
    digest: Digest,
    specification: &ArtifactVerification,
    material: &Material,
    sigstore: &SigstoreRoot,
) -> Result<Outcome, String> {
    let repository = repository(registry);
    let verified = verify(&repository, digest, specification, material, sigstore).await;
    verified.map_err(|error| error_chain::chain(&error).replace(&repository.name.registry, "h.io"))
}

async fn judged_by_notation(
    registry: &ScriptedRegistry,
    digest: Digest,
    material: Material,
) -> Result<Outcome, String> {
    let wanted = wants(SignatureProvider::Notation, true);
    told(registry, digest, &wanted, &material).await
}

/// An artifact with one signature of notation, which refers to it.
fn signed_by_notation(case: &Value, referrers: bool) -> (Content, Digest) {
    let mut content = Content {
        referrers,
        ..Default::default()
    };
    let artifact = &case["artifact"];
    let digest: Digest = content
        .manifest(artifact["manifest"].as_str().unwrap().as_bytes())
        .parse()
        .unwrap();
    let envelope = STANDARD.decode(case["envelope"].as_str().unwrap()).unwrap();
    let layer = content.blob(case["mediaType"].as_str().unwrap(), &envelope);
    let config = content.blob("application/vnd.cncf.notary.signature", b"{}");
    let signature = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config, "layers": [layer],
        "subject": {"mediaType": artifact["mediaType"], "digest": artifact["digest"], "size": artifact["size"]},
    });
    let signature = signature.to_string();
    let signature_digest: Digest = content.manifest(signature.as_bytes()).parse().unwrap();
    if !referrers {
        let index = json!({"schemaVersion": 2, "manifests": [{
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "digest": signature_digest.to_string(), "size": signature.len(),
        }]});
        let kind = "application/vnd.oci.image.index.v1+json".to_owned();
        let tag = format!("sha256-{}", digest.hex());
        content
            .manifests
            .insert(tag, (kind, index.to_string().into_bytes()));
    }
    (content, digest)
}

fn notation_material(case: &Value) -> Material {
    let policy = case["policy"].to_string();
    let mut entries = vec![("trustpolicy.json", policy.as_bytes())];
    let certificates = case["certificates"].as_array().unwrap();
    let names: Vec<_> = (0..certificates.len())
        .map(|number| format!("{number}.crt"))
        .collect();
    for (name, pem) in names.iter().zip(certificates) {
        entries.push((name, pem.as_str().unwrap().as_bytes()));
    }
    Material {
        secret: secret(&entries),
        trusted_root: None,
    }
}

#[tokio::test]
async fn signatures_of_notation_are_found_and_judged_as_notation_judges_them() {
    let cases: Vec<Value> = serde_json::from_str(NOTATION).unwrap();
    for case in &cases {
        for referrers in [true, false] {
            let (content, digest) = signed_by_notation(case, referrers);
            let registry = scripted(content).await;
            let wanted = wants(SignatureProvider::Notation, true);
            let verdict = told(&registry, digest, &wanted, &notation_material(case)).await;
            let shown = match &verdict {
                Ok(Outcome::Verified { .. }) => "trusted",
                Ok(Outcome::Ignored) => "untrusted",
                Err(error)
                    if error.starts_with("no matching signatures were found for 'h.io/org/app@sha256:") =>
                {
                    "refused"
                }
                Err(_) => "failed",
            };
            assert_eq!(
                shown, case["verdict"],
                "{} ({referrers}): {verdict:?}",
                case["name"]
            );
        }
    }
}

#[tokio::test]
async fn what_is_missing_for_notation_is_named() {
    let cases: Vec<Value> = serde_json::from_str(NOTATION).unwrap();
    let (content, digest) = signed_by_notation(&cases[0], true);
    let unsigned = Digest::from_content(b"unsigned");
    let registry = scripted(content).await;
    let good = notation_material(&cases[0]);
    let told = |with: Material| judged_by_notation(&registry, digest, with);
    let pem = cases[0]["certificates"][0].as_str().unwrap().as_bytes();
    let skip = br#"{"version":"1.0","trustPolicies":[{"name":"a","registryScopes":["*"],
        "signatureVerification":{"level":"skip"},"trustStores":["ca:x"]}]}"#;
    let elsewhere = br#"{"version":"1.0","trustPolicies":[{"name":"a","registryScopes":["h.io/a"],
        "signatureVerification":{"level":"skip"}}]}"#;
    let with = |entries: &[(&str, &[u8])]| Material {
        secret: secret(entries),
        trusted_root: None,
    };
    assert_eq!(
        told(Material::default()).await.unwrap_err(),
        format!("verification secret cannot be empty: 'h.io/org/app@{digest}'")
    );
    assert_eq!(
        told(with(&[("a.crt", pem)])).await.unwrap_err(),
        "'trustpolicy.json' not found in secret 'apps/trust'"
    );
    assert_eq!(
        told(with(&[("trustpolicy.json", skip)])).await.unwrap_err(),
        "no certificates found in secret 'apps/trust'"
    );
    assert_eq!(
        told(with(&[("trustpolicy.json", skip), ("a.pem", pem)])).await,
        Ok(Outcome::Ignored)
    );
    let error = told(with(&[("trustpolicy.json", elsewhere), ("a.pem", pem)]))
        .await
        .unwrap_err();
    assert!(
        error.contains("has no applicable trust policy statement"),
        "{error}"
    );
    let error = told(with(&[("trustpolicy.json", b"{"), ("a.pem", pem)]))
        .await
        .unwrap_err();
    assert!(
        error.starts_with("error occurred while parsing trustpolicy.json"),
        "{error}"
    );
    let error = judged_by_notation(&registry, unsigned, good).await.unwrap_err();
    assert!(error.starts_with("failed to look for signatures"), "{error}");
}

#[tokio::test]
async fn what_is_missing_for_cosign_is_named() {
    let mut content = Content::default();
    let digest: Digest = content.manifest(b"{}").parse().unwrap();
    let registry = scripted(content).await;
    let keyed = wants(SignatureProvider::Cosign, true);
    let keyless = wants(SignatureProvider::Cosign, false);
    let with = |entries: &[(&str, &[u8])]| Material {
        secret: secret(entries),
        trusted_root: None,
    };
    let unsigned = format!("no matching signatures were found for 'h.io/org/app@{digest}': ");
    let material = with(&[("a.pub", KEY.as_bytes())]);
    assert_eq!(
        told(&registry, digest, &keyed, &material).await.unwrap_err(),
        format!("{unsigned}no signatures found")
    );
    assert_eq!(
        told(&registry, digest, &keyless, &Material::default())
            .await
            .unwrap_err(),
        format!("{unsigned}no signatures found")
    );
    assert_eq!(
        told(&registry, digest, &keyed, &with(&[("a.key", KEY.as_bytes())]))
            .await
            .unwrap_err(),
        format!("{unsigned}secret 'apps/trust' has no key with the ending '.pub'")
    );
    let error = told(
        &registry,
        digest,
        &keyed,
        &with(&[("a.pub", b"x"), ("b.pub", KEY.as_bytes())]),
    )
    .await;
    assert_eq!(
        error.unwrap_err(),
        "failed to parse the public key 'a.pub' of secret 'apps/trust': PEM decoding failed"
    );
    let root = |entries: &[(&str, &[u8])]| Material {
        secret: None,
        trusted_root: secret(entries),
    };
    assert_eq!(
        told(&registry, digest, &keyless, &root(&[("x", b"")]))
            .await
            .unwrap_err(),
        "'trusted_root.json' not found in secret 'apps/trust'"
    );
    let error = told(&registry, digest, &keyless, &root(&[("trusted_root.json", b"{")]))
        .await
        .unwrap_err();
    assert!(error.starts_with("unable to parse trusted root: "), "{error}");
    let mut nonsense = keyless.clone();
    nonsense.match_oidc_identity = vec![api::source::OIDCIdentityMatch {
        issuer: "(".to_owned(),
        subject: String::new(),
    }];
    let error = told(&registry, digest, &nonsense, &Material::default())
        .await
        .unwrap_err();
    assert!(error.starts_with("malformed issuer in identity: ("), "{error}");
}

#[tokio::test]
async fn the_trusted_root_may_come_from_a_file_that_changes() {
    let mut content = Content::default();
    let digest: Digest = content.manifest(b"{}").parse().unwrap();
    let registry = scripted(content).await;
    let keyless = wants(SignatureProvider::Cosign, false);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("trusted_root.json");
    let sigstore = SigstoreRoot::new(Some(file.clone()), None);
    let told = async || {
        let material = Material::default();
        told_with(&registry, digest, &keyless, &material, &sigstore)
            .await
            .unwrap_err()
    };
    let missing = told().await;
    assert!(
        missing.contains("(--sigstore-trusted-root): No such file"),
        "{missing}"
    );
    std::fs::write(&file, "{").unwrap();
    let broken = told().await;
    assert!(broken.starts_with("unable to parse trusted root: "), "{broken}");
    let empty = json!({"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1", "tlogs": [],
        "certificateAuthorities": [], "ctlogs": [], "timestampAuthorities": []});
    std::fs::write(&file, empty.to_string()).unwrap();
    assert!(told().await.ends_with("no signatures found"));
}

#[tokio::test]
async fn a_registry_that_fails_is_not_taken_for_one_without_signatures() {
    let material = Material {
        secret: secret(&[("a.pub", KEY.as_bytes())]),
        trusted_root: None,
    };
    for (part, status) in [
        ("/referrers/", 500),
        ("/manifests/sha256-", 503),
        ("/referrers/", 429),
    ] {
        let registry = scripted(Content {
            hook: Some(Box::new(move |path| {
                path.contains(part)
                    .then(|| (status, vec![("retry-after", "7".to_owned())], Vec::new()))
            })),
            ..Default::default()
        })
        .await;
        let digest = Digest::from_content(b"x");
        let wanted = wants(SignatureProvider::Cosign, true);
        let error = told(&registry, digest, &wanted, &material).await.unwrap_err();
        assert!(
            error.starts_with("failed to look for signatures of 'h.io/org/app@sha256:"),
            "{error}"
        );
        let asks = error.ends_with("it asks for a pause of 7 s");
        assert_eq!(asks, status != 500, "{error}");
    }
}

#[tokio::test]
async fn signatures_are_bounded_all_together() {
    let (digest, blobs) = (Digest::from_content(b"x"), Arc::new(AtomicUsize::new(0)));
    let mut content = Content::default();
    let layers = (0_u8..8).map(|number| {
        let mut layer = content.blob(
            "application/vnd.dev.cosign.simplesigning.v1+json",
            &vec![number; 3 << 20],
        );
        layer["annotations"] = json!({"dev.cosignproject.cosign/signature": "AAAA"});
        layer
    });
    let layers: Vec<_> = layers.collect();
    let manifest = json!({"schemaVersion": 2, "layers": layers}).to_string();
    let kind = "application/vnd.oci.image.manifest.v1+json".to_owned();
    let tag = format!("sha256-{}.sig", digest.hex());
    content.manifests.insert(tag, (kind, manifest.into_bytes()));
    let asked = blobs.clone();
    content.hook = Some(Box::new(move |path| {
        if path.contains("/blobs/") {
            asked.fetch_add(1, Ordering::Relaxed);
        }
        None
    }));
    let registry = scripted(content).await;
    let material = Material {
        secret: secret(&[("a.pub", KEY.as_bytes())]),
        trusted_root: None,
    };
    let wanted = wants(SignatureProvider::Cosign, true);
    let error = told(&registry, digest, &wanted, &material).await.unwrap_err();
    assert!(error.starts_with("no matching signatures were found"), "{error}");
    // Five of 3 MiB are within 16 MiB; the sixth is not.
    assert_eq!(blobs.load(Ordering::Relaxed), 6);
}

#[test]
fn providers_are_called_as_flux_calls_them() {
    let called = |kind, with_secret| provider(&wants(kind, with_secret));
    assert_eq!(called(SignatureProvider::Cosign, true), "cosign");
    assert_eq!(called(SignatureProvider::Cosign, false), "cosign keyless");
    assert_eq!(called(SignatureProvider::Notation, true), "notation");
}

/// A repository with what cosign's libraries attested in it.
async fn attested(case: &Value) -> (ScriptedRegistry, Digest) {
    let decoded = |value: &Value| STANDARD.decode(value.as_str().unwrap()).unwrap();
    let mut content = Content {
        referrers: !case["name"].as_str().unwrap().contains("the tag for referrers"),
        ..Default::default()
    };
    for (reference, manifest) in case["manifests"].as_object().unwrap() {
        let kind = manifest["mediaType"].as_str().unwrap().to_owned();
        let manifest = (kind, decoded(&manifest["content"]));
        content.manifests.insert(reference.clone(), manifest);
    }
    for (digest, blob) in case["blobs"].as_object().unwrap() {
        content.blobs.insert(digest.clone(), decoded(blob));
    }
    let digest = case["digest"].as_str().unwrap().parse().unwrap();
    (scripted(content).await, digest)
}

#[tokio::test]
async fn a_large_attestation_does_not_hide_a_good_one() {
    let mut case = attestations().remove(0);
    assert_eq!(case["name"], "layer: good");
    let wanted = case["predicateType"].as_str().unwrap().to_owned();
    let manifests = case["manifests"].as_object_mut().unwrap();
    let beside = manifests.iter_mut().find(|(name, _)| name.ends_with(".att"));
    let (_, manifest) = beside.unwrap();
    let content = STANDARD.decode(manifest["content"].as_str().unwrap()).unwrap();
    let mut content: Value = serde_json::from_slice(&content).unwrap();
    let large = json!({"mediaType": "application/vnd.dsse.envelope.v1+json", "size": 5 << 20,
        "digest": format!("sha256:{}", "0".repeat(64))});
    content["layers"].as_array_mut().unwrap().insert(0, large);
    manifest["content"] = STANDARD.encode(content.to_string()).into();
    judged(&case, &[&wanted], &|_| Ok(())).await.unwrap();
}

/// Judges it as a demand with the key of the case does.
async fn judged(
    case: &Value,
    demanded: &[&str],
    is_met: &(dyn Fn(&Attested) -> Result<(), String> + Sync),
) -> Result<Outcome, String> {
    let (registry, digest) = attested(case).await;
    let material = Material {
        secret: secret(&[("a.pub", case["key"].as_str().unwrap().as_bytes())]),
        trusted_root: None,
    };
    let specification = wants(SignatureProvider::Cosign, true);
    let demands = demanded.iter().map(|predicate_type| AttestationDemand {
        predicate_type,
        specification: &specification,
        material: &material,
        is_met,
    });
    let demands: Vec<_> = demands.collect();
    let repository = repository(&registry);
    let verdict = verify_attestations(&repository, digest, &demands, &SigstoreRoot::default()).await;
    verdict.map_err(|error| {
        assert!(error.is_about_the_artifact());
        error_chain::chain(&error)
    })
}

fn attestations() -> Vec<Value> {
    serde_json::from_str(ATTESTATIONS).unwrap()
}

#[tokio::test]
async fn what_was_attested_is_judged_as_cosign_judges_it() {
    let cases = attestations();
    assert_eq!(cases.len(), 14);
    for case in &cases {
        let wanted = case["predicateType"].as_str().unwrap();
        let verdict = judged(case, &[wanted], &|_| Ok(())).await;
        let name = &case["name"];
        assert_eq!(verdict.is_ok(), case["verdict"] == "good", "{name}: {verdict:?}");
        if let Err(error) = verdict {
            let words = format!("no matching attestation of type '{wanted}' was found for '127.0.0.1:");
            assert!(error.starts_with(&words), "{name}: {error}");
        }
    }
}

#[tokio::test]
async fn each_demand_must_be_met_and_the_reason_names_the_best() {
    for form in ["layer", "bundle"] {
        let cases = attestations();
        let named = |title: &str| {
            let name = format!("{form}: {title}");
            cases.iter().find(|case| case["name"] == *name).unwrap()
        };
        let both = named("one of two");
        let wanted = both["predicateType"].as_str().unwrap();
        let built = "https://slsa.dev/provenance/v1";
        let says = async |case: &Value, demanded: &[&str]| {
            let passed = |attested: &Attested| match attested.predicate["tests"] == "passed" {
                true => Ok(()),
                false => Err(format!("{} is not what is expected", attested.predicate)),
            };
            judged(case, demanded, &passed).await.err().unwrap_or_default()
        };
        assert_eq!(says(both, &[wanted, built]).await, "");
        let error = says(named("good"), &[wanted, built]).await;
        assert!(error.ends_with(": none of this type found"), "{error}");
        let error = judged(both, &[built, wanted], &|_| Err("tests failed".to_owned())).await;
        assert!(error.unwrap_err().ends_with(": tests failed"));
    }
}
