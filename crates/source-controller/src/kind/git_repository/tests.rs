//! Verification, submodules and inclusions, with real repositories, keys and signatures.

use std::path::Path;

use controller_kit::ObjectKey;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use testkit::git::signing::{Gpg, Signer, SshKey, git_verifies};
use testkit::git::{Access, Change, GitServer, KeyPair, Repository, SshServer};

use super::include::Inclusion;
use super::*;
use crate::kind::tests::Peer;
use crate::reconcile::store::store;

fn repository(spec: serde_json::Value) -> GitRepository {
    serde_json::from_value(serde_json::json!({"metadata": {"name": "a", "namespace": "b"}, "spec": spec}))
        .unwrap()
}

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    let url = "https://h/r";
    let cases = [
        (serde_json::json!({"url": url}), None),
        (serde_json::json!({"url": url, "provider": "generic"}), None),
        (serde_json::json!({"url": "ssh://git@h/r"}), None),
        (
            serde_json::json!({"url": url, "provider": "github"}),
            Some("secretRef with github app data must be specified when provider is set to github"),
        ),
    ];
    for (mut spec, expected) in cases {
        spec["interval"] = "1m".into();
        let refusal = repository(spec).refusal().map(|error| error.message());
        assert_eq!(refusal.as_deref(), expected);
    }
    let broken = repository(serde_json::json!({"url": "https://u:secret@h:port/r", "interval": "1m"}));
    assert_eq!(
        broken.refusal().map(|error| error.message()).unwrap(),
        "failed to parse url 'https://h:port/r': invalid port number"
    );
}

#[test]
fn long_subjects_are_cut_like_in_flux() {
    assert_eq!(shortened("short"), "short");
    assert_eq!(shortened(&"ä".repeat(50)), "ä".repeat(50));
    assert_eq!(shortened(&"ä".repeat(51)), format!("{}...", "ä".repeat(50)));
}

/// A server with a repository, a store, and the controller's way from the one into the other.
struct World {
    peer: Peer,
    server: GitServer,
    app: Repository,
}

impl World {
    async fn start() -> Self {
        let peer = Peer::new();
        let server = GitServer::start().await.unwrap();
        let app = server.create_repository("app").unwrap();
        Self { peer, server, app }
    }

    /// Fetches, verifies when the spec wants that, and stores, as a reconcile does.
    async fn take(
        &self,
        name: &str,
        mut spec: Value,
        references: &References,
    ) -> Result<(Record, String), Error> {
        spec["interval"] = "1m".into();
        if spec["url"].is_null() {
            spec["url"] = self.app.url().into();
        }
        if spec["ref"].is_null() {
            spec["ref"] = json!({"branch": "main"});
        }
        let object = json!({"metadata": {"name": name, "namespace": "apps"}, "spec": spec});
        let object: GitRepository = serde_json::from_value(object).unwrap();
        assert_eq!(object.refusal().map(|error| error.message()), None);
        let error = |failure: Failure| failure.error;
        let fetched = object
            .fetch(references, None, &self.peer.fetcher)
            .await
            .map_err(error)?;
        let Fetch::New(mut fetched) = fetched else {
            panic!("nothing is known yet")
        };
        let message = if object.wants_verification() {
            object
                .verify(references, &mut fetched, &self.peer.fetcher)
                .await?
                .message
        } else {
            String::new()
        };
        let key = ObjectKey::from_object(&object);
        let record = store::<GitRepository>(&key, fetched, &self.peer.store, &self.peer.fetcher)
            .await
            .map_err(error)?;
        Ok((record, message))
    }

    /// The files of an artifact.
    async fn files(&self, spec: Value, references: &References) -> Result<Vec<String>, String> {
        let taken = self.take("app", spec, references).await;
        let (record, _) = taken.map_err(|error| error.message())?;
        let mut paths = self.peer.paths(&record);
        paths.retain(|path| !path.ends_with('/'));
        Ok(paths)
    }

    /// (reason, message) of what is refused; the message of the condition otherwise.
    async fn verdict(
        &self,
        mode: &str,
        reference: Value,
        keys: &[(&str, Vec<u8>)],
    ) -> Result<String, (String, String)> {
        let secret = keys
            .iter()
            .map(|(name, key)| ((*name).to_owned(), key.clone()))
            .collect();
        let references = References {
            keys: Some(Ok(Keys::from_secret(&secret))),
            ..References::default()
        };
        let before = self.peer.store.records().len();
        let spec = json!({"ref": reference, "verify": {"mode": mode, "secretRef": {"name": "keys"}}});
        match self.take("app", spec, &references).await {
            Ok((_, message)) => Ok(message),
            Err(error) => {
                let (condition, reason) = error.condition();
                assert_eq!(condition, Some("SourceVerified"), "{}", error.message());
                assert_eq!(self.peer.store.records().len(), before, "nothing of it is stored");
                Err((reason.to_owned(), error.message()))
            }
        }
    }

    fn commit(&self, branch: &str, signer: Option<&Signer>) -> String {
        let changes = [Change::write("app.yaml", branch)];
        match signer {
            Some(signer) => self.app.commit_signed(branch, "words", &changes, signer).unwrap(),
            None => self.app.commit(branch, "words", &changes).unwrap(),
        }
    }
}

fn branch(name: &str) -> Value {
    json!({"branch": name})
}

#[tokio::test]
async fn commits_are_verified_with_openpgp_as_git_verifies_them() {
    let world = World::start().await;
    let gpg = Gpg::new().unwrap();
    let generate = |owner: &str| gpg.generate(&[], owner, "ed25519", "sign", "never").unwrap();
    let (key, other, gone) = (generate("key"), generate("other"), generate("gone"));
    let primary = gpg.generate(&[], "primary", "rsa2048", "cert", "never").unwrap();
    let subkey = gpg.add_subkey(&primary, "ed25519", "sign", "never").unwrap();
    let good = world.commit("good", Some(&gpg.signer(&key)));
    let by_subkey = world.commit("subkey", Some(&gpg.signer(&format!("{subkey}!"))));
    let by_other = world.commit("other", Some(&gpg.signer(&other)));
    let by_gone = world.commit("gone", Some(&gpg.signer(&gone)));
    let unsigned = world.commit("unsigned", None);
    gpg.revoke(&gone).unwrap();
    let rings = [
        ("a.asc", gpg.export(&key).unwrap()),
        ("without-suffix", gpg.export(&primary).unwrap()),
        ("gone.asc", gpg.export(&gone).unwrap()),
    ];
    let id = |fingerprint: &str| fingerprint[fingerprint.len() - 16..].to_owned();
    let head = |name: &'static str| world.verdict("HEAD", branch(name), &rings);

    let message = |commit: &str, key: &str| {
        format!(
            "verified signature of\n\t- commit '{commit}' with key '{}'",
            id(key)
        )
    };
    assert_eq!(head("good").await, Ok(message(&good, &key)));
    assert_eq!(
        world.verdict("head", branch("good"), &rings).await,
        Ok(message(&good, &key))
    );
    assert_eq!(head("subkey").await, Ok(message(&by_subkey, &primary)));
    let refused = |commit: &str, why: &str| {
        let text = format!("signature verification of commit '{commit}' failed: {why}");
        Err(("InvalidCommitSignature".to_owned(), text))
    };
    assert_eq!(
        head("unsigned").await,
        refused(&unsigned, "unsupported signature type: empty")
    );
    let rings_failed =
        "unable to verify Git commit: unable to verify payload with any of the given key rings";
    let unknown = format!(
        "{rings_failed}: no matching key: the signature was made with key {}",
        id(&other)
    );
    assert_eq!(head("other").await, refused(&by_other, &unknown));
    let revoked = format!("{rings_failed}: key {}: the key is revoked", id(&gone));
    assert_eq!(head("gone").await, refused(&by_gone, &revoked));
    let no_keys = "PGP signature detected but no PGP public keys found in secret (keys with .asc suffix)";
    let only_ssh = [("x.sshpub", Vec::new())];
    assert_eq!(
        world.verdict("HEAD", branch("good"), &only_ssh).await,
        refused(&good, no_keys)
    );

    // git itself decides alike; a revoked key it tells of without failing.
    for (commit, verifies) in [(&good, true), (&by_subkey, true), (&unsigned, false)] {
        assert_eq!(
            git_verifies(&world.app, commit, Some(&gpg), None),
            verifies,
            "{commit}"
        );
    }
}

#[tokio::test]
async fn commits_are_verified_with_ssh_as_git_verifies_them() {
    let world = World::start().await;
    let kinds: [&[&str]; 3] = [
        &["-t", "ed25519"],
        &["-t", "ecdsa", "-b", "384"],
        &["-t", "rsa", "-b", "3072"],
    ];
    let stranger = SshKey::generate(kinds[0]).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    for (index, kind) in kinds.into_iter().enumerate() {
        let key = SshKey::generate(kind).unwrap();
        let name = format!("branch-{index}");
        let commit = world.commit(&name, Some(&key.signer()));
        let keys = [("me.sshpub", key.public().unwrap().into_bytes())];
        let message = format!(
            "verified signature of\n\t- commit '{commit}' with key '{}'",
            key.fingerprint().unwrap()
        );
        assert_eq!(world.verdict("HEAD", branch(&name), &keys).await, Ok(message));
        let others = [("me.sshpub", stranger.public().unwrap().into_bytes())];
        let (reason, why) = world.verdict("HEAD", branch(&name), &others).await.unwrap_err();
        assert_eq!(reason, "InvalidCommitSignature");
        assert!(why.contains(&key.fingerprint().unwrap()), "{why}");
        for (key, verifies) in [(&key, true), (&stranger, false)] {
            let public = key.public().unwrap();
            std::fs::write(file.path(), format!("testkit@windlass.dev {public}\n")).unwrap();
            let allowed: &Path = file.path();
            assert_eq!(git_verifies(&world.app, &commit, None, Some(allowed)), verifies);
        }
    }
}

#[tokio::test]
async fn tags_are_verified_by_their_own_object() {
    let world = World::start().await;
    let gpg = Gpg::new().unwrap();
    let key = gpg.generate(&[], "key", "ed25519", "sign", "never").unwrap();
    let ssh = SshKey::generate(&["-t", "ed25519"]).unwrap();
    let keys = [
        ("a.asc", gpg.export(&key).unwrap()),
        ("b.sshpub", ssh.public().unwrap().into_bytes()),
    ];
    let commit = world.commit("main", Some(&ssh.signer()));
    let tag = world
        .app
        .signed_tag("v1.0.0", "main", "one", &gpg.signer(&key))
        .unwrap();
    world.app.annotated_tag("v0.1.0", "main", "unsigned").unwrap();
    world.app.tag("v0.0.1", "main").unwrap();
    let id = &key[key.len() - 16..];
    let of_tag = format!("\n\t- tag 'v1.0.0@{tag}' with key '{id}'");
    let of_commit = format!(
        "\n\t- commit '{commit}' with key '{}'",
        ssh.fingerprint().unwrap()
    );
    let references = [
        json!({"tag": "v1.0.0"}),
        json!({"semver": ">=1.0.0"}),
        json!({"name": "refs/tags/v1.0.0"}),
    ];
    for reference in references {
        let message = world.verdict("Tag", reference.clone(), &keys).await;
        assert_eq!(
            message,
            Ok(format!("verified signature of{of_tag}")),
            "{reference}"
        );
        let message = world.verdict("TagAndHEAD", reference.clone(), &keys).await;
        assert_eq!(
            message,
            Ok(format!("verified signature of{of_tag}{of_commit}")),
            "{reference}"
        );
    }
    let refusal = |mode: &'static str, reference: Value| {
        let world = &world;
        let keys = &keys;
        async move { world.verdict(mode, reference, keys).await.unwrap_err() }
    };
    let (reason, why) = refusal("Tag", branch("main")).await;
    assert_eq!(reason, "InvalidVerificationMode");
    assert_eq!(
        why,
        "cannot verify tag object's signature if a tag reference is not specified"
    );
    let (reason, why) = refusal("Tag", json!({"tag": "v0.0.1"})).await;
    assert_eq!(reason, "InvalidGitObject");
    assert_eq!(
        why,
        "cannot verify signature of tag 'v0.0.1' since it is not signed"
    );
    let (reason, why) = refusal("TagAndHEAD", json!({"tag": "v0.1.0"})).await;
    assert_eq!(reason, "InvalidGitObject");
    assert!(
        why.starts_with("cannot verify signature of tag 'v0.1.0@"),
        "{why}"
    );

    // A new name for an old tag is how a remote would pass off an old release.
    world.app.git(&["update-ref", "refs/tags/v2.0.0", &tag]).unwrap();
    let (reason, why) = refusal("Tag", json!({"tag": "v2.0.0"})).await;
    assert_eq!(reason, "InvalidTagSignature");
    assert!(why.ends_with("the tag was made with the name 'v1.0.0'"), "{why}");
    // A signed tag of a tag leads to the commit all the same.
    let outer = world
        .app
        .signed_tag("v3.0.0", &tag, "outer", &gpg.signer(&key))
        .unwrap();
    let message = world
        .verdict("Tag", json!({"tag": "v3.0.0"}), &keys)
        .await
        .unwrap();
    assert!(message.contains(&outer), "{message}");
}

#[tokio::test]
async fn a_missing_secret_is_told_when_something_is_to_be_verified() {
    let world = World::start().await;
    world.commit("main", None);
    let references = References {
        keys: Some(Err("secrets \"keys\" not found".to_owned())),
        ..References::default()
    };
    let spec = json!({"verify": {"secretRef": {"name": "keys"}}});
    let error = world.take("app", spec, &references).await.unwrap_err();
    assert_eq!(error.condition(), (Some("SourceVerified"), "VerificationError"));
    assert_eq!(
        error.message(),
        "public keys secret error: secrets \"keys\" not found"
    );
}

fn modules(entries: &[(&str, &str)]) -> Change {
    let text: String = entries
        .iter()
        .map(|(path, url)| format!("[submodule \"{path}\"]\n\tpath = {path}\n\turl = {url}\n"))
        .collect();
    Change::write(".gitmodules", text)
}

#[tokio::test]
async fn submodules_come_with_theirs() {
    let world = World::start().await;
    let (lib, deep) = (
        world.server.create_repository("lib").unwrap(),
        world.server.create_repository("deep").unwrap(),
    );
    let deepest = deep
        .commit("main", "1", &[Change::write("deep.txt", "d")])
        .unwrap();
    // Not at the head of any branch: only the commit that is referred to counts.
    deep.commit("main", "2", &[Change::write("later.txt", "l")])
        .unwrap();
    let changes = [
        Change::write("lib.txt", "l"),
        Change::write("x/skip.txt", "s"),
        Change::write("x/.sourceignore", "skip.txt"),
        modules(&[("vendor/deep", "../deep.git")]),
        Change::Submodule("vendor/deep".to_owned(), deepest),
    ];
    let commit = lib.commit("main", "1", &changes).unwrap();
    let changes = [
        Change::write("app.yaml", "a"),
        modules(&[
            ("libs/lib", lib.url()),
            ("not/there", "https://nowhere.invalid/x"),
        ]),
        Change::Submodule("libs/lib".to_owned(), commit.clone()),
        Change::Submodule("unlisted".to_owned(), commit),
    ];
    world.app.commit("main", "1", &changes).unwrap();
    let references = References::default();
    let files = world
        .files(json!({"recurseSubmodules": true}), &references)
        .await
        .unwrap();
    let expected = [
        "app.yaml",
        "libs/lib/lib.txt",
        "libs/lib/vendor/deep/deep.txt",
        "libs/lib/x/.sourceignore",
    ];
    let shown: Vec<_> = files
        .iter()
        .filter(|path| !path.contains(".gitmodules"))
        .collect();
    assert_eq!(shown, expected);
    let files = world.files(json!({}), &references).await.unwrap();
    assert!(!files.iter().any(|path| path.contains("lib.txt")), "{files:?}");
    // What is not wanted is not fetched.
    world.server.reset_requests();
    let sparse = json!({"recurseSubmodules": true, "sparseCheckout": ["unlisted"]});
    world.files(sparse, &references).await.unwrap();
    assert_eq!(world.server.requests("lib"), []);
}

#[tokio::test]
async fn credentials_go_to_the_server_of_the_repository_alone() {
    let world = World::start().await;
    let elsewhere = GitServer::start().await.unwrap();
    let (lib, foreign) = (
        world.server.create_repository("lib").unwrap(),
        elsewhere.create_repository("foreign").unwrap(),
    );
    let basic = || Access::Basic {
        username: "u".to_owned(),
        password: "p".to_owned(),
    };
    for (server, name) in [
        (&world.server, "app"),
        (&world.server, "lib"),
        (&elsewhere, "foreign"),
    ] {
        server.set_access(name, basic());
    }
    let secret = [("username", "u"), ("password", "p")];
    let references = References {
        access: git::References {
            secret: secret.map(|(name, value)| (name.to_owned(), value.into())).into(),
            ..git::References::default()
        },
        ..References::default()
    };
    let spec = json!({"recurseSubmodules": true});
    for (other, is_same_server) in [(&lib, true), (&foreign, false)] {
        let commit = other
            .commit("main", "1", &[Change::write("lib.txt", "l")])
            .unwrap();
        let changes = [
            modules(&[("lib", other.url())]),
            Change::Submodule("lib".to_owned(), commit),
        ];
        world.app.commit("main", "1", &changes).unwrap();
        let files = world.files(spec.clone(), &references).await;
        assert_eq!(files.is_ok(), is_same_server, "{files:?}");
        if let Err(message) = files {
            let url = foreign.url();
            let expected = format!("unable to clone '{url}': authentication required");
            assert!(message.contains(&expected), "{message}");
        }
    }
    assert!(
        elsewhere
            .requests("foreign")
            .iter()
            .all(|request| !request.allowed)
    );
}

#[tokio::test]
async fn over_ssh_the_key_goes_to_servers_that_the_secret_knows() {
    let (near, far) = (
        SshServer::start(&[]).await.unwrap(),
        SshServer::start(&[]).await.unwrap(),
    );
    let key = KeyPair::generate(&["-t", "ed25519"]).unwrap();
    for server in [&near, &far] {
        server.authorize(&key.public).unwrap();
    }
    let (app, lib) = (
        near.create_repository("app").unwrap(),
        far.create_repository("lib").unwrap(),
    );
    let commit = lib.commit("main", "1", &[Change::write("lib.txt", "l")]).unwrap();
    let changes = [
        modules(&[("lib", lib.url())]),
        Change::Submodule("lib".to_owned(), commit),
    ];
    app.commit("main", "1", &changes).unwrap();
    let (near, far) = (near.known_hosts().unwrap(), far.known_hosts().unwrap());
    let world = World::start().await;
    let spec = json!({"url": app.url(), "recurseSubmodules": true});
    for (known_hosts, is_known) in [(format!("{near}\n{far}"), true), (near, false)] {
        let secret = [("identity", key.private.clone()), ("known_hosts", known_hosts)];
        let references = References {
            access: git::References {
                secret: secret
                    .map(|(name, value)| (name.to_owned(), value.into_bytes()))
                    .into(),
                ..git::References::default()
            },
            ..References::default()
        };
        match world.files(spec.clone(), &references).await {
            Ok(files) => assert!(is_known && files.contains(&"lib/lib.txt".to_owned()), "{files:?}"),
            Err(message) => assert!(
                !is_known && message.contains("knownhosts: key is unknown"),
                "{message}"
            ),
        }
    }
    // Without a key there is none to offer.
    world.app.commit("main", "1", &changes).unwrap();
    let error = world
        .files(json!({"recurseSubmodules": true}), &References::default())
        .await
        .unwrap_err();
    assert!(
        error.contains("a submodule over ssh in a repository over http"),
        "{error}"
    );
}

#[tokio::test]
async fn hostile_submodules_are_refused() {
    let world = World::start().await;
    let lib = world.server.create_repository("lib").unwrap();
    let commit = lib.commit("main", "1", &[Change::write("a", "a")]).unwrap();
    let cases = [
        ("file:///etc", "which is none over http, https or ssh"),
        ("/etc", "which is none over http, https or ssh"),
        ("../../../x", "which is none over http, https or ssh"),
    ];
    for (url, expected) in cases {
        let changes = [
            modules(&[("lib", url)]),
            Change::Submodule("lib".to_owned(), commit.clone()),
        ];
        world.app.commit("main", "1", &changes).unwrap();
        let error = world
            .files(json!({"recurseSubmodules": true}), &References::default())
            .await
            .unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let paths: Vec<_> = (0..300).map(|index| format!("m/{index}")).collect();
    let mut changes = vec![modules(
        &paths
            .iter()
            .map(|path| (path.as_str(), lib.url()))
            .collect::<Vec<_>>(),
    )];
    changes.extend(
        paths
            .iter()
            .map(|path| Change::Submodule(path.clone(), commit.clone())),
    );
    world.app.commit("main", "many", &changes).unwrap();
    let error = world
        .files(json!({"recurseSubmodules": true}), &References::default())
        .await
        .unwrap_err();
    assert!(error.ends_with("there are more than 256 submodules"), "{error}");
    assert_eq!(world.peer.store.records().len(), 0);
}

#[tokio::test]
async fn inclusions_are_copied_from_the_store() {
    let world = World::start().await;
    let other = world.server.create_repository("other").unwrap();
    let changes = [
        Change::write("deploy/a.yaml", "a"),
        Change::write("deploy/sub/b.yaml", "b"),
        Change::write("deploy/skip.yaml", "s"),
        Change::write("top.yaml", "t"),
    ];
    other.commit("main", "1", &changes).unwrap();
    let taken = world
        .take("other", json!({"url": other.url()}), &References::default())
        .await;
    let (record, _) = taken.unwrap();
    let changes = [
        Change::write("app.yaml", "a"),
        Change::write("base/keep.yaml", "k"),
        Change::write("file", "f"),
        Change::write("base/.sourceignore", "skip.yaml"),
    ];
    world.app.commit("main", "1", &changes).unwrap();
    world.server.reset_requests();
    let include = |pairs: &[(&str, &str)]| {
        let store = world.peer.store.clone();
        let inclusions = pairs
            .iter()
            .map(|(from, to)| Inclusion::new("other", from, to, record.clone(), store.clone()));
        References {
            inclusions: inclusions.collect(),
            ..References::default()
        }
    };
    let own = ["app.yaml", "base/.sourceignore", "base/keep.yaml", "file"];
    let with = |more: &[&str]| {
        let mut all: Vec<String> = own.iter().chain(more).map(|path| (*path).to_owned()).collect();
        all.sort();
        Ok(all)
    };
    let all = [
        "other/deploy/a.yaml",
        "other/deploy/skip.yaml",
        "other/deploy/sub/b.yaml",
        "other/top.yaml",
    ];
    assert_eq!(
        world.files(json!({}), &include(&[("", "other")])).await,
        with(&all)
    );
    // Rules of the including repository hold for what is included.
    let below = ["base/app/a.yaml", "base/app/sub/b.yaml"];
    assert_eq!(
        world.files(json!({}), &include(&[("deploy", "base/app")])).await,
        with(&below)
    );
    let file = ["x/y/t.yaml"];
    assert_eq!(
        world
            .files(json!({}), &include(&[("top.yaml", "./x/y/../y/t.yaml")]))
            .await,
        with(&file)
    );
    let twice = ["one/a.yaml", "one/skip.yaml", "one/sub/b.yaml", "one/two/b.yaml"];
    let references = include(&[("deploy", "one"), ("deploy/sub", "one/two")]);
    assert_eq!(world.files(json!({}), &references).await, with(&twice));
    assert_eq!(world.server.requests("other"), [], "nothing is downloaded");
    let escaped = ["etc/b.yaml"];
    assert_eq!(
        world
            .files(json!({}), &include(&[("../../deploy/sub", "../../etc")]))
            .await,
        with(&escaped)
    );

    for (from, to, problem) in [
        ("gone", "x", "no such file or directory"),
        ("", "base", "file exists"),
        ("", ".", "file exists"),
        ("", "file", "not a directory"),
        ("deploy", "file/x", "not a directory"),
    ] {
        let error = world.files(json!({}), &include(&[(from, to)])).await.unwrap_err();
        assert_eq!(
            error,
            format!("failed to copy 'other' include from {from} to {to}: {problem}")
        );
    }
    let sparse = json!({"sparseCheckout": ["base"]});
    let files = world
        .files(sparse, &include(&[("top.yaml", "file")]))
        .await
        .unwrap();
    assert_eq!(files, ["base/.sourceignore", "base/keep.yaml", "file"]);
}

#[test]
fn other_inclusions_make_another_artifact() {
    let object = repository(
        json!({"url": "https://h/r", "interval": "1m", "include": [{"repository": {"name": "x"}}]}),
    );
    assert_eq!(
        object.inputs(),
        [store::ObjectKey::new("GitRepository", "b", "x")]
    );
    assert!(!object.inclusion_changed(&References::default()));
    assert_eq!(object.name_any(), "a");
    let mut with_status = object;
    let artifact = json!({"path": "p", "url": "u", "revision": "r", "digest": "d", "lastUpdateTime": "2026-01-01T00:00:00Z"});
    let status = json!({"includedArtifacts": [artifact]});
    with_status.status = Some(serde_json::from_value(status).unwrap());
    assert!(with_status.inclusion_changed(&References::default()));
}
