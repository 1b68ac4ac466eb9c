//! Whatever a stranger sends is answered, and soon. `make fuzz-notify CASES=n` runs more of it.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use proptest::prelude::*;
use url::Url;
use webhook::filter::{Called, Filter};
use webhook::{Accepted, Call, Evaluator, KeySource, Keys, OidcProvider, ReceiverType, Rules};

/// An issuer whose documents are anything.
struct Anything(Vec<u8>);

impl KeySource for Anything {
    async fn get(&self, _: &Url) -> Result<Bytes, String> {
        Ok(self.0.clone().into())
    }
}

fn cases() -> ProptestConfig {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig::with_cases(64),
    }
}

const NAMES: [&str; 10] = [
    "Content-Type",
    "X-Hub-Signature",
    "X-Hub-Signature-256",
    "X-GitHub-Event",
    "X-Gitlab-Token",
    "X-Signature",
    "X-Event-Key",
    "Authorization",
    "Ce-Type",
    "X-Nexus-Webhook-Signature",
];

fn header() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..60),
        "(application/(json|x-www-form-urlencoded)(;[ a-z=\"\\\\]{0,9})?|sha(1|256|512)=[0-9a-f]{0,70})"
            .prop_map(String::into_bytes),
        "(Bearer )?[A-Za-z0-9_-]{0,40}(\\.[A-Za-z0-9_-]{0,40}){0,3}".prop_map(String::into_bytes),
        token().prop_map(String::into_bytes),
    ]
}

/// A token whose parts are JSON.
fn token() -> impl Strategy<Value = String> {
    use base64::Engine as _;
    let part = |json: String| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(json);
    let algorithm = "RS256|ES256|EdDSA|none|PS384|HS256";
    (algorithm, json(), any::<bool>()).prop_map(move |(algorithm, claim, is_ours)| {
        let issuer = if is_ours {
            "https://issuer"
        } else {
            "https://other"
        };
        let claims =
            format!(r#"{{"iss":"{issuer}","aud":"notification-controller","exp":9999999999,"x":{claim}}}"#);
        format!(
            "Bearer {}.{}.AAAA",
            part(format!(r#"{{"alg":"{algorithm}","kid":"k"}}"#)),
            part(claims)
        )
    })
}

fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<f64>().prop_map(|number| number.to_string()),
        "\"[ -~]{0,12}\"",
        Just("\"dev.cdevents.change.merged.0.2.0\"".to_owned()),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let name = prop_oneof![
            Just("context"),
            Just("subject"),
            Just("type"),
            Just("id"),
            Just("source"),
            Just("version"),
            Just("message"),
            Just("data"),
            Just("push_data"),
            Just("target"),
            Just("keys"),
            Just("links"),
            Just("issuer"),
            Just("jwks_uri"),
            Just("kty"),
        ];
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(|parts| format!("[{}]", parts.join(","))),
            proptest::collection::vec((name, inner), 0..8).prop_map(|fields| {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(name, value)| format!("\"{name}\":{value}"))
                    .collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        json().prop_map(String::into_bytes),
        "payload=[%0-9a-fA-F+&=;]{0,40}".prop_map(String::into_bytes),
    ]
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn any_call_is_answered(
        sent in proptest::collection::vec((0..NAMES.len(), header()), 0..8),
        body in body(),
        document in body(),
    ) {
        let mut headers = HeaderMap::new();
        for (name, value) in sent {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                headers.append(HeaderName::from_bytes(NAMES[name].as_bytes()).unwrap(), value);
            }
        }
        let call = Call { headers: &headers, body: &body };
        let secret = BTreeMap::from(["token", "email", "audience"].map(|key| (key.to_owned(), b"notification-controller".to_vec())));
        let provider = OidcProvider::parse("https://issuer", None, [("a", "claims.x")], [("claims.x == vars.a", "no")]).unwrap();
        let keys = Keys::new(Anything(document));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for type_ in ReceiverType::ALL {
            let rules = Rules {
                type_,
                events: &["push".to_owned()],
                secret: Some(&secret),
                oidc: std::slice::from_ref(&provider),
                now: Timestamp::UNIX_EPOCH,
            };
            let answer = runtime.block_on(webhook::verify(&call, &rules, &keys, &Evaluator::default()));
            if let Err(refused) = &answer {
                prop_assert!(refused.to_string().len() <= 500);
            }
            // No one here has a key or the token.
            if matches!(type_, ReceiverType::GenericOidc | ReceiverType::Gcr | ReceiverType::GenericHmac | ReceiverType::Nexus) {
                prop_assert!(answer.is_err());
            }
        }
    }

    #[test]
    fn any_body_can_be_filtered(body in body(), object in json()) {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/json".parse().unwrap());
        let filter = Filter::parse("req.type == res.metadata.name || req.subject.contains(res.id)", false).unwrap();
        if let Ok(called) = Called::read(&Call { headers: &headers, body: &body }, &Accepted::default()) {
            let object = serde_json::from_str(&object).unwrap_or_default();
            drop(filter.matches(&called, &object));
        }
    }
}
