//! Fetching from the real sshd.

use git_ssh::algorithms::Algorithms;
use git_ssh::identity::Identity;
use git_ssh::scan::scan;
use testkit::ForwardProxy;
use testkit::forward_proxy;
use testkit::git::{KeyPair, SshServer};

use super::*;
use crate::ssh;

pub(super) const OVER_V2: &[&str] = &["AcceptEnv GIT_PROTOCOL"];

/// A server with one repository, and a key that opens it.
pub(super) struct SshPeer {
    server: SshServer,
    pub(super) repository: Repository,
    key: KeyPair,
    directory: tempfile::TempDir,
}

impl SshPeer {
    pub(super) async fn start(configuration: &[&str]) -> Self {
        let server = SshServer::start(configuration).await.unwrap();
        let repository = server.create_repository("app").unwrap();
        let key = KeyPair::generate(&["-t", "ed25519"]).unwrap();
        server.authorize(&key.public).unwrap();
        Self {
            server,
            repository,
            key,
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn commit(&self, message: &str, path: &str, content: &str) -> String {
        self.repository
            .commit("main", message, &[Change::write(path, content)])
            .unwrap()
    }

    pub(super) fn request(&self, fields: Fields<'_>) -> Request {
        Request {
            remote: Remote {
                url: Url::parse(self.repository.url()).unwrap(),
                way: Way::Ssh(Box::new(ssh::Settings {
                    identity: self.key.private.clone().into(),
                    passphrase: None,
                    known_hosts: self.server.known_hosts().unwrap().into(),
                    algorithms: Algorithms::default(),
                    proxy: None,
                })),
            },
            reference: Reference::from_fields(fields),
            sparse: None,
            over: None,
            unless_revision: None,
            directory: self.directory.path().to_owned(),
            packs: git_pack::Settings::default(),
            stop: Stop::default(),
            deadline: Instant::now() + Duration::from_secs(60),
        }
    }

    async fn with(&self, change: impl FnOnce(&mut ssh::Settings)) -> Result<Seen, Error> {
        let mut request = self.request(MAIN);
        change(settings(&mut request));
        seen(request).await
    }

    /// Error of a fetch.
    async fn refusal(&self, change: impl FnOnce(&mut ssh::Settings)) -> String {
        error_chain::chain(&self.with(change).await.unwrap_err())
    }
}

fn settings(request: &mut Request) -> &mut ssh::Settings {
    match &mut request.remote.way {
        Way::Ssh(settings) => settings,
        Way::Http { .. } => panic!("the request is for ssh"),
    }
}

fn revision(seen: Seen) -> String {
    match seen {
        Seen::Unchanged(revision) | Seen::Fetched { revision, .. } => revision,
    }
}

#[tokio::test]
async fn what_the_server_sends_over_ssh_is_counted() {
    let peer = SshPeer::start(OVER_V2).await;
    peer.commit("large", "noise", &noise(100_000));
    let bytes = received(peer.request(MAIN)).await;
    assert!((50_000..150_000).contains(&bytes), "{bytes}");
}

#[tokio::test]
async fn over_a_known_commit_only_what_is_new_is_received() {
    for (configuration, is_rest) in [(OVER_V2, true), (&[], false)] {
        let peer = SshPeer::start(configuration).await;
        peer.commit("large", "noise", &noise(100_000));
        let Outcome::Fetched(known) = fetch(peer.request(MAIN)).await.unwrap() else {
            panic!("nothing is known yet");
        };
        peer.commit("small", "n", "1");
        let mut request = peer.request(MAIN);
        request.over = Some(known.pack.clone());
        let bytes = received(request).await;
        assert_eq!(bytes < 20_000, is_rest, "{bytes}");
    }
}

#[tokio::test]
async fn every_kind_of_reference_is_fetched_in_both_versions_of_the_protocol() {
    for configuration in [OVER_V2, &[]] {
        let peer = SshPeer::start(configuration).await;
        let one = peer.commit("one", "n", "1");
        let two = peer.commit("two", "n", "2");
        peer.repository.annotated_tag("v1.1.0", &one, "release").unwrap();
        peer.repository
            .git(&["update-ref", "refs/pull/1/head", &one])
            .unwrap();
        let none = Fields::default();
        let cases = [
            (MAIN, format!("main@sha1:{two}")),
            (
                Fields {
                    tag: Some("v1.1.0"),
                    ..none
                },
                format!("v1.1.0@sha1:{one}"),
            ),
            (
                Fields {
                    semver: Some("^1"),
                    ..none
                },
                format!("v1.1.0@sha1:{one}"),
            ),
            (
                Fields {
                    name: Some("refs/pull/1/head"),
                    ..none
                },
                format!("refs/pull/1/head@sha1:{one}"),
            ),
            (
                Fields {
                    commit: Some(&one),
                    ..none
                },
                format!("sha1:{one}"),
            ),
            (
                Fields {
                    commit: Some(&one),
                    branch: Some("main"),
                    ..none
                },
                format!("main@sha1:{one}"),
            ),
        ];
        for (fields, expected) in cases {
            let found = seen(peer.request(fields)).await.unwrap_or_else(|error| {
                panic!(
                    "{fields:?}: {}\n{}",
                    error_chain::chain(&error),
                    peer.server.log()
                )
            });
            let Seen::Fetched { revision, files, .. } = &found else {
                panic!("{found:?}")
            };
            let content = if expected.contains(&two) { "n 2" } else { "n 1" };
            assert_eq!((revision, files), (&expected, &vec![content.to_owned()]));
            let mut again = peer.request(fields);
            again.unless_revision = Some(expected.clone());
            assert_eq!(seen(again).await.unwrap(), Seen::Unchanged(expected));
        }
    }
}

#[tokio::test]
async fn one_signs_in_with_every_type_of_key() {
    let peer = SshPeer::start(OVER_V2).await;
    let head = peer.commit("one", "a", "1");
    let cases: [&[&str]; 6] = [
        &["-t", "ecdsa", "-b", "256"],
        &["-t", "ecdsa", "-b", "521"],
        &["-t", "rsa", "-b", "2048"],
        &["-t", "rsa", "-b", "3072", "-m", "PEM"],
        &["-t", "ecdsa", "-b", "384", "-m", "PKCS8"],
        &["-t", "ed25519", "-a", "4", "-N", "secret phrase"],
    ];
    for arguments in cases {
        let key = KeyPair::generate(arguments).unwrap();
        peer.server.authorize(&key.public).unwrap();
        let found = peer
            .with(|settings| {
                settings.identity = key.private.clone().into();
                settings.passphrase = Some("secret phrase".to_owned());
            })
            .await;
        let found = found.unwrap_or_else(|error| panic!("{arguments:?}: {}", error_chain::chain(&error)));
        assert_eq!(revision(found), format!("main@sha1:{head}"), "{arguments:?}");
    }
}

#[tokio::test]
async fn a_server_whose_key_is_not_known_is_refused_with_its_fingerprint() {
    let peer = SshPeer::start(OVER_V2).await;
    peer.commit("one", "a", "1");
    for type_ in ["ed25519", "ecdsa", "rsa"] {
        let known = peer.server.known_host(type_).unwrap();
        let found = peer.with(|settings| settings.known_hosts = known.into()).await;
        found.unwrap_or_else(|error| panic!("{type_}: {}", error_chain::chain(&error)));
    }
    let other = KeyPair::generate(&["-t", "ed25519"]).unwrap().public;
    let address = format!("[127.0.0.1]:{}", peer.server.port());

    let text = peer
        .refusal(|settings| settings.known_hosts = format!("other {other}").into())
        .await;
    assert!(
        text.starts_with("ssh: handshake failed: knownhosts: key is unknown: '127.0.0.1:"),
        "{text}"
    );
    assert!(text.contains("presented the ssh-ed25519 key SHA256:"), "{text}");

    let text = peer
        .refusal(|settings| settings.known_hosts = format!("{address} {other}").into())
        .await;
    assert!(
        text.starts_with("ssh: handshake failed: knownhosts: key mismatch: '127.0.0.1:"),
        "{text}"
    );

    let revoked = format!(
        "{}@revoked * {}",
        peer.server.known_hosts().unwrap(),
        peer.server.host_key("ed25519").unwrap()
    );
    let text = peer
        .refusal(|settings| settings.known_hosts = revoked.into())
        .await;
    assert!(
        text.starts_with("ssh: handshake failed: knownhosts: key is revoked: "),
        "{text}"
    );

    let text = peer
        .refusal(|settings| settings.known_hosts = "what?".into())
        .await;
    assert_eq!(
        text,
        "unable to construct auth method with options: knownhosts: failed to read line 1: it has no key type"
    );
    assert!(!peer.server.log().contains("Accepted publickey for nobody"));
}

#[tokio::test]
async fn a_key_that_does_not_open_is_told_by_its_fingerprint() {
    let peer = SshPeer::start(OVER_V2).await;
    peer.commit("one", "a", "1");
    for arguments in [["-t", "ed25519"], ["-t", "rsa"]] {
        let other = KeyPair::generate(&arguments).unwrap();
        let text = peer
            .refusal(|settings| settings.identity = other.private.into())
            .await;
        assert!(
            text.starts_with(
                "ssh: handshake failed: ssh: unable to authenticate: the server does not accept the ssh-"
            ),
            "{text}"
        );
        assert!(
            text.contains("key SHA256:") && text.ends_with(&format!("for user '{}'", peer.server.user())),
            "{text}"
        );
    }
    let protected = KeyPair::generate(&["-t", "ed25519", "-a", "4", "-N", "p"]).unwrap();
    let text = peer
        .refusal(|settings| {
            settings.identity = protected.private.into();
            settings.passphrase = Some("wrong".to_owned());
        })
        .await;
    assert!(
        text.starts_with("unable to construct auth method with options: x509: decryption password incorrect"),
        "{text}"
    );
    let text = peer
        .refusal(|settings| settings.identity = "nothing".into())
        .await;
    assert!(
        text.starts_with("unable to construct auth method with options: ssh: no key found"),
        "{text}"
    );
}

#[tokio::test]
async fn what_the_server_does_not_have_is_told_apart() {
    for configuration in [OVER_V2, &[]] {
        let peer = SshPeer::start(configuration).await;
        let error = seen(peer.request(MAIN)).await.unwrap_err();
        assert!(
            matches!(error, Error::EmptyRepository),
            "{}",
            error_chain::chain(&error)
        );
        peer.commit("one", "a", "1");
        let gone = Fields {
            branch: Some("gone"),
            ..Fields::default()
        };
        let error = seen(peer.request(gone)).await.unwrap_err();
        assert_eq!(
            error_chain::chain(&error),
            "couldn't find remote ref 'refs/heads/gone'; there is: main"
        );
        let commit = Some("0123456789012345678901234567890123456789");
        let error = seen(peer.request(Fields {
            commit,
            ..Fields::default()
        }))
        .await
        .unwrap_err();
        assert!(
            matches!(error, Error::FindCommit { .. }),
            "{}",
            error_chain::chain(&error)
        );

        let mut request = peer.request(MAIN);
        request.remote.url = Url::parse(&peer.server.url("nowhere")).unwrap();
        let text = error_chain::chain(&seen(request).await.unwrap_err());
        assert!(text.starts_with("repository not found: "), "{text}");
        assert!(text.contains("does not appear to be a git repository"), "{text}");
    }
    let refusing = SshPeer::start(&["ForceCommand echo no entry >&2; exit 3"]).await;
    let text = refusing.refusal(|_| {}).await;
    assert_eq!(text, "the server does not run git-upload-pack: no entry");

    let mut request = refusing.request(MAIN);
    let port = testkit::ports::free_port().unwrap();
    request.remote.url = Url::parse(&format!("ssh://git@127.0.0.1:{port}/app.git")).unwrap();
    let text = error_chain::chain(&seen(request).await.unwrap_err());
    assert!(
        text.starts_with(&format!(
            "repository is unreachable: failed to reach '127.0.0.1:{port}': connection refused: "
        )),
        "{text}"
    );
    let mut request = refusing.request(MAIN);
    request.remote.url = Url::parse("ssh://git@windlass-test.invalid/app.git").unwrap();
    let text = error_chain::chain(&seen(request).await.unwrap_err());
    assert!(
        text.contains("no such host") || text.contains("name resolution"),
        "{text}"
    );
}

#[tokio::test]
async fn the_flags_choose_the_algorithms() {
    let peer = SshPeer::start(&[
        "AcceptEnv GIT_PROTOCOL",
        "KexAlgorithms diffie-hellman-group14-sha256",
    ])
    .await;
    peer.commit("one", "a", "1");
    peer.with(|_| {}).await.unwrap();
    let only = |kex: &str, host_key: &str| {
        let list = |name: &str| {
            Some(name.to_owned())
                .filter(|name| !name.is_empty())
                .into_iter()
                .collect::<Vec<_>>()
        };
        Algorithms::new(&list(kex), &list(host_key)).unwrap()
    };
    let text = peer
        .refusal(|settings| settings.algorithms = only("curve25519-sha256", ""))
        .await;
    assert!(text.contains("no common algorithm for key exchange"), "{text}");
    assert!(
        text.contains("peer offered: [diffie-hellman-group14-sha256"),
        "{text}"
    );
    peer.with(|settings| settings.algorithms = only("", "rsa-sha2-256"))
        .await
        .unwrap();
    let known = peer.server.known_host("ed25519").unwrap();
    let text = peer
        .refusal(|settings| {
            settings.algorithms = only("", "rsa-sha2-256");
            settings.known_hosts = known.into();
        })
        .await;
    assert!(
        text.contains("knownhosts: key mismatch") && text.contains("ssh-rsa key"),
        "{text}"
    );
}

#[tokio::test]
async fn proxies_lead_to_the_server() {
    let peer = SshPeer::start(OVER_V2).await;
    peer.commit("one", "a", "1");
    for kind in [forward_proxy::Kind::Socks5, forward_proxy::Kind::Http] {
        for credentials in [None, Some(("user", "secret-word"))] {
            let proxy = ForwardProxy::start(kind, credentials).await.unwrap();
            let through = |given: Option<(&str, &str)>| git_ssh::Proxy {
                address: proxy.url(),
                credentials: given.map(|(user, password)| (user.to_owned(), password.to_owned())),
            };
            peer.with(|settings| settings.proxy = Some(through(credentials)))
                .await
                .unwrap();
            assert_eq!(proxy.passed(), 1);
            if credentials.is_some() {
                let text = peer
                    .refusal(|settings| settings.proxy = Some(through(Some(("user", "wrong")))))
                    .await;
                assert!(
                    text.contains("through the proxy '127.0.0.1:") && !text.contains("wrong"),
                    "{text}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_silent_or_senseless_server_does_not_hold_the_fetch() {
    let peer = SshPeer::start(OVER_V2).await;
    peer.commit("one", "a", "1");
    let talks: [&[u8]; 4] = [
        b"",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"SSH-2.0-x\r\n\xff\xff\xff\xff\xff\xff",
        &[b'x'; 300_000],
    ];
    for (index, talk) in talks.into_iter().enumerate() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, talk).await;
            std::future::pending::<()>().await;
        });
        let mut request = peer.request(MAIN);
        request.remote.url = Url::parse(&format!("ssh://git@127.0.0.1:{port}/app.git")).unwrap();
        request.deadline = Instant::now() + Duration::from_millis(700);
        let start = std::time::Instant::now();
        let text = error_chain::chain(&seen(request).await.unwrap_err());
        assert!(start.elapsed() < Duration::from_secs(5), "{index}: {text}");
        assert!(
            text.contains("time") || text.starts_with("ssh: handshake failed"),
            "{index}: {text}"
        );
    }
}

#[tokio::test]
async fn a_key_that_is_made_and_host_keys_that_are_read_open_a_repository() {
    let peer = SshPeer::start(OVER_V2).await;
    let commit = peer.commit("first", "a", "1");
    let url = Url::parse(peer.repository.url()).unwrap();
    let (host, port) = (url.host_str().unwrap(), url.port().unwrap());
    let keys = scan(host, port, Instant::now() + Duration::from_secs(30))
        .await
        .unwrap();
    let types: Vec<_> = keys.iter().map(|key| key.key_type.as_str()).collect();
    assert_eq!(types, ["ssh-ed25519", "ecdsa-sha2-nistp256", "ssh-rsa"]);
    assert!(keys.iter().all(|key| key.fingerprint.starts_with("SHA256:")));

    let key = Identity::generate().unwrap();
    peer.server
        .authorize(&format!("{} made", key.public().unwrap()))
        .unwrap();
    for known in &keys {
        let mut request = peer.request(MAIN);
        request.remote.way = Way::Ssh(Box::new(ssh::Settings {
            identity: key.to_openssh().unwrap().as_bytes().to_vec(),
            passphrase: None,
            known_hosts: format!("{}\n", known.line).into_bytes(),
            algorithms: Algorithms::default(),
            proxy: None,
        }));
        match fetch(request).await.unwrap() {
            Outcome::Fetched(checkout) => assert_eq!(checkout.resolved.commit.to_string(), commit),
            Outcome::Unchanged(_) => panic!("nothing was known before"),
        }
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_has_no_host_keys() {
    let port = testkit::ports::free_port().unwrap();
    let error = scan("127.0.0.1", port, Instant::now() + Duration::from_secs(10)).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains(&format!("failed to reach '127.0.0.1:{port}'")),
        "{error}"
    );
}
