//! The ledger: what objects tell of their deliveries is kept, and nobody sees more of it than of the objects.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::objects::{self, apply};
use testkit::{Controller, Postgres};

use crate::world::{KEEP, Scene, play};

const KUSTOMIZATIONS: &str = "kustomize.toolkit.fluxcd.io/kustomizations";
const VERSION: &str = "kustomize.toolkit.fluxcd.io/v1";

/// An entry of a history, in minutes since a day began.
fn entry(digest: &str, revision: &str, status: &str, (first, last): (i64, i64), total: i64) -> Value {
    let day: jiff::Timestamp = "2026-11-20T00:00:00Z".parse().expect("a time");
    let time = |minute: i64| (day + jiff::SignedDuration::from_mins(minute)).to_string();
    json!({
        "digest": format!("sha256:{digest}"), "firstReconciled": time(first), "lastReconciled": time(last),
        "lastReconciledDuration": "30s", "lastReconciledStatus": status, "totalReconciliations": total,
        "metadata": {"revision": format!("main@sha1:{revision}"), "windlass.dev/changes": format!("changes of {digest}")},
    })
}

async fn history(scene: &Scene, namespace: &str, name: &str, entries: Value) -> Result<()> {
    let status = json!({"history": entries});
    scene
        .status(VERSION, "Kustomization", namespace, name, status)
        .await
}

fn shown(page: &Value) -> Vec<(String, String, String)> {
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
    let items = page["items"].as_array().into_iter().flatten();
    items
        .map(|row| {
            (
                text(row, "name"),
                text(row, "revision").replace("main@sha1:", ""),
                text(row, "outcome"),
            )
        })
        .collect()
}

fn row(name: &str, revision: &str, outcome: &str) -> (String, String, String) {
    (name.to_owned(), revision.to_owned(), outcome.to_owned())
}

#[test]
fn deliveries_are_kept_and_cut_to_what_one_may_see() {
    play("ledger", async |scene| {
        let (shop, bank) = (
            scene.namespace("ledger-shop").await?,
            scene.namespace("ledger-bank").await?,
        );
        let source = objects::git_repository(&shop, "repo", "https://example.com/r", "main");
        apply(&scene.client, &source).await?;
        let artifact = json!({"artifact": {
            "revision": "main@sha1:bb", "digest": "sha256:0", "lastUpdateTime": "2026-11-20T10:31:00Z", "path": "a", "url": "http://a/b",
            "metadata": {"org.opencontainers.image.created": "2026-11-20T10:30:00Z"},
        }});
        scene
            .status(
                "source.toolkit.fluxcd.io/v1",
                "GitRepository",
                &shop,
                "repo",
                artifact,
            )
            .await?;
        for (namespace, name) in [(&shop, "web"), (&bank, "vault")] {
            let object = objects::kustomization(namespace, name, ("GitRepository", "repo"), "./");
            apply(&scene.client, &object).await?;
        }
        let good = "ReconciliationSucceeded";
        history(
            &scene,
            &shop,
            "web",
            json!([entry("1", "aa", good, (600, 610), 2)]),
        )
        .await?;
        history(
            &scene,
            &bank,
            "vault",
            json!([entry("9", "zz", good, (600, 600), 1)]),
        )
        .await?;
        let ana = scene.user("ana", &[(&shop, &[KUSTOMIZATIONS])]).await?;
        let all = scene
            .user("all", &[(&shop, &[KUSTOMIZATIONS]), (&bank, &[KUSTOMIZATIONS])])
            .await?;
        let path = format!("deliveries?namespace={shop},{bank}");
        let count = |number: usize| move |page: &Value| shown(page).len() == number;
        scene.until(&all, &path, count(2)).await?;

        // A new revision fails and is mended; then the same revision with another value.
        let failed = entry("2", "bb", "HealthCheckFailed", (660, 662), 2);
        let first = entry("1", "aa", good, (600, 610), 2);
        history(&scene, &shop, "web", json!([failed, first])).await?;
        scene.until(&ana, &path, count(2)).await?;
        let mended = entry("2", "bb", good, (670, 670), 1);
        history(&scene, &shop, "web", json!([mended, failed, first])).await?;
        scene.until(&ana, &path, count(3)).await?;
        let other = entry("3", "bb", good, (700, 700), 1);
        history(&scene, &shop, "web", json!([other, mended, failed, first])).await?;
        let page = scene.until(&ana, &path, count(4)).await?;
        assert_eq!(
            shown(&page),
            [
                row("web", "bb", "Succeeded"),
                row("web", "bb", "Succeeded"),
                row("web", "bb", "Failed"),
                row("web", "aa", "Succeeded"),
            ]
        );
        let triggers: Vec<&Value> = page["items"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|row| &row["trigger"])
            .collect();
        assert_eq!(triggers, ["Change", "Retry", "Revision", "First"]);
        let newest = &page["items"][0];
        assert_eq!(
            (
                &newest["committed"],
                &newest["seen"],
                &newest["began"],
                &newest["changes"]
            ),
            (
                &json!("2026-11-20T10:30:00Z"),
                &json!("2026-11-20T10:31:00Z"),
                &json!("2026-11-20T11:39:30Z"),
                &json!("changes of 3")
            )
        );

        // Who may not get the objects is told of no row, no number and no name.
        let nobody = scene.user("nobody", &[]).await?;
        for (token, expected) in [(&all, 5), (&ana, 4), (&nobody, 0)] {
            assert_eq!(shown(&scene.get(token, &path).await?).len(), expected);
            assert!(
                shown(&scene.get(token, &format!("deliveries?namespace={bank}")).await?).len()
                    <= expected / 5
            );
        }
        let figures = scene
            .get(&ana, &format!("dora?namespace={shop},{bank}&by=app&since=2026-11-20T00:00:00Z&until=2026-11-21T00:00:00Z"))
            .await?;
        let groups = figures["groups"].as_object().cloned().unwrap_or_default();
        assert_eq!(
            groups.keys().collect::<Vec<_>>(),
            [&format!("local/Kustomization/{shop}/web")]
        );
        let web = &groups[&format!("local/Kustomization/{shop}/web")];
        // Three changes, one of which failed for ten minutes; the commit of two took 40 minutes at first.
        assert_eq!(
            (&web["deployments"], &web["changes"], &web["failedChanges"]),
            (&json!(3), &json!(3), &json!(1))
        );
        assert_eq!(web["leadTime"]["median"], json!(2400.0));
        assert_eq!(web["timeToRecover"], json!({"median": 600.0, "p90": 600.0}));

        // Filters and pages.
        for (query, expected) in [
            ("outcome=Failed", vec!["bb"]),
            ("revision=a", vec!["aa"]),
            ("revision=main@sha1:b", vec!["bb", "bb", "bb"]),
            ("since=2026-11-20T11:30:00Z", vec!["bb"]),
            ("until=2026-11-20T10:30:00Z", vec!["aa"]),
            ("name=nothing", vec![]),
            ("kind=hr", vec![]),
        ] {
            let found = scene
                .get(&ana, &format!("deliveries?namespace={shop}&{query}"))
                .await?;
            let revisions: Vec<String> = shown(&found).into_iter().map(|row| row.1).collect();
            assert_eq!(revisions, expected, "{query}");
        }
        let first = scene
            .get(&ana, &format!("deliveries?namespace={shop}&limit=3"))
            .await?;
        let next = first["next"].as_str().unwrap_or_default();
        let second = scene
            .get(&ana, &format!("deliveries?namespace={shop}&limit=3&after={next}"))
            .await?;
        assert_eq!(shown(&second), [row("web", "aa", "Succeeded")]);
        for query in [
            "outcome=x",
            "since=x",
            "limit=0",
            "after=x",
            "by=x",
            "kind=pod",
            "x=y",
        ] {
            let (status, told) = scene.ask(&ana, &format!("dora?{query}")).await?;
            assert_eq!(status.as_u16(), 400, "{query}: {told}");
        }

        // The command tells the same of a console and of what the cluster still knows.
        let url = scene.world.console.api_url();
        let root = url.trim_end_matches("/api/v1");
        let of_console = ["--console", root, "--token", &ana];
        for given in [&of_console[..], &[]] {
            let words = [&["history", "ks/web", "-n", &shop, "-o", "csv"], given].concat();
            let told = scene.windlass(&words).await?;
            let rows: Vec<&str> = told.lines().skip(1).collect();
            let expected =
                format!("2026-11-20T11:40:00Z,2026-11-20T11:39:30Z,local,Kustomization,{shop},web,Succeeded");
            ensure!(
                rows.len() == 4 && rows[0].starts_with(&expected),
                "{words:?}: {told}"
            );
        }
        let words = [
            "dora",
            "-n",
            &shop,
            "--since",
            "2026-11-20T00:00:00Z",
            "--until",
            "2026-11-21T00:00:00Z",
        ];
        let told = scene.windlass(&[&words[..], &of_console].concat()).await?;
        let figures: Vec<&str> = told
            .lines()
            .nth(1)
            .unwrap_or_default()
            .split("  ")
            .map(str::trim)
            .collect();
        let figures: Vec<&str> = figures.into_iter().filter(|figure| !figure.is_empty()).collect();
        assert_eq!(
            figures,
            ["all", "3", "3.00", "40m", "3", "33 %", "10m", "0"],
            "{told}"
        );

        // What is gone stays in the ledger.
        objects::api(&scene.client, VERSION, "Kustomization", &shop)
            .delete("web", &DeleteParams::default())
            .await?;
        scene
            .until(&ana, &format!("objects?namespace={shop}"), |page| {
                page["total"] == 0
            })
            .await?;
        assert_eq!(shown(&scene.get(&ana, &path).await?).len(), 4);
        Ok(())
    });
}

/// What was delivered to an object, oldest first, and the part of it that the object still tells.
struct Delivered {
    name: String,
    all: Vec<i64>,
}

impl Delivered {
    fn told(&self) -> Value {
        let entries = self.all.iter().rev().take(5);
        let entries = entries.map(|number| {
            let name = number.to_string();
            entry(&name, &name, "ReconciliationSucceeded", (*number, *number), 1)
        });
        Value::Array(entries.collect())
    }
}

/// Objects; in each round a third of them is delivered.
const APPS: usize = 24;

/// Kills a console while deliveries come, `rounds` times, and compares its ledger with what was delivered.
async fn kill_and_compare(scene: &Scene, url: &str, rounds: u32) -> Result<()> {
    let namespace = scene.namespace("ledger-kill").await?;
    let options = ControllerOptions {
        flags: vec!["--cluster-name=kill".to_owned(), KEEP.to_owned()],
        environment: vec![("LEDGER_URL".to_owned(), url.to_owned())],
        ..ControllerOptions::default()
    };
    let mut console = Controller::start_console(scene.world.control_plane.kubeconfig_path(), options).await?;
    let mut apps: Vec<Delivered> = (0..APPS)
        .map(|number| Delivered {
            name: format!("app-{number}"),
            all: Vec::new(),
        })
        .collect();
    for app in &apps {
        let object = objects::kustomization(&namespace, &app.name, ("GitRepository", "repo"), "./");
        apply(&scene.client, &object).await?;
    }
    let mut number = 0;
    for round in 0..rounds {
        // Each object tells of one more while the console is killed, and of one more while it is away: nothing is lost.
        let deliver = async |apps: &mut Vec<Delivered>, number: &mut i64| {
            // In turns, since an object adds 120 rows an hour at most.
            let turn = APPS / 3;
            for app in apps.iter_mut().skip(round as usize % 3 * turn).take(turn) {
                *number += 1;
                app.all.push(*number);
                history(scene, &namespace, &app.name, app.told()).await?;
            }
            anyhow::Ok(())
        };
        let killing = async {
            // Any moment of the work.
            let moment = u64::from(round) * 37 % 400;
            tokio::time::sleep(Duration::from_millis(moment)).await;
            console.kill();
        };
        let (delivered, ()) = tokio::join!(deliver(&mut apps, &mut number), killing);
        delivered?;
        deliver(&mut apps, &mut number).await?;
        console.restart().await?;
        until_equal(scene, &console, &namespace, &apps).await?;
    }
    Ok(())
}

/// Waits until the ledger has what was delivered, each once and nothing else.
async fn until_equal(scene: &Scene, console: &Controller, namespace: &str, apps: &[Delivered]) -> Result<()> {
    let token = scene.user("reader", &[(namespace, &[KUSTOMIZATIONS])]).await?;
    let wanted: BTreeMap<String, Vec<String>> = apps
        .iter()
        .filter(|app| !app.all.is_empty())
        .map(|app| (app.name.clone(), app.all.iter().map(i64::to_string).collect()))
        .collect();
    let mut found = BTreeMap::new();
    let waiting = async {
        loop {
            found = read_all(scene, console, &token, namespace).await?;
            if found == wanted {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await; // the ledger tells nobody
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    for (name, wanted) in &wanted {
        let found = found.get(name);
        ensure!(
            found == Some(wanted),
            "of {name} the ledger has {found:?}, and delivered was {wanted:?}"
        );
    }
    waited?
}

/// Revisions by object, oldest first; a gap is told as such.
async fn read_all(
    scene: &Scene,
    console: &Controller,
    token: &str,
    namespace: &str,
) -> Result<BTreeMap<String, Vec<String>>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut after = String::new();
    loop {
        let url = format!(
            "{}/deliveries?namespace={namespace}&limit=500&after={after}",
            console.api_url()
        );
        let answer = scene.world.http.get(&url).bearer_auth(token).send().await?;
        let page: Value = answer.error_for_status()?.json().await?;
        for (name, revision, outcome) in shown(&page) {
            let told = if outcome == "Gap" { outcome } else { revision };
            found.entry(name).or_default().insert(0, told);
        }
        match page["next"].as_str() {
            Some(next) => next.clone_into(&mut after),
            None => return Ok(found),
        }
    }
}

/// `make chaos-ledger ROUNDS=100`.
fn rounds() -> u32 {
    let rounds = std::env::var("ROUNDS")
        .ok()
        .and_then(|rounds| rounds.parse().ok());
    rounds.unwrap_or(4)
}

#[test]
fn a_kill_at_any_moment_loses_and_doubles_nothing() {
    play("ledger-kill", async |scene| {
        let folder = testkit::scratch::directory("ledger")?;
        let url = format!("sqlite:{}", folder.path().join("ledger.db").display());
        kill_and_compare(&scene, &url, rounds()).await
    });
}

#[test]
fn nor_does_it_on_postgres() {
    play("ledger-postgres", async |scene| {
        let postgres = Postgres::start().await?;
        kill_and_compare(&scene, &postgres.url(), rounds()).await
    });
}

#[test]
fn a_status_that_is_no_history_hurts_nobody() {
    play("ledger-hostile", async |scene| {
        let namespace = &scene.namespace;
        for name in ["web", "api"] {
            let object = objects::kustomization(namespace, name, ("GitRepository", "repo"), "./");
            apply(&scene.client, &object).await?;
        }
        let long = "x".repeat(60_000);
        let mut hostile = entry(&long, &long, &long, (1, 2), i64::MAX);
        hostile["metadata"]["windlass.dev/changes"] = json!(format!("\0{long}"));
        let far = json!({
            "digest": "sha256:1", "firstReconciled": "9999-12-31T23:59:59Z", "lastReconciled": "9999-12-31T23:59:59Z",
            "lastReconciledDuration": "1s", "lastReconciledStatus": "BuildFailed", "totalReconciliations": 1,
        });
        let good = entry("1", "aa", "ReconciliationSucceeded", (600, 600), 1);
        history(&scene, namespace, "web", json!([hostile, far, good])).await?;
        let ana = scene.user("ana", &[(namespace, &[KUSTOMIZATIONS])]).await?;
        let path = format!("deliveries?namespace={namespace}");
        let page = scene.until(&ana, &path, |page| shown(page).len() == 2).await?;
        ensure!(page.to_string().len() < 20_000, "{}", page.to_string().len());
        // Others are recorded all the same.
        let api: Api<_> = objects::api(&scene.client, VERSION, "Kustomization", namespace);
        let status =
            json!({"status": {"history": [entry("2", "bb", "ReconciliationSucceeded", (601, 601), 1)]}});
        api.patch_status("api", &PatchParams::default(), &Patch::Merge(status))
            .await?;
        scene
            .until(&ana, &path, |page| shown(page).len() == 3)
            .await
            .map(drop)
    });
}
