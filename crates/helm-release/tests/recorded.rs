//! Records that real Helm wrote, and the digests by which real Flux knows them again (hack/oracle/helm-release).

use std::collections::BTreeMap;

use helm_release::record::{self, Written};
use helm_release::{Record, observation, values};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Case {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    data: String,
    oci_digest: Option<String>,
    digest: String,
    values_digest: String,
}

fn cases() -> Vec<Case> {
    let lines = include_str!("cases.jsonl").lines();
    let cases: Vec<Case> = lines
        .map(|line| serde_json::from_str(line).expect("a recorded case"))
        .collect();
    assert!(cases.len() >= 26, "{}", cases.len());
    cases
}

fn read(case: &Case) -> Record {
    Record::read(case.data.as_bytes(), case.labels.clone())
        .unwrap_or_else(|error| panic!("{}: {error}", case.name))
}

#[test]
fn flux_knows_them_by_the_same_digests() {
    for case in cases() {
        let record = read(&case);
        assert_eq!(
            observation::digest(&record.release, case.oci_digest.as_deref()),
            case.digest,
            "{}",
            case.name
        );
        assert_eq!(
            values::digest(&record.release.config),
            case.values_digest,
            "{}",
            case.name
        );
    }
}

#[test]
fn what_is_written_again_says_the_same() {
    for case in cases() {
        let record = read(&case);
        let data = record::encode(&record.release).unwrap();
        let again = Record::read(&data, case.labels.clone()).unwrap();
        assert_eq!(again, record, "{}", case.name);
        if !case.labels.is_empty() {
            // Of what Helm 4 writes not a field is lost.
            assert_eq!(json(&data), json(case.data.as_bytes()), "{}", case.name);
        }
    }
}

#[test]
fn labels_are_helms() {
    for case in cases().into_iter().filter(|case| !case.labels.is_empty()) {
        let record = read(&case);
        let at = jiff::Timestamp::new(1_700_000_000, 5).unwrap();
        assert_eq!(record.labels(Written::Created(at)), case.labels, "{}", case.name);
        let modified = record.labels(Written::Modified(at));
        assert_eq!(modified.get("modifiedAt").map(String::as_str), Some("1700000000"));
        assert!(!modified.contains_key("createdAt"));
    }
}

#[test]
fn the_secret_is_named_as_helm_names_it() {
    let mut record = read(&cases()[0]);
    record.release.version = 12;
    assert_eq!(record.name(), "sh.helm.release.v1.web.v12");
}

#[test]
fn bad_data_is_refused_with_what_is_wrong() {
    let gzip = |bytes: &[u8]| {
        use std::io::Write as _;
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    };
    let base64 = |bytes: &[u8]| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes);
    let whole = gzip(b"{}");
    for (data, problem) in [
        (
            "?".to_owned(),
            "failed to decode the release: its data is not base64",
        ),
        (base64(&whole[..whole.len() - 4]), "failed to unpack the release"),
        (base64(&gzip(b"[]")), "failed to parse the release"),
        (base64(b"secret"), "failed to parse the release"),
        (
            base64(&gzip(&[b' '; 1 << 20]).repeat(129)),
            "failed to unpack the release: it has more than 67108864 bytes or 1000000 values",
        ),
        (
            // Ten kilobytes that would be half a million hooks.
            base64(&gzip(
                format!(r#"{{"hooks":[{}]}}"#, vec!["{}"; 500_000].join(",")).as_bytes(),
            )),
            "failed to unpack the release: it has more than 67108864 bytes or 1000000 values",
        ),
    ] {
        let error = record::decode(data.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), problem);
    }
}

#[test]
fn what_a_secret_cannot_hold_is_known_before_it_is_sent() {
    let mut release = read(&cases()[0]).release;
    let mut random = 1_u64;
    let mut letters = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b' ' + (random >> 57) as u8 % 90)
    };
    release.manifest = (0..1_200_000).map(|_| letters()).collect();
    let error = record::encode(&release).unwrap_err().to_string();
    assert!(
        error.starts_with("failed to store release 'web' (revision 1): its record has ")
            && error.contains(".helmignore"),
        "{error}"
    );
}

fn json(data: &[u8]) -> Value {
    use std::io::Read as _;
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data).expect("base64");
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(bytes.as_slice())
        .read_to_string(&mut text)
        .expect("gzip");
    serde_json::from_str(&text).expect("JSON")
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
        let _ = record::decode(&bytes);
        let _ = record::decode(base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &bytes).as_bytes());
    }
}
