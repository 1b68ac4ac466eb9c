//! Against services that answer what they are told and remember what they were asked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use cloud_identity::aws::Keys as AwsKeys;
use cloud_identity::azure::{Application, Credential};
use cloud_identity::{Answer, Future, Identity, Issuer, SendError};
use cloud_identity::{Cache, Environment, Http};
use http::StatusCode;

use super::*;
use crate::key::{EncryptedKey, KeyService, MasterKey};

/// `0123…` as a data key.
const KEY: &[u8] = b"0123456789abcdef0123456789abcdef";

struct Services {
    answers: Mutex<Vec<(u16, String)>>,
    requests: Mutex<Vec<String>>,
}

impl Http for Services {
    fn send(&self, request: Request) -> Future<'_, Result<Answer, SendError>> {
        let mut text = format!("{} {}", request.method, request.url);
        for name in [
            "authorization",
            "x-amz-target",
            "content-type",
            "x-vault-token",
            "x-vault-request",
        ] {
            if let Some(value) = request.headers.get(name) {
                text.push_str(&format!("\n{name}: {}", value.to_str().unwrap()));
            }
        }
        text.push('\n');
        text.push_str(std::str::from_utf8(&request.body).unwrap());
        self.requests.lock().unwrap().push(text);
        let answer = self.answers.lock().unwrap().pop();
        Box::pin(async move {
            let (status, body) = answer.ok_or_else(|| SendError("connection refused".to_owned()))?;
            Ok(Answer {
                status: StatusCode::from_u16(status).unwrap(),
                headers: HeaderMap::new(),
                body: body.into_bytes().into(),
            })
        })
    }
}

fn world(variables: &[(&str, &str)], answers: &[(u16, &str)]) -> (Access, Arc<Services>) {
    let services = Arc::new(Services {
        answers: Mutex::new(
            answers
                .iter()
                .rev()
                .map(|(status, body)| (*status, (*body).to_owned()))
                .collect(),
        ),
        requests: Mutex::default(),
    });
    let environment = Environment::from_variables(variables).at("2013-05-24T00:00:00Z".parse().unwrap());
    let access = Access {
        http: Arc::clone(&services) as Arc<dyn Http>,
        environment: Arc::new(environment),
        cache: Arc::new(Cache::new(10, Duration::from_secs(3600))),
    };
    (access, services)
}

fn now<T>(future: impl std::future::Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    loop {
        if let std::task::Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

fn decrypt(service: &dyn KeyService, master: MasterKey, encrypted: &str) -> Result<Vec<u8>, String> {
    assert!(service.handles(&master));
    let key = EncryptedKey {
        master,
        encrypted: encrypted.to_owned(),
    };
    let found = now(service.decrypt(&key));
    found.map(|key| key.to_vec()).map_err(|error| error.to_string())
}

fn answer(field: &str) -> String {
    format!("{{\"{field}\": \"{}\"}}", STANDARD.encode(KEY))
}

fn aws_key(role: Option<&str>) -> MasterKey {
    MasterKey::AwsKms {
        arn: "arn:aws:kms:eu-west-1:123456789012:key/abc".to_owned(),
        role: role.map(str::to_owned),
        context: BTreeMap::from([("app".to_owned(), "x".to_owned())]),
        profile: None,
    }
}

fn static_keys() -> aws::Credentials {
    aws::Credentials::Static(AwsKeys {
        access_key_id: "AKID".to_owned(),
        secret_access_key: "secret".to_owned(),
        session_token: None,
    })
}

#[test]
fn amazon_is_asked_with_a_signature_in_the_region_of_the_key() {
    let (access, services) = world(&[], &[(200, &answer("Plaintext"))]);
    let credentials = static_keys();
    let kms = aws::AwsKms { access, credentials };
    assert_eq!(decrypt(&kms, aws_key(None), "Y2lwaGVy").unwrap(), KEY);
    let request = services.requests.lock().unwrap()[0].clone();
    assert!(request.starts_with("POST https://kms.eu-west-1.amazonaws.com/\nauthorization: AWS4-HMAC-SHA256 Credential=AKID/20130524/eu-west-1/kms/aws4_request, "), "{request}");
    assert!(
        request.contains("x-amz-target: TrentService.Decrypt\ncontent-type: application/x-amz-json-1.1"),
        "{request}"
    );
    let body: serde_json::Value = serde_json::from_str(request.lines().last().unwrap()).unwrap();
    let expected = serde_json::json!({
        "KeyId": "arn:aws:kms:eu-west-1:123456789012:key/abc",
        "CiphertextBlob": "Y2lwaGVy",
        "EncryptionContext": {"app": "x"},
    });
    assert_eq!(body, expected);
}

#[test]
fn a_role_is_assumed_first() {
    let keys = "<R><Credentials><AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>s</SecretAccessKey>\
                <SessionToken>t</SessionToken><Expiration>2013-05-24T01:00:00Z</Expiration></Credentials></R>";
    let (access, services) = world(&[], &[(200, keys), (200, &answer("Plaintext"))]);
    let credentials = static_keys();
    let kms = aws::AwsKms { access, credentials };
    let key = aws_key(Some("arn:aws:iam::123456789012:role/r"));
    assert_eq!(decrypt(&kms, key, "Y2lwaGVy").unwrap(), KEY);
    let requests = services.requests.lock().unwrap().clone();
    assert!(requests[0].starts_with(
        "POST https://sts.eu-west-1.amazonaws.com/\nauthorization: AWS4-HMAC-SHA256 Credential=AKID/"
    ));
    assert!(requests[0].contains("Action=AssumeRole&"), "{}", requests[0]);
    assert!(requests[1].contains("Credential=ASIA/"), "{}", requests[1]);
}

#[test]
fn what_a_service_says_is_told_and_no_secret() {
    let refused = r#"{"__type":"AccessDeniedException","Message":"no access\nfor you"}"#;
    let (access, _) = world(&[], &[(400, refused)]);
    let credentials = static_keys();
    let kms = aws::AwsKms { access, credentials };
    assert_eq!(
        decrypt(&kms, aws_key(None), "Y2lwaGVy").unwrap_err(),
        "failed to decrypt sops data key with AWS KMS: https://kms.eu-west-1.amazonaws.com answered 400 Bad Request: no \
         access for you"
    );
    assert!(decrypt(&kms, aws_key(None), "?").unwrap_err().contains("base64"));
    assert!(
        decrypt(&kms, aws_key(None), "Y2lwaGVy")
            .unwrap_err()
            .contains("connection refused")
    );
}

#[test]
fn google_is_asked_with_a_token_of_the_controller() {
    let token = r#"{"access_token": "google-token", "expires_in": 3600}"#;
    let (access, services) = world(&[], &[(200, token), (200, &answer("plaintext"))]);
    let kms = gcp::GcpKms {
        access,
        credentials: gcp::Credentials::Identity(Identity::Controller),
        endpoint: None,
    };
    let resource_id = "projects/p/locations/global/keyRings/r/cryptoKeys/k".to_owned();
    assert_eq!(
        decrypt(&kms, MasterKey::GcpKms { resource_id }, "Y2lwaGVy").unwrap(),
        KEY
    );
    assert_eq!(
        services.requests.lock().unwrap()[1],
        "POST https://cloudkms.googleapis.com/v1/projects/p/locations/global/keyRings/r/cryptoKeys/k:decrypt\n\
         authorization: Bearer google-token\ncontent-type: application/json\n{\"ciphertext\":\"Y2lwaGVy\"}"
    );
}

#[test]
fn azure_is_asked_with_a_token_for_the_cloud_of_the_vault() {
    let token = r#"{"access_token": "azure-token", "expires_in": 3600}"#;
    let (access, services) = world(&[], &[(200, token), (200, &answer("value").replace('=', ""))]);
    let application = Application::new(
        None,
        "t".to_owned(),
        "c".to_owned(),
        Credential::Secret("s".to_owned()),
    );
    let vault = azure::AzureKeyVault {
        access,
        credentials: azure::Credentials::Application(application),
        endpoint: None,
    };
    let key = |vault_url: &str| MasterKey::AzureKeyVault {
        vault_url: vault_url.to_owned(),
        name: "k".to_owned(),
        version: "1a".to_owned(),
    };
    assert_eq!(
        decrypt(&vault, key("https://mine.vault.azure.net"), "Y2lwaGVy").unwrap(),
        KEY
    );
    let requests = services.requests.lock().unwrap().clone();
    assert!(
        requests[0].contains("scope=https%3A%2F%2Fvault.azure.net%2F.default"),
        "{}",
        requests[0]
    );
    assert_eq!(
        requests[1],
        "POST https://mine.vault.azure.net/keys/k/1a/decrypt?api-version=7.6\nauthorization: Bearer azure-token\n\
         content-type: application/json\n{\"alg\":\"RSA-OAEP-256\",\"value\":\"Y2lwaGVy\"}"
    );
    let error = decrypt(&vault, key("https://evil.example.com"), "Y2lwaGVy").unwrap_err();
    assert!(error.ends_with("the vault is no vault of Azure"), "{error}");
    assert_eq!(services.requests.lock().unwrap().len(), 2, "nobody else is asked");
}

fn vault_key(address: &str) -> MasterKey {
    MasterKey::Vault {
        address: address.to_owned(),
        engine_path: "transit".to_owned(),
        key_name: "k".to_owned(),
    }
}

#[test]
fn vault_is_asked_with_the_token_of_the_secret() {
    let (access, services) = world(&[], &[(200, &format!("{{\"data\": {}}}", answer("plaintext")))]);
    let token = Zeroizing::new("hvs.token".to_owned());
    let vault = vault::Vault {
        access,
        credentials: vault::Credentials::Token(token),
    };
    assert_eq!(
        decrypt(&vault, vault_key("https://v:8200"), "vault:v1:x").unwrap(),
        KEY
    );
    assert_eq!(
        services.requests.lock().unwrap()[0],
        "PUT https://v:8200/v1/transit/decrypt/k\ncontent-type: application/json\nx-vault-token: hvs.token\n\
         x-vault-request: true\n{\"ciphertext\":\"vault:v1:x\"}"
    );
}

struct OneToken;

impl Issuer for OneToken {
    fn issue(&self, audience: String) -> Future<'_, Result<String, String>> {
        assert_eq!(audience, "https://v");
        let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD
            .encode(r#"{"sub":"system:serviceaccount:apps:decryptor"}"#);
        Box::pin(async move { Ok(format!("h.{claims}.s")) })
    }
}

#[test]
fn a_service_account_logs_in_once_and_only_where_it_may() {
    let plain = format!("{{\"data\": {}}}", answer("plaintext"));
    let (access, services) = world(
        &[],
        &[
            (200, r#"{"auth": {"client_token": "t"}}"#),
            (200, &plain),
            (200, &plain),
        ],
    );
    let paths = BTreeMap::from([("https://v".to_owned(), "auth/kubernetes/login".to_owned())]);
    let vault = vault::Vault {
        access,
        credentials: vault::Credentials::Login(vault::Login::new(Ok(paths), Arc::new(OneToken))),
    };
    for _ in 0..2 {
        assert_eq!(
            decrypt(&vault, vault_key("https://v"), "vault:v1:x").unwrap(),
            KEY
        );
    }
    let requests = services.requests.lock().unwrap().clone();
    assert_eq!(requests.len(), 3);
    assert!(requests[0].starts_with("PUT https://v/v1/auth/kubernetes/login\n"));
    assert!(
        requests[0].contains(r#""role":"apps_decryptor""#),
        "{}",
        requests[0]
    );
    assert!(requests[2].contains("x-vault-token: t\n"));
    let error = decrypt(&vault, vault_key("https://other"), "vault:v1:x").unwrap_err();
    assert!(
        error.ends_with("no Vault login path configured for address 'https://other'"),
        "{error}"
    );
}
