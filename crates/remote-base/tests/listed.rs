//! What builds of a controller fetch, from real servers: those of the list, within limits, and what is known is not received again.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, bail};
use kustomize_build::{Fetch as _, MemoryFs, Options, build_fetching};
use remote_base::{Listed, Session};
use testkit::git::{Access, Change, Fault, GitServer, Repository};
use testkit::helm_repository::HelmRepository;
use tokio::runtime::Handle;

fn map(value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{v: {value}}}\n")
}

fn listed(servers: &[&str]) -> Listed {
    // A second call finds it there.
    _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let hosts = servers.iter().map(|server| server.parse().expect("a server"));
    Listed::new(hosts.collect())
}

/// The build of a kustomization, and what was fetched for it.
async fn built(
    session: Session,
    kustomization: String,
) -> (Result<String, String>, BTreeMap<String, String>) {
    let done = tokio::task::spawn_blocking(move || {
        let mut tree = MemoryFs::default();
        tree.insert("kustomization.yaml", kustomization);
        let built = build_fetching(&tree, "", &Options::default(), &session);
        let built = built
            .map(|built| built.to_yaml())
            .map_err(|error| error.to_string());
        assert!(session.was_asked());
        (built, session.into_used())
    });
    done.await.expect("no panic")
}

async fn build(listed: &Listed, afresh: bool, kustomization: String) -> Result<String, String> {
    built(listed.session(Handle::current(), afresh), kustomization)
        .await
        .0
}

/// A server that answers each request with these lines of a head; and how many connections it had.
fn answering(head: String) -> Result<(SocketAddr, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let (address, count) = (listener.local_addr()?, Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&count);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            counted.fetch_add(1, Ordering::Relaxed);
            let Ok(mut connection) = connection else { return };
            let mut request = [0; 4096];
            _ = connection.read(&mut request);
            let answer = format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            _ = connection.write_all(answer.as_bytes());
        }
    });
    Ok((address, count))
}

fn repository(server: &GitServer, value: &str) -> Result<(Repository, String)> {
    let repository = server.create_repository("fleet")?;
    let files = [
        Change::write("kustomization.yaml", "resources: [map.yaml]\n"),
        Change::write("map.yaml", map(value)),
    ];
    let first = repository.commit("main", "first", &files)?;
    Ok((repository, first))
}

/// How often a server was asked for references and for objects. That there is no file behind the address is found out each time.
fn asked(server: &GitServer) -> (usize, usize) {
    let counts = server.counts("fleet");
    (counts.info_refs + counts.ls_refs, counts.fetch)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_commit_is_asked_about_and_not_received_again() -> Result<()> {
    let server = GitServer::start().await?;
    let (repository, first) = repository(&server, "one")?;
    let listed = listed(&[&format!("http://{}", server.address())]);
    let entry = |reference: &str| format!("resources: ['{}?ref={reference}']\n", repository.url());
    let session = || listed.session(Handle::current(), false);

    let (text, used) = built(session(), entry("main")).await;
    assert!(text.is_ok_and(|text| text.contains("v: one")));
    let revision = format!("main@sha1:{first}");
    assert_eq!(used, BTreeMap::from([(repository.url().to_owned(), revision)]));
    assert_eq!(server.counts("fleet").fetch, 1);

    // At once, nothing is asked; afresh, only what is there; and what is new is received.
    server.reset_requests();
    assert!(build(&listed, false, entry("main")).await.is_ok());
    assert_eq!(asked(&server), (0, 0));
    assert!(build(&listed, true, entry("main")).await.is_ok());
    let (refs, fetches) = asked(&server);
    assert!(refs > 0 && fetches == 0, "{refs} {fetches}");
    repository.commit("main", "second", &[Change::write("map.yaml", map("two"))])?;
    let text = build(&listed, true, entry("main")).await;
    assert!(text.is_ok_and(|text| text.contains("v: two")));

    // One build may use two commits of a repository, and wait for ages.
    let two = format!(
        "resources: ['{0}?ref=main&timeout=2540400h']\nnamePrefix: a-\n",
        repository.url()
    );
    assert!(build(&listed, true, two).await.is_ok());
    let session = listed.session(Handle::current(), false);
    let names =
        [entry("main"), entry(&first)].map(|one| one["resources: ['".len()..one.len() - 3].to_owned());
    let used = tokio::task::spawn_blocking(move || {
        for one in names {
            let repository = kustomize_build::Repository::parse(&one).expect("a repository");
            assert!(session.repository(&repository).is_ok());
        }
        session.into_used()
    });
    let used = used.await?;
    assert!(
        used[repository.url()].ends_with(&format!(" sha1:{first}")),
        "{used:?}"
    );

    // After a failure, it is asked again at once.
    server.set_fault("fleet", Fault::Status(503));
    assert!(build(&listed, true, entry("main")).await.is_err());
    server.set_fault("fleet", None);
    repository.commit("main", "third", &[Change::write("map.yaml", map("three"))])?;
    let text = build(&listed, false, entry("main")).await;
    assert!(text.is_ok_and(|text| text.contains("v: three")));

    // A commit by its id is the same at all times.
    assert!(build(&listed, false, entry(&first)).await.is_ok());
    server.reset_requests();
    let text = build(&listed, true, entry(&first)).await;
    assert!(text.is_ok_and(|text| text.contains("v: one")));
    assert_eq!(asked(&server), (0, 0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_other_server_is_asked_not_even_by_a_redirect() -> Result<()> {
    let (hidden, connections) = answering("200 OK".to_owned())?;
    let (leading, _) = answering(format!("302 Found\r\nlocation: http://{hidden}/secret"))?;
    let listed = listed(&[&format!("http://{leading}")]);
    for entry in [
        format!("http://{hidden}/map.yaml"),
        format!("http://{hidden}/org/repo.git//app?ref=main"),
        format!("http://{leading}/map.yaml"),
        format!("http://{leading}/org/repo.git//app?ref=main"),
        format!("https://{leading}/map.yaml"),
        format!("http://{leading}@{hidden}/map.yaml"),
    ] {
        let error = build(&listed, true, format!("resources: ['{entry}']\n")).await;
        let error = error.expect_err("refused");
        let words = "is not asked: its server is not in the list of those that may be (--remote-hosts)";
        assert!(error.contains(words), "{entry}: {error}");
    }
    for entry in ["git@127.0.0.1:org/repo", "ssh://ana:tr0ub4dor@127.0.0.1/org/repo"] {
        let error = build(&listed, true, format!("resources: ['{entry}']\n")).await;
        let error = error.expect_err("refused");
        assert!(error.contains("this build may use https only"), "{error}");
        assert!(!error.contains("tr0ub4dor"), "{error}");
    }
    assert_eq!(connections.load(Ordering::Relaxed), 0, "it was asked");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_signs_in_is_not_shared_nor_told() -> Result<()> {
    let server = GitServer::start().await?;
    let (repository, first) = repository(&server, "one")?;
    let (username, password) = ("ana".to_owned(), "tr0ub4dor".to_owned());
    server.set_access("fleet", Access::Basic { username, password });
    let listed = listed(&[&format!("http://{}", server.address())]);
    let signed_in = repository.url().replace("http://", "http://ana:tr0ub4dor@");
    let session = listed.session(Handle::current(), false);
    let (text, used) = built(session, format!("resources: ['{signed_in}?ref=main']\n")).await;
    assert!(text.is_ok(), "{text:?}");
    let revision = format!("main@sha1:{first}");
    assert_eq!(used, BTreeMap::from([(repository.url().to_owned(), revision)]));
    // What one tenant may read is not kept for another.
    let without = build(
        &listed,
        false,
        format!("resources: ['{}?ref=main']\n", repository.url()),
    )
    .await;
    assert!(without.is_err(), "{without:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn one_build_may_ask_for_so_much() -> Result<()> {
    let server = HelmRepository::start().await?;
    server.set_file("map.yaml", Some(map("one").into_bytes()));
    server.set_file("large.yaml", Some(vec![b'#'; 20 << 20]));
    let url = server.url().to_owned();
    let listed = listed(&[url.trim_end_matches('/')]);
    let session = listed.session(Handle::current(), false);
    let (text, used) = built(session, format!("resources: ['{url}/map.yaml?token=t0ken']\n")).await;
    assert!(text.is_ok(), "{text:?}");
    let (address, digest) = used.first_key_value().context("nothing was fetched")?;
    assert_eq!(*address, format!("{url}/map.yaml"));
    assert!(digest.starts_with("sha256:"), "{digest}");

    let session = listed.session(Handle::current(), false);
    let asked = tokio::task::spawn_blocking(move || {
        for number in 0..64 {
            let file = session.file(&format!("{url}/map.yaml?{number}"));
            file.map_err(|error| anyhow::anyhow!("{number}: {error:?}"))?;
        }
        // It is known, and asked for no more.
        assert!(session.file(&format!("{url}/map.yaml?0")).is_ok());
        let error = session.file(&format!("{url}/map.yaml?64"));
        match error {
            Err(error) if format!("{error:?}").contains("may name 64 remote resources") => Ok(url.clone()),
            other => bail!("{other:?}"),
        }
    });
    let url = asked.await??;
    let session = listed.session(Handle::current(), false);
    let asked = tokio::task::spawn_blocking(move || {
        let sizes = [
            session.file(&format!("{url}/large.yaml")),
            session.file(&format!("{url}/large.yaml?")),
        ];
        sizes.map(|file| file.map(|file| file.len()).map_err(|error| format!("{error:?}")))
    });
    let [first, second] = asked.await?;
    assert_eq!(first, Ok(20 << 20));
    assert!(
        second
            .as_ref()
            .is_err_and(|error| error.contains("larger than 12582912 bytes")),
        "{second:?}"
    );
    Ok(())
}
