use error_chain::chain;

use super::*;
use crate::fake::World;

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

#[tokio::test]
async fn azure_dev_ops_takes_a_bearer_token_and_nobody_else_gets_one() {
    let granted = r#"{"access_token":"eyJ0","expires_in":"3599"}"#;
    let world = World::new(&[], &[(200, granted)]);
    let session = world.session();
    let token = azure_dev_ops(
        &url("https://dev.azure.com/o/p/_git/r"),
        &Identity::Controller,
        session,
    )
    .await;
    assert_eq!(token.unwrap().as_bearer(), Some("eyJ0"));
    assert!(
        world
            .services
            .request()
            .contains("resource=499b84ac-1321-427f-aa17-267ca6975798")
    );
    for other in [
        "https://evil.example.com/r",
        "http://dev.azure.com/r",
        "https://dev.azure.com.evil.example/r",
    ] {
        let error = azure_dev_ops(&url(other), &Identity::Controller, session)
            .await
            .unwrap_err();
        assert!(
            chain(&error).starts_with("invalid Azure DevOps Git URL: "),
            "{error}"
        );
    }
    assert_eq!(world.services.requests().len(), 1);
}

/// The expected form follows AWS's Git credential helper: time and signature, over method GIT, path and host.
#[tokio::test]
async fn code_commit_takes_a_signature_of_the_url() {
    let variables = [
        ("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE"),
        (
            "AWS_SECRET_ACCESS_KEY",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        ),
        ("AWS_SESSION_TOKEN", "session"),
    ];
    let world = World::new(&variables, &[]);
    let repository = url("https://git-codecommit.eu-west-1.amazonaws.com/v1/repos/app");
    let token = code_commit(&repository, &Identity::Controller, world.session())
        .await
        .unwrap();
    let (username, password) = token.as_login().unwrap();
    assert_eq!(username, "AKIAIOSFODNN7EXAMPLE%session");
    let (stamp, signature) = password.split_once('Z').unwrap();
    assert_eq!((stamp, signature.len()), ("20130524T000000", 64));
    for (other, problem) in [
        (
            "http://git-codecommit.eu-west-1.amazonaws.com/v1/repos/app",
            "requires an HTTPS Git URL",
        ),
        (
            "https://git-codecommit.eu-west-1.amazonaws.com.evil.example/r",
            "invalid AWS CodeCommit Git URL",
        ),
        (
            "https://git-codecommit.a.b.amazonaws.com/r",
            "invalid AWS CodeCommit Git URL",
        ),
    ] {
        let error = code_commit(&url(other), &Identity::Controller, world.session())
            .await
            .unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
}
