//! A tenant stops the controllers for everybody by expressions that take hours.
//!
//! They hold: Kustomizations with `readyExpr` and `healthCheckExprs` in a namespace of their own. Meanwhile `/healthz` must be
//! answered, another tenant's change must be delivered, and the tenant must be told that the expression ran out.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use kube::Api;
use kube::api::DynamicObject;
use serde_json::json;
use testkit::git::{Change, Repository};
use testkit::objects::{self, condition};
use testkit::wait_for;

use crate::scene::{KUSTOMIZE, PATIENCE, SOURCE, Scene, play};

/// Expressions that are slow although no step is counted: they compare all of an object at each of a million
/// turns, or compile patterns.
const SLOW: [&str; 3] = [
    "range.all(x, range.all(y, range.all(z, dep == dep)))",
    "range.all(x, range.all(y, range.all(z, !string(dep.metadata.name).matches(string(x) + '(a|b){1,300}' + string(z)))))",
    "range.all(x, range.all(y, range.all(z, dep.spec == self.spec || dep != self)))",
];

fn slow(text: &str) -> String {
    let range = format!(
        "[{}]",
        (0..100).map(|n| n.to_string()).collect::<Vec<_>>().join(",")
    );
    text.replace("range", &range)
}

#[test]
fn expressions_without_end_hold_nobody_else() {
    play("slow", |scene| async move {
        let (victim, repository) = delivered(&scene).await?;
        for number in 0..12 {
            let question = slow(SLOW[number % SLOW.len()]);
            let name = format!("slow-{number}");
            let depends_on = json!([{"name": "slow-0", "readyExpr": question}]);
            let object = scene.kustomization(&name, ("GitRepository", "own"));
            scene
                .apply(&objects::with_spec(object, json!({"dependsOn": depends_on})))
                .await?;
        }
        let attackers = scene.api(KUSTOMIZE, "Kustomization", &scene.attacker);
        // Health is answered all the time, and the victim's change arrives.
        let http = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(5))
            .build()?;
        let health = format!("http://{}/metrics", scene.world.apply.metrics_address());
        let began = Instant::now();
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late", "namespace": scene.victim}});
        repository.commit(
            "main",
            "late",
            &[Change::write("deploy/late.yaml", map.to_string())],
        )?;
        objects::poke(&victim, "app").await?;
        let maps = scene.api("v1", "ConfigMap", &scene.victim);
        let delivery = wait_for(&maps, "late", |_: &DynamicObject| true, PATIENCE);
        let asking = async {
            loop {
                http.get(&health)
                    .send()
                    .await
                    .context("the endpoint does not answer")?;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        tokio::select! {
            delivered = delivery => drop(delivered.context("another tenant's change waits")?),
            failed = asking => { let _: Result<()> = failed; anyhow::bail!("health is not answered while expressions run") }
        }
        ensure!(
            began.elapsed() < Duration::from_secs(45),
            "it took {:?}",
            began.elapsed()
        );
        // And whoever wrote one is told.
        let told = |object: &DynamicObject| {
            condition(object, "Ready").is_some_and(|(_, _, message)| {
                message.contains("it takes longer than 1 s")
                    || message.contains("more than 1000000 steps")
                    || message.contains("it is longer than")
            })
        };
        wait_for(&attackers, "slow-1", told, PATIENCE).await?;
        Ok(())
    });
}

/// A delivery of the victim's, and the attacker's own source.
async fn delivered(scene: &Scene) -> Result<(Api<DynamicObject>, Repository)> {
    let mut repositories = Vec::new();
    for (namespace, name) in [(&scene.attacker, "own"), (&scene.victim, "app")] {
        let repository = scene.world.git.create_repository(namespace)?;
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "first", "namespace": namespace}});
        repository.commit("main", "a", &[Change::write("deploy/a.yaml", map.to_string())])?;
        scene
            .apply(&objects::git_repository(
                namespace,
                name,
                repository.url(),
                "main",
            ))
            .await?;
        let sources = scene.api(SOURCE, "GitRepository", namespace);
        wait_for(&sources, name, objects::is_ready, PATIENCE).await?;
        repositories.push(repository);
    }
    let app = objects::kustomization(&scene.victim, "app", ("GitRepository", "app"), "./deploy");
    scene.apply(&app).await?;
    let kustomizations = scene.api(KUSTOMIZE, "Kustomization", &scene.victim);
    wait_for(&kustomizations, "app", objects::is_ready, PATIENCE).await?;
    let repository = repositories.pop().context("there are two")?;
    Ok((scene.api(SOURCE, "GitRepository", &scene.victim), repository))
}
