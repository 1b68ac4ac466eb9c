//! Calls with ID tokens, signed here by keys that a pretended issuer publishes.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, RSA_PKCS1_SHA256, RSA_PSS_SHA512,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::HeaderMap;
use jiff::Timestamp;
use serde_json::{Value, json};
use url::Url;
use webhook::{Accepted, Call, Evaluator, KeySource, Keys, OidcProvider, ReceiverType, Refused, Rules};

const ISSUER: &str = "https://issuer.example/tenant";
const NOW: i64 = 1_800_000_000;

/// Documents by URL, and how often each was asked for.
#[derive(Default)]
struct Issuer {
    documents: Mutex<HashMap<String, Value>>,
    asked: Mutex<Vec<String>>,
}

impl Issuer {
    fn publishes(&self, url: &str, document: Value) {
        self.documents.lock().unwrap().insert(url.to_owned(), document);
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl KeySource for &Issuer {
    async fn get(&self, url: &Url) -> Result<Bytes, String> {
        self.asked.lock().unwrap().push(url.to_string());
        let documents = self.documents.lock().unwrap();
        let document = documents.get(url.as_str()).ok_or("404 Not Found")?;
        Ok(document.to_string().into())
    }
}

enum Key {
    Rsa(RsaKeyPair),
    Es256(EcdsaKeyPair),
    Es384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl Key {
    fn public(&self, kid: &str) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let point = |point: &[u8], crv: &str| {
            let (x, y) = point[1..].split_at(point.len() / 2);
            json!({"kty": "EC", "kid": kid, "use": "sig", "crv": crv, "x": text(x), "y": text(y)})
        };
        match self {
            Self::Rsa(key) => {
                // In the DER of a key of 2048 bits, the modulus and the exponent are always there.
                let der = key.public_key().as_ref();
                let (n, e) = (&der[9..265], &der[267..]);
                json!({"kty": "RSA", "kid": kid, "alg": "RS256", "n": text(n), "e": text(e)})
            }
            Self::Es256(key) => point(key.public_key().as_ref(), "P-256"),
            Self::Es384(key) => point(key.public_key().as_ref(), "P-384"),
            Self::Ed25519(key) => {
                json!({"kty": "OKP", "kid": kid, "crv": "Ed25519", "x": text(key.public_key().as_ref())})
            }
        }
    }

    fn sign(&self, algorithm: &str, text: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                let encoding: &'static dyn aws_lc_rs::signature::RsaEncoding = if algorithm == "PS512" {
                    &RSA_PSS_SHA512
                } else {
                    &RSA_PKCS1_SHA256
                };
                key.sign(encoding, &random, text, &mut signature).unwrap();
                signature
            }
            Self::Es256(key) | Self::Es384(key) => key.sign(&random, text).unwrap().as_ref().to_vec(),
            Self::Ed25519(key) => key.sign(text).as_ref().to_vec(),
        }
    }

    fn token(&self, algorithm: &str, kid: &str, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!(
            "{}.{}",
            part(&json!({"alg": algorithm, "kid": kid})),
            part(claims)
        );
        let signature = self.sign(algorithm, text.as_bytes());
        format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

fn es256() -> Key {
    Key::Es256(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
}

fn issuer(keys: &[Value]) -> Issuer {
    let issuer = Issuer::default();
    issuer.publishes(
        &format!("{ISSUER}/.well-known/openid-configuration"),
        json!({
            "issuer": ISSUER,
            "jwks_uri": "https://issuer.example/keys",
            "id_token_signing_alg_values_supported": ["RS256", "PS512", "ES256", "ES384", "EdDSA", "HS256", "none"],
        }),
    );
    issuer.publishes("https://issuer.example/keys", json!({"keys": keys}));
    issuer
}

fn claims() -> Value {
    json!({"iss": ISSUER, "aud": "notification-controller", "exp": NOW + 60, "repository_owner": "org", "repository": "org/app"})
}

fn provider() -> OidcProvider {
    OidcProvider::parse(
        ISSUER,
        None,
        [
            ("owner", "claims.repository_owner"),
            ("allowed", "[vars.owner + '/app']"),
        ],
        [
            ("claims.repository_owner == 'org'", "wrong org"),
            ("claims.repository in vars.allowed", "wrong repository"),
        ],
    )
    .unwrap()
}

async fn call_at<S: KeySource>(keys: &Keys<S>, token: &str, now: i64) -> Result<Accepted, Refused> {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
    let call = Call {
        headers: &headers,
        body: b"",
    };
    let rules = Rules {
        type_: ReceiverType::GenericOidc,
        events: &[],
        secret: None,
        oidc: &[provider()],
        now: Timestamp::from_second(now).unwrap(),
    };
    webhook::verify(&call, &rules, keys, &Evaluator::default()).await
}

async fn call(keys: &Keys<&Issuer>, token: &str) -> Result<Accepted, Refused> {
    call_at(keys, token, NOW).await
}

fn reason(answer: Result<Accepted, Refused>) -> String {
    answer.unwrap_err().to_string()
}

#[tokio::test]
async fn tokens_of_each_kind_of_key_are_taken_with_one_request() {
    let keys = [
        ("RS256", Key::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap())),
        ("PS512", Key::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap())),
        ("ES256", es256()),
        (
            "ES384",
            Key::Es384(EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap()),
        ),
        ("EdDSA", Key::Ed25519(Ed25519KeyPair::generate().unwrap())),
    ];
    let mut published: Vec<Value> = keys.iter().map(|(kid, key)| key.public(kid)).collect();
    published.push(json!("no key"));
    published.push(json!({"kty": "new"}));
    let issuer = issuer(&published);
    let source = Keys::new(&issuer);
    for (algorithm, key) in &keys {
        let accepted = call(&source, &key.token(algorithm, algorithm, &claims()))
            .await
            .unwrap();
        assert_eq!(accepted.claims, Some(claims()), "{algorithm}");
        // Without a name any key may fit; with a wrong one none does.
        assert!(call(&source, &key.token(algorithm, "", &claims())).await.is_ok());
        assert!(
            call(&source, &key.token(algorithm, "RS257", &claims()))
                .await
                .is_err()
        );
    }
    assert_eq!(issuer.asked(), 2);
}

#[tokio::test]
async fn what_is_not_signed_by_the_issuers_key_is_refused() {
    let (key, other) = (es256(), es256());
    let issuer = issuer(&[key.public("k")]);
    let source = Keys::new(&issuer);
    let good = key.token("ES256", "k", &claims());
    assert!(call(&source, &good).await.is_ok());
    assert_eq!(
        reason(call(&source, &other.token("ES256", "k", &claims())).await),
        "failed to verify OIDC token: failed to verify signature: no key of the issuer fits"
    );
    let (signed, _) = good.rsplit_once('.').unwrap();
    assert!(call(&source, &format!("{signed}.")).await.is_err());
    let (header, rest) = good.split_once('.').unwrap();
    let (_, signature) = rest.split_once('.').unwrap();
    let mut changed = claims();
    changed["repository"] = json!("org/other");
    let changed = URL_SAFE_NO_PAD.encode(changed.to_string());
    assert!(
        call(&source, &format!("{header}.{changed}.{signature}"))
            .await
            .is_err()
    );
    for algorithm in ["none", "HS256", "ES257", ""] {
        let refused = reason(call(&source, &key.token(algorithm, "k", &claims())).await);
        assert!(refused.contains("unexpected signature algorithm"), "{refused}");
    }
    // A curve or family other than the key's.
    for algorithm in ["ES384", "RS256", "EdDSA"] {
        assert!(
            call(&source, &key.token(algorithm, "k", &claims()))
                .await
                .is_err(),
            "{algorithm}"
        );
    }
}

#[tokio::test]
async fn a_token_is_for_this_receiver_and_for_now() {
    let key = es256();
    let issuer = issuer(&[key.public("k")]);
    let source = Keys::new(&issuer);
    let with = |field: &str, value: Value| {
        let mut claims = claims();
        claims[field] = value;
        key.token("ES256", "k", &claims)
    };
    for token in [
        with("aud", json!(["other", "notification-controller"])),
        with("nbf", json!(NOW + 299)),
        with("exp", json!(f64::from(NOW as i32) + 0.5)),
    ] {
        assert!(call(&source, &token).await.is_ok());
    }
    for (token, expected) in [
        (
            with("aud", json!("other")),
            "expected audience \"notification-controller\"",
        ),
        (with("aud", json!(5)), "expected audience"),
        (with("exp", json!(NOW - 1)), "token is expired"),
        (with("exp", Value::Null), "token is expired"),
        (with("nbf", json!(NOW + 301)), "not valid yet"),
        (
            with("iss", json!("https://other.example")),
            "no oidcProvider configured for issuer \"https://other.example\"",
        ),
        (
            with("iss", Value::Null),
            "no oidcProvider configured for issuer \"\"",
        ),
        (
            with("repository_owner", json!("evil")),
            "token validation failed: wrong org; wrong repository",
        ),
        (
            with("repository_owner", json!(5)),
            "failed to evaluate variable \"allowed\"",
        ),
    ] {
        let refused = reason(call(&source, &token).await);
        assert!(refused.contains(expected), "{refused}");
    }
    for token in ["", "a", "a.b", "a.b.c", "e30.e30.e30", &"a".repeat(40_000)] {
        assert!(call(&source, token).await.is_err());
    }
}

#[tokio::test]
async fn strangers_cannot_have_the_issuer_asked_again_and_again() {
    let (key, other) = (es256(), es256());
    let issuer = issuer(&[key.public("k")]);
    let source = Keys::new(&issuer);
    // What is wrong without looking at the signature asks for nothing.
    let mut expired = claims();
    expired["exp"] = json!(NOW - 1);
    assert!(call(&source, &other.token("ES256", "x", &expired)).await.is_err());
    assert_eq!(issuer.asked(), 0);
    for _ in 0..10 {
        assert!(
            call(&source, &other.token("ES256", "x", &claims()))
                .await
                .is_err()
        );
    }
    assert_eq!(issuer.asked(), 2);
    assert!(
        call_at(&source, &other.token("ES256", "x", &claims()), NOW + 31)
            .await
            .is_err()
    );
    assert_eq!(issuer.asked(), 4);
}

#[tokio::test]
async fn a_key_that_is_new_is_found() {
    let (key, new) = (es256(), es256());
    let issuer = issuer(&[key.public("k")]);
    let source = Keys::new(&issuer);
    assert!(call(&source, &key.token("ES256", "k", &claims())).await.is_ok());
    issuer.publishes("https://issuer.example/keys", json!({"keys": [new.public("n")]}));
    let token = new.token("ES256", "n", &claims());
    assert!(call_at(&source, &token, NOW + 10).await.is_err());
    assert!(call_at(&source, &token, NOW + 40).await.is_ok());
    // And one that is gone is.
    assert!(
        call_at(&source, &key.token("ES256", "k", &claims()), NOW + 41)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn keys_outlive_an_outage_of_their_issuer_for_an_hour() {
    let (key, other) = (es256(), es256());
    let issuer = issuer(&[key.public("k")]);
    let source = Keys::new(&issuer);
    let mut claims = claims();
    claims["exp"] = json!(NOW + 10_000);
    let good = key.token("ES256", "k", &claims);
    assert!(call(&source, &good).await.is_ok());
    issuer.documents.lock().unwrap().clear();
    let stranger = other.token("ES256", "k", &claims);
    assert!(call_at(&source, &stranger, NOW + 100).await.is_err());
    assert!(call_at(&source, &good, NOW + 101).await.is_ok());
    assert!(call_at(&source, &good, NOW + 3601).await.is_err());
}

#[tokio::test]
async fn an_issuer_that_cannot_be_asked_is_left_alone_for_a_while() {
    let key = es256();
    let issuer = Issuer::default();
    let source = Keys::new(&issuer);
    let token = key.token("ES256", "k", &claims());
    for _ in 0..5 {
        let refused = reason(call(&source, &token).await);
        assert!(refused.ends_with("404 Not Found"), "{refused}");
    }
    assert_eq!(issuer.asked(), 1);
    let another = json!({"issuer": "https://issuer.example/", "jwks_uri": "https://issuer.example/keys"});
    issuer.publishes(&format!("{ISSUER}/.well-known/openid-configuration"), another);
    let refused = reason(call_at(&source, &token, NOW + 6).await);
    assert!(refused.contains("did not match"), "{refused}");
    let plain = json!({"issuer": ISSUER, "jwks_uri": "http://issuer.example/keys"});
    issuer.publishes(&format!("{ISSUER}/.well-known/openid-configuration"), plain);
    let refused = reason(call_at(&source, &token, NOW + 12).await);
    assert!(refused.contains("anybody can change them"), "{refused}");
}

/// An issuer that does not answer for a while, and then that it cannot.
struct Slow(Issuer);

impl KeySource for &Slow {
    async fn get(&self, url: &Url) -> Result<Bytes, String> {
        tokio::time::sleep(std::time::Duration::from_secs(10)).await;
        (&self.0).get(url).await
    }
}

#[tokio::test(start_paused = true)]
async fn the_pause_after_a_failure_begins_when_it_has_failed() {
    let slow = Slow(Issuer::default());
    let source = Keys::new(&slow);
    let token = es256().token("ES256", "k", &claims());
    let calls = [0, 1, 4].map(|later| call_at(&source, &token, NOW + later));
    let [first, second, third] = calls;
    let (first, second, third) = tokio::join!(first, second, third);
    assert!(first.is_err() && second.is_err() && third.is_err());
    assert_eq!(slow.0.asked(), 1);
    assert!(call_at(&source, &token, NOW + 14).await.is_err());
    assert_eq!(slow.0.asked(), 1);
    assert!(call_at(&source, &token, NOW + 15).await.is_err());
    assert_eq!(slow.0.asked(), 2);
    // A clock that was far ahead does not keep the issuer from being asked for long.
    assert!(call_at(&source, &token, NOW - 100).await.is_err());
    assert_eq!(slow.0.asked(), 3);
}

#[tokio::test]
async fn a_token_has_so_many_claims_at_most() {
    let key = es256();
    let issuer = issuer(&[key.public("k")]);
    let source = Keys::new(&issuer);
    let mut claims = claims();
    claims["groups"] = json!(vec![1; 900]);
    assert!(call(&source, &key.token("ES256", "k", &claims)).await.is_ok());
    claims["groups"] = json!(vec![1; 1_000]);
    let refused = reason(call(&source, &key.token("ES256", "k", &claims)).await);
    assert!(refused.ends_with("token has too many claims"), "{refused}");
}

#[tokio::test]
async fn googles_registry_calls_as_the_account_of_the_secret() {
    let key = Key::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap());
    let google = Issuer::default();
    google.publishes(
        "https://www.googleapis.com/oauth2/v3/certs",
        json!({"keys": [key.public("g")]}),
    );
    let source = Keys::new(&google);
    let claims = json!({
        "iss": "https://accounts.google.com", "aud": "https://hook.example", "exp": NOW + 60,
        "email": "push@project.iam.gserviceaccount.com", "email_verified": true,
    });
    let data =
        STANDARD.encode(r#"{"action":"INSERT","digest":"gcr.io/a@sha256:1","tag":"gcr.io/a:1","more":1}"#);
    let body = json!({"message": {"data": data, "messageId": "1"}, "subscription": "s"}).to_string();
    let secret = |email: &str, audience: &str| {
        BTreeMap::from(
            [("token", "t"), ("email", email), ("audience", audience)]
                .map(|(k, v)| (k.to_owned(), v.as_bytes().to_vec())),
        )
    };
    let good = secret("push@project.iam.gserviceaccount.com", "https://hook.example");
    let ask = async |claims: &Value, secret: &BTreeMap<String, Vec<u8>>, body: &str| {
        let mut headers = HeaderMap::new();
        let token = key.token("RS256", "g", claims);
        headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        let call = Call {
            headers: &headers,
            body: body.as_bytes(),
        };
        let rules = Rules {
            type_: ReceiverType::Gcr,
            events: &[],
            secret: Some(secret),
            oidc: &[],
            now: Timestamp::from_second(NOW).unwrap(),
        };
        webhook::verify(&call, &rules, &source, &Evaluator::default()).await
    };
    let accepted = ask(&claims, &good, &body).await.unwrap();
    let payload: Value = serde_json::from_slice(&accepted.payload.unwrap()).unwrap();
    assert_eq!(
        payload,
        json!({"action": "INSERT", "digest": "gcr.io/a@sha256:1", "tag": "gcr.io/a:1"})
    );
    let with = |field: &str, value: Value| {
        let mut claims = claims.clone();
        claims[field] = value;
        claims
    };
    for (claims, secret, body, expected) in [
        (
            claims.clone(),
            secret("", "a"),
            body.clone(),
            "required field 'email'",
        ),
        (
            claims.clone(),
            secret("a", ""),
            body.clone(),
            "required field 'audience'",
        ),
        (
            claims.clone(),
            secret("push@project.iam.gserviceaccount.com", "https://other"),
            body.clone(),
            "another audience",
        ),
        (
            claims.clone(),
            secret("other@project.iam.gserviceaccount.com", "https://hook.example"),
            body.clone(),
            "another account",
        ),
        (
            with("email_verified", json!(false)),
            good.clone(),
            body.clone(),
            "not verified",
        ),
        (
            with("email_verified", json!("true")),
            good.clone(),
            body.clone(),
            "not verified",
        ),
        (
            with("iss", json!("https://accounts.google.com.evil")),
            good.clone(),
            body.clone(),
            "token issuer is neither",
        ),
        (
            with("exp", json!(NOW - 1)),
            good.clone(),
            body.clone(),
            "token is expired",
        ),
        (
            claims.clone(),
            good.clone(),
            "{}".to_owned(),
            "cannot decode GCR webhook body",
        ),
        (
            claims.clone(),
            good.clone(),
            "x".to_owned(),
            "cannot decode GCR webhook payload",
        ),
    ] {
        let refused = reason(ask(&claims, &secret, &body).await);
        assert!(refused.contains(expected), "{refused}");
    }
}
