use error_chain::chain;

use super::*;
use crate::fake::{World, account};
use crate::identity::Identity;
use crate::provider::access_token;

const STS_ANSWER: &str = "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>\
    <AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>s3cret</SecretAccessKey><SessionToken>t0ken</SessionToken>\
    <Expiration>2013-05-24T01:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult>\
    </AssumeRoleWithWebIdentityResponse>";
const DOCUMENT: &str = r#"{"Code":"Success","AccessKeyId":"ASIA1","SecretAccessKey":"s3cret","Token":"t0ken",
    "Expiration":"2013-05-24T01:00:00Z"}"#;
const ROLE: &str = "arn:aws:iam::123456789012:role/reader";

fn in_region(region: &str) -> Access {
    Access {
        region: Some(region.to_owned()),
        sts_endpoint: None,
    }
}

async fn keys(access: &Access, identity: &Identity, world: &World) -> Result<Keys, String> {
    let token = access_token(access, identity, world.session()).await;
    token
        .map(|token| token.as_keys().unwrap().clone())
        .map_err(|error| chain(&error))
}

fn assert_temporary(keys: &Keys) {
    assert_eq!(keys.access_key_id, "ASIA1");
    assert_eq!(keys.secret_access_key, "s3cret");
    assert_eq!(keys.session_token.as_deref(), Some("t0ken"));
}

#[tokio::test]
async fn a_service_account_takes_on_the_role_of_its_annotation() {
    let world = World::new(&[], &[(200, STS_ANSWER)]);
    let identity = account(&[("eks.amazonaws.com/role-arn", ROLE)]);
    assert_temporary(&keys(&in_region("eu-west-1"), &identity, &world).await.unwrap());
    assert_eq!(
        world.services.request(),
        "POST https://sts.eu-west-1.amazonaws.com/\ncontent-type: application/x-www-form-urlencoded\n\
         Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Freader\
         &RoleSessionName=fetcher.apps.eu-west-1.fluxcd.io&WebIdentityToken=token+for+sts.amazonaws.com"
    );
}

#[tokio::test]
async fn the_controller_finds_its_keys_in_the_order_of_the_sdks() {
    let folder = std::env::temp_dir().join(format!("cloud-identity-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("token");
    std::fs::write(&file, "projected\n").unwrap();
    let file = file.to_str().unwrap();

    let world = World::new(
        &[("AWS_ACCESS_KEY_ID", "AKIA"), ("AWS_SECRET_ACCESS_KEY", "s")],
        &[],
    );
    let found = keys(&in_region("eu-west-1"), &Identity::Controller, &world)
        .await
        .unwrap();
    assert_eq!(
        (found.access_key_id.as_str(), found.session_token),
        ("AKIA", None)
    );

    let web = [
        ("AWS_REGION", "cn-north-1"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", file),
        ("AWS_ROLE_ARN", ROLE),
    ];
    let world = World::new(&web, &[(200, STS_ANSWER)]);
    assert_temporary(
        &keys(&Access::default(), &Identity::Controller, &world)
            .await
            .unwrap(),
    );
    let request = world.services.request();
    assert!(
        request.starts_with("POST https://sts.cn-north-1.amazonaws.com.cn/\n"),
        "{request}"
    );
    assert!(request.ends_with("&WebIdentityToken=projected"), "{request}");

    let pod = [
        (
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "http://169.254.170.23/v1/credentials",
        ),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file),
    ];
    let world = World::new(&pod, &[(200, DOCUMENT)]);
    assert_temporary(
        &keys(&in_region("x"), &Identity::Controller, &world)
            .await
            .unwrap(),
    );
    assert_eq!(
        world.services.request(),
        "GET http://169.254.170.23/v1/credentials (local)\nauthorization: projected"
    );
    let ecs = [("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/x")];
    let world = World::new(&ecs, &[(200, DOCUMENT)]);
    assert_temporary(
        &keys(&in_region("x"), &Identity::Controller, &world)
            .await
            .unwrap(),
    );
    assert_eq!(
        world.services.request(),
        "GET http://169.254.170.2/v2/credentials/x (local)"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn the_instance_is_asked_with_a_session_of_its_metadata() {
    let world = World::new(&[], &[(200, "pass"), (200, "role-1"), (200, DOCUMENT)]);
    assert_temporary(
        &keys(&in_region("x"), &Identity::Controller, &world)
            .await
            .unwrap(),
    );
    let base = "http://169.254.169.254/latest";
    assert_eq!(
        world.services.requests(),
        [
            format!("PUT {base}/api/token (local)\nx-aws-ec2-metadata-token-ttl-seconds: 21600"),
            format!("GET {base}/meta-data/iam/security-credentials/ (local)\nx-aws-ec2-metadata-token: pass"),
            format!(
                "GET {base}/meta-data/iam/security-credentials/role-1 (local)\nx-aws-ec2-metadata-token: pass"
            ),
        ]
    );
}

#[tokio::test]
async fn what_is_not_configured_well_is_told() {
    let full = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://evil.example.com/")];
    let at = |endpoint: &str| Access {
        region: Some("eu-west-1".to_owned()),
        sts_endpoint: Some(endpoint.to_owned()),
    };
    let theirs = at("https://sts.evil.example.com");
    let role = account(&[("eks.amazonaws.com/role-arn", ROLE)]);
    let world = |variables| {
        World::new(
            variables,
            &[(403, "<E><Code>AccessDenied</Code><Message>no</Message></E>")],
        )
    };
    let cases = [
        (
            keys(&Access::default(), &Identity::Controller, &world(&[])).await,
            "failed to create provider access token for the controller: AWS_REGION environment variable is not set",
        ),
        (
            keys(&in_region("x"), &Identity::Controller, &world(&full)).await,
            "AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or lead to this machine",
        ),
        (
            keys(&theirs, &role, &world(&[])).await,
            "invalid STS endpoint: 'https://sts.evil.example.com'",
        ),
        (
            keys(
                &at("https://evil.example.com/x.sts.amazonaws.com"),
                &role,
                &world(&[]),
            )
            .await,
            "invalid STS endpoint: 'https://evil.example.com/x.sts.amazonaws.com'",
        ),
        (
            keys(
                &at("https://evil.example.com?.sts.amazonaws.com"),
                &Identity::Controller,
                &world(&[]),
            )
            .await,
            "invalid STS endpoint: ",
        ),
        (
            keys(&at("https://sts.evil/x.amazonaws.com"), &role, &world(&[])).await,
            "invalid STS endpoint: ",
        ),
        (
            keys(
                &at("https://evil.example.com#.sts.amazonaws.com"),
                &role,
                &world(&[]),
            )
            .await,
            "invalid STS endpoint: ",
        ),
        (
            keys(
                &at("https://sts.amazonaws.com@evil.example.com/.sts.amazonaws.com"),
                &role,
                &world(&[]),
            )
            .await,
            "invalid STS endpoint: ",
        ),
        (
            keys(
                &at("https://vpce-1.sts.eu-west-1.vpce.amazonaws.com"),
                &role,
                &world(&[]),
            )
            .await,
            "'https://vpce-1.sts.eu-west-1.vpce.amazonaws.com/' answered 403 Forbidden",
        ),
        (
            keys(&Access::default(), &role, &world(&[])).await,
            "an AWS region is required",
        ),
        (
            keys(&in_region("a.b/c"), &role, &world(&[])).await,
            "invalid AWS region 'a.b/c'",
        ),
        (
            keys(&in_region("x"), &account(&[]), &world(&[])).await,
            "service account 'apps/fetcher': invalid eks.amazonaws.com/role-arn annotation: ''. must match ^arn:",
        ),
        (
            keys(&in_region("x"), &role, &world(&[])).await,
            "'https://sts.x.amazonaws.com/' answered 403 Forbidden: AccessDenied: no",
        ),
    ];
    for (found, expected) in cases {
        let error = found.unwrap_err();
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("token for sts"), "{error}");
    }
}
