//! What pull requests would change, said on them at a real Gitea (ADR 24), and compared with what their merge then did.

mod scene;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use reqwest::Method;
use serde_json::{Value, json};
use testkit::objects::{self, apply, condition, field};
use testkit::registry::{Artifact, CHART_MEDIA_TYPE, tar_gz};
use testkit::{ControlPlane, Options, Registry, install_all_crds, wait_for};

use crate::world::{HELM, PATIENCE, play, release};
use scene::{File, Team, config_map, happened, promised};

/// Time for all that follows from a merge.
const SETTLED: Duration = Duration::from_secs(30);
const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: h.io/web:1
          env: [{name: MODE, value: calm}]
";
const SERVICE: &str = "apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{name: http, port: 80}]}
";

/// The repository of most stories: two folders that share a base, and one beside them.
fn files(common: &str, calm: &str) -> Vec<(&'static str, String)> {
    vec![
        ("base/kustomization.yaml", "resources: [common.yaml]\n".to_owned()),
        ("base/common.yaml", common.to_owned()),
        (
            "web/kustomization.yaml",
            "resources: [../base, web.yaml, service.yaml]\nnamePrefix: w-\n".to_owned(),
        ),
        ("web/web.yaml", WEB.to_owned()),
        ("web/service.yaml", SERVICE.to_owned()),
        (
            "shop/kustomization.yaml",
            "resources: [../base]\nnamePrefix: s-\n".to_owned(),
        ),
        ("calm/calm.yaml", calm.to_owned()),
    ]
}

async fn team(scene: crate::world::Scene) -> Result<Team> {
    let files = files(
        &config_map("common", &[("a", "1")]),
        &config_map("calm", &[("x", "1"), ("y", "1")]),
    );
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    Team::new(scene, &files, &["web", "shop", "calm"]).await
}

#[test]
fn what_is_promised_is_what_happens() {
    play("promise", async |scene| {
        let team = team(scene).await?;
        // One that comes before the other takes its variables from what that applies.
        let words = [
            (
                "calm/variables.yaml",
                Some(config_map("variables", &[("word", "calm")])),
            ),
            (
                "aware/word.yaml",
                Some(config_map("word", &[("word", "${word}")])),
            ),
        ];
        let words: Vec<_> = words
            .iter()
            .map(|(path, text)| (*path, text.as_deref()))
            .collect();
        team.push(("main", "main"), &words).await?;
        team.applied("calm").await?;
        let from = json!({"postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "variables"}]}});
        team.kustomization("aware", from).await?;
        team.applied("aware").await?;
        team.preview(json!({})).await?;
        let more = config_map("common", &[("a", "2"), ("b", "new")]);
        let calm = config_map("calm", &[("x", "2")]);
        let extra = config_map("extra", &[("k", "v")]);
        let namespace = team.scene.namespace.clone();
        let child = format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: child, namespace: {namespace}}}\n\
             spec:\n  interval: 1h\n  path: ./child\n  prune: true\n  targetNamespace: {namespace}\n  sourceRef: {{kind: GitRepository, name: fleet}}\n"
        );
        let of_child = config_map("of-child", &[("k", "v")]);
        let variables = config_map("variables", &[("word", "loud")]);
        let (faster, bigger) = (
            WEB.replace("web:1", "web:2").replace("calm", "fast"),
            WEB.replace("replicas: 1", "replicas: 3"),
        );
        let moved = WEB
            .replace("web:1", "web:2")
            .replace("calm", "fast")
            .replace("name: MODE", "name: TEMPER");
        let recorded: Vec<(&str, Vec<File<'_>>)> = vec![
            ("an image and a variable", vec![("web/web.yaml", Some(&faster))]),
            ("a base of two", vec![("base/common.yaml", Some(&more))]),
            ("fields go", vec![("calm/calm.yaml", Some(&calm))]),
            ("an object comes", vec![("calm/extra.yaml", Some(&extra))]),
            (
                "an object goes",
                vec![("calm/extra.yaml", None), ("calm/calm.yaml", Some(&calm))],
            ),
            ("a list is edited", vec![("web/web.yaml", Some(&moved))]),
            (
                "a service leaves its folder",
                vec![
                    (
                        "web/kustomization.yaml",
                        Some("resources: [../base, web.yaml]\nnamePrefix: w-\n"),
                    ),
                    ("web/service.yaml", None),
                ],
            ),
            (
                "an object has another name",
                vec![(
                    "shop/kustomization.yaml",
                    Some("resources: [../base]\nnamePrefix: t-\n"),
                )],
            ),
            (
                "a Kustomization comes",
                vec![
                    ("calm/child.yaml", Some(&child)),
                    ("child/extra.yaml", Some(&of_child)),
                ],
            ),
            (
                "a variable of another Kustomization",
                vec![("calm/variables.yaml", Some(&variables))],
            ),
            ("replicas", vec![("web/web.yaml", Some(&bigger))]),
            ("nothing that an object sees", vec![("README.md", Some("hello"))]),
        ];
        let mut folders = vec!["web", "shop", "calm", "aware"];
        for (at, (what, files)) in recorded.iter().enumerate() {
            let branch = format!("change-{at}");
            let head = team.push((&branch, "main"), files).await?;
            let number = team.open(&team.forge.bot, &branch).await?;
            let comment = team.comment(number, &head).await?;
            let (state, said) = team.status(&head).await?;
            ensure!(state == "success", "{what}: {state} {said}\n{comment}");
            let before = team.objects().await?;
            team.forge.merge(number).await?;
            if *what == "a Kustomization comes" {
                folders.push("child");
            }
            for folder in &folders {
                team.applied(folder).await?;
            }
            // One of them takes variables of another, and applies once more when these have changed.
            let promised = promised(&comment);
            let began = Instant::now();
            let happened = loop {
                let happened = happened(&before, &team.objects().await?);
                if promised == happened || began.elapsed() > SETTLED {
                    break happened;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            };
            ensure!(
                promised == happened,
                "{what}: promised {promised:#?}\nhappened {happened:#?}\n{comment}"
            );
            ensure!(
                promised.is_empty() == said.ends_with("no change"),
                "{what}: {said}"
            );
        }
        Ok(())
    });
}

#[test]
fn a_pull_request_is_followed_from_its_opening_to_its_end() {
    play("follow", async |scene| {
        let team = team(scene).await?;
        team.preview(json!({})).await?;
        let first = team
            .push(
                ("more", "main"),
                &[("web/web.yaml", Some(&WEB.replace("web:1", "web:2")))],
            )
            .await?;
        let number = team.open(&team.forge.bot, "more").await?;
        let comment = team.comment(number, &first).await?;
        ensure!(comment.contains("### Preview: 1 changed\n"), "{comment}");
        ensure!(
            comment.contains("- image `\"h.io/web:1\"` → `\"h.io/web:2\"`"),
            "{comment}"
        );
        ensure!(comment.contains("(`web/web.yaml:"), "{comment}");
        ensure!(
            !comment.contains("Kustomization/") || !comment.contains("/calm"),
            "{comment}"
        );

        // Pushed again: the comment changes, and there is no other one.
        let second = team
            .push(
                ("more", "main"),
                &[("web/web.yaml", Some(&WEB.replace("web:1", "web:3")))],
            )
            .await?;
        let comment = team.comment(number, &second).await?;
        ensure!(
            comment.contains("web:3") && !comment.contains("web:2"),
            "{comment}"
        );

        // Others change the branch that it goes into: what they did is not taken back.
        let calm = config_map("calm", &[("x", "9"), ("y", "1")]);
        let base = team
            .push(("main", "main"), &[("calm/calm.yaml", Some(&calm))])
            .await?;
        let at_base = |object: &kube::api::DynamicObject| {
            field(object, "/status/pullRequests/0/base").is_some_and(|found| *found == *base)
        };
        team.wait(at_base).await?;
        let comment = team.comment(number, &second).await?;
        ensure!(comment.contains("### Preview: 1 changed\n"), "{comment}");

        // Both change the same line.
        team.push(
            ("main", "main"),
            &[("web/web.yaml", Some(&WEB.replace("web:1", "web:7")))],
        )
        .await?;
        let conflicts = |object: &kube::api::DynamicObject| {
            let message = field(object, "/status/pullRequests/0/message").and_then(Value::as_str);
            message.is_some_and(|message| message.starts_with("1 file conflicts; "))
        };
        team.wait(conflicts).await?;
        let comment = team.comment(number, &second).await?;
        ensure!(comment.contains("- `web/web.yaml`\n"), "{comment}");
        ensure!(team.status(&second).await?.0 == "failure");

        // Forced: another history under the same name.
        let forced = team
            .push(
                ("other", "main"),
                &[("calm/calm.yaml", Some(&config_map("calm", &[])))],
            )
            .await?;
        team.force("more", "other").await?;
        let comment = team.comment(number, &forced).await?;
        ensure!(
            comment.contains("`data.x`: `\"9\"` → (none)") && !comment.contains("web"),
            "{comment}"
        );
        ensure!(team.status(&forced).await?.0 == "success");

        // Closed: it is no longer followed, and what was said stays.
        team.edit(number, json!({"state": "closed"})).await?;
        team.wait(|object| field(object, "/status/pullRequests").is_none())
            .await?;
        ensure!(team.comments(number).await?.len() == 1);
        let object = team.previews().get("requests").await?;
        let (_, _, message) = condition(&object, "Ready").unwrap_or_default();
        ensure!(
            message == "no pull request is open that is to be compared",
            "{message}"
        );
        Ok(())
    });
}

#[test]
fn what_cannot_be_built_or_is_refused_fails_the_commit() {
    play("refuse", async |scene| {
        let team = team(scene).await?;
        team.preview(json!({})).await?;
        let bad = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 99999}]}\n";
        let refused = team
            .push(
                ("bad", "main"),
                &[
                    ("web/service.yaml", Some(bad)),
                    ("shop/kustomization.yaml", Some("resources: [gone.yaml]\n")),
                ],
            )
            .await?;
        let number = team.open(&team.forge.bot, "bad").await?;
        let comment = team.comment(number, &refused).await?;
        // Both are said at once.
        ensure!(
            comment.contains("w-web` **refused** (`web/service.yaml:") && comment.contains("99999"),
            "{comment}"
        );
        ensure!(
            comment.contains("**not compared**: `") && comment.contains("gone.yaml"),
            "{comment}"
        );
        let (state, said) = team.status(&refused).await?;
        ensure!(state == "failure" && said.contains("2 failed"), "{state} {said}");
        Ok(())
    });
}

#[test]
fn files_are_checked_and_rules_are_read_as_the_account() {
    play("checked", async |scene| {
        let team = team(scene).await?;
        let (client, namespace) = (team.scene.client.clone(), team.scene.namespace.clone());
        let meta = |name: &str| json!({"name": name, "namespace": namespace});
        let rules = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("rules"),
            "data": {"few": "object.kind != 'Deployment' || object.spec.replicas < 3"}});
        apply(&client, &rules).await?;
        // Beside what is delivered, and wrong before the pull request comes.
        let old = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: old}\n";
        team.push(("main", "main"), &[("later/old.yaml", Some(old))])
            .await?;
        team.applied("web").await?;
        team.preview(json!({"checks": {"kubernetesVersion": "1.37", "rulesRef": {"name": "rules"}}}))
            .await?;
        let more = WEB.replace("replicas: 1", "replicas: 3");
        let new = old.replace("old", "new");
        let pushed = [("web/web.yaml", Some(&*more)), ("later/new.yaml", Some(&*new))];
        let head = team.push(("more", "main"), &pushed).await?;
        let number = team.open(&team.forge.bot, "more").await?;
        let comment = team.comment(number, &head).await?;
        for said in [
            "2 errors in the files; 1 changed",
            "**error** `few` at `web/web.yaml:1`: `Deployment/w-web: it does not fulfil object.kind",
            "**error** `removed-api` at `later/new.yaml:1`: `PodDisruptionBudget/new: policy/v1beta1",
        ] {
            ensure!(comment.contains(said), "{said}: {comment}");
        }
        ensure!(!comment.contains("later/old.yaml"), "{comment}");
        let (state, said) = team.status(&head).await?;
        ensure!(
            state == "failure" && said.starts_with("2 errors in the files"),
            "{state} {said}"
        );
        let head = team
            .push(
                ("more", "more"),
                &[("web/web.yaml", Some(WEB)), ("later/new.yaml", None)],
            )
            .await?;
        let comment = team.comment(number, &head).await?;
        ensure!(!comment.contains("error"), "{comment}");
        ensure!(team.status(&head).await?.0 == "success");

        // What the account may not get, a Preview does not show by its checks.
        let bindings = objects::api(&client, "rbac.authorization.k8s.io/v1", "RoleBinding", &namespace);
        bindings.delete("preview", &Default::default()).await?;
        let head = team
            .push(
                ("more", "more"),
                &[("calm/calm.yaml", Some(&config_map("calm", &[("x", "3")])))],
            )
            .await?;
        team.wait(|object| {
            let (_, _, said) = condition(object, "Ready").unwrap_or_default();
            said.contains("rulesRef: failed to get ConfigMap 'rules'") && said.contains("forbidden")
        })
        .await?;
        ensure!(team.status(&head).await.is_err(), "it was not compared");
        Ok(())
    });
}

#[test]
fn fifty_pull_requests_at_once_are_all_compared() {
    play("fifty", async |scene| {
        let team = team(scene).await?;
        let branches: Vec<_> = (0..50)
            .map(|n| {
                let content = config_map(&format!("extra-{n}"), &[("n", &n.to_string())]);
                (format!("many-{n}"), format!("calm/extra-{n}.yaml"), content)
            })
            .collect();
        let mut heads = Vec::new();
        for (n, head) in team.push_many(&branches).await?.into_iter().enumerate() {
            let (branch, ..) = &branches[n];
            heads.push((team.open(&team.forge.bot, branch).await?, head, n));
        }
        team.preview(json!({})).await?;
        let all_compared = |object: &kube::api::DynamicObject| {
            let all = field(object, "/status/pullRequests").and_then(Value::as_array);
            all.is_some_and(|all| all.len() == 50 && all.iter().all(|one| one["state"] == "Succeeded"))
        };
        // Fifty comments and statuses, on a machine that has other things to do.
        wait_for(&team.previews(), "requests", all_compared, PATIENCE * 3).await?;
        for (number, head, n) in heads {
            let comment = team.comment(number, &head).await?;
            ensure!(
                comment.contains(&format!(
                    "`ConfigMap/{}/extra-{n}` **created**",
                    team.scene.namespace
                )),
                "{comment}"
            );
            ensure!(team.status(&head).await?.0 == "success");
        }
        Ok(())
    });
}

#[test]
fn strangers_get_names_and_only_if_they_are_asked_for() {
    play("fork", async |scene| {
        let team = team(scene).await?;
        team.preview(json!({"pullRequests": {"labels": ["preview"]}}))
            .await?;
        let eve = team
            .forge
            .gitea
            .add_user(&format!("{}-eve", team.scene.namespace))
            .await?;
        let at = format!("repos/{}/forks", team.forge.repository);
        team.forge
            .gitea
            .call_as(&eve, Method::POST, &at, Some(json!({})))
            .await?;
        let fork = format!("{}/fleet", eve.name);
        let changed = config_map("calm", &[("x", "hunter2"), ("y", "1")]);
        let head = team
            .push_as(
                (&eve, &fork),
                ("evil", "main"),
                &[("calm/calm.yaml", Some(&changed))],
            )
            .await?;
        let number = team.open(&eve, &format!("{}:evil", eve.name)).await?;
        let own = team
            .push(("own", "main"), &[("calm/calm.yaml", Some(&changed))])
            .await?;
        let other = team.open(&team.forge.bot, "own").await?;
        let label = json!({"labels": ["preview"]});
        let labels = format!("repos/{}/labels", team.forge.repository);
        team.forge
            .gitea
            .call_as(
                &team.forge.bot,
                Method::POST,
                &labels,
                Some(json!({"name": "preview", "color": "#00ff00"})),
            )
            .await?;
        for one in [number, other] {
            let at = format!("repos/{}/issues/{one}/labels", team.forge.repository);
            team.forge
                .gitea
                .call_as(&team.forge.bot, Method::POST, &at, Some(label.clone()))
                .await?;
        }
        let comment = team.comment(other, &own).await?;
        ensure!(comment.contains("hunter2"), "{comment}");
        ensure!(team.comments(number).await?.is_empty(), "a fork was compared");

        team.preview(json!({"pullRequests": {"labels": ["preview"], "forks": true}}))
            .await?;
        let comment = team.comment(number, &head).await?;
        ensure!(
            comment.contains("`data.x`\n") && !comment.contains("hunter2"),
            "{comment}"
        );
        ensure!(comment.contains("since the branch is in a fork"), "{comment}");
        Ok(())
    });
}

#[test]
fn a_pull_request_reads_nothing_that_is_not_in_it() {
    play("pry", async |scene| {
        let team = team(scene).await?;
        let (client, namespace) = (team.scene.client.clone(), team.scene.namespace.clone());
        let meta = |name: &str| json!({"name": name, "namespace": namespace});
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta("vault"), "stringData": {"word": "hunter2"}});
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("private"), "data": {"word": "hunter3"}});
        apply(&client, &secret).await?;
        apply(&client, &map).await?;
        team.preview(json!({})).await?;
        // What is there before: a value of a variable, and a value of a chart.
        let child = |from: &str| {
            format!(
                "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: pry, namespace: {namespace}}}\n\
                 spec:\n  interval: 1h\n  path: ./pry\n  prune: true\n  targetNamespace: {namespace}\n  \
                 sourceRef: {{kind: GitRepository, name: fleet}}\n{from}"
            )
        };
        let release = format!(
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: pry, namespace: {namespace}}}\n\
             spec:\n  interval: 1h\n  chart:\n    spec:\n      chart: ./chart\n      reconcileStrategy: Revision\n      \
             sourceRef: {{kind: GitRepository, name: fleet}}\n"
        );
        let template = |found: &str| {
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: looked}}\ndata:\n  found: {found}\n")
        };
        let (plain, calm, none) = (
            config_map("shown", &[("word", "none")]),
            child(""),
            template("none"),
        );
        team.push(
            ("main", "main"),
            &[
                ("calm/pry.yaml", Some(&calm)),
                ("calm/release.yaml", Some(&release)),
                ("pry/shown.yaml", Some(&plain)),
                (
                    "chart/Chart.yaml",
                    Some("apiVersion: v2\nname: pry\nversion: 1.0.0\n"),
                ),
                ("chart/templates/a.yaml", Some(&none)),
            ],
        )
        .await?;
        let maps = objects::api(&client, "v1", "ConfigMap", &namespace);
        for name in ["shown", "looked"] {
            wait_for(&maps, name, |_| true, PATIENCE).await?;
        }
        team.applied("pry").await?;
        let releases = objects::api(&client, "helm.toolkit.fluxcd.io/v2", "HelmRelease", &namespace);
        wait_for(&releases, "pry", objects::is_ready, PATIENCE).await?;
        // An object of others, whose values a dry run would tell; a Secret through variables; and one that a template looks up.
        let taken = config_map("private", &[("word", "guess")]);
        let variables = child("  postBuild:\n    substituteFrom: [{kind: Secret, name: vault}]\n");
        let shown = config_map("shown", &[("word", "${word}")]);
        let looked = template(&format!(
            "{{{{ lookup \"v1\" \"Secret\" \"{namespace}\" \"vault\" | toJson | quote }}}}"
        ));
        let head = team
            .push(
                ("pry", "main"),
                &[
                    ("calm/private.yaml", Some(&taken)),
                    ("calm/pry.yaml", Some(&variables)),
                    ("pry/shown.yaml", Some(&shown)),
                    ("chart/templates/a.yaml", Some(&looked)),
                ],
            )
            .await?;
        let number = team.open(&team.forge.bot, "pry").await?;
        let comment = team.comment(number, &head).await?;
        for word in ["hunter2", "hunter3", "aHVudGVy"] {
            ensure!(!comment.contains(word), "{comment}");
        }
        // All three were reached, so that there was something to tell.
        for object in ["private", "shown", "looked"] {
            ensure!(
                comment.contains(&format!("`ConfigMap/{namespace}/{object}` **changed**")),
                "{object}: {comment}"
            );
        }
        ensure!(comment.contains("`data.found`: `\"none\"` → "), "{comment}");
        ensure!(comment.contains("something else made it"), "{comment}");

        // Accounts and clusters are those of the cluster: a pull request cannot choose them.
        let (other, loud) = (
            child("  serviceAccountName: nobody\n"),
            config_map("shown", &[("word", "loud")]),
        );
        let away = format!("{release}  kubeConfig: {{secretRef: {{name: vault}}}}\n");
        let next = team
            .push(
                ("pry", "main"),
                &[
                    ("calm/pry.yaml", Some(&other)),
                    ("pry/shown.yaml", Some(&loud)),
                    ("calm/release.yaml", Some(&away)),
                ],
            )
            .await?;
        let comment = team.comment(number, &next).await?;
        ensure!(
            comment.contains(&format!("`ConfigMap/{namespace}/shown` **changed**")),
            "{comment}"
        );
        ensure!(comment.contains("in another cluster than now"), "{comment}");
        ensure!(!comment.contains(":nobody"), "{comment}");

        // Without rights, the comment says nothing but that.
        let binding = objects::api(&client, "rbac.authorization.k8s.io/v1", "RoleBinding", &namespace);
        binding.delete("preview", &Default::default()).await?;
        let next = team
            .push(("pry", "main"), &[("README.md", Some("again"))])
            .await?;
        let comment = team.comment(number, &next).await?;
        ensure!(
            comment.contains("not compared") && comment.contains("cannot list"),
            "{comment}"
        );
        ensure!(team.status(&next).await?.0 == "failure");
        Ok(())
    });
}

#[test]
fn a_chart_of_another_version_is_fetched_for_it() {
    play("chart", async |scene| {
        let team = team(scene).await?;
        let (client, namespace) = (team.scene.client.clone(), team.scene.namespace.clone());
        let (old, new) = (
            release(&namespace, &namespace, "1.0.0", "v1"),
            release(&namespace, &namespace, "1.1.0", "v2"),
        );
        team.push(("main", "main"), &[("calm/release.yaml", Some(&old))])
            .await?;
        let releases = objects::api(&client, HELM, "HelmRelease", &namespace);
        let at = |version: &'static str| {
            move |object: &kube::api::DynamicObject| {
                objects::is_ready(object)
                    && objects::text(object, "/status/history/0/chartVersion") == version
            }
        };
        wait_for(&releases, "shop", at("1.0.0"), PATIENCE).await?;
        team.applied("calm").await?;
        team.preview(json!({})).await?;
        let head = team
            .push(("bump", "main"), &[("calm/release.yaml", Some(&new))])
            .await?;
        let number = team.open(&team.forge.bot, "bump").await?;
        let comment = team.comment(number, &head).await?;
        let moved = format!("- chart of `HelmRelease/{namespace}/shop`: `\"1.0.0\"` → `\"1.1.0\"`");
        ensure!(comment.contains(&moved), "{comment}");
        ensure!(team.status(&head).await?.0 == "success", "{comment}");
        // What was made to fetch it is gone.
        let charts = objects::api(&client, "source.toolkit.fluxcd.io/v1", "HelmChart", &namespace);
        let own = kube::api::ListParams::default().labels("windlass.dev/preview");
        ensure!(charts.list(&own).await?.items.is_empty());

        let before = team.objects().await?;
        team.forge.merge(number).await?;
        wait_for(&releases, "shop", at("1.1.0"), PATIENCE).await?;
        let (happened, promised) = (happened(&before, &team.objects().await?), promised(&comment));
        ensure!(
            promised == happened,
            "promised {promised:#?}\nhappened {happened:#?}\n{comment}"
        );

        let gone = release(&namespace, &namespace, "9.9.9", "v2");
        let head = team
            .push(("gone", "main"), &[("calm/release.yaml", Some(&gone))])
            .await?;
        let number = team.open(&team.forge.bot, "gone").await?;
        let comment = team.comment(number, &head).await?;
        ensure!(
            comment.contains("cannot be fetched as it would be: ") && comment.contains("9.9.9"),
            "{comment}"
        );
        ensure!(team.status(&head).await?.0 == "failure");
        Ok(())
    });
}

#[test]
fn an_oci_repository_may_have_another_version_and_no_other_place() {
    play("oci", async |scene| {
        let team = team(scene).await?;
        let (client, namespace) = (team.scene.client.clone(), team.scene.namespace.clone());
        let registry = Registry::start().await?;
        for version in ["1.0.0", "1.1.0"] {
            let about = format!("apiVersion: v2\nname: app\nversion: {version}\n");
            let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: far}\ndata: {version: \"{{ .Chart.Version }}\"}\n";
            let files = [
                ("app/Chart.yaml", about.as_str()),
                ("app/templates/map.yaml", map),
            ];
            let chart = Artifact::from_chart(tar_gz(&files)?);
            registry.push("charts/app", &[version], &chart).await?;
        }
        let source = |url: &str, tag: &str| {
            format!(
                "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {{name: chart, namespace: {namespace}}}\n\
                 spec:\n  interval: 1s\n  url: {url}\n  insecure: true\n  ref: {{tag: {tag}}}\n  \
                 layerSelector: {{mediaType: {CHART_MEDIA_TYPE}, operation: copy}}\n"
            )
        };
        let release = format!(
            "apiVersion: {HELM}\nkind: HelmRelease\nmetadata: {{name: far, namespace: {namespace}}}\nspec:\n  interval: 1h\n  \
             chartRef: {{kind: OCIRepository, name: chart}}\n"
        );
        let (url, port) = (
            registry.url("charts/app"),
            std::net::TcpListener::bind("127.0.0.1:0")?,
        );
        port.set_nonblocking(true)?;
        let elsewhere = format!("oci://{}/charts/app", port.local_addr()?);
        let (old, new, other) = (
            source(&url, "1.0.0"),
            source(&url, "1.1.0"),
            source(&elsewhere, "1.0.0"),
        );
        team.push(
            ("main", "main"),
            &[("calm/oci.yaml", Some(&old)), ("calm/far.yaml", Some(&release))],
        )
        .await?;
        let releases = objects::api(&client, HELM, "HelmRelease", &namespace);
        let at = |version: &'static str| {
            move |object: &kube::api::DynamicObject| {
                let deployed = objects::text(object, "/status/history/0/chartVersion");
                objects::is_ready(object) && deployed.starts_with(version)
            }
        };
        wait_for(&releases, "far", at("1.0.0"), PATIENCE).await?;
        team.applied("calm").await?;
        team.preview(json!({})).await?;

        let head = team
            .push(("evil", "main"), &[("calm/oci.yaml", Some(&other))])
            .await?;
        let number = team.open(&team.forge.bot, "evil").await?;
        let comment = team.comment(number, &head).await?;
        ensure!(
            comment.contains("have another URL or other credentials"),
            "{comment}"
        );
        let asked = port.accept();
        ensure!(asked.is_err(), "a pull request had a server asked: {asked:?}");
        team.edit(number, json!({"state": "closed"})).await?;

        let head = team
            .push(("bump", "main"), &[("calm/oci.yaml", Some(&new))])
            .await?;
        let number = team.open(&team.forge.bot, "bump").await?;
        let comment = team.comment(number, &head).await?;
        ensure!(comment.contains("`data.version`: `\"1.0.0+"), "{comment}");
        let before = team.objects().await?;
        team.forge.merge(number).await?;
        wait_for(&releases, "far", at("1.1.0"), PATIENCE).await?;
        let (happened, promised) = (happened(&before, &team.objects().await?), promised(&comment));
        ensure!(
            promised == happened,
            "promised {promised:#?}\nhappened {happened:#?}\n{comment}"
        );
        Ok(())
    });
}

#[test]
fn clusters_are_asked_by_those_who_would_apply() {
    play("far", async |scene| {
        let team = team(scene).await?;
        let (client, namespace) = (team.scene.client.clone(), team.scene.namespace.clone());
        let far = ControlPlane::start(Options::api_server_only()).await?;
        install_all_crds(&far.client()).await?;
        let there = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        apply(&far.client(), &there).await?;
        let kubeconfig = std::fs::read_to_string(far.kubeconfig_path())?;
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "far", "namespace": namespace},
            "stringData": {"value": kubeconfig},
        });
        apply(&client, &secret).await?;
        // There, the same repository delivers one folder. Nothing is at work: only what is there matters.
        let url = team.forge.gitea.repository_url(&team.forge.bot.name, "fleet");
        apply(
            &far.client(),
            &objects::git_repository("default", "other-name", &format!("{url}.git"), "main"),
        )
        .await?;
        let shop = objects::kustomization("default", "shop-there", ("GitRepository", "other-name"), "./shop");
        let shop = objects::with_spec(shop, json!({"targetNamespace": namespace}));
        apply(&far.client(), &shop).await?;
        // Here, one Kustomization applies to the other cluster, and one is applied by an account that may nothing.
        let hub = json!({"kubeConfig": {"secretRef": {"name": "far"}}});
        team.kustomization("web", hub).await?;
        let weak = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "weak", "namespace": namespace}});
        apply(&client, &weak).await?;
        team.kustomization("calm", json!({"serviceAccountName": "weak"}))
            .await?;
        let clusters = json!([
            {"name": "here"},
            {"name": "there", "kubeConfig": {"secretRef": {"name": "far"}}},
            {"name": "nowhere", "kubeConfig": {"secretRef": {"name": "lost"}}},
        ]);
        team.preview(json!({"clusters": clusters})).await?;
        let (common, calm) = (
            config_map("common", &[("a", "2")]),
            config_map("calm", &[("x", "2"), ("y", "1")]),
        );
        let files: [File<'_>; 2] = [
            ("base/common.yaml", Some(&common)),
            ("calm/calm.yaml", Some(&calm)),
        ];
        let head = team.push(("far", "main"), &files).await?;
        let number = team.open(&team.forge.bot, "far").await?;
        let comment = team.comment(number, &head).await?;
        ensure!(
            comment.contains("Kustomization/default/shop-there</code> in there: 1 created"),
            "{comment}"
        );
        ensure!(
            comment.contains(&format!("`ConfigMap/{namespace}/s-common` **created**")),
            "{comment}"
        );
        ensure!(
            comment.contains("**`nowhere`**: not compared: `") && comment.contains("'"),
            "{comment}"
        );
        ensure!(
            comment.contains(&format!("system:serviceaccount:{namespace}:weak")),
            "{comment}"
        );
        let web = comment
            .split("<details>")
            .find(|part| part.contains("/web</code> in here"));
        let web = web.unwrap_or_default();
        ensure!(
            web.contains("w-common`") && !web.contains("not compared"),
            "{comment}"
        );
        Ok(())
    });
}
