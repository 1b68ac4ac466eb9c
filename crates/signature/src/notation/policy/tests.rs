//! The rules of trust policies, in the words of notation where tools may look for them.

use serde_json::{Value, json};

use super::*;

fn valid() -> Value {
    json!({"version": "1.0", "trustPolicies": [{
        "name": "a", "registryScopes": ["*"], "signatureVerification": {"level": "strict"},
        "trustStores": ["ca:x"], "trustedIdentities": ["x509.subject: C=US, ST=WA, O=a"],
    }]})
}

fn problem(pointer: &str, value: Value) -> String {
    let mut document = valid();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    document.pointer_mut(parent).unwrap()[key] = value;
    match TrustPolicy::parse(document.to_string().as_bytes()) {
        Ok(_) => "valid".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn rules_are_checked() {
    let statement = "/trustPolicies/0";
    let at = |field: &str| format!("{statement}/{field}");
    assert_eq!(problem("/x", json!(1)), "valid");
    let cases = [
        ("/version".to_owned(), json!("2.0"), "unsupported version \"2.0\""),
        ("/version".to_owned(), json!(""), "empty version"),
        (
            "/trustPolicies".to_owned(),
            json!([]),
            "zero trust policy statements",
        ),
        (at("name"), json!(""), "missing a name"),
        (at("registryScopes"), json!([]), "zero registry scopes"),
        (
            at("registryScopes"),
            json!(["*", "h.io/a"]),
            "wildcard registry scope",
        ),
        (at("registryScopes"), json!(["https://h.io/a"]), "is not valid"),
        (at("registryScopes"), json!(["h.io"]), "is not valid"),
        (
            at("signatureVerification"),
            json!({}),
            "level is empty or missing",
        ),
        (
            at("signatureVerification"),
            json!({"level": "x"}),
            "invalid signature verification level \"x\"",
        ),
        (
            at("signatureVerification"),
            json!({"level": "strict", "verifyTimestamp": "never"}),
            "verifyTimestamp must be",
        ),
        (
            at("signatureVerification"),
            json!({"level": "strict", "override": {"integrity": "log"}}),
            "can not be overridden",
        ),
        (
            at("signatureVerification"),
            json!({"level": "strict", "override": {"expiry": "skip"}}),
            "can not be skipped",
        ),
        (
            at("signatureVerification"),
            json!({"level": "strict", "override": {"x": "skip"}}),
            "verification type \"x\"",
        ),
        (
            at("signatureVerification"),
            json!({"level": "strict", "override": {"expiry": "x"}}),
            "verification action \"x\"",
        ),
        (at("signatureVerification"), json!({"level": "skip"}), "valid"),
        (at("trustStores"), json!([]), "missing trust stores"),
        (at("trustStores"), json!(["x"]), "unsupported trust store \"x\""),
        (at("trustStores"), json!(["ca:../x"]), "unsupported trust store"),
        (
            at("trustedIdentities"),
            json!(["*", "x509.subject: C=US"]),
            "wildcard trusted identity",
        ),
        (at("trustedIdentities"), json!(["x"]), "missing separator"),
        (
            at("trustedIdentities"),
            json!(["x509.subject: C=US"]),
            "no mandatory RDN attribute",
        ),
        (
            at("trustedIdentities"),
            json!([
                "x509.subject: C=US,ST=WA,O=a",
                "x509.subject: C=US,ST=WA,O=a,CN=b"
            ]),
            "overlapping",
        ),
    ];
    for (pointer, value, expected) in cases {
        let problem = problem(&pointer, value);
        assert!(problem.contains(expected), "{pointer}: {problem}");
    }
    assert!(matches!(TrustPolicy::parse(b"{"), Err(PolicyError::Parse(_))));
}

#[test]
fn the_statement_that_names_the_repository_goes_before_the_one_for_all() {
    let statement = |name: &str, scope: &str| {
        let mut statement = valid()["trustPolicies"][0].clone();
        statement["name"] = name.into();
        statement["registryScopes"] = json!([scope]);
        statement
    };
    let policy = |statements: Value| {
        TrustPolicy::parse(
            json!({"version": "1.0", "trustPolicies": statements})
                .to_string()
                .as_bytes(),
        )
    };
    let both = policy(json!([statement("all", "*"), statement("one", "h.io:5000/a/b")])).unwrap();
    assert_eq!(both.statement("h.io:5000/a/b").unwrap().name, "one");
    assert_eq!(both.statement("h.io:5000/a").unwrap().name, "all");
    let one = policy(json!([statement("one", "h.io/a")])).unwrap();
    let error = one.statement("h.io/b").unwrap_err().to_string();
    assert!(
        error.starts_with("artifact \"h.io/b\" has no applicable trust policy statement"),
        "{error}"
    );
    let twice = policy(json!([statement("a", "h.io/a"), statement("b", "h.io/a")])).unwrap_err();
    assert!(
        twice
            .to_string()
            .contains("present in multiple trust policy statements")
    );
    let twice = policy(json!([statement("a", "h.io/a"), statement("a", "h.io/b")])).unwrap_err();
    assert!(twice.to_string().contains("use the same name \"a\""));
}
