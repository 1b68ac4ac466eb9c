//! Changes of manifests that people ask for, proposed at a real Gitea.

use anyhow::{Result, ensure};
use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::objects::{self, apply, condition, field, text};
use testkit::wait_for;

use crate::proposals::Forge;
use crate::world::{DELIVERY, KUSTOMIZE, PATIENCE, Scene, app, play};

const KIND: &str = "ChangeRequest";

fn requests(scene: &Scene, namespace: &str) -> Api<DynamicObject> {
    objects::api(&scene.client, DELIVERY, KIND, namespace)
}

/// A request for files of the Kustomization `dev`.
fn request(scene: &Scene, name: &str, more: Value) -> Value {
    let mut spec = json!({
        "kustomizationRef": {"name": "dev"}, "changePolicyRef": {"name": "review"},
        "title": "Change the shop", "reason": "Because.", "requestedBy": "ana", "interval": "1s",
    });
    if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
        spec.extend(more);
    }
    json!({"apiVersion": DELIVERY, "kind": KIND, "metadata": {"name": name, "namespace": scene.namespace}, "spec": spec})
}

/// The file of the application with another tag, as a change of the manifest in it.
fn retagged(scene: &Scene, target: &str, tag: &str) -> Value {
    let before = app(target, &scene.namespace, "v1");
    json!({"files": [{
        "path": "dev/shop.yaml",
        "object": {"apiVersion": KUSTOMIZE, "kind": "Kustomization", "name": "shop", "namespace": target},
        "digest": manifest_edit::digest(&before),
        "content": before.replace("v1 #", &format!("{tag} #")),
    }]})
}

async fn wait(scene: &Scene, name: &str, reason: &str) -> Result<DynamicObject> {
    let is_so =
        |object: &DynamicObject| condition(object, "Ready").is_some_and(|(_, found, _)| found == reason);
    wait_for(&requests(scene, &scene.namespace), name, is_so, PATIENCE).await
}

#[test]
fn a_change_is_proposed_and_merged_by_a_person() {
    play("ask", async |scene| {
        let [dev] = scene.targets(["dev"]).await?;
        let team = &scene.namespace;
        let forge = Forge::open(&scene, &[("dev", app(&dev, team, "v1"))], json!({"merge": {}})).await?;
        scene
            .has((KUSTOMIZE, "Kustomization"), &dev, "/spec/images/0/newTag", "v1")
            .await?;
        apply(
            &scene.client,
            &request(&scene, "more", retagged(&scene, &dev, "v2")),
        )
        .await?;
        let open = forge.requests(|all| all.len() == 1).await?;
        ensure!(open[0]["title"] == "Change the shop", "{}", open[0]["title"]);
        let body = open[0]["body"].as_str().unwrap_or_default();
        ensure!(
            body.contains("`ana` asks for this change.\n\n```text\nBecause.\n```"),
            "{body}"
        );
        ensure!(body.contains("- `dev/shop.yaml: Kustomization/shop`"), "{body}");
        let object = wait(&scene, "more", "PullRequestOpen").await?;
        let (status, _, message) = condition(&object, "Ready").unwrap_or_default();
        ensure!(
            status == "Unknown"
                && message.starts_with("pull request 1 (http")
                && message.ends_with("is open"),
            "{status} {message}"
        );
        ensure!(text(&object, "/status/pullRequest/state") == "Open");
        ensure!(text(&object, "/status/pullRequest/url").ends_with("/pulls/1"));
        // The ChangePolicy merges what has passed; who asks for a change is not who agrees to it.
        ensure!(forge.file("dev").await?.contains("v1 # of the day"));
        forge.merge(1).await?;
        let object = wait(&scene, "more", "Merged").await?;
        ensure!(objects::is_ready(&object) && text(&object, "/status/pullRequest/state") == "Merged");
        ensure!(forge.file("dev").await?.contains("v2 # of the day"));
        scene
            .has((KUSTOMIZE, "Kustomization"), &dev, "/spec/images/0/newTag", "v2")
            .await?;
        // A person takes it back: nothing is proposed again.
        forge.deploy("dev", app(&dev, team, "v1")).await?;
        scene
            .has((KUSTOMIZE, "Kustomization"), &dev, "/spec/images/0/newTag", "v1")
            .await?;
        ensure!(forge.requests(|_| true).await?.len() == 1);

        // The same name again is another request.
        requests(&scene, team)
            .delete("more", &DeleteParams::default())
            .await?;
        let mut again = request(&scene, "more", retagged(&scene, &dev, "v3"));
        again["spec"]["keepFor"] = json!("1s");
        kube::runtime::wait::await_condition(
            requests(&scene, team),
            "more",
            kube::runtime::conditions::is_deleted(&object.metadata.uid.clone().unwrap_or_default()),
        )
        .await?;
        apply(&scene.client, &again).await?;
        forge.requests(|all| all.len() == 2).await?;
        let object = wait(&scene, "more", "PullRequestOpen").await?;
        let path = format!("repos/{}/pulls/2", forge.repository);
        let closed = json!({"state": "closed"});
        forge
            .gitea
            .call_as(&forge.bot, Method::PATCH, &path, Some(closed))
            .await?;
        // Closed, kept for a second, and deleted.
        tokio::time::timeout(
            PATIENCE,
            kube::runtime::wait::await_condition(
                requests(&scene, team),
                "more",
                kube::runtime::conditions::is_deleted(&object.metadata.uid.clone().unwrap_or_default()),
            ),
        )
        .await??;
        ensure!(forge.requests(|_| true).await?.len() == 2);
        Ok(())
    });
}

#[test]
fn a_new_file_is_delivered_when_it_is_merged() {
    play("new", async |scene| {
        let [dev] = scene.targets(["dev"]).await?;
        let team = &scene.namespace;
        let forge = Forge::open(&scene, &[("dev", app(&dev, team, "v1"))], json!({})).await?;
        let content =
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: fresh\n  namespace: {dev}\n");
        let files = json!({"files": [{"path": "dev/more/fresh.yaml", "content": content}]});
        apply(&scene.client, &request(&scene, "fresh", files)).await?;
        forge.requests(|all| all.len() == 1).await?;
        forge.merge(1).await?;
        wait(&scene, "fresh", "Merged").await?;
        let maps = objects::api(&scene.client, "v1", "ConfigMap", &dev);
        wait_for(&maps, "fresh", |_| true, PATIENCE).await.map(drop)
    });
}

#[test]
fn what_changed_in_git_is_not_overwritten() {
    play("stale", async |scene| {
        let [dev] = scene.targets(["dev"]).await?;
        let team = &scene.namespace;
        let forge = Forge::open(&scene, &[("dev", app(&dev, team, "v7"))], json!({})).await?;
        apply(
            &scene.client,
            &request(&scene, "late", retagged(&scene, &dev, "v2")),
        )
        .await?;
        let object = wait(&scene, "late", "ChangeNotPossible").await?;
        let (_, _, message) = condition(&object, "Ready").unwrap_or_default();
        ensure!(
            message
                == "dev/shop.yaml: Kustomization/shop was changed in Git since it was read: read it again",
            "{message}"
        );
        ensure!(forge.requests(|_| true).await?.is_empty());
        // As it was read again, it is proposed: nobody has to touch the request.
        forge.deploy("dev", app(&dev, team, "v1")).await?;
        wait(&scene, "late", "PullRequestOpen").await.map(drop)
    });
}

#[test]
fn no_request_writes_what_runs_elsewhere_or_where_it_may_not() {
    play("burglar", async |scene| {
        let [dev] = scene.targets(["dev"]).await?;
        let team = &scene.namespace;
        let forge = Forge::open(&scene, &[("dev", app(&dev, team, "v1"))], json!({})).await?;
        let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        let one = |path: &str, content: &str| json!({"files": [{"path": path, "content": content}]});
        let mut commits = request(&scene, "commits", one("dev/a.yaml", manifest));
        commits["spec"]["changePolicyRef"]["name"] = json!("direct");
        let direct = json!({
            "apiVersion": DELIVERY, "kind": "ChangePolicy", "metadata": {"name": "direct", "namespace": team},
            "spec": {"type": "Commit"},
        });
        apply(&scene.client, &direct).await?;
        let bad = [
            (
                request(&scene, "workflow", one(".github/workflows/a.yaml", manifest)),
                "hidden files or folders",
            ),
            (
                request(&scene, "up", one("dev/../base/a.yaml", manifest)),
                "without '..'",
            ),
            (
                request(&scene, "outside", one("base/a.yaml", manifest)),
                "must be below the path of the Kustomization, 'dev'",
            ),
            (
                request(&scene, "program", one("dev/a.yaml", "on: push\njobs: {}\n")),
                "each document must be a manifest",
            ),
            (
                request(
                    &scene,
                    "secret",
                    one(
                        "dev/a.yaml",
                        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: b}\n",
                    ),
                ),
                "encrypted with SOPS",
            ),
            (
                request(
                    &scene,
                    "list",
                    one(
                        "dev/a.yaml",
                        "apiVersion: v1\nkind: List\nmetadata: {name: a}\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: a}}]\n",
                    ),
                ),
                "a list is not accepted",
            ),
            (
                request(&scene, "prune", one("dev/kustomization.yaml", manifest)),
                "a kustomization.yaml is not written",
            ),
            (
                request(&scene, "runner", one("dev/appveyor.yml", manifest)),
                "no file of a CI service",
            ),
            (
                request(&scene, "over", one("dev/shop.yaml", manifest)),
                "there is such a file",
            ),
            (commits, "is not of the type PullRequest"),
        ];
        for (request, _) in &bad {
            apply(&scene.client, request).await?;
        }
        for (request, said) in &bad {
            let object = wait(
                &scene,
                request["metadata"]["name"].as_str().unwrap_or_default(),
                "ChangeNotPossible",
            )
            .await?;
            let (_, _, message) = condition(&object, "Ready").unwrap_or_default();
            ensure!(message.contains(said), "{message}");
        }
        ensure!(forge.requests(|_| true).await?.is_empty());

        // Another team learns nothing of Kustomizations and repositories that do not allow it.
        let other = scene.world.control_plane.namespace("other").await?;
        let policy = json!({
            "apiVersion": DELIVERY, "kind": "ChangePolicy", "metadata": {"name": "review", "namespace": other},
            "spec": {"type": "PullRequest", "pullRequest": {"forge": {"provider": "gitea", "secretRef": {"name": "theirs"}}}},
        });
        apply(&scene.client, &policy).await?;
        let api = requests(&scene, &other);
        for (name, of, kustomization) in [
            ("there", team.as_str(), "dev"),
            ("not", team, "no-such"),
            ("odd", "../x", "dev"),
        ] {
            let mut request = request(&scene, name, one("dev/a.yaml", manifest));
            request["metadata"]["namespace"] = json!(other);
            request["spec"]["kustomizationRef"] = json!({"name": kustomization, "namespace": of});
            apply(&scene.client, &request).await?;
            let failed = |object: &DynamicObject| condition(object, "Ready").is_some();
            let object = wait_for(&api, name, failed, PATIENCE).await?;
            let (_, reason, message) = condition(&object, "Ready").unwrap_or_default();
            let expected = format!(
                "there is no Kustomization {of}/{kustomization} whose GitRepository lists the namespace '{other}' in the annotation \
                 windlass.dev/access-from"
            );
            ensure!(
                (reason, message) == ("ChangeNotPossible", expected.as_str()),
                "{reason}: {message}"
            );
        }
        ensure!(forge.requests(|_| true).await?.is_empty());
        Ok(())
    });
}

#[test]
fn a_request_is_as_it_was_made() {
    play("fixed", async |scene| {
        let manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        let files = json!({"files": [{"path": "dev/a.yaml", "content": manifest}]});
        let mut object = request(&scene, "fixed", files);
        apply(&scene.client, &object).await?;
        let api = requests(&scene, &scene.namespace);
        let found = wait_for(
            &api,
            "fixed",
            |object| condition(object, "Ready").is_some(),
            PATIENCE,
        )
        .await?;
        let (_, reason, message) = condition(&found, "Ready").unwrap_or_default();
        ensure!(
            reason == "NotProposed" && message.contains("review"),
            "{reason}: {message}"
        );
        object["spec"]["title"] = json!("Another one");
        let error = apply(&scene.client, &object).await.unwrap_err();
        ensure!(
            format!("{error:#}").contains("spec cannot be changed"),
            "{error:#}"
        );
        // Half of what a change needs is refused by the API server, and so is what is too much.
        let half = json!({"files": [{"path": "dev/a.yaml", "content": manifest, "digest": "0".repeat(64)}]});
        let large = json!({"files": [{"path": "dev/a.yaml", "content": "#".repeat(65_537)}]});
        for (more, said) in [
            (half, "object and digest are given together"),
            (large, "Too long"),
        ] {
            let object: DynamicObject = serde_json::from_value(request(&scene, "odd", more))?;
            let error = api.create(&PostParams::default(), &object).await.unwrap_err();
            ensure!(error.to_string().contains(said), "{error}");
        }
        ensure!(field(&found, "/status/pullRequest").is_none());
        Ok(())
    });
}

#[test]
fn a_manifest_is_changed_at_the_command_line() {
    play("typed", async |scene| {
        let [dev] = scene.targets(["dev"]).await?;
        let team = &scene.namespace;
        let forge = Forge::open(&scene, &[("dev", app(&dev, team, "v1"))], json!({})).await?;
        scene
            .has((KUSTOMIZE, "Kustomization"), &dev, "/spec/images/0/newTag", "v1")
            .await?;
        let editor = [("EDITOR", "sed -i /newTag/s/v1/v2/"), ("VISUAL", "")];
        let edit = [
            "edit",
            "kustomization/shop",
            "--title",
            "The second",
            "--reason",
            "It is time",
        ];
        let (ok, said) = scene
            .windlass_in(&dev, &[&edit[..], &["--dry-run"]].concat(), &editor)
            .await?;
        let lines = "-      newTag: v1 # of the day\n+      newTag: v2 # of the day\n";
        ensure!(
            ok && said.contains("--- dev/shop.yaml\n") && said.contains(lines),
            "{said}"
        );
        let change = format!(
            "~ Kustomization/{dev}/shop changed (dev/shop.yaml:2)\n      spec.images[name=h.io/web].newTag: \"v1\" → \"v2\""
        );
        ensure!(said.contains(&change), "{said}");
        ensure!(forge.requests(|_| true).await?.is_empty());
        let (ok, said) = scene.windlass_in(&dev, &edit, &editor).await?;
        ensure!(ok && said.contains("pull request 1 (http"), "{said}");
        let first = said.split(' ').next().unwrap_or_default();
        let first = format!("changerequest/{}", first.rsplit('/').next().unwrap_or_default());
        let all = forge.requests(|all| all.len() == 1).await?;
        ensure!(all[0]["title"] == "The second", "{}", all[0]["title"]);
        forge.merge(1).await?;
        scene
            .has((KUSTOMIZE, "Kustomization"), &dev, "/spec/images/0/newTag", "v2")
            .await?;
        // Nothing is proposed when nothing was changed, or when the editor was left.
        let (ok, said) = scene.windlass_in(&dev, &edit, &editor).await?;
        ensure!(ok && said == "dev/shop.yaml: nothing changed\n", "{said}");
        let (ok, said) = scene
            .windlass_in(&dev, &edit, &[("EDITOR", "false"), ("VISUAL", "")])
            .await?;
        ensure!(!ok && said.contains("dev/shop.yaml is left as it is"), "{said}");

        // A new file.
        let folder = testkit::scratch::directory("manifests")?;
        let file = folder.path().join("fresh.yaml");
        std::fs::write(
            &file,
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: fresh, namespace: {dev}}}\n"),
        )?;
        let file = file.to_str().unwrap_or_default();
        let propose = ["propose", "-f", file, "--kustomization", "dev"];
        let (ok, said) = scene.windlass(&[&propose[..], &["--dry-run"]].concat()).await?;
        ensure!(
            ok && said.contains("+++ dev/fresh.yaml")
                && said.contains(&format!("+ ConfigMap/{dev}/fresh created")),
            "{said}"
        );
        let (ok, said) = scene.windlass(&propose).await?;
        ensure!(ok && said.contains("pull request 2 (http"), "{said}");
        let (ok, said) = scene.windlass(&["get", "changerequests"]).await?;
        ensure!(ok && said.contains("/pulls/2) is open"), "{said}");
        // It may find that it is merged, or have found it before: both are an answer.
        for _ in 0..2 {
            let (ok, said) = scene.windlass(&["reconcile", &first]).await?;
            ensure!(ok && said.contains("is ready"), "{said}");
        }
        // What was made by hand.
        let by_hand = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "by-hand", "namespace": dev},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
        });
        apply(&scene.client, &by_hand).await?;
        let orphans = ["orphans", "-o", "name"];
        let (ok, said) = scene.windlass_in(&dev, &orphans, &[]).await?;
        ensure!(ok && said.contains(&format!("Service/{dev}/by-hand\n")), "{said}");
        let (ok, said) = scene.windlass_in(&dev, &["adopt", "svc/by-hand"], &[]).await?;
        ensure!(
            !ok && said.contains("name a Kustomization with --kustomization"),
            "{said}"
        );
        let kustomization = format!("{team}/dev");
        let adopt = ["adopt", "svc/by-hand", "--kustomization", &kustomization];
        let (ok, said) = scene
            .windlass_in(&dev, &[&adopt[..], &["--dry-run"]].concat(), &[])
            .await?;
        let file = "+apiVersion: v1\n+kind: Service\n+metadata:\n+  name: by-hand\n";
        ensure!(
            ok && said.contains("+++ dev/service-by-hand.yaml") && said.contains(file),
            "{said}"
        );
        ensure!(
            !said.contains("clusterIP") && !said.contains("by-hand created"),
            "{said}"
        );
        let (ok, said) = scene.windlass_in(&dev, &adopt, &[]).await?;
        ensure!(ok && said.contains("pull request 3 (http"), "{said}");
        let service = objects::api(&scene.client, "v1", "Service", &dev);
        let before = service.get("by-hand").await?;
        forge.merge(3).await?;
        let is_adopted = |object: &DynamicObject| {
            let labels = object.metadata.labels.as_ref();
            labels.is_some_and(|labels| labels.contains_key("kustomize.toolkit.fluxcd.io/name"))
        };
        let after = wait_for(&service, "by-hand", is_adopted, PATIENCE).await?;
        ensure!(
            after.metadata.uid == before.metadata.uid && after.data["spec"] == before.data["spec"],
            "{after:?}"
        );
        let (ok, said) = scene.windlass_in(&dev, &adopt, &[]).await?;
        ensure!(
            !ok && said.contains("its labels say that Kustomization/"),
            "{said}"
        );
        let (ok, said) = scene.windlass_in(&dev, &orphans, &[]).await?;
        ensure!(ok && !said.contains("by-hand"), "{said}");
        // What is refused is said at once.
        let bad = [&propose[..], &["--path", "elsewhere/fresh.yaml"]].concat();
        let (ok, said) = scene.windlass(&bad).await?;
        ensure!(
            !ok && said.contains("must be below the path of the Kustomization, 'dev'"),
            "{said}"
        );
        Ok(())
    });
}
