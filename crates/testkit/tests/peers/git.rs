//! The Git server as the real git client sees it.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use tempfile::TempDir;
use testkit::GitServer;
use testkit::git::{Access, Change, Counts, Fault};

/// The git client of a user without any configuration.
async fn git(home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("git");
    command
        .args(arguments)
        .current_dir(home)
        .env("HOME", home)
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env_remove("GIT_DIR");
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

async fn git_ok(home: &Path, arguments: &[&str]) -> String {
    let output = git(home, arguments).await;
    assert!(
        output.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn home() -> TempDir {
    testkit::scratch::directory("git-client").unwrap()
}

#[tokio::test]
async fn a_shallow_clone_has_the_last_commit_only() {
    let server = GitServer::start().await.unwrap();
    let repository = server.create_repository("app").unwrap();
    repository
        .commit(
            "main",
            "one",
            &[Change::write("a/b.txt", "1"), Change::write("gone", "x")],
        )
        .unwrap();
    let changes = [
        Change::write("a/b.txt", "2"),
        Change::delete("gone"),
        Change::WriteExecutable("run \"me\".sh".to_owned(), b"#!/bin/sh\n".to_vec()),
        Change::Link("link".to_owned(), "a/b.txt".to_owned()),
    ];
    let head = repository.commit("main", "two", &changes).unwrap();

    let home = home();
    git_ok(home.path(), &["clone", "--depth=1", repository.url(), "clone"]).await;
    let clone = home.path().join("clone");
    assert_eq!(git_ok(&clone, &["rev-parse", "HEAD"]).await, head);
    assert_eq!(git_ok(&clone, &["rev-list", "--count", "HEAD"]).await, "1");
    assert_eq!(std::fs::read_to_string(clone.join("link")).unwrap(), "2");
    assert!(!clone.join("gone").exists());
    assert!(clone.join("run \"me\".sh").is_file());
    assert_eq!(
        server.counts("app"),
        Counts {
            info_refs: 1,
            ls_refs: 1,
            fetch: 1,
            ..Counts::default()
        }
    );
}

#[tokio::test]
async fn asking_for_references_is_one_discovery_and_one_ls_refs() {
    let server = GitServer::start().await.unwrap();
    let repository = server.create_repository("app").unwrap();
    let commit = repository
        .commit("main", "one", &[Change::write("a", "1")])
        .unwrap();
    repository.branch("release", "main").unwrap();
    repository.tag("v1.0.0", "main").unwrap();
    let tag = repository.annotated_tag("v1.1.0", "main", "the release").unwrap();
    assert_ne!(tag, commit);
    assert_eq!(repository.resolve("v1.1.0").unwrap(), commit);

    let home = home();
    let listed = git_ok(
        home.path(),
        &["-c", "protocol.version=2", "ls-remote", repository.url()],
    )
    .await;
    for line in [
        format!("{commit}\trefs/heads/release"),
        format!("{commit}\trefs/tags/v1.0.0"),
        format!("{tag}\trefs/tags/v1.1.0"),
        format!("{commit}\trefs/tags/v1.1.0^{{}}"),
    ] {
        assert!(listed.contains(&line), "{line} is not in:\n{listed}");
    }
    assert_eq!(
        server.counts("app"),
        Counts {
            info_refs: 1,
            ls_refs: 1,
            ..Counts::default()
        }
    );

    server.reset_requests();
    git_ok(
        home.path(),
        &["-c", "protocol.version=0", "ls-remote", repository.url()],
    )
    .await;
    assert_eq!(
        server.counts("app"),
        Counts {
            info_refs: 1,
            ..Counts::default()
        }
    );
}

#[tokio::test]
async fn a_push_over_http_arrives_even_when_it_is_compressed() {
    let server = GitServer::start().await.unwrap();
    let repository = server.create_repository("app").unwrap();
    repository
        .commit("main", "one", &[Change::write("a", "1")])
        .unwrap();
    let home = home();
    git_ok(home.path(), &["clone", repository.url(), "clone"]).await;
    let clone = home.path().join("clone");
    std::fs::write(clone.join("a"), "2").unwrap();
    let identity = ["-c", "user.name=T", "-c", "user.email=t@example.com"];
    git_ok(
        &clone,
        &[&identity[..], &["commit", "--all", "--message=two"]].concat(),
    )
    .await;
    git_ok(&clone, &["push", "origin", "main"]).await;
    assert_eq!(
        repository.resolve("main").unwrap(),
        git_ok(&clone, &["rev-parse", "HEAD"]).await
    );

    // Enough branches make the next fetch's list of commits longer than the kilobyte from which git compresses.
    for number in 0..40 {
        repository
            .commit(
                &format!("b{number}"),
                "x",
                &[Change::write("a", format!("{number}"))],
            )
            .unwrap();
    }
    server.reset_requests();
    git_ok(&clone, &["fetch", "origin"]).await;
    // Further rounds of the fetch are negotiation; how many there are is git's business.
    let counts = server.counts("app");
    assert_eq!(
        counts,
        Counts {
            info_refs: 1,
            ls_refs: 1,
            fetch: counts.fetch,
            ..Counts::default()
        }
    );
    assert!(counts.fetch >= 1);
}

#[tokio::test]
async fn a_private_repository_opens_for_the_right_credentials_only() {
    let server = GitServer::start().await.unwrap();
    let repository = server.create_repository("app").unwrap();
    repository
        .commit("main", "one", &[Change::write("a", "1")])
        .unwrap();
    let home = home();
    let with_user = |user: &str| repository.url().replace("http://", &format!("http://{user}@"));

    let access = Access::Basic {
        username: "ann".to_owned(),
        password: "secret".to_owned(),
    };
    server.set_access("app", access);
    assert!(
        !git(home.path(), &["ls-remote", repository.url()])
            .await
            .status
            .success()
    );
    assert!(
        !git(home.path(), &["ls-remote", &with_user("ann:wrong")])
            .await
            .status
            .success()
    );
    git_ok(home.path(), &["ls-remote", &with_user("ann:secret")]).await;
    assert!(server.requests("app").iter().any(|request| !request.allowed));

    server.set_access("app", Access::Bearer("token".to_owned()));
    let header = "http.extraHeader=Authorization: Bearer token";
    git_ok(home.path(), &["-c", header, "ls-remote", repository.url()]).await;
    assert!(
        !git(home.path(), &["ls-remote", repository.url()])
            .await
            .status
            .success()
    );
}

#[tokio::test]
async fn faults_reach_the_client_and_can_be_taken_back() {
    let server = GitServer::start().await.unwrap();
    let repository = server.create_repository("app").unwrap();
    repository
        .commit("main", "one", &[Change::write("a", "1".repeat(10_000))])
        .unwrap();
    let home = home();
    let list = ["ls-remote", repository.url()];

    for (status, said) in [(404, "not found"), (500, "500"), (403, "403")] {
        server.set_fault("app", Fault::Status(status));
        let output = git(home.path(), &list).await;
        assert!(!output.status.success());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains(said), "{status}: {error}");
    }
    server.set_fault("app", Fault::CutAnswer(20));
    assert!(
        !git(home.path(), &["clone", repository.url(), "cut"])
            .await
            .status
            .success()
    );
    git_ok(home.path(), &list).await;

    server.set_fault("app", Fault::Hang);
    let hanging = tokio::time::timeout(Duration::from_millis(300), reqwest_get(&repository)).await;
    assert!(hanging.is_err(), "answered: {hanging:?}");

    server.set_fault("app", None);
    git_ok(home.path(), &["clone", repository.url(), "whole"]).await;
    let missing = git(home.path(), &["ls-remote", &server.url("nobody")]).await;
    assert!(
        String::from_utf8_lossy(&missing.stderr).contains("not found"),
        "{missing:?}"
    );
}

async fn reqwest_get(repository: &testkit::git::Repository) -> reqwest::Result<u16> {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let url = format!("{}/info/refs?service=git-upload-pack", repository.url());
    let http = reqwest::Client::builder().no_proxy().build()?;
    Ok(http.get(url).send().await?.status().as_u16())
}
