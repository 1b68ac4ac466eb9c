//! Users × objects × clusters: nobody learns of anything that `kubectl auth can-i get` would not let them get there.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use kube::Client;
use serde_json::{Value, json};
use testkit::objects::{self, apply};
use testkit::tools::{self, Tool};
use tokio::process::Command;

use crate::clusters::{another_cluster, name_cluster};
use crate::world::{ANA, ANA_EVERYWHERE, BOB, BOB_EVERYWHERE, EVE, EVE_EVERYWHERE, kustomization, play};

/// Cluster, kind, namespace, name.
type Row = (String, String, String, String);

const KINDS: [(&str, &str); 2] = [
    ("Kustomization", "kustomizations.kustomize.toolkit.fluxcd.io"),
    ("GitRepository", "gitrepositories.source.toolkit.fluxcd.io"),
];

/// Somebody who asks, as the API servers know them.
struct User {
    token: String,
    name: String,
    groups: &'static [&'static str],
    /// The first cluster alone knows them.
    only_here: bool,
}

/// Lets somebody `get` a kind, in a namespace or in all.
async fn grant(client: &Client, namespace: &str, subject: (&str, &str), plural: &str) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let version = format!("{group}/v1");
    let (resource, api_group) = plural.split_once('.').context("a kind has a group")?;
    let name = format!("{}-{resource}-{namespace}", subject.1.replace(['@', ':'], "-"));
    let (role, binding, metadata) = match namespace {
        "" => ("ClusterRole", "ClusterRoleBinding", json!({"name": name})),
        one => ("Role", "RoleBinding", json!({"name": name, "namespace": one})),
    };
    let rule = json!({"apiGroups": [api_group], "resources": [resource], "verbs": ["get"]});
    let rules = json!({"apiVersion": version, "kind": role, "metadata": metadata, "rules": [rule]});
    apply(client, &rules).await?;
    let subject = json!({"kind": subject.0, "name": subject.1, "apiGroup": group});
    let bound = json!({
        "apiVersion": version, "kind": binding, "metadata": metadata, "subjects": [subject],
        "roleRef": {"apiGroup": group, "kind": role, "name": name},
    });
    apply(client, &bound).await.map(drop)
}

/// What the real kubectl says.
async fn can_get(kubeconfig: &Path, user: &User, plural: &str, namespace: &str, name: &str) -> Result<bool> {
    let mut command = Command::new(tools::path(Tool::Kubectl)?);
    command
        .args([
            "auth",
            "can-i",
            "get",
            &format!("{plural}/{name}"),
            "-n",
            namespace,
        ])
        .args(["--as", &user.name, "--as-group", "system:authenticated"])
        .env("KUBECONFIG", kubeconfig);
    for group in user.groups {
        command.args(["--as-group", group]);
    }
    let output = command.output().await?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    match said.trim().lines().last() {
        Some("yes") => Ok(true),
        Some("no") => Ok(false),
        _ => anyhow::bail!("{said}{}", String::from_utf8_lossy(&output.stderr)),
    }
}

fn rows(page: &Value) -> BTreeSet<Row> {
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    let items = page["items"].as_array().into_iter().flatten();
    let row = |row: &Value| {
        (
            text(row, "cluster"),
            text(row, "kind"),
            text(row, "namespace"),
            text(row, "name"),
        )
    };
    items.map(row).collect()
}

#[test]
fn in_each_cluster_each_user_learns_of_what_they_can_get_there() {
    play("can-i", async |scene| {
        tokio::task::spawn_blocking(|| tools::ensure_loudly(&[Tool::Kubectl])).await??;
        let (shop, bank) = (scene.namespace.clone(), scene.namespace("can-i-bank").await?);
        let far = another_cluster(&shop).await?;
        let there = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bank}});
        apply(&far.client(), &there).await?;
        let kubeconfig = std::fs::read_to_string(far.kubeconfig_path())?;
        name_cluster(&scene, "can-i", json!({}), json!({"value": kubeconfig})).await?;
        let clusters = [
            (
                "local",
                scene.client.clone(),
                scene.world.control_plane.kubeconfig_path(),
            ),
            ("can-i", far.client(), far.kubeconfig_path()),
        ];
        let mut all = Vec::new();
        for (cluster, client, kubeconfig) in &clusters {
            for namespace in [&shop, &bank] {
                kustomization(client, namespace, "web", "True", &[]).await?;
                let source = objects::git_repository(namespace, "repo", "https://example.com/r", "main");
                apply(client, &source).await?;
                for ((kind, plural), name) in KINDS.into_iter().zip(["web", "repo"]) {
                    all.push((*cluster, *kubeconfig, kind, plural, namespace, name));
                }
            }
        }

        let account = scene.user("reader", &[]).await?;
        let account_name = format!("system:serviceaccount:{shop}:reader");
        let named = |token: &str, name: &str, groups: &'static [&'static str]| User {
            token: token.to_owned(),
            name: name.to_owned(),
            groups,
            only_here: false,
        };
        let users = [
            named(ANA, ANA_EVERYWHERE, &["web"]),
            named(BOB, BOB_EVERYWHERE, &["ops"]),
            named(EVE, EVE_EVERYWHERE, &[]),
            User {
                only_here: true,
                ..named(&account, &account_name, &[])
            },
        ];
        let [(_, here, _), (_, far_client, _)] = &clusters;
        let (ks, git) = (KINDS[0].1, KINDS[1].1);
        for (client, namespace, subject, plural) in [
            (here, &*shop, ("Group", "web"), ks),
            (here, "", ("User", BOB_EVERYWHERE), git),
            (here, &*bank, ("User", &*account_name), ks),
            (far_client, &*bank, ("User", ANA_EVERYWHERE), git),
            (far_client, &*shop, ("Group", "ops"), ks),
            (far_client, "", ("User", BOB_EVERYWHERE), git),
            // Whoever gave the same name there did not mean the account of this cluster.
            (far_client, "", ("User", &*account_name), ks),
        ] {
            grant(client, namespace, subject, plural).await?;
        }

        let query = format!("namespace={shop},{bank}&cluster=local,can-i&limit=500");
        let mut count = 0;
        for user in &users {
            let asking = all
                .iter()
                .map(async |(cluster, kubeconfig, kind, plural, namespace, name)| {
                    let is_known = !user.only_here || *cluster == "local";
                    let may = is_known && can_get(kubeconfig, user, plural, namespace, name).await?;
                    let row = |text: &str| text.to_owned();
                    let row = (row(cluster), row(kind), row(namespace), row(name));
                    anyhow::Ok(may.then_some(row))
                });
            let expected: BTreeSet<Row> = try_join_all(asking).await?.into_iter().flatten().collect();
            count += expected.len();
            let objects = format!("objects?{query}");
            let page = scene
                .until(&user.token, &objects, |page| rows(page) == expected)
                .await
                .with_context(|| format!("{} may see {expected:?}", user.name))?;
            assert_eq!(page["total"], expected.len(), "{}", user.name);
            for (facet, of_row) in [
                ("cluster", (|row: &Row| row.0.clone()) as fn(&Row) -> String),
                ("kind", |row| row.1.clone()),
                ("namespace", |row| row.2.clone()),
            ] {
                let counts = page["facets"][facet].as_object().cloned().unwrap_or_default();
                let shown: BTreeSet<String> = counts.keys().cloned().collect();
                let wanted: BTreeSet<String> = expected.iter().map(of_row).collect();
                assert_eq!(shown, wanted, "{} {facet}", user.name);
                let total: u64 = counts.values().filter_map(Value::as_u64).sum();
                assert_eq!(usize::try_from(total)?, expected.len(), "{} {facet}", user.name);
            }
            // The same of the table, of joined filters, and of one by one.
            let table = scene
                .get(
                    &user.token,
                    &format!("{objects}&fields=name&repository=example.com/r"),
                )
                .await?;
            let sources = expected.iter().filter(|row| row.1 == "GitRepository");
            let made_of = expected.iter().filter(|row| {
                let source = (
                    row.0.clone(),
                    "GitRepository".to_owned(),
                    row.2.clone(),
                    "repo".to_owned(),
                );
                row.1 == "Kustomization" && expected.contains(&source)
            });
            assert_eq!(table["total"], sources.chain(made_of).count(), "{}", user.name);
            for (cluster, _, kind, _, namespace, name) in &all {
                let key = [cluster, kind, namespace.as_str(), name].map(str::to_owned);
                let may = expected.contains(&key.clone().into());
                for rest in ["", "/why", "/tree", "/trace"] {
                    let path = format!("objects/{}{rest}", key.join("/"));
                    let (status, answer) = scene.ask(&user.token, &path).await?;
                    ensure!(
                        status.is_success() == may,
                        "{}: {path}: {status} {answer}",
                        user.name
                    );
                    ensure!(may || !answer.to_string().contains("example.com/r"), "{answer}");
                }
            }
            let deliveries = scene.get(&user.token, &format!("deliveries?{query}")).await?;
            let told = rows(&deliveries);
            ensure!(told.is_subset(&expected), "{}: {told:?}", user.name);
        }
        ensure!(
            count == 8,
            "the users together see {count} objects: does the matrix say anything?"
        );
        Ok(())
    });
}
