//! Fetching from the real `git http-backend`.

mod https;
mod partial;
mod push;
mod ssh;

use std::time::Duration;

use reqwest::header::HeaderValue;
use testkit::GitServer;
use testkit::git::{Access, Change, Counts, Fault, Repository};
use tokio::time::Instant;
use transport::http::{self, Clients};
use transport::stop::Stop;
use url::Url;

use super::reference::Fields;
use super::*;

/// A server with one repository, and a way to fetch from it.
struct Peer {
    server: GitServer,
    repository: Repository,
    clients: Clients,
    directory: tempfile::TempDir,
}

/// Result of a fetch, as text.
#[derive(Debug, PartialEq)]
enum Seen {
    Unchanged(String),
    Fetched {
        revision: String,
        subject: String,
        files: Vec<String>,
    },
}

impl Peer {
    async fn start() -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let server = GitServer::start().await.unwrap();
        let repository = server.create_repository("app").unwrap();
        Self {
            server,
            repository,
            clients: Clients::default(),
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn commit(&self, message: &str, path: &str, content: &str) -> String {
        self.repository
            .commit("main", message, &[Change::write(path, content)])
            .unwrap()
    }

    fn request(&self, fields: Fields<'_>, known: Option<&str>) -> Request {
        Request {
            remote: Remote {
                url: Url::parse(self.repository.url()).unwrap(),
                way: Way::Http {
                    client: self
                        .clients
                        .get(&http::Settings::default().towards("127.0.0.1"))
                        .unwrap(),
                    authorization: None,
                },
            },
            reference: Reference::from_fields(fields),
            sparse: None,
            unless_revision: known.map(str::to_owned),
            over: None,
            directory: self.directory.path().to_owned(),
            packs: git_pack::Settings::default(),
            stop: Stop::default(),
            deadline: Instant::now() + Duration::from_secs(30),
        }
    }

    async fn fetch(&self, fields: Fields<'_>, known: Option<&str>) -> Result<Seen, Error> {
        seen(self.request(fields, known)).await
    }

    fn requests(&self) -> Counts {
        self.server.counts("app")
    }
}

fn authorize(request: &mut Request, header: Option<HeaderValue>) {
    if let Way::Http { authorization, .. } = &mut request.remote.way {
        *authorization = header;
    }
}

async fn seen(request: Request) -> Result<Seen, Error> {
    let directory = request.directory.clone();
    let seen = match fetch(request).await? {
        Outcome::Unchanged(resolved) => Seen::Unchanged(resolved.revision),
        Outcome::Fetched(checkout) => {
            let files = files(&checkout.pack)?;
            Seen::Fetched {
                revision: checkout.resolved.revision,
                subject: checkout.subject,
                files,
            }
        }
    };
    let left: Vec<_> = std::fs::read_dir(directory).unwrap().collect();
    assert!(left.is_empty(), "temporary packs are gone: {left:?}");
    Ok(seen)
}

/// One line for each entry: path, kind, content.
fn files(pack: &Pack) -> Result<Vec<String>, pack::Error> {
    let mut lines = Vec::new();
    let mut content = Vec::new();
    pack.walk(|entry| {
        let mark = match entry.kind {
            pack::Node::Directory => "/",
            pack::Node::File { executable: true } => "*",
            pack::Node::Symlink => "@",
            pack::Node::Submodule => "^",
            pack::Node::File { executable: false } => "",
        };
        let mut line = format!("{}{mark}", entry.path);
        if !matches!(entry.kind, pack::Node::Directory | pack::Node::Submodule) {
            pack.read_blob(entry.id, 1 << 20, &mut content)?;
            line = format!("{line} {}", String::from_utf8_lossy(&content));
        }
        lines.push(line);
        Ok::<_, pack::Error>(true)
    })?;
    Ok(lines)
}

const MAIN: Fields<'static> = Fields {
    branch: Some("main"),
    tag: None,
    semver: None,
    name: None,
    commit: None,
};

/// Text that does not get smaller by compression to less than half.
fn noise(bytes: usize) -> String {
    let digests =
        (0..bytes / 64).map(|number| artifact::Digest::from_content(number.to_string().as_bytes()).hex());
    digests.collect()
}

/// Bytes that are counted for a kind while the content of a request is fetched.
async fn received(request: Request) -> u64 {
    let counter = prometheus_client::metrics::counter::Counter::default();
    let fetched = transport::received::counting(counter.clone(), fetch(request)).await;
    assert!(matches!(fetched, Ok(Outcome::Fetched(_))));
    counter.get()
}

#[tokio::test]
async fn what_the_server_sends_is_counted() {
    let peer = Peer::start().await;
    peer.commit("large", "noise", &noise(100_000));
    let bytes = received(peer.request(MAIN, None)).await;
    assert!((50_000..150_000).contains(&bytes), "{bytes}");
}

#[tokio::test]
async fn a_branch_is_fetched_with_one_ls_refs_and_one_fetch() {
    let peer = Peer::start().await;
    peer.commit("first", "gone", "x");
    let changes = [
        Change::write("deploy/app.yaml", "kind: A"),
        Change::write("deploy/b/c.yaml", "kind: B"),
        Change::WriteExecutable("run.sh".to_owned(), b"#!/bin/sh".to_vec()),
        Change::Link("link".to_owned(), "/etc/passwd".to_owned()),
        Change::delete("gone"),
    ];
    let head = peer
        .repository
        .commit("main", "Subject line\n\nBody", &changes)
        .unwrap();
    let expected = Seen::Fetched {
        revision: format!("main@sha1:{head}"),
        subject: "Subject line".to_owned(),
        files: [
            "deploy/",
            "deploy/app.yaml kind: A",
            "deploy/b/",
            "deploy/b/c.yaml kind: B",
            "link@ /etc/passwd",
            "run.sh* #!/bin/sh",
        ]
        .map(str::to_owned)
        .to_vec(),
    };
    assert_eq!(peer.fetch(MAIN, None).await.unwrap(), expected);
    assert_eq!(
        peer.requests(),
        Counts {
            info_refs: 1,
            ls_refs: 1,
            fetch: 1,
            push: 0,
            other: 0
        }
    );
}

#[tokio::test]
async fn an_unchanged_remote_is_asked_for_its_refs_and_nothing_else() {
    let peer = Peer::start().await;
    let head = peer.commit("one", "a", "1");
    let revision = format!("main@sha1:{head}");
    let same = Seen::Unchanged(revision.clone());
    for _ in 0..2 {
        assert_eq!(peer.fetch(MAIN, Some(&revision)).await.unwrap(), same);
    }
    assert_eq!(
        peer.requests(),
        Counts {
            info_refs: 2,
            ls_refs: 2,
            fetch: 0,
            push: 0,
            other: 0
        }
    );
    let head = peer.commit("two", "a", "2");
    let Seen::Fetched { revision, .. } = peer.fetch(MAIN, Some(&revision)).await.unwrap() else {
        panic!("a new commit is fetched")
    };
    assert_eq!(revision, format!("main@sha1:{head}"));
}

#[tokio::test]
async fn every_kind_of_reference_leads_to_its_commit() {
    let peer = Peer::start().await;
    let one = peer.commit("one", "n", "1");
    let two = peer.commit("two", "n", "2");
    let three = peer.commit("three", "n", "3");
    peer.repository.tag("v1.0.0", &one).unwrap();
    peer.repository.annotated_tag("v1.1.0", &two, "release").unwrap();
    peer.repository
        .git(&["update-ref", "refs/pull/1/head", &two])
        .unwrap();
    peer.repository.branch("feature/x", &one).unwrap();
    let none = Fields::default();
    let cases = [
        (
            Fields {
                branch: Some("feature/x"),
                ..none
            },
            format!("feature/x@sha1:{one}"),
            "1",
        ),
        (
            Fields {
                tag: Some("v1.0.0"),
                ..none
            },
            format!("v1.0.0@sha1:{one}"),
            "1",
        ),
        (
            Fields {
                tag: Some("v1.1.0"),
                ..none
            },
            format!("v1.1.0@sha1:{two}"),
            "2",
        ),
        (
            Fields {
                semver: Some("^1"),
                ..none
            },
            format!("v1.1.0@sha1:{two}"),
            "2",
        ),
        (
            Fields {
                name: Some("refs/pull/1/head"),
                ..none
            },
            format!("refs/pull/1/head@sha1:{two}"),
            "2",
        ),
        (
            Fields {
                name: Some("refs/tags/v1.1.0"),
                ..none
            },
            format!("refs/tags/v1.1.0@sha1:{two}"),
            "2",
        ),
        (
            Fields {
                commit: Some(&two),
                ..none
            },
            format!("sha1:{two}"),
            "2",
        ),
        (
            Fields {
                commit: Some(&one),
                branch: Some("main"),
                ..none
            },
            format!("main@sha1:{one}"),
            "1",
        ),
        (MAIN, format!("main@sha1:{three}"), "3"),
    ];
    for (fields, revision, content) in cases {
        let Seen::Fetched {
            revision: found,
            files,
            ..
        } = peer.fetch(fields, None).await.unwrap()
        else {
            panic!("{fields:?}")
        };
        assert_eq!(
            (found, files),
            (revision, vec![format!("n {content}")]),
            "{fields:?}"
        );
    }
}

#[tokio::test]
async fn what_is_absent_is_told_apart() {
    let peer = Peer::start().await;
    let error = peer.fetch(MAIN, None).await.unwrap_err();
    assert!(matches!(error, Error::EmptyRepository), "{error}");
    peer.commit("one", "a", "1");
    let branch = Fields {
        branch: Some("gone"),
        ..Fields::default()
    };
    let error = peer.fetch(branch, None).await.unwrap_err();
    assert_eq!(
        error_chain::chain(&error),
        "couldn't find remote ref 'refs/heads/gone'; there is: main"
    );
    peer.repository.tag("v1.0.0", "main").unwrap();
    peer.repository.tag("v1.0.1", "main").unwrap();
    let none = Fields::default();
    let cases = [
        (
            Fields {
                tag: Some("1.0.1"),
                ..none
            },
            "couldn't find remote ref 'refs/tags/1.0.1'; there is: v1.0.1, v1.0.0",
        ),
        (
            Fields {
                name: Some("refs/heads/mian"),
                ..none
            },
            "unable to resolve ref 'refs/heads/mian' to a specific commit; there is: main",
        ),
        (
            Fields {
                name: Some("refs/pull/7/head"),
                ..none
            },
            "unable to resolve ref 'refs/pull/7/head' to a specific commit; the repository has none of this kind",
        ),
        (
            Fields {
                semver: Some(">=2"),
                ..none
            },
            "no match found for semver: >=2 (nearest of 2 tags: v1.0.0, v1.0.1)",
        ),
        (
            Fields {
                commit: Some("abc123"),
                ..none
            },
            "failed to parse commit 'abc123': a commit is named by all of its 40 hexadecimal digits",
        ),
    ];
    for (fields, expected) in cases {
        assert_eq!(
            error_chain::chain(&peer.fetch(fields, None).await.unwrap_err()),
            expected
        );
    }
    let commit = Fields {
        commit: Some("0123456789012345678901234567890123456789"),
        ..Fields::default()
    };
    let error = peer.fetch(commit, None).await.unwrap_err();
    assert!(matches!(error, Error::FindCommit { .. }), "{error}");

    let mut request = peer.request(MAIN, None);
    request.remote.url = Url::parse(&peer.server.url("nowhere")).unwrap();
    let url = request.remote.url.to_string();
    let error = seen(request).await.unwrap_err();
    assert!(
        error_chain::chain(&error).starts_with("repository not found: '"),
        "{}",
        error_chain::chain(&error)
    );
    assert!(
        error_chain::chain(&error).contains(&url),
        "{}",
        error_chain::chain(&error)
    );

    let mut request = peer.request(MAIN, None);
    request.remote.url = Url::parse("http://127.0.0.1:1/app.git").unwrap();
    let error = seen(request).await.unwrap_err();
    assert!(
        error_chain::chain(&error).starts_with("repository is unreachable: failed to reach"),
        "{}",
        error_chain::chain(&error)
    );
    assert!(
        error_chain::chain(&error).contains("connection refused"),
        "{}",
        error_chain::chain(&error)
    );
}

#[tokio::test]
async fn credentials_are_sent_from_the_start_and_refusals_are_recognised() {
    let peer = Peer::start().await;
    peer.commit("one", "a", "1");
    let basic = Access::Basic {
        username: "u".to_owned(),
        password: "secret-p".to_owned(),
    };
    for (access, authorization) in [
        (basic, transport::auth::basic("u", "secret-p")),
        (
            Access::Bearer("secret-t".to_owned()),
            "Bearer secret-t".to_owned(),
        ),
    ] {
        peer.server.set_access("app", access);
        let mut request = peer.request(MAIN, None);
        authorize(&mut request, HeaderValue::from_str(&authorization).ok());
        assert!(matches!(seen(request).await.unwrap(), Seen::Fetched { .. }));
        assert!(peer.server.requests("app").iter().all(|request| request.allowed));
        peer.server.reset_requests();

        for wrong in [None, Some(HeaderValue::from_static("Basic c2VjcmV0LXdyb25n"))] {
            let mut request = peer.request(MAIN, None);
            authorize(&mut request, wrong);
            let error = seen(request).await.unwrap_err();
            assert!(error.is_unauthorized(), "{error}");
            let text = error_chain::chain(&error);
            assert!(text.starts_with("authentication required: '"), "{text}");
            assert!(text.contains("401") && !text.contains("secret-"), "{text}");
        }
        peer.server.reset_requests();
    }
}

#[tokio::test]
async fn a_silent_or_broken_server_does_not_hold_the_fetch() {
    let peer = Peer::start().await;
    peer.commit("one", "a", &"1234567890".repeat(10_000));
    let hurried = |milliseconds| {
        let mut request = peer.request(MAIN, None);
        request.deadline = Instant::now() + Duration::from_millis(milliseconds);
        request
    };
    peer.server.set_fault("app", Fault::Hang);
    let error = seen(hurried(200)).await.unwrap_err();
    assert!(
        error_chain::chain(&error).contains("time"),
        "{}",
        error_chain::chain(&error)
    );
    peer.server.set_fault("app", Fault::Status(503));
    let error = seen(hurried(5000)).await.unwrap_err();
    assert!(
        error_chain::chain(&error).starts_with("repository is unreachable: "),
        "{}",
        error_chain::chain(&error)
    );
    peer.server.set_fault("app", Fault::CutAnswer(100));
    let error = seen(hurried(5000)).await.unwrap_err();
    assert!(!error.is_unauthorized(), "{}", error_chain::chain(&error));
    peer.server.set_fault("app", None);
    assert!(matches!(
        seen(hurried(10_000)).await.unwrap(),
        Seen::Fetched { .. }
    ));
}

#[tokio::test]
async fn credentials_stay_with_the_server_that_they_are_for() {
    let peer = Peer::start().await;
    peer.commit("one", "a", "1");
    let target = peer.repository.url().to_owned();
    let router = axum::Router::new().fallback(move |uri: axum::http::Uri| {
        let tail = uri.path_and_query().map(ToString::to_string).unwrap_or_default();
        let tail = tail.trim_start_matches("/old.git").to_owned();
        let location = format!("{target}{tail}");
        async move { axum::response::Redirect::permanent(&location) }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });

    let redirected = |authorization: Option<&'static str>| {
        let mut request = peer.request(MAIN, None);
        request.remote.url = Url::parse(&format!("http://{address}/old.git")).unwrap();
        authorize(&mut request, authorization.map(HeaderValue::from_static));
        request
    };
    assert!(matches!(
        seen(redirected(None)).await.unwrap(),
        Seen::Fetched { .. }
    ));
    let basic = Access::Basic {
        username: "u".to_owned(),
        password: "p".to_owned(),
    };
    peer.server.set_access("app", basic);
    let error = seen(redirected(Some("Basic dTpw"))).await.unwrap_err();
    assert!(
        error.is_unauthorized(),
        "another server does not get them: {}",
        error_chain::chain(&error)
    );
}
