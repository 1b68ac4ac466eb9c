//! A tenant reads what another tenant's objects are made of, by yes-or-no questions in `readyExpr`.
//!
//! They hold: a Kustomization and a HelmRelease in a namespace of their own, which depend on the victim's. An expression is true or
//! false, and Ready says which. With references between namespaces locked they must learn no more than whether the victim's is
//! ready.

use anyhow::{Result, ensure};
use kube::api::DynamicObject;
use serde_json::json;
use testkit::objects::{self, condition};
use testkit::wait_for;

use crate::scene::{HELM, KUSTOMIZE, PATIENCE, SOURCE, Scene, play};

/// Asks the question, and returns what Ready says.
async fn asked(scene: &Scene, api_version: &str, kind: &str, question: &str) -> Result<String> {
    let api = scene.api(api_version, kind, &scene.attacker);
    let depends_on = json!([{"name": "app", "namespace": scene.victim, "readyExpr": question}]);
    let object = match kind {
        "Kustomization" => scene.kustomization("asks", ("GitRepository", "own")),
        _ => {
            json!({"apiVersion": HELM, "kind": kind, "metadata": {"name": "asks", "namespace": scene.attacker},
            "spec": {"interval": "1h", "chartRef": {"kind": "OCIRepository", "name": "own"}}})
        }
    };
    // Another question is another generation, so that what is said is the answer to this one.
    scene
        .apply(&objects::with_spec(object, json!({"dependsOn": depends_on})))
        .await?;
    let generation = api.get("asks").await?.metadata.generation;
    let answered = |object: &DynamicObject| {
        let conditions = object.data["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        conditions.iter().any(|condition| {
            condition["type"] == "Ready" && condition["observedGeneration"].as_i64() == generation
        })
    };
    let object = wait_for(&api, "asks", answered, PATIENCE).await?;
    Ok(condition(&object, "Ready")
        .map(|(_, _, message)| message.to_owned())
        .unwrap_or_default())
}

#[test]
fn expressions_see_nothing_of_what_another_tenants_objects_are_made_of() {
    play("expression", |scene| async move {
        let secret = json!({"postBuild": {"substitute": {"password": "hunter2"}}});
        let kustomization =
            objects::kustomization(&scene.victim, "app", ("GitRepository", "app"), "./deploy");
        scene.apply(&objects::with_spec(kustomization, secret)).await?;
        let release = json!({"apiVersion": HELM, "kind": "HelmRelease", "metadata": {"name": "app", "namespace": scene.victim},
            "spec": {"interval": "1h", "chartRef": {"kind": "OCIRepository", "name": "app"}, "values": {"password": "hunter2"}}});
        scene.apply(&release).await?;
        let repository = scene.world.git.create_repository(&scene.attacker)?;
        repository.commit("main", "a", &[testkit::git::Change::write("deploy/a.yaml", "")])?;
        scene
            .apply(&objects::git_repository(
                &scene.attacker,
                "own",
                repository.url(),
                "main",
            ))
            .await?;
        let sources = scene.api(SOURCE, "GitRepository", &scene.attacker);
        wait_for(&sources, "own", objects::is_ready, PATIENCE).await?;

        for (api_version, kind, path) in [
            (
                KUSTOMIZE,
                "Kustomization",
                "dep.spec.postBuild.substitute.password",
            ),
            (HELM, "HelmRelease", "dep.spec.values.password"),
        ] {
            // Both answers must be the same: that there is no such thing.
            let mut answers = Vec::new();
            for question in [
                format!("{path} == 'hunter2'"),
                format!("{path} != 'hunter2'"),
                format!("has({path}) || {path}.startsWith('h')"),
            ] {
                let said = asked(&scene, api_version, kind, &question).await?;
                ensure!(
                    !said.contains("is not ready according to readyExpr eval"),
                    "{question}: the question was answered: {said}"
                );
                answers.push(said);
            }
            ensure!(
                answers.iter().all(|said| said.contains("no such key")),
                "{answers:?}"
            );
            // What may be asked is whether it is ready.
            let allowed = "dep.status.conditions.exists(c, c.type == 'Ready' && c.status == 'Never')";
            let said = asked(&scene, api_version, kind, allowed).await?;
            ensure!(
                said.contains("is not ready according to readyExpr eval") || said.contains("no such key"),
                "{said}"
            );
        }
        Ok(())
    });
}
