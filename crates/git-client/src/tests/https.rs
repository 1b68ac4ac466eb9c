//! Fetching over TLS with an own authority, with client certificates, and through proxies.

use testkit::forward_proxy::{ForwardProxy, Kind};
use testkit::tls_front::TlsFront;
use transport::auth::{SecretData, access};

use super::*;

/// A Git server behind TLS.
struct TlsPeer {
    peer: Peer,
    front: TlsFront,
}

impl TlsPeer {
    async fn start(wants_client: bool) -> Self {
        let peer = Peer::start().await;
        peer.commit("one", "a", "1");
        let front = TlsFront::start(peer.server.address(), wants_client)
            .await
            .unwrap();
        Self { peer, front }
    }

    fn url(&self) -> String {
        format!("https://127.0.0.1:{}/app.git", self.front.address().port())
    }

    async fn fetch(&self, secret: &[(&str, &str)], proxy: Option<http::Proxy>) -> Result<Seen, Error> {
        self.peer.fetch_from(&self.url(), secret, proxy).await
    }
}

impl Peer {
    async fn fetch_from(
        &self,
        url: &str,
        secret: &[(&str, &str)],
        proxy: Option<http::Proxy>,
    ) -> Result<Seen, Error> {
        let mut url = Url::parse(url).unwrap();
        let secret: SecretData = secret
            .iter()
            .map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec()))
            .collect();
        let access = access(&mut url, &secret).unwrap();
        let settings = http::Settings {
            proxy,
            ..access.settings
        };
        let mut request = self.request(MAIN, None);
        request.remote = Remote {
            way: Way::Http {
                client: self.clients.get(&settings.towards("127.0.0.1")).unwrap(),
                authorization: access.authorization,
            },
            url,
        };
        seen(request).await
    }
}

#[tokio::test]
async fn a_server_is_trusted_by_the_authority_of_the_secret() {
    let tls = TlsPeer::start(false).await;
    let authority = tls.front.authority();
    let text = error_chain::chain(&tls.fetch(&[], None).await.unwrap_err());
    assert!(
        text.contains("repository is unreachable") && text.to_lowercase().contains("certificate"),
        "{text}"
    );
    let basic = Access::Basic {
        username: "u".to_owned(),
        password: "p".to_owned(),
    };
    tls.peer.server.set_access("app", basic);
    for key in ["ca.crt", "caFile"] {
        let secret = [(key, authority), ("username", "u"), ("password", "p")];
        assert!(matches!(
            tls.fetch(&secret, None).await.unwrap(),
            Seen::Fetched { .. }
        ));
        let error = tls.fetch(&[(key, authority)], None).await.unwrap_err();
        assert!(error.is_unauthorized(), "{}", error_chain::chain(&error));
    }
    tls.peer.server.set_access("app", Access::Bearer("t".to_owned()));
    tls.fetch(&[("ca.crt", authority), ("bearerToken", "t")], None)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_client_certificate_is_shown_to_a_server_that_wants_one() {
    let tls = TlsPeer::start(true).await;
    let authority = tls.front.authority();
    let text = error_chain::chain(&tls.fetch(&[("ca.crt", authority)], None).await.unwrap_err());
    assert!(text.starts_with("repository is unreachable: "), "{text}");
    let client = tls.front.client();
    let secret = [
        ("ca.crt", authority),
        ("tls.crt", &client.certificate),
        ("tls.key", &client.key),
    ];
    assert!(matches!(
        tls.fetch(&secret, None).await.unwrap(),
        Seen::Fetched { .. }
    ));
    let other = TlsFront::start(tls.peer.server.address(), false).await.unwrap();
    let wrong = other.client();
    let secret = [
        ("ca.crt", authority),
        ("tls.crt", &wrong.certificate),
        ("tls.key", &wrong.key),
    ];
    assert!(tls.fetch(&secret, None).await.is_err());
}

#[tokio::test]
async fn proxies_lead_to_https_and_http_servers() {
    let tls = TlsPeer::start(false).await;
    let secret = [("ca.crt", tls.front.authority())];
    for kind in [Kind::Http, Kind::Socks5] {
        for credentials in [None, Some(("user", "secret-word"))] {
            let proxy = ForwardProxy::start(kind, credentials).await.unwrap();
            let through = |given: Option<(&str, &str)>| {
                Some(http::Proxy {
                    address: proxy.url(),
                    credentials: given.map(|(user, password)| (user.to_owned(), password.to_owned())),
                })
            };
            let found = tls.fetch(&secret, through(credentials)).await;
            found.unwrap_or_else(|error| panic!("{kind:?} {credentials:?}: {}", error_chain::chain(&error)));
            assert!(proxy.passed() > 0, "{kind:?}");
            let before = proxy.passed();
            let plain = tls.peer.repository.url().to_owned();
            let found = tls.peer.fetch_from(&plain, &[], through(credentials)).await;
            found.unwrap_or_else(|error| {
                panic!("{kind:?} {credentials:?} http: {}", error_chain::chain(&error))
            });
            assert!(proxy.passed() > before, "{kind:?}");
            if credentials.is_some() {
                let error = tls
                    .fetch(&secret, through(Some(("user", "wrong-word"))))
                    .await
                    .unwrap_err();
                let text = error_chain::chain(&error);
                assert!(!text.contains("word"), "{text}");
            }
        }
    }
}
