//! Commits over what was fetched, pushed to the real `git http-backend` and the real sshd.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;

use git_pack::Object;

use super::ssh::SshPeer;
use super::*;
use crate::commit::{Draft, Person};
use crate::edit::{Changes, Content, create, edit};
use crate::push::{self, Move, push};

/// A received commit.
async fn checkout(request: Request) -> Checkout {
    match fetch(request).await.unwrap() {
        Outcome::Fetched(checkout) => *checkout,
        Outcome::Unchanged(_) => panic!("nothing was known before"),
    }
}

fn changes(of: &[(&str, Option<&str>)]) -> Changes {
    of.iter()
        .map(|(path, content)| {
            (
                (*path).to_owned(),
                content.map(|content| content.as_bytes().to_vec().into()),
            )
        })
        .collect()
}

/// A commit over the fetched one, and all objects that a server needs of it.
fn committed(checkout: &Checkout, changes: Changes, message: &str) -> (ObjectId, Vec<Object>) {
    let edited = edit(&checkout.pack, changes).unwrap();
    let draft = Draft {
        tree: edited.tree,
        parents: vec![checkout.resolved.commit],
        author: Person {
            name: "Bot".into(),
            email: "bot@example.com".into(),
        },
        time: 1_700_000_000,
        message: message.into(),
    };
    let commit = draft.commit(None).unwrap();
    let id = commit.id();
    let mut objects = edited.objects;
    objects.push(commit);
    (id, objects)
}

fn main_to(from: ObjectId, to: ObjectId) -> Move {
    Move {
        reference: "refs/heads/main".into(),
        from: Some(from),
        to: Some(to),
    }
}

fn pushed(remote: Remote, moves: Vec<Move>, objects: Vec<Object>) -> push::Request {
    push::Request {
        remote,
        moves,
        objects,
        options: Vec::new(),
        deadline: Instant::now() + Duration::from_secs(30),
        stop: Stop::default(),
    }
}

impl Peer {
    fn remote(&self) -> Remote {
        self.request(MAIN, None).remote
    }

    /// Fetches main, changes one file and asks for the push of it.
    async fn change(&self, path: &str, content: &str) -> push::Request {
        let checkout = checkout(self.request(MAIN, None)).await;
        let (id, objects) = committed(&checkout, changes(&[(path, Some(content))]), "change");
        pushed(
            self.remote(),
            vec![main_to(checkout.resolved.commit, id)],
            objects,
        )
    }

    fn hook(&self, name: &str, script: &str) {
        let file = self.repository.directory().join("hooks").join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Names that Git sorts in ways of its own: a folder as if it ended in `/`.
fn sorted_oddly() -> Vec<Change> {
    ["a.b", "a-b", "a0", "a/b/c", "a/b.c", "a/b-c", "b/x", "z"]
        .map(|path| Change::write(path, path))
        .to_vec()
}

#[tokio::test]
async fn a_commit_without_a_checkout_is_the_one_that_git_would_make() {
    let peer = Peer::start().await;
    let mut first = sorted_oddly();
    first.push(Change::WriteExecutable("run.sh".into(), b"1".to_vec()));
    first.push(Change::Link("link".into(), "a".into()));
    let base = peer.repository.commit("main", "first", &first).unwrap();
    let checkout = checkout(peer.request(MAIN, None)).await;
    let (id, objects) = committed(
        &checkout,
        changes(&[
            ("a/b/c", Some("changed")),
            ("a/b0", Some("new")),
            ("new/folder/file", Some("new")),
            ("run.sh", Some("2")),
            ("b/x", None),
        ]),
        "Change\n\nall of it\n",
    );
    let asked = pushed(
        peer.remote(),
        vec![main_to(checkout.resolved.commit, id)],
        objects,
    );
    push(asked).await.unwrap();

    let git = |arguments: &[&str]| peer.repository.git(arguments).unwrap().trim().to_owned();
    assert_eq!(git(&["rev-parse", "main"]), id.to_string());
    git(&["fsck", "--strict", "--full"]);
    assert_eq!(
        git(&["log", "-1", "--format=%an <%ae> %cn %ct|%B", "main"]).trim(),
        "Bot <bot@example.com> Bot 1700000000|Change\n\nall of it"
    );
    let expected = [
        Change::write("a/b/c", "changed"),
        Change::write("a/b0", "new"),
        Change::write("new/folder/file", "new"),
        Change::WriteExecutable("run.sh".into(), b"2".to_vec()),
        Change::delete("b/x"),
    ];
    peer.repository.branch("by-git", &base).unwrap();
    peer.repository.commit("by-git", "same", &expected).unwrap();
    assert_eq!(
        git(&["rev-parse", "main^{tree}"]),
        git(&["rev-parse", "by-git^{tree}"])
    );
}

#[tokio::test]
async fn a_push_over_ssh_arrives() {
    let peer = SshPeer::start(&[]).await;
    let base = peer.repository.commit("main", "first", &sorted_oddly()).unwrap();
    let checkout = checkout(peer.request(MAIN)).await;
    let (id, objects) = committed(&checkout, changes(&[("a/b/c", Some("changed"))]), "over ssh");
    // Larger than what is sent in one part.
    let large = noise(400_000);
    let (_, more) = committed(&checkout, changes(&[("large", Some(&large))]), "not referred to");
    let objects = objects.into_iter().chain(more).collect();
    push(pushed(
        peer.request(MAIN).remote,
        vec![main_to(checkout.resolved.commit, id)],
        objects,
    ))
    .await
    .unwrap();
    assert_eq!(peer.repository.resolve("main").unwrap(), id.to_string());
    assert_eq!(peer.repository.resolve("main^").unwrap(), base);
    peer.repository.git(&["fsck", "--strict"]).unwrap();
}

#[tokio::test]
async fn a_reference_that_moved_is_never_overwritten() {
    let peer = Peer::start().await;
    peer.commit("first", "a", "1");
    let asked = peer.change("a", "ours").await;
    let theirs = peer.commit("theirs", "b", "theirs");
    let error = push(asked).await.unwrap_err();
    assert!(error.is_moved(), "{error}");
    assert!(error.to_string().contains("changed in the meantime"), "{error}");
    assert_eq!(peer.repository.resolve("main").unwrap(), theirs);

    // The same, noticed by the server: it moves between its list and our request.
    let asked = peer.change("a", "ours").await;
    let next = peer.commit("theirs again", "b", "again");
    peer.repository
        .git(&["update-ref", "refs/heads/main", &theirs])
        .unwrap();
    peer.hook(
        "pre-receive",
        &format!("env -u GIT_QUARANTINE_PATH git update-ref refs/heads/main {next}"),
    );
    let error = push(asked).await.unwrap_err();
    assert!(error.is_moved(), "{error}");
    assert_eq!(peer.repository.resolve("main").unwrap(), next);
}

#[tokio::test]
async fn a_branch_is_made_and_deleted_and_must_not_be_there_before() {
    let peer = Peer::start().await;
    let base = ObjectId::from_hex(peer.commit("first", "a", "1").as_bytes()).unwrap();
    let step = |from, to| Move {
        reference: "refs/heads/new/branch".into(),
        from,
        to,
    };
    let ask = |step: Move| push(pushed(peer.remote(), vec![step], Vec::new()));
    ask(step(None, Some(base))).await.unwrap();
    assert_eq!(peer.repository.resolve("new/branch").unwrap(), base.to_string());
    assert!(ask(step(None, Some(base))).await.unwrap_err().is_moved());
    ask(step(Some(base), None)).await.unwrap();
    assert!(peer.repository.resolve("new/branch").is_err());
}

#[tokio::test]
async fn several_references_move_together_or_not_at_all() {
    let peer = Peer::start().await;
    peer.commit("first", "a", "1");
    let mut asked = peer.change("a", "2").await;
    let to = asked.moves[0].to;
    asked.moves.push(Move {
        reference: "refs/heads/released".into(),
        from: None,
        to,
    });
    peer.hook(
        "update",
        "case $1 in */released) echo no releases today >&2; exit 1;; esac",
    );
    let before = peer.repository.resolve("main").unwrap();
    let error = push(asked).await.unwrap_err();
    assert!(!error.is_moved());
    assert!(error.to_string().contains("no releases today"), "{error}");
    assert_eq!(peer.repository.resolve("main").unwrap(), before);
}

#[tokio::test]
async fn a_hook_that_declines_is_quoted() {
    let peer = Peer::start().await;
    peer.commit("first", "a", "1");
    peer.hook("pre-receive", "echo 'main is frozen until Monday' >&2; exit 1");
    let error = push(peer.change("a", "2").await).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the server refuses to update 'refs/heads/main': pre-receive hook declined (main is frozen until Monday)"
    );
    assert!(!error.is_moved());
}

#[tokio::test]
async fn push_options_reach_the_hooks() {
    let peer = Peer::start().await;
    peer.commit("first", "a", "1");
    let with_option = |mut request: push::Request| {
        request.options = vec!["merge_request.create".into(), "topic=x y".into()];
        request
    };
    let error = push(with_option(peer.change("a", "2").await)).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "failed to push: the server does not take push options"
    );
    peer.repository
        .git(&["config", "receive.advertisePushOptions", "true"])
        .unwrap();
    peer.hook(
        "pre-receive",
        "echo \"got $GIT_PUSH_OPTION_0 and $GIT_PUSH_OPTION_1\" >&2",
    );
    let said = push(with_option(peer.change("a", "2").await)).await.unwrap();
    assert_eq!(said.trim(), "got merge_request.create and topic=x y");
}

#[tokio::test]
async fn a_push_whose_answer_is_lost_is_looked_for() {
    let peer = Peer::start().await;
    peer.commit("first", "a", "1");
    let asked = peer.change("a", "2").await;
    let to = asked.moves[0].to.unwrap();
    peer.server.set_fault("app", Fault::CutPush(0));
    push(asked).await.unwrap();
    assert_eq!(peer.repository.resolve("main").unwrap(), to.to_string());

    peer.hook("pre-receive", "exit 1");
    peer.server.set_fault("app", None);
    let asked = peer.change("a", "3").await;
    peer.server.set_fault("app", Fault::CutPush(0));
    let error = push(asked).await.unwrap_err();
    assert!(matches!(error, push::Error::Unanswered(_)), "{error}");
}

#[tokio::test]
async fn credentials_go_with_a_push_and_their_lack_is_named() {
    let peer = Peer::start().await;
    peer.commit("first", "a", "1");
    let mut asked = peer.change("a", "2").await;
    peer.server.set_access(
        "app",
        Access::Basic {
            username: "bot".into(),
            password: "secret".into(),
        },
    );
    let error = push(peer_request(&asked)).await.unwrap_err();
    assert_eq!(error.to_string(), "authentication required");
    if let Way::Http { authorization, .. } = &mut asked.remote.way {
        *authorization = Some(HeaderValue::from_static("Basic Ym90OnNlY3JldA=="));
    }
    push(asked).await.unwrap();
}

/// The same request again, with its remote as it is.
fn peer_request(request: &push::Request) -> push::Request {
    let Way::Http {
        client,
        authorization,
    } = &request.remote.way
    else {
        panic!("the request is for http")
    };
    let remote = Remote {
        url: request.remote.url.clone(),
        way: Way::Http {
            client: client.clone(),
            authorization: authorization.clone(),
        },
    };
    pushed(remote, request.moves.clone(), request.objects.clone())
}

#[tokio::test]
async fn what_cannot_be_changed_is_named() {
    let peer = Peer::start().await;
    let changes_at_first = [
        Change::write("folder/file", "x"),
        Change::Link("link".into(), "folder".into()),
    ];
    peer.repository
        .commit("main", "first", &changes_at_first)
        .unwrap();
    let checkout = checkout(peer.request(MAIN, None)).await;
    for (path, expected) in [
        ("folder", "failed to change 'folder': it is a folder, not a file"),
        (
            "link",
            "failed to change 'link': it is a symbolic link, not a file",
        ),
        (
            "link/file",
            "failed to change 'link': it is a symbolic link, not a file",
        ),
        (
            "folder/file/x",
            "failed to change 'folder/file': it is a file with something below it, not a file",
        ),
        ("../x", "failed to change '../x': it is not a valid path"),
        (
            "a/.git/config",
            "failed to change 'a/.git/config': it is not a valid path",
        ),
        ("/etc", "failed to change '/etc': it is not a valid path"),
        ("", "failed to change '': it is not a valid path"),
    ] {
        let error = edit(&checkout.pack, changes(&[(path, Some("y"))])).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let nothing = edit(&checkout.pack, BTreeMap::new()).unwrap();
    assert_eq!(nothing.tree, checkout.pack.tree());
}

#[tokio::test]
async fn a_reference_must_be_one() {
    let peer = Peer::start().await;
    let base = ObjectId::from_hex(peer.commit("first", "a", "1").as_bytes()).unwrap();
    for reference in [
        "main",
        "HEAD",
        "refs/heads/../x",
        "refs/heads/a b",
        "refs/heads/a\0evil",
        "-x",
    ] {
        let step = Move {
            reference: reference.into(),
            from: None,
            to: Some(base),
        };
        let error = push(pushed(peer.remote(), vec![step], Vec::new()))
            .await
            .unwrap_err();
        assert!(
            matches!(error, push::Error::InvalidReference(_)),
            "{reference:?}: {error}"
        );
    }
}

#[tokio::test]
async fn a_pushed_commit_is_gone_on_from_without_another_fetch() {
    let peer = Peer::start().await;
    peer.repository.commit("main", "first", &sorted_oddly()).unwrap();
    let checkout = checkout(peer.request(MAIN, None)).await;
    let (first, objects) = committed(&checkout, changes(&[("a/b/c", Some("1"))]), "one");
    push(pushed(
        peer.remote(),
        vec![main_to(checkout.resolved.commit, first)],
        objects.clone(),
    ))
    .await
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let Checkout {
        mut resolved, pack, ..
    } = checkout;
    let pack = pack.advance(first, &objects, folder.path()).unwrap();
    assert_eq!((pack.subject(), pack.advances()), ("one", 1));
    resolved.commit = first;
    let checkout = Checkout {
        subject: pack.subject().to_owned(),
        resolved,
        pack,
    };
    let (second, objects) = committed(&checkout, changes(&[("z", None), ("a/new", Some("2"))]), "two");
    push(pushed(
        peer.remote(),
        vec![main_to(first, second)],
        objects.clone(),
    ))
    .await
    .unwrap();
    let files = peer
        .repository
        .git(&["ls-tree", "-r", "--name-only", "main"])
        .unwrap();
    assert!(files.contains("a/new") && !files.contains("\nz"), "{files}");
    assert_eq!(peer.repository.git(&["show", "main:a/b/c"]).unwrap(), "1");
    peer.repository.git(&["fsck", "--strict"]).unwrap();

    // A commit that is not among the objects, and one that a stopped task would read.
    let other = ObjectId::from_hex(b"0123456789012345678901234567890123456789").unwrap();
    let pack = checkout.pack.advance(second, &objects, folder.path()).unwrap();
    let stop = Stop::default();
    let pack = pack.stopped_by(stop.clone());
    pack.walk(|_| Ok::<_, pack::Error>(true)).unwrap();
    stop.now();
    assert!(pack.walk(|_| Ok::<_, pack::Error>(true)).is_err());
    assert!(pack.advance(other, &[], folder.path()).is_err());
}

#[tokio::test]
async fn a_file_becomes_what_an_earlier_commit_has_without_its_content() {
    let peer = Peer::with_much(true).await;
    let change = |path: &str, text: &str| Change::write(path, text);
    peer.repository
        .commit(
            "main",
            "first",
            &[change("deploy/x", "old"), change("deploy/same", "s")],
        )
        .unwrap();
    let id = peer.repository.git(&["rev-parse", "main:deploy/x"]).unwrap();
    let id = ObjectId::from_hex(id.trim().as_bytes()).unwrap();
    peer.repository
        .commit("main", "second", &[change("deploy/x", "new")])
        .unwrap();
    // Only the names of files are received.
    let mut request = peer.request(MAIN, None);
    request.sparse = Some(Sparse::new(&[]).files(|path| path.ends_with("none")));
    let checkout = checkout(request).await;
    assert!(!checkout.pack.has(&id));
    let back = Content::Stored { id, executable: true };
    let changes = Changes::from([("deploy/x".to_owned(), Some(back))]);
    let (commit, objects) = committed(&checkout, changes, "back");
    assert!(objects.iter().all(|object| object.kind() != git_pack::Kind::Blob));
    push(pushed(
        peer.remote(),
        vec![main_to(checkout.resolved.commit, commit)],
        objects,
    ))
    .await
    .unwrap();
    assert_eq!(peer.repository.git(&["show", "main:deploy/x"]).unwrap(), "old");
    let listed = peer.repository.git(&["ls-tree", "main:deploy/"]).unwrap();
    assert!(
        listed.contains("100755 blob") && listed.contains("same"),
        "{listed}"
    );
    peer.repository.git(&["fsck", "--strict"]).unwrap();
}

#[tokio::test]
async fn an_empty_repository_gets_its_first_commit() {
    let peer = SshPeer::start(&[]).await;
    let fetched = fetch(peer.request(MAIN)).await;
    assert!(
        matches!(fetched, Err(Error::EmptyRepository)),
        "{:?}",
        fetched.err()
    );
    let edited = create(changes(&[("a/b.yaml", Some("1\n")), ("c", Some("2\n"))])).unwrap();
    let draft = Draft {
        tree: edited.tree,
        parents: Vec::new(),
        author: Person {
            name: "Bot".into(),
            email: String::new(),
        },
        time: 1_700_000_000,
        message: "first\n".into(),
    };
    let commit = draft.commit(None).unwrap();
    let (id, mut objects) = (commit.id(), edited.objects);
    objects.push(commit);
    let moves = vec![Move {
        reference: "refs/heads/main".into(),
        from: None,
        to: Some(id),
    }];
    push(pushed(peer.request(MAIN).remote, moves, objects))
        .await
        .unwrap();
    let checkout = checkout(peer.request(MAIN)).await;
    assert_eq!(checkout.resolved.commit, id);
    assert_eq!(checkout.subject, "first");
    let mut files = Vec::new();
    checkout
        .pack
        .walk(|entry| {
            files.push(entry.path.to_owned());
            Ok::<_, pack::Error>(true)
        })
        .unwrap();
    assert_eq!(files, ["a", "a/b.yaml", "c"]);
    assert!(create(changes(&[("../x", Some("1"))])).is_err());
}
