use error_chain::chain;
use serde_json::json;

use super::*;
use crate::fake::{RSA_PKCS8, World, account};
use crate::identity::Identity;
use crate::provider::access_token;

const GRANTED: &str = r#"{"access_token":"ya29","expires_in":3599,"token_type":"Bearer"}"#;

async fn token(identity: &Identity, world: &World) -> Result<String, String> {
    let token = access_token(&Access, identity, world.session()).await;
    token
        .map(|token| token.as_bearer().unwrap().to_owned())
        .map_err(|error| chain(&error))
}

#[tokio::test]
async fn the_controller_asks_the_metadata_server() {
    let world = World::new(&[("GCE_METADATA_HOST", "metadata:80")], &[(200, GRANTED)]);
    assert_eq!(token(&Identity::Controller, &world).await.unwrap(), "ya29");
    let request = world.services.request();
    let start = "GET http://metadata/computeMetadata/v1/instance/service-accounts/default/token?scopes=https%3A%2F%2F";
    assert!(request.starts_with(start), "{request}");
    assert!(
        request.ends_with(" (local)\nmetadata-flavor: Google"),
        "{request}"
    );
}

#[tokio::test]
async fn outside_of_gke_a_provider_is_trusted() {
    let provider = "projects/1/locations/global/workloadIdentityPools/p/providers/k";
    let identity = account(&[("gcp.auth.fluxcd.io/workload-identity-provider", provider)]);
    let world = World::new(&[], &[(200, GRANTED)]);
    assert_eq!(token(&identity, &world).await.unwrap(), "ya29");
    let request = world.services.request();
    assert!(
        request.starts_with("POST https://sts.googleapis.com/v1/token\n"),
        "{request}"
    );
    for field in [
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange",
        "audience=%2F%2Fiam.googleapis.com%2Fprojects%2F1%2F",
        "subject_token=token+for+%2F%2Fiam.googleapis.com%2Fprojects%2F1%2F",
        "subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Ajwt",
        "auth%2Fuserinfo.email",
    ] {
        assert!(request.contains(field), "{field}: {request}");
    }
}

#[tokio::test]
async fn in_gke_a_service_account_becomes_one_of_google() {
    let cluster = [(200, "my-project"), (200, "europe-west1"), (200, "c1")];
    let impersonated = r#"{"accessToken":"other","expireTime":"2013-05-24T01:00:00Z"}"#;
    let answers = [
        cluster.as_slice(),
        &cluster,
        &[(200, GRANTED), (200, impersonated)],
    ]
    .concat();
    let world = World::new(&[], &answers);
    let identity = account(&[(EMAIL_ANNOTATION, "reader@my-project.iam.gserviceaccount.com")]);
    assert_eq!(token(&identity, &world).await.unwrap(), "other");
    let requests = world.services.requests();
    let exchange = &requests[6];
    assert!(
        exchange.contains(
            "audience=identitynamespace%3Amy-project.svc.id.goog%3Ahttps%3A%2F%2Fcontainer.googleapis.com%2Fv1%2F\
             projects%2Fmy-project%2Flocations%2Feurope-west1%2Fclusters%2Fc1&"
        ),
        "{exchange}"
    );
    assert!(
        exchange.contains("subject_token=token+for+my-project.svc.id.goog"),
        "{exchange}"
    );
    assert!(!exchange.contains("userinfo"), "{exchange}");
    let become_other = &requests[7];
    let start = "POST https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/\
                 reader@my-project.iam.gserviceaccount.com:generateAccessToken\nauthorization: Bearer ya29\n";
    assert!(become_other.starts_with(start), "{become_other}");
}

#[tokio::test]
async fn the_key_of_a_service_account_signs_for_a_token() {
    let key = json!({
        "type": "service_account", "client_email": "a@b", "private_key_id": "kid", "private_key": RSA_PKCS8,
        "token_uri": "https://oauth2.example.com/token",
    });
    let key = AccountKey::parse(key.to_string().as_bytes()).unwrap();
    let world = World::new(&[], &[(200, GRANTED)]);
    let token = key.access_token("scope-1", world.session()).await.unwrap();
    assert_eq!(token.as_bearer(), Some("ya29"));
    let request = world.services.request();
    assert!(
        request.starts_with("POST https://oauth2.example.com/token\n"),
        "{request}"
    );
    assert!(
        request.contains("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=ey")
    );
}

#[tokio::test]
async fn what_is_not_configured_well_is_told() {
    let world = World::new(&[], &[]);
    let error = token(&account(&[(EMAIL_ANNOTATION, "x/../y")]), &world)
        .await
        .unwrap_err();
    assert!(
        error.contains("invalid iam.gke.io/gcp-service-account annotation: 'x/../y'"),
        "{error}"
    );
    let error = token(&account(&[]), &world).await.unwrap_err();
    let expected = "failed to get provider audience: failed to get GKE cluster project ID from the metadata service: \
                    failed to reach";
    assert!(error.starts_with(expected), "{error}");
    for (key, problem) in [
        ("{}", "it is no credential in JSON"),
        (
            r#"{"type":"external_account"}"#,
            "only credentials of type service_account are supported",
        ),
        (
            r#"{"type":"service_account"}"#,
            "client_email and private_key are required",
        ),
    ] {
        let error = AccountKey::parse(key.as_bytes()).err().unwrap().to_string();
        assert!(error.ends_with(problem), "{error}");
    }
}
