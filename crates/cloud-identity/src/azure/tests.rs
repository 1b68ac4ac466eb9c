use error_chain::chain;

use super::*;
use crate::fake::{CERTIFICATE, RSA_PKCS8, World, account};
use crate::identity::Identity;
use crate::provider::access_token;

const GRANTED: &str = r#"{"token_type":"Bearer","expires_in":3599,"access_token":"eyJ0"}"#;
const TENANT: &str = "11111111-2222-3333-4444-555555555555";

fn blobs() -> Access {
    Access {
        scope: BLOB_STORAGE.to_owned(),
    }
}

async fn token(identity: &Identity, world: &World) -> Result<String, String> {
    let token = access_token(&blobs(), identity, world.session()).await;
    token
        .map(|token| token.as_bearer().unwrap().to_owned())
        .map_err(|error| chain(&error))
}

#[tokio::test]
async fn a_service_account_is_federated() {
    let world = World::new(&[], &[(200, GRANTED)]);
    let identity = account(&[(TENANT_ANNOTATION, TENANT), (CLIENT_ANNOTATION, "client-1")]);
    assert_eq!(token(&identity, &world).await.unwrap(), "eyJ0");
    assert_eq!(
        world.services.request(),
        format!(
            "POST https://login.microsoftonline.com/{TENANT}/oauth2/v2.0/token\n\
             content-type: application/x-www-form-urlencoded\n\
             client_id=client-1&grant_type=client_credentials&scope=https%3A%2F%2Fstorage.azure.com%2F.default\
             &client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer\
             &client_assertion=token+for+api%3A%2F%2FAzureADTokenExchange"
        )
    );
}

#[tokio::test]
async fn the_controller_uses_a_secret_or_the_identity_of_its_node() {
    let variables = [
        ("AZURE_TENANT_ID", TENANT),
        ("AZURE_CLIENT_ID", "client-1"),
        ("AZURE_CLIENT_SECRET", "s3cret"),
        ("AZURE_AUTHORITY_HOST", "https://login.chinacloudapi.cn"),
    ];
    let world = World::new(&variables, &[(200, GRANTED)]);
    assert_eq!(token(&Identity::Controller, &world).await.unwrap(), "eyJ0");
    let request = world.services.request();
    assert!(
        request.starts_with("POST https://login.chinacloudapi.cn/1111"),
        "{request}"
    );
    assert!(request.ends_with("&client_secret=s3cret"), "{request}");

    let granted = r#"{"access_token":"eyJ0","expires_in":"3599"}"#;
    let world = World::new(&[("AZURE_CLIENT_ID", "client-1")], &[(200, granted)]);
    assert_eq!(token(&Identity::Controller, &world).await.unwrap(), "eyJ0");
    assert_eq!(
        world.services.request(),
        "GET http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01\
         &resource=https%3A%2F%2Fstorage.azure.com&client_id=client-1 (local)\nmetadata: true"
    );
}

#[tokio::test]
async fn a_certificate_signs_for_its_application() {
    let credential = Credential::Certificate {
        pem: format!("{RSA_PKCS8}{CERTIFICATE}").into_bytes(),
        send_chain: true,
    };
    let application = Application::new(None, TENANT.to_owned(), "client-1".to_owned(), credential);
    let world = World::new(&[], &[(200, GRANTED)]);
    let token = application
        .access_token(BLOB_STORAGE, world.session())
        .await
        .unwrap();
    assert_eq!(token.as_bearer(), Some("eyJ0"));
    let request = world.services.request();
    let (_, assertion) = request.split_once("&client_assertion=").unwrap();
    use base64::Engine as _;
    let header = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(assertion.split('.').next().unwrap())
        .unwrap();
    let header: serde_json::Value = serde_json::from_slice(&header).unwrap();
    assert_eq!(header["alg"], "PS256");
    assert!(
        header["x5t#S256"].is_string() && header["x5c"].as_array().unwrap().len() == 1,
        "{header}"
    );
}

#[tokio::test]
async fn what_is_not_configured_well_is_told() {
    let world = World::new(
        &[],
        &[(400, r#"{"error":"x","error_description":"AADSTS1: no\r\nTrace"}"#)],
    );
    let error = token(&account(&[]), &world).await.unwrap_err();
    assert!(
        error.ends_with(
            "azure tenant ID is not set in the service account annotation azure.workload.identity/tenant-id"
        ),
        "{error}"
    );
    let evil = account(&[(TENANT_ANNOTATION, "../x?"), (CLIENT_ANNOTATION, "c")]);
    assert!(
        token(&evil, &world)
            .await
            .unwrap_err()
            .ends_with("invalid tenant ID '../x?'")
    );
    let good = account(&[(TENANT_ANNOTATION, TENANT), (CLIENT_ANNOTATION, "c")]);
    let error = token(&good, &world).await.unwrap_err();
    assert!(
        error.ends_with("answered 400 Bad Request: AADSTS1: no Trace"),
        "{error}"
    );
}
