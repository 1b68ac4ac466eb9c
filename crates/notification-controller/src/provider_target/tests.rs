use serde_json::{Value, json};

use super::*;

fn data(pairs: &[(&str, &str)]) -> Data {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec()))
        .collect()
}

fn target_of(spec: Value, secrets: Secrets) -> Result<Target, String> {
    let metadata = json!({"name": "p", "namespace": "apps", "uid": "1-2"});
    let provider: Provider = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap();
    target(&provider, secrets, &Policy::default())
}

fn with_secret(spec: Value, pairs: &[(&str, &str)]) -> Result<Target, String> {
    let auth = Some(data(pairs));
    target_of(
        spec,
        Secrets {
            auth,
            ..Secrets::default()
        },
    )
}

#[test]
fn the_secret_is_over_the_spec() {
    let spec = json!({"type": "slack", "address": "https://a", "channel": "c", "username": "u", "proxy": "http://p"});
    let plain = target_of(spec.clone(), Secrets::default()).unwrap();
    assert_eq!(
        (plain.address.as_str(), plain.channel.as_str()),
        ("https://a", "c")
    );
    assert_eq!(
        (plain.username.as_str(), plain.proxy.as_deref()),
        ("u", Some("http://p"))
    );
    assert_eq!(
        (plain.provider.namespace.as_str(), plain.provider.uid.as_str()),
        ("apps", "1-2")
    );
    let pairs = [
        ("address", " https://b \n"),
        ("token", "t"),
        ("username", "v"),
        ("password", "w"),
        ("proxy", " http://q "),
        ("headers", "X-One: a\nX-Two: \"2\"\n"),
    ];
    let target = with_secret(spec, &pairs).unwrap();
    assert_eq!(
        (target.address.as_str(), target.token.as_str()),
        ("https://b", "t")
    );
    assert_eq!((target.username.as_str(), target.password.as_str()), ("v", "w"));
    assert_eq!(target.proxy.as_deref(), Some("http://q"));
    assert_eq!(json!(target.headers), json!({"X-One": "a", "X-Two": "2"}));
    assert_eq!(target.secret.len(), 6);
}

#[test]
fn a_proxy_may_have_a_secret_of_its_own() {
    let proxied = |pairs: &[(&str, &str)]| {
        let proxy = Some(("apps/proxy".to_owned(), data(pairs)));
        let secrets = Secrets {
            proxy,
            ..Secrets::default()
        };
        target_of(json!({"type": "slack", "proxy": "http://old"}), secrets)
            .map(|target| target.proxy.unwrap())
    };
    assert_eq!(
        proxied(&[("address", "http://p:3128")]).unwrap(),
        "http://p:3128/"
    );
    let pairs = [
        ("address", "socks5://p:1080"),
        ("username", "u"),
        ("password", "p@ss"),
    ];
    assert_eq!(proxied(&pairs).unwrap(), "socks5://u:p%40ss@p:1080");
    for (pairs, problem) in [
        (&[][..], "key 'address' not found"),
        (&[("address", "")], "proxy address is empty"),
        (
            &[("address", "ftp://p")],
            "supported schemes (http, https, socks5), got 'ftp'",
        ),
    ] {
        let error = proxied(pairs).unwrap_err();
        assert!(
            error.starts_with("failed to get proxy URL: secret 'apps/proxy'") && error.contains(problem),
            "{error}"
        );
    }
}

#[test]
fn certificates_have_a_secret_of_their_own_or_for_git_services_that_of_the_token() {
    let certified = |type_: &str, pairs: &[(&str, &str)]| {
        let certificates = Some(data(pairs));
        target_of(
            json!({"type": type_}),
            Secrets {
                certificates,
                ..Secrets::default()
            },
        )
        .map(|target| target.tls)
    };
    let tls = certified("slack", &[("ca.crt", "a"), ("tls.crt", "b"), ("tls.key", "c")])
        .unwrap()
        .unwrap();
    assert_eq!(tls.ca.unwrap(), b"a");
    assert_eq!(tls.certificate.unwrap(), (b"b".to_vec(), b"c".to_vec()));
    let tls = certified("slack", &[("caFile", "a")]).unwrap().unwrap();
    assert_eq!(tls.ca.unwrap(), b"a");
    assert!(certified("slack", &[("tls.crt", "b")]).is_err() && certified("slack", &[]).is_err());
    assert!(
        with_secret(json!({"type": "github"}), &[("ca.crt", "a")])
            .unwrap()
            .tls
            .is_some()
    );
    assert!(
        with_secret(json!({"type": "slack"}), &[("ca.crt", "a")])
            .unwrap()
            .tls
            .is_none()
    );
}

#[test]
fn certificates_for_a_github_app_may_be_beside_its_key() {
    let has_tls = |pairs: &[(&str, &str)]| {
        let target = with_secret(json!({"type": "githubdispatch"}), pairs).unwrap();
        target.tls.is_some()
    };
    assert!(has_tls(&[("ca.crt", "a"), ("githubAppID", "1")]));
    assert!(!has_tls(&[("ca.crt", "a"), ("token", "t")]));
}

#[test]
fn what_is_wrong_is_told_without_the_secret() {
    let long = "x".repeat(2049);
    let error = with_secret(json!({"type": "slack"}), &[("address", &long)]).unwrap_err();
    assert_eq!(
        error,
        "invalid address in secret: address exceeds maximum length of 2048 bytes"
    );
    for headers in ["Authorization: [hidden", "- hidden", "a: {b: hidden}"] {
        let error = with_secret(json!({"type": "generic"}), &[("headers", headers)]).unwrap_err();
        assert!(
            error.starts_with("failed to read headers from secret") && !error.contains("hidden"),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_does_not_answer_is_not_waited_for() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let client = Client::try_from(kube::Config::new(address.parse().unwrap())).unwrap();
    let provider = json!({
        "metadata": {"name": "p", "namespace": "apps"},
        "spec": {"type": "slack", "secretRef": {"name": "s"}, "proxySecretRef": {"name": "t"}},
    });
    let provider: Provider = serde_json::from_value(provider).unwrap();
    let begun = tokio::time::Instant::now();
    let error = read(&client, &provider, &Policy::default()).await.unwrap_err();
    assert!(begun.elapsed() <= READ_TIMEOUT + Duration::from_secs(1));
    assert_eq!(
        error,
        "failed to get its secrets: the API server takes longer than 15s"
    );
}
