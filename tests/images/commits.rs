//! From a pushed image to a commit.

use anyhow::ensure;
use serde_json::{Value, json};
use testkit::Controller;
use testkit::controller::ControllerOptions;
use testkit::git::signing::{Gpg, git_verifies};
use testkit::git::{Change, KeyPair};
use testkit::objects::{apply, condition, text};

use crate::world::{IMAGE, KILLED, Scene, play};

fn marker(scene: &Scene, policy: &str) -> String {
    format!("# {{\"$imagepolicy\": \"{}:{policy}\"}}", scene.namespace)
}

#[test]
fn a_pushed_image_becomes_a_commit_that_changes_just_the_marked_value() {
    play("commit", async |scene| {
        let image = scene.image("web");
        let mark = marker(&scene, "web");
        let before = format!(
            "kind:   Deployment\n\n\nspec:\n    - image:    '{image}:0.1.0'   {mark}\n    # the end\n"
        );
        let repository = scene
            .git(&[("deploy/app.yaml", &before), ("other.yaml", "a: b\n")])
            .await?;
        scene.push("web", &["1.0.0", "latest", "2.0.0-rc.1"]).await?;
        scene
            .follow("web", json!({"policy": {"semver": {"range": ">=1.0.0"}}}))
            .await?;
        scene.automate("auto", json!({}), json!({})).await?;

        let first = scene.pushed("auto", "").await?;
        ensure!(repository.resolve("main")? == first);
        let after = repository.git(&["show", "main:deploy/app.yaml"])?;
        assert_eq!(after.trim_end(), before.replace("0.1.0", "1.0.0").trim_end());
        let log = repository.git(&["log", "-1", "--format=%an <%ae>|%B", "main"])?;
        assert_eq!(
            log.trim(),
            format!("Bot <bot@example.com>|{image}:0.1.0 -> {image}:1.0.0")
        );
        assert_eq!(
            repository
                .git(&["show", "--name-only", "--format=", "main"])?
                .trim(),
            "deploy/app.yaml"
        );

        let fetches = || scene.world.git.counts(&scene.namespace).fetch;
        let fetched = fetches();
        scene.push("web", &["1.1.0"]).await?;
        scene.poke("ImageRepository", "web").await?;
        let second = scene.pushed("auto", &first).await?;
        ensure!(fetches() == fetched, "what it pushed itself was fetched");
        let after = repository.git(&["show", "main:deploy/app.yaml"])?;
        assert_eq!(after.trim_end(), before.replace("0.1.0", "1.1.0").trim_end());
        let policy = scene
            .wait("ImagePolicy", "web", |policy| {
                text(policy, "/status/latestRef/tag") == "1.1.0"
            })
            .await?;
        assert_eq!(text(&policy, "/status/observedPreviousRef/tag"), "1.0.0");
        let (_, _, message) = condition(&policy, "Ready").unwrap_or_default();
        assert_eq!(
            message,
            format!("Latest image tag for {image} resolved to 1.1.0 (previously {image}:1.0.0)")
        );

        let another = format!("image: {image}:0.0.0 {mark}\n");
        let person = Change::write("deploy/another.yaml", another.clone());
        repository.commit("main", "by a person", &[person])?;
        scene.push("web", &["1.2.0"]).await?;
        scene.poke("ImageRepository", "web").await?;
        scene.pushed("auto", &second).await?;
        ensure!(fetches() > fetched, "the commit of a person was not fetched");
        for (path, before) in [("deploy/app.yaml", before), ("deploy/another.yaml", another)] {
            let after = repository.git(&["show", &format!("main:{path}")])?;
            let expected = before.replace("0.1.0", "1.2.0").replace("0.0.0", "1.2.0");
            assert_eq!(after.trim_end(), expected.trim_end());
        }
        Ok(())
    });
}

#[test]
fn commits_are_signed_with_the_key_of_the_automation() {
    play("signed", async |scene| {
        let mark = marker(&scene, "web");
        let repository = scene.git(&[("app.yaml", &format!("image: x {mark}\n"))]).await?;
        let gpg = Gpg::new()?;
        let key = gpg.generate(&[], "bot <bot@example.com>", "ed25519", "sign", "never")?;
        let armored = gpg.gpg(&["--armor", "--export-secret-keys", &key], &[])?;
        let ssh = KeyPair::generate(&["-t", "ed25519"])?;
        for (name, data) in [
            ("gpg", json!({"git.asc": String::from_utf8(armored)?})),
            ("ssh", json!({"identity": ssh.private})),
        ] {
            let secret = json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "namespace": scene.namespace},
                "stringData": data,
            });
            apply(&scene.client, &secret).await?;
        }
        scene.push("web", &["1.0.0"]).await?;
        scene
            .follow("web", json!({"policy": {"semver": {"range": "*"}}}))
            .await?;
        let signed = |type_: &str| {
            json!({"commit": {
                "author": {"email": "bot@example.com"},
                "signingKey": {"type": type_, "secretRef": {"name": type_}},
            }})
        };
        scene.automate("auto", signed("gpg"), json!({})).await?;
        let first = scene.pushed("auto", "").await?;
        ensure!(
            git_verifies(&repository, &first, Some(&gpg), None),
            "gpg verifies {first}"
        );

        scene.automate("auto", signed("ssh"), json!({})).await?;
        scene.push("web", &["1.0.1"]).await?;
        scene.poke("ImageRepository", "web").await?;
        let second = scene.pushed("auto", &first).await?;
        let folder = tempfile::tempdir()?;
        let allowed = folder.path().join("allowed");
        std::fs::write(&allowed, format!("bot@example.com {}", ssh.public))?;
        ensure!(
            git_verifies(&repository, &second, None, Some(&allowed)),
            "ssh-keygen verifies {second}"
        );
        Ok(())
    });
}

#[test]
fn another_branch_is_made_and_grows_and_the_first_stays() {
    play("branch", async |scene| {
        let mark = marker(&scene, "web");
        let repository = scene.git(&[("app.yaml", &format!("image: x {mark}\n"))]).await?;
        let main = repository.resolve("main")?;
        scene.push("web", &["1.0.0"]).await?;
        scene
            .follow("web", json!({"policy": {"semver": {"range": "*"}}}))
            .await?;
        let push =
            json!({"push": {"branch": "auto/images", "refspec": "refs/heads/auto/images:refs/heads/mirror"}});
        scene.automate("auto", push, json!({})).await?;
        let first = scene.pushed("auto", "").await?;
        assert_eq!(repository.resolve("auto/images")?, first);
        assert_eq!(repository.resolve("mirror")?, first);
        assert_eq!(repository.resolve("main")?, main);
        scene.push("web", &["1.0.1"]).await?;
        scene.poke("ImageRepository", "web").await?;
        let second = scene.pushed("auto", &first).await?;
        assert_eq!(repository.resolve("auto/images^")?, first);
        assert_eq!(repository.resolve("mirror")?, second);
        // The same again changes nothing.
        let token = scene.poke("ImageUpdateAutomation", "auto").await?;
        let handled = |object: &_| text(object, "/status/lastHandledReconcileAt") == token;
        scene.wait("ImageUpdateAutomation", "auto", handled).await?;
        assert_eq!(repository.resolve("auto/images")?, second);
        Ok(())
    });
}

#[test]
fn a_push_branch_is_one_commit_on_the_newest_base_until_someone_else_commits_to_it() {
    play("anew", async |scene| {
        let mark = marker(&scene, "web");
        let file = format!("image: x {mark}\n");
        let repository = scene.git(&[("app.yaml", &file)]).await?;
        scene.push("web", &["1.0.0"]).await?;
        scene
            .follow("web", json!({"policy": {"semver": {"range": "*"}}}))
            .await?;
        scene
            .automate("auto", json!({"push": {"branch": "auto/images"}}), json!({}))
            .await?;
        let first = scene.pushed("auto", "").await?;
        let newer = async |tag: &str, known: &str| {
            scene.push("web", &[tag]).await?;
            scene.poke("ImageRepository", "web").await?;
            scene.pushed("auto", known).await
        };
        let parent = |commit: &str| repository.resolve(&format!("{commit}^"));
        assert_eq!(parent(&first)?, repository.resolve("main")?);

        // Another file of the base changes: nothing is to be done before the images change.
        let base = repository.commit("main", "more", &[Change::write("other.txt", "more")])?;
        let token = scene.poke("ImageUpdateAutomation", "auto").await?;
        let handled = |object: &_| text(object, "/status/lastHandledReconcileAt") == token;
        scene.wait("ImageUpdateAutomation", "auto", handled).await?;
        assert_eq!(repository.resolve("auto/images")?, first);
        let second = newer("1.0.1", &first).await?;
        assert_eq!(repository.resolve("auto/images")?, second);
        assert_eq!(parent(&second)?, base, "it is one commit on the newest base");
        let content = repository.git(&["show", "auto/images:app.yaml"])?;
        assert!(content.contains("/web:1.0.1 "), "{content}");

        // The base changes a file that is edited: the commit is made over it.
        let changed = format!("# more\n{file}");
        let base = repository.commit("main", "edit", &[Change::write("app.yaml", &*changed)])?;
        scene.poke("ImageUpdateAutomation", "auto").await?;
        let third = scene.pushed("auto", &second).await?;
        assert_eq!(parent(&third)?, base);

        // Someone else commits to the branch: nothing of theirs is replaced.
        let theirs = repository.commit("auto/images", "theirs", &[Change::write("theirs.txt", "x")])?;
        let fourth = newer("1.0.2", &third).await?;
        assert_eq!(parent(&fourth)?, theirs);
        let fifth = newer("1.0.3", &fourth).await?;
        assert_eq!(parent(&fifth)?, fourth);
        assert_eq!(repository.resolve("main")?, base);

        // It is merged and deleted: the next change begins anew.
        let merged = repository.commit("main", "merge", &[Change::write("app.yaml", content.as_str())])?;
        repository.delete_reference("refs/heads/auto/images")?;
        let sixth = newer("1.0.4", &fifth).await?;
        assert_eq!(parent(&sixth)?, merged);
        Ok(())
    });
}

#[test]
fn without_the_feature_gate_a_push_branch_is_continued() {
    play("continued", async |scene| {
        let options = ControllerOptions {
            flags: vec![
                format!("--watch-label-selector={KILLED}=continued"),
                "--feature-gates=GitForcePushBranch=false".to_owned(),
            ],
            ..ControllerOptions::default()
        };
        let kubeconfig = scene.world.control_plane.kubeconfig_path();
        let _controller = Controller::start_image(kubeconfig, options).await?;
        let mark = marker(&scene, "web");
        let repository = scene.git(&[("app.yaml", &format!("image: x {mark}\n"))]).await?;
        scene.push("web", &["1.0.0"]).await?;
        let own = |kind: &str, spec: Value| {
            json!({"apiVersion": IMAGE, "kind": kind, "spec": spec,
                "metadata": {"name": "web", "namespace": scene.namespace, "labels": {KILLED: "continued"}}})
        };
        for object in [
            own(
                "ImageRepository",
                json!({"image": scene.image("web"), "interval": "1s", "insecure": true}),
            ),
            own(
                "ImagePolicy",
                json!({"imageRepositoryRef": {"name": "web"}, "policy": {"semver": {"range": "*"}}}),
            ),
            own(
                "ImageUpdateAutomation",
                json!({"sourceRef": {"kind": "GitRepository", "name": "app"}, "interval": "1h",
                "git": {"commit": {"author": {"email": "bot@example.com"}}, "push": {"branch": "auto/images"}}}),
            ),
        ] {
            apply(&scene.client, &object).await?;
        }
        let first = scene.pushed("web", "").await?;
        repository.commit("main", "more", &[Change::write("other.txt", "more")])?;
        scene.push("web", &["1.0.1"]).await?;
        let second = scene.pushed("web", &first).await?;
        assert_eq!(repository.resolve(&format!("{second}^"))?, first);
        Ok(())
    });
}

#[test]
fn a_second_push_that_failed_is_made_up_for() {
    play("second", async |scene| {
        use std::os::unix::fs::PermissionsExt as _;
        let mark = marker(&scene, "web");
        let repository = scene.git(&[("app.yaml", &format!("image: x {mark}\n"))]).await?;
        let hook = repository.directory().join("hooks/update");
        std::fs::create_dir_all(repository.directory().join("hooks"))?;
        std::fs::write(&hook, "#!/bin/sh\ntest \"$1\" != refs/heads/mirror\n")?;
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755))?;
        scene.push("web", &["1.0.0"]).await?;
        scene
            .follow("web", json!({"policy": {"semver": {"range": "*"}}}))
            .await?;
        let push = json!({"push": {"branch": "main", "refspec": "refs/heads/main:refs/heads/mirror"}});
        scene.automate("auto", push, json!({})).await?;
        let declined = |object: &_| {
            condition(object, "Ready").is_some_and(|(_, reason, message)| {
                reason == "GitOperationFailed" && message.contains("mirror")
            })
        };
        scene.wait("ImageUpdateAutomation", "auto", declined).await?;
        let pushed = repository.resolve("main")?;
        ensure!(repository.resolve("mirror").is_err(), "the hook declined it");
        std::fs::remove_file(&hook)?;
        scene
            .wait("ImageUpdateAutomation", "auto", testkit::objects::is_ready)
            .await?;
        assert_eq!(repository.resolve("mirror")?, pushed);
        assert_eq!(repository.resolve("main")?, pushed);
        Ok(())
    });
}

#[test]
fn markers_without_effect_are_named_with_file_and_line() {
    play("markers", async |scene| {
        let mark = marker(&scene, "web");
        let files = [
            ("apps/good.yaml", format!("image: x {mark}\n")),
            (
                "apps/typo.yaml",
                "a: b\nimage: x # {\"$imagepolicy\": \"nowhere:web\"}\n".to_owned(),
            ),
            ("apps/broken.yaml", format!("a: [\nimage: x {mark}\n")),
            ("apps/alias.yaml", format!("a: &x y\nb: *x {mark}\n")),
            (
                "outside.yaml",
                "image: x # {\"$imagepolicy\": \"nowhere:web\"}\n".to_owned(),
            ),
        ];
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        scene.git(&files).await?;
        scene.push("web", &["1.0.0"]).await?;
        scene
            .follow("web", json!({"policy": {"semver": {"range": "*"}}}))
            .await?;
        scene
            .automate("auto", json!({}), json!({"update": {"path": "./apps"}}))
            .await?;
        scene.pushed("auto", "").await?;
        let automation = scene
            .wait("ImageUpdateAutomation", "auto", |object| {
                condition(object, "MarkersIgnored").is_some()
            })
            .await?;
        let (_, _, message) = condition(&automation, "MarkersIgnored").unwrap_or_default();
        for expected in [
            "apps/typo.yaml:2: the marker names 'nowhere:web'",
            "apps/broken.yaml:",
            "apps/alias.yaml:2: no value that can be set",
        ] {
            ensure!(message.contains(expected), "{expected:?} in {message}");
        }
        ensure!(!message.contains("outside.yaml"), "{message}");
        Ok(())
    });
}

#[test]
fn a_mutable_tag_is_followed_by_its_digest() {
    play("digest", async |scene| {
        let mark = marker(&scene, "web");
        let repository = scene.git(&[("app.yaml", &format!("image: x {mark}\n"))]).await?;
        let one = scene.push("web", &["released"]).await?;
        let policy = json!({
            "filterTags": {"pattern": "^released$"},
            "policy": {"alphabetical": {}},
            "digestReflectionPolicy": "Always",
            "interval": "1h",
        });
        scene.follow("web", policy).await?;
        scene.automate("auto", json!({}), json!({})).await?;
        let first = scene.pushed("auto", "").await?;
        let show = || repository.git(&["show", "main:app.yaml"]);
        ensure!(show()?.contains(&format!(":released@{one} ")), "{}", show()?);
        // The pipeline has tested another build, and releases it.
        let two = scene.push("web", &["build-2"]).await?;
        let mut tag = std::process::Command::new(testkit::controller::program("windlass")?);
        tag.args([
            "tag",
            &format!("{}@{two}", scene.image("web")),
            "released",
            "--insecure-registry",
        ]);
        let said = tokio::task::spawn_blocking(move || tag.output()).await??;
        ensure!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        scene.poke("ImagePolicy", "web").await?;
        scene.pushed("auto", &first).await?;
        ensure!(show()?.contains(&format!(":released@{two} ")), "{}", show()?);
        Ok(())
    });
}

#[test]
fn a_hook_that_declines_is_quoted_and_a_bad_spec_stalls() {
    play("declined", async |scene| {
        use std::os::unix::fs::PermissionsExt as _;
        let mark = marker(&scene, "web");
        let repository = scene.git(&[("app.yaml", &format!("image: x {mark}\n"))]).await?;
        let hook = repository.directory().join("hooks/pre-receive");
        std::fs::create_dir_all(repository.directory().join("hooks"))?;
        std::fs::write(&hook, "#!/bin/sh\necho 'frozen until Monday' >&2\nexit 1\n")?;
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755))?;
        scene.push("web", &["1.0.0"]).await?;
        scene
            .follow("web", json!({"policy": {"semver": {"range": "*"}}}))
            .await?;
        scene.automate("auto", json!({}), json!({})).await?;
        // At first, the GitRepository may not be known yet.
        let failed = |object: &_| {
            condition(object, "Ready").is_some_and(|(_, reason, _)| reason == "GitOperationFailed")
        };
        let object = scene.wait("ImageUpdateAutomation", "auto", failed).await?;
        let (_, _, message) = condition(&object, "Ready").unwrap_or_default();
        ensure!(message.contains("frozen until Monday"), "{message}");

        let removed =
            json!({"commit": {"author": {"email": "a@b"}, "messageTemplate": "{{ .Updated.Files }}"}});
        scene.automate("auto", removed, json!({})).await?;
        let stalled = |object: &_| {
            condition(object, "Stalled").is_some_and(|(_, reason, _)| reason == "RemovedTemplateField")
        };
        scene.wait("ImageUpdateAutomation", "auto", stalled).await?;
        repository.commit("main", "unrelated", &[Change::write("x", "y")])?;
        Ok(())
    });
}

#[test]
fn images_without_markers_are_set_where_annotations_say() {
    play("unmarked", async |scene| {
        let image = scene.image("web");
        let pod =
            |tag: &str| format!("kind: Pod\nspec:\n  containers:\n    - image: '{image}:{tag}' # plain\n");
        let values = |tag: &str| {
            format!(
                "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec:\n  values:\n    image:\n      repository: \
                 {image}\n      tag: {tag}\n"
            )
        };
        let before = [
            ("a/pod.yaml", pod("0.1.0")),
            ("b/web.yaml", values("0.1.0")),
            ("c/pod.yaml", pod("0.1.0")),
        ];
        let files: Vec<_> = before.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let repository = scene.git(&files).await?;
        scene.push("web", &["1.0.0"]).await?;
        scene
            .follow("web", json!({"policy": {"semver": {"range": "*"}}}))
            .await?;
        scene
            .automate(
                "auto",
                json!({}),
                json!({"update": {"path": "a", "strategy": "Setters"}}),
            )
            .await?;
        let looked = |object: &_| {
            testkit::objects::is_ready(object) && text(object, "/status/observedPolicies/web/tag") == "1.0.0"
        };
        scene.wait("ImageUpdateAutomation", "auto", looked).await?;
        ensure!(repository.git(&["log", "--format=%s", "main"])?.trim() == "first");

        // The annotations take effect without anything else that changes.
        let annotations = json!({"metadata": {"annotations": {
            "windlass.dev/unmarked-images": "containers, values", "windlass.dev/update-paths": "b",
        }}});
        let automations = testkit::objects::api(
            &scene.client,
            crate::world::IMAGE,
            "ImageUpdateAutomation",
            &scene.namespace,
        );
        let parameters = kube::api::PatchParams::default();
        automations
            .patch("auto", &parameters, &kube::api::Patch::Merge(&annotations))
            .await?;
        scene.pushed("auto", "").await?;
        let after = [
            ("a/pod.yaml", pod("1.0.0")),
            ("b/web.yaml", values("1.0.0")),
            ("c/pod.yaml", pod("0.1.0")),
        ];
        for (path, expected) in after {
            let text = repository.git(&["show", &format!("main:{path}")])?;
            assert_eq!(text.trim_end(), expected.trim_end(), "{path}");
        }
        Ok(())
    });
}

#[test]
fn of_a_repository_only_the_files_of_the_path_are_fetched() {
    play("part", async |scene| {
        let app = format!(
            "kind: App\nimage: {}:0.1.0 {}\n",
            scene.image("web"),
            marker(&scene, "web")
        );
        let files = [
            ("apps/web.yaml", &*app),
            ("apps/logo.svg", "large"),
            ("media/film", "larger"),
        ];
        let repository = scene.git(&files).await?;
        scene.push("web", &["1.0.0"]).await?;
        scene
            .follow("web", json!({"policy": {"semver": {"range": "*"}}}))
            .await?;
        let fetches = || scene.world.git.counts(&scene.namespace).fetch;
        scene
            .automate("auto", json!({}), json!({"update": {"path": "./apps"}}))
            .await?;
        let first = scene.pushed("auto", "").await?;
        assert_eq!(fetches(), 2, "folders, then the file");

        // What others push outside of it brings folders only, and stays.
        repository.commit("main", "film", &[Change::write("media/film", "another")])?;
        scene.push("web", &["1.1.0"]).await?;
        scene.poke("ImageRepository", "web").await?;
        let second = scene.pushed("auto", &first).await?;
        assert_eq!(fetches(), 3);
        let changed = repository.git(&["show", "--name-only", "--format=", &second])?;
        assert_eq!(changed.trim(), "apps/web.yaml");
        for (path, content) in [("media/film", "another"), ("apps/logo.svg", "large")] {
            let found = repository.git(&["show", &format!("main:{path}")])?;
            assert_eq!(found.trim(), content);
        }
        ensure!(
            repository
                .git(&["show", "main:apps/web.yaml"])?
                .contains(":1.1.0 ")
        );
        repository.git(&["fsck", "--full"])?;
        Ok(())
    });
}
