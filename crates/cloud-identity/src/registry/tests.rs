use error_chain::chain;

use super::*;
use crate::fake::{World, account};

const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "AKIA"), ("AWS_SECRET_ACCESS_KEY", "s")];
const BEARER: &str = r#"{"access_token":"token-1","expires_in":3599}"#;

async fn check(cloud: Cloud, host: &str, world: &World) -> Result<(String, String), String> {
    let token = login(cloud, host, &Identity::Controller, world.session()).await;
    token
        .map(|token| {
            let (username, password) = token.as_login().unwrap();
            (username.to_owned(), password.to_owned())
        })
        .map_err(|error| chain(&error))
}

fn pair(username: &str, password: &str) -> (String, String) {
    (username.to_owned(), password.to_owned())
}

#[tokio::test]
async fn ecr_gives_a_login_for_a_signed_request() {
    let answer = r#"{"authorizationData":[{"authorizationToken":"QVdTOnB3","expiresAt":1369357200.5}]}"#;
    let world = World::new(&KEYS, &[(200, answer)]);
    let host = "123456789012.dkr.ecr.eu-west-1.amazonaws.com";
    assert_eq!(check(Cloud::Aws, host, &world).await.unwrap(), pair("AWS", "pw"));
    let request = world.services.request();
    assert!(
        request
            .starts_with("POST https://api.ecr.eu-west-1.amazonaws.com/\nauthorization: AWS4-HMAC-SHA256 ")
    );
    assert!(
        request.contains("\nx-amz-target: AmazonEC2ContainerRegistry_V20150921.GetAuthorizationToken\n{}"),
        "{request}"
    );

    let answer =
        r#"{"authorizationData":{"authorizationToken":"QVdTOnB3","expiresAt":"2013-05-24T01:00:00Z"}}"#;
    let world = World::new(&KEYS, &[(200, answer)]);
    assert_eq!(
        check(Cloud::Aws, "public.ecr.aws", &world).await.unwrap(),
        pair("AWS", "pw")
    );
    let request = world.services.request();
    assert!(
        request.contains("SpencerFrontendService.GetAuthorizationToken"),
        "{request}"
    );
}

#[tokio::test]
async fn gar_takes_the_access_token_itself() {
    let world = World::new(&[], &[(200, BEARER)]);
    let login = check(Cloud::Gcp, "europe-docker.pkg.dev", &world).await.unwrap();
    assert_eq!(login, pair("oauth2accesstoken", "token-1"));
}

#[tokio::test]
async fn acr_exchanges_the_access_token() {
    let world = World::new(&[], &[(200, BEARER), (200, r#"{"refresh_token":"e30.e30.x"}"#)]);
    let login = check(Cloud::Azure, "app.azurecr.io", &world).await.unwrap();
    assert_eq!(login, pair(ACR_USERNAME, "e30.e30.x"));
    assert_eq!(
        world.services.requests()[1],
        "POST https://app.azurecr.io/oauth2/exchange\ncontent-type: application/x-www-form-urlencoded\n\
         grant_type=access_token&service=app.azurecr.io&access_token=token-1"
    );
}

#[tokio::test]
async fn registries_of_others_get_nothing() {
    let hosts = [
        (
            Cloud::Aws,
            "123.dkr.ecr.eu-west-1.amazonaws.com.evil.example.com",
            "AWS",
        ),
        (Cloud::Aws, "evil.example.com", "AWS"),
        (Cloud::Aws, "123.dkr.ecr.eu-west-1.amazonaws.com.cc", "AWS"),
        (Cloud::Aws, "123.dkr.ecr.eu-west-1.amazonaws.com.nc", "AWS"),
        (Cloud::Aws, "123.dkr.ecr.eu-west-1.amazonaws.comcn", "AWS"),
        (Cloud::Gcp, "gcr.io.evil.example.com", "GCP"),
        (Cloud::Azure, "app.azurecr.io.evil.example.com", "Azure"),
        (Cloud::Azure, "evil.example.com/x.azurecr.io", "Azure"),
    ];
    for (cloud, host, name) in hosts {
        let world = World::new(&KEYS, &[(200, BEARER), (200, BEARER)]);
        let error = check(cloud, host, &world).await.unwrap_err();
        assert!(
            error.starts_with(&format!("invalid {name} registry: '{host}'. must match ")),
            "{error}"
        );
        assert!(world.services.requests().is_empty());
    }
}

#[tokio::test]
async fn a_service_account_that_nobody_knows_is_told() {
    let world = World::new(&[], &[]);
    let error = login(Cloud::Azure, "app.azurecr.io", &account(&[]), world.session())
        .await
        .unwrap_err();
    let text = chain(&error);
    assert!(
        text.starts_with(
            "failed to get access token for artifact registry: failed to create provider access token for service \
             account 'apps/fetcher': azure tenant ID is not set"
        ),
        "{text}"
    );
}
