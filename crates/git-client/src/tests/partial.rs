//! Tests of partial fetches: a repository of which only some folders are wanted, and the branch of a pinned
//! commit.

use gix::ObjectId;

use super::*;
use crate::sparse::Sparse;

/// Kilobytes outside of the folders that are wanted.
const OUTSIDE: usize = 4096;

/// Files that do not compress.
fn noise(path: &str, index: usize) -> Change {
    let words = (0..OUTSIDE / 64 * 16)
        .map(|n| artifact::digest::Digest::from_content(format!("{index} {n}").as_bytes()).hex());
    Change::write(path, words.collect::<String>())
}

impl Peer {
    /// A repository with much that is not wanted, on a server that can leave it out or cannot.
    pub(super) async fn with_much(filters: bool) -> Self {
        let peer = Self::start().await;
        let filter = if filters { "true" } else { "false" };
        peer.repository
            .git(&["config", "uploadpack.allowFilter", filter])
            .unwrap();
        let mut changes: Vec<_> = (0..64).map(|n| noise(&format!("media/{n}"), n)).collect();
        changes.push(Change::write("deploy/app.yaml", "kind: A"));
        changes.push(Change::write("deploy/b/c.yaml", "kind: C"));
        changes.push(Change::write("deploy/b/again.yaml", "kind: A"));
        peer.repository.commit("main", "much", &changes).unwrap();
        peer
    }

    async fn all(&self) -> Checkout {
        match fetch(self.request(MAIN, None)).await.unwrap() {
            Outcome::Fetched(checkout) => *checkout,
            Outcome::Unchanged(_) => panic!("nothing is known yet"),
        }
    }

    async fn only(&self, folders: &[&str]) -> Checkout {
        let mut request = self.request(MAIN, None);
        let folders: Vec<_> = folders.iter().map(|folder| (*folder).to_owned()).collect();
        request.sparse = Some(Sparse::new(&folders));
        match fetch(request).await.unwrap() {
            Outcome::Fetched(checkout) => *checkout,
            Outcome::Unchanged(_) => panic!("nothing is known yet"),
        }
    }
}

fn content(pack: &Pack, path: &str) -> Result<String, pack::Error> {
    let (_, id) = pack.entry(path)?.expect(path);
    let mut bytes = Vec::new();
    pack.read_blob(id, 1 << 20, &mut bytes)?;
    Ok(String::from_utf8(bytes).unwrap())
}

#[tokio::test]
async fn of_files_that_are_not_wanted_nothing_is_received() {
    let peer = Peer::with_much(true).await;
    let checkout = peer.only(&["deploy"]).await;
    // The commit, its three folders and "media", two different contents.
    let (objects, bytes) = checkout.pack.received();
    assert_eq!(objects, 1 + 4 + 2);
    assert!(bytes < 10_000, "{bytes}");
    assert_eq!(content(&checkout.pack, "deploy/app.yaml").unwrap(), "kind: A");
    assert_eq!(content(&checkout.pack, "deploy/b/again.yaml").unwrap(), "kind: A");
    assert_eq!(content(&checkout.pack, "deploy/b/c.yaml").unwrap(), "kind: C");
    let error = content(&checkout.pack, "media/1").unwrap_err();
    assert!(error.to_string().contains("it was not sent"), "{error}");
    assert_eq!(peer.requests().fetch, 2, "folders, then files");

    let one_folder = peer.only(&["deploy/b"]).await;
    assert_eq!(one_folder.pack.received().0, 1 + 4 + 2);
    let nothing = peer.only(&["gone"]).await;
    assert_eq!(nothing.pack.received().0, 1 + 4);
}

#[tokio::test]
async fn everything_is_received_where_it_is_wanted_or_the_server_knows_no_better() {
    for (filters, folders) in [(true, &["./"][..]), (true, &[][..]), (false, &["deploy"][..])] {
        let peer = Peer::with_much(filters).await;
        let checkout = peer.only(folders).await;
        let (objects, bytes) = checkout.pack.received();
        assert_eq!(objects, 1 + 4 + 2 + 64, "{folders:?}");
        assert!(bytes > 1_000_000, "{bytes}");
        assert_eq!(content(&checkout.pack, "deploy/b/c.yaml").unwrap(), "kind: C");
        assert_eq!(peer.requests().fetch, 1);
    }
}

/// What a fetch over `known` brings.
async fn over(peer: &Peer, known: &Checkout) -> Checkout {
    let mut request = peer.request(MAIN, Some(&known.resolved.revision));
    request.over = Some(known.pack.clone());
    match fetch(request).await.unwrap() {
        Outcome::Fetched(checkout) => *checkout,
        Outcome::Unchanged(_) => panic!("it changed"),
    }
}

#[tokio::test]
async fn of_what_was_received_before_nothing_is_received_again() {
    let peer = Peer::with_much(true).await;
    let first = peer.all().await;
    let (objects, _) = first.pack.received();
    let app: String = (0..200).map(|line| format!("line {line}\n")).collect();
    let write = |text: &str| {
        let change = [Change::write("deploy/app.yaml", text)];
        peer.repository.commit("main", "change", &change).unwrap()
    };
    let mut known = first;
    for number in 1..4 {
        // Nearly the same each time: it comes as a delta of what is here.
        write(&format!("{app}number: {number}\n"));
        let before = known.pack.bytes();
        known = over(&peer, &known).await;
        // A commit, two folders and a file, and what they are made of.
        let more = known.pack.received().0 - objects;
        assert!((4 * number..=7 * number).contains(&more), "{more}");
        assert!(
            known.pack.bytes() - before < 5_000,
            "{}",
            known.pack.bytes() - before
        );
        assert!(
            content(&known.pack, "deploy/app.yaml")
                .unwrap()
                .ends_with(&format!("number: {number}\n"))
        );
        assert_eq!(content(&known.pack, "deploy/b/c.yaml").unwrap(), "kind: C");
        assert_eq!(files(&known.pack).unwrap().len(), 64 + 3 + 3, "with folders");
    }
}

/// What a fetch of the YAML files of a folder brings, over what is known.
async fn part_over(peer: &Peer, folder: &str, known: Option<&Checkout>) -> Checkout {
    let mut request = peer.request(MAIN, None);
    let sparse = Sparse::new(&[folder.to_owned()]);
    request.sparse = Some(sparse.files(|path| path.ends_with(".yaml")));
    request.over = known.map(|known| known.pack.clone());
    match fetch(request).await.unwrap() {
        Outcome::Fetched(checkout) => *checkout,
        Outcome::Unchanged(_) => panic!("it changed"),
    }
}

#[tokio::test]
async fn of_a_part_only_what_is_new_in_it_is_received() {
    let peer = Peer::with_much(true).await;
    let write = |path: &str, n: usize| {
        let changes = [
            noise(&format!("{path}.bin"), n),
            Change::write(path, format!("{path}: {n}")),
        ];
        peer.repository.commit("main", "change", &changes).unwrap()
    };
    write("deploy/app.yaml", 100);
    let mut known = part_over(&peer, "deploy", None).await;
    assert_eq!(
        known.pack.received().0,
        1 + 4 + 3,
        "two contents of before, and a new one"
    );
    for n in 101..104 {
        write("deploy/app.yaml", n);
        write("media/more.yaml", n);
        let (objects, bytes) = known.pack.received();
        let before = peer.requests().fetch;
        known = part_over(&peer, "deploy", Some(&known)).await;
        let (now, more) = known.pack.received();
        // A commit, three folders with what they are made of, and one file; nothing of media.
        assert!(
            (1 + 3 + 1..=1 + 6 + 1).contains(&(now - objects)),
            "{}",
            now - objects
        );
        assert!(more - bytes < 10_000, "{}", more - bytes);
        assert_eq!(
            content(&known.pack, "deploy/app.yaml").unwrap(),
            format!("deploy/app.yaml: {n}")
        );
        assert_eq!(content(&known.pack, "deploy/b/c.yaml").unwrap(), "kind: C");
        assert!(content(&known.pack, "media/more.yaml").is_err());
        assert!(content(&known.pack, "deploy/app.yaml.bin").is_err());
        assert_eq!(peer.requests().fetch - before, 2, "folders, then the file");
    }
    // Another part: what is missing of it comes, too.
    write("deploy/app.yaml", 200);
    let other = part_over(&peer, "media", Some(&known)).await;
    assert_eq!(
        content(&other.pack, "media/more.yaml").unwrap(),
        "media/more.yaml: 103"
    );
    // And all of it, of a server that is asked for all.
    write("deploy/app.yaml", 201);
    let all = over(&peer, &other).await;
    assert!(content(&all.pack, "media/63").is_ok());
}

#[tokio::test]
async fn a_branch_that_was_replaced_or_goes_back_is_received_as_it_is() {
    let peer = Peer::with_much(true).await;
    let first = peer.all().await;
    let start = peer.repository.resolve("main").unwrap();
    peer.repository
        .commit("main", "away", &[Change::write("deploy/app.yaml", "kind: Away")])
        .unwrap();
    let away = over(&peer, &first).await;
    peer.repository
        .git(&["update-ref", "refs/heads/main", &start])
        .unwrap();
    let back = over(&peer, &away).await;
    assert_eq!(files(&back.pack).unwrap(), files(&first.pack).unwrap());
    assert_eq!(back.resolved.commit.to_string(), start);

    // Another history, of which the server knows nothing that is here.
    let tree = peer.repository.git(&["rev-parse", "main:deploy"]).unwrap();
    let root = peer
        .repository
        .git(&["commit-tree", "-m", "new", tree.trim()])
        .unwrap();
    peer.repository
        .git(&["update-ref", "refs/heads/main", root.trim()])
        .unwrap();
    peer.repository
        .git(&["reflog", "expire", "--expire=now", "--all"])
        .unwrap();
    peer.repository.git(&["gc", "--prune=now", "--quiet"]).unwrap();
    let other = over(&peer, &back).await;
    assert_eq!(content(&other.pack, "app.yaml").unwrap(), "kind: A");
    assert_eq!(files(&other.pack).unwrap().len(), 3 + 1);
}

#[tokio::test]
async fn all_is_received_where_what_is_here_is_not_whole() {
    let peer = Peer::with_much(true).await;
    let part = peer.only(&["deploy"]).await;
    let change = [Change::write("deploy/app.yaml", "kind: B")];
    peer.repository.commit("main", "change", &change).unwrap();
    let before = peer.requests().fetch;
    let all = over(&peer, &part).await;
    assert_eq!(files(&all.pack).unwrap().len(), 64 + 3 + 3);
    assert_eq!(peer.requests().fetch - before, 2, "the rest, then all");
}

/// A history with a side branch that was merged, and one that was not.
fn history(repository: &Repository) -> Vec<(&'static str, String)> {
    let commit = |branch: &str, n: &str| repository.commit(branch, n, &[Change::write("n", n)]).unwrap();
    let first = commit("main", "1");
    repository.branch("side", &first).unwrap();
    repository.branch("other", &first).unwrap();
    let side = commit("side", "2");
    let other = commit("other", "3");
    let second = commit("main", "4");
    let tree = repository.git(&["rev-parse", "main^{tree}"]).unwrap();
    let merge = repository
        .git(&[
            "commit-tree",
            "-m",
            "merge",
            "-p",
            &second,
            "-p",
            &side,
            tree.trim(),
        ])
        .unwrap();
    repository
        .git(&["update-ref", "refs/heads/main", merge.trim()])
        .unwrap();
    let head = commit("main", "5");
    vec![
        ("first", first),
        ("side", side),
        ("other", other),
        ("second", second),
        ("head", head),
    ]
}

/// Fetches each commit pinned together with the main branch.
async fn pinned(
    commits: &[(&'static str, String)],
    request: impl Fn(Fields<'_>) -> Request,
) -> Vec<&'static str> {
    let mut refused = Vec::new();
    for (name, commit) in commits {
        let fields = Fields {
            commit: Some(commit),
            branch: Some("main"),
            ..Fields::default()
        };
        match seen(request(fields)).await {
            Ok(Seen::Fetched { revision, .. }) => assert_eq!(revision, format!("main@sha1:{commit}")),
            Ok(Seen::Unchanged(_)) => panic!("nothing is known yet"),
            Err(Error::NotOnBranch { commit: of, branch }) => {
                assert_eq!(
                    (of, branch.as_str()),
                    (ObjectId::from_hex(commit.as_bytes()).unwrap(), "main")
                );
                refused.push(*name);
            }
            Err(error) => panic!("{name}: {}", error_chain::chain(&error)),
        }
    }
    refused
}

#[tokio::test]
async fn a_pinned_commit_must_be_on_its_branch() {
    for filters in ["true", "false"] {
        let peer = Peer::start().await;
        peer.repository
            .git(&["config", "uploadpack.allowFilter", filters])
            .unwrap();
        let commits = history(&peer.repository);
        let refused = pinned(&commits, |fields| peer.request(fields, None)).await;
        assert_eq!(refused, ["other"], "filters: {filters}");
    }
    let peer = Peer::start().await;
    let commits = history(&peer.repository);
    peer.server.reset_requests();
    let fields = Fields {
        commit: commits.last().map(|(_, head)| head.as_str()),
        branch: Some("main"),
        ..Fields::default()
    };
    peer.fetch(fields, None).await.unwrap();
    assert_eq!(peer.requests().fetch, 1, "nothing is asked about the head itself");
}

#[tokio::test]
async fn a_pinned_commit_must_be_on_its_branch_over_ssh_too() {
    for configuration in [super::ssh::OVER_V2, &[]] {
        let peer = super::ssh::SshPeer::start(configuration).await;
        for key in ["uploadpack.allowFilter", "uploadpack.allowReachableSHA1InWant"] {
            peer.repository.git(&["config", key, "true"]).unwrap();
        }
        let commits = history(&peer.repository);
        let refused = pinned(&commits, |fields| peer.request(fields)).await;
        assert_eq!(refused, ["other"], "{configuration:?}");
    }
}

#[tokio::test]
async fn branches_part_where_git_says() {
    let peer = Peer::start().await;
    for key in ["uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"] {
        peer.repository.git(&["config", key, "true"]).unwrap();
    }
    let commits = history(&peer.repository);
    let id = |name: &str| {
        let (_, commit) = commits.iter().find(|(known, _)| *known == name).unwrap();
        ObjectId::from_hex(commit.as_bytes()).unwrap()
    };
    // A branch into which the main branch was merged, and one with nothing in common.
    let tree = peer.repository.git(&["rev-parse", "main^{tree}"]).unwrap();
    let make = |parents: &[&str]| {
        let mut command = vec!["commit-tree", "-m", "made"];
        for parent in parents {
            command.extend(["-p", parent]);
        }
        command.push(tree.trim());
        ObjectId::from_hex(peer.repository.git(&command).unwrap().trim().as_bytes()).unwrap()
    };
    let (other, second) = (id("other").to_string(), id("second").to_string());
    let merged = make(&[&other, &second]);
    let apart = make(&[]);
    for (name, commit) in [("merged", merged), ("apart", apart)] {
        let reference = format!("refs/heads/{name}");
        peer.repository
            .git(&["update-ref", &reference, &commit.to_string()])
            .unwrap();
    }
    for (head, base, expected) in [
        (id("other"), id("head"), Some(id("first"))),
        (id("side"), id("head"), Some(id("side"))),
        (id("head"), id("second"), Some(id("second"))),
        (id("head"), id("head"), Some(id("head"))),
        (merged, id("head"), Some(id("second"))),
        (apart, id("head"), None),
    ] {
        let found = merge_base(peer.request(MAIN, None), head, base).await.unwrap();
        assert_eq!(found, expected, "{head} {base}");
    }
    peer.repository
        .git(&["config", "uploadpack.allowFilter", "false"])
        .unwrap();
    let refused = merge_base(peer.request(MAIN, None), id("other"), id("head")).await;
    assert!(matches!(refused, Err(Error::Unfiltered)));
}
