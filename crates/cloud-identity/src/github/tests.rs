use error_chain::chain;

use super::*;
use crate::fake::{RSA_PKCS1, World};

const GRANTED: &str = r#"{"token":"ghs_1","expires_at":"2013-05-24T01:00:00Z"}"#;

fn app(pairs: &[(&str, &str)]) -> Result<App, String> {
    let mut data: BTreeMap<String, Vec<u8>> = BTreeMap::from([
        (APP_ID.to_owned(), b"7".to_vec()),
        (PRIVATE_KEY.to_owned(), RSA_PKCS1.as_bytes().to_vec()),
    ]);
    data.extend(
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())),
    );
    App::from_secret(&data).map_err(|error| error.to_string())
}

#[tokio::test]
async fn an_installation_gives_a_token() {
    let world = World::new(&[], &[(201, GRANTED)]);
    let login = app(&[(INSTALLATION, "42\n")])
        .unwrap()
        .login(world.session())
        .await
        .unwrap();
    assert_eq!(login.as_login(), Some(("x-access-token", "ghs_1")));
    let request = world.services.request();
    assert!(
        request.starts_with(
            "POST https://api.github.com/app/installations/42/access_tokens\n\
             accept: application/vnd.github+json\nauthorization: Bearer ey"
        ),
        "{request}"
    );
    use base64::Engine as _;
    let claims = request.split('.').rev().nth(1).unwrap();
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(claims)
        .unwrap();
    assert_eq!(
        String::from_utf8(claims).unwrap(),
        r#"{"exp":1369353690,"iat":1369353570,"iss":"7"}"#
    );
}

#[tokio::test]
async fn an_owner_may_be_an_organisation_or_a_person() {
    let world = World::new(&[], &[(404, "{}"), (200, r#"{"id":42}"#), (201, GRANTED)]);
    let app = app(&[(OWNER, "stefan"), (BASE_URL, "https://ghe.example.com/api/v3")]).unwrap();
    app.login(world.session()).await.unwrap();
    let requests = world.services.requests();
    let lines: Vec<&str> = requests
        .iter()
        .map(|request| request.lines().next().unwrap())
        .collect();
    assert_eq!(
        lines,
        [
            "GET https://ghe.example.com/api/v3/orgs/stefan/installation",
            "GET https://ghe.example.com/api/v3/users/stefan/installation",
            "POST https://ghe.example.com/api/v3/app/installations/42/access_tokens",
        ]
    );
}

#[tokio::test]
async fn refusals_are_told_without_secrets() {
    let world = World::new(
        &[],
        &[(401, r#"{"message":"A JSON web token could not be decoded"}"#)],
    );
    let error = app(&[(INSTALLATION, "42")])
        .unwrap()
        .login(world.session())
        .await
        .unwrap_err();
    assert_eq!(
        chain(&error),
        "'https://api.github.com/app/installations/42/access_tokens' answered 401 Unauthorized: \
         A JSON web token could not be decoded"
    );
    let cases: [(&[(&str, &str)], &str); 5] = [
        (
            &[(APP_ID, "x")],
            "app ID must be provided to use github app authentication",
        ),
        (
            &[],
            "app installation owner or ID must be provided to use github app authentication",
        ),
        (
            &[(OWNER, "o"), (INSTALLATION, "1")],
            "only one of app installation owner or ID must be provided to use github app authentication",
        ),
        (
            &[(OWNER, "o"), (PRIVATE_KEY, "hunter2")],
            "could not parse private key: it must be an RSA key in PEM",
        ),
        (
            &[(OWNER, "o"), (BASE_URL, "file:///etc")],
            "invalid API URL in githubAppBaseURL",
        ),
    ];
    for (pairs, problem) in cases {
        assert_eq!(app(pairs).err().as_deref(), Some(problem));
    }
}
