//! A tenant's kustomizations and variables make much out of little.
//!
//! They hold: a repository with kustomizations of a few lines that double a text or an object line by line, and as many
//! Kustomizations as they like. The controller must not take the memory of its Pod for them, must refuse each, and the victim's
//! Kustomization must become Ready meanwhile.

use anyhow::ensure;
use serde_json::{Value, json};
use testkit::git::Change;
use testkit::objects;
use testkit::wait_for;

use crate::scene::{KUSTOMIZE, PATIENCE, SOURCE, play};

/// Below the chart's limit for the Pod, 1 GiB.
const LIMIT: u64 = 768 << 20;
const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: some, b: text}\n";

fn doubled_text() -> String {
    let step = |from: &str, to: &str| {
        format!(
            "- source: {{kind: ConfigMap, name: a, fieldPath: data.{from}}}\n  targets:\n  - select: {{name: a}}\n    \
             fieldPaths: [data.{to}]\n    options: {{delimiter: ',', index: 999999}}\n"
        )
    };
    let steps: String = (0..40).map(|_| step("a", "b") + &step("b", "a")).collect();
    format!("resources: [all.yaml]\nreplacements:\n{steps}")
}

fn doubled_object() -> String {
    let step = |number: usize| {
        format!(
            "    - {{op: copy, from: /data, path: /new}}\n    - {{op: move, from: /new, path: /data/k{number}}}\n"
        )
    };
    let steps: String = (0..40).map(step).collect();
    format!("resources: [all.yaml]\npatches:\n- target: {{kind: ConfigMap}}\n  patch: |\n{steps}")
}

fn file_many_times() -> String {
    let maps: String = (0..200)
        .map(|number| format!("- {{name: a{number}, files: [large]}}\n"))
        .collect();
    format!("configMapGenerator:\n{maps}")
}

#[test]
fn builds_that_make_much_of_little_are_refused() {
    play("build-bombs", |scene| async move {
        let controller = scene.own_apply().await?;
        let repository = scene.world.git.create_repository(&scene.attacker)?;
        let variable = |number: usize| {
            format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: v{number}}}\ndata:\n  a: ${{v}}\n")
        };
        let variables: Vec<_> = (0..1000).map(variable).collect();
        let files = [
            Change::write("text/kustomization.yaml", doubled_text()),
            Change::write("text/all.yaml", MAP),
            Change::write("object/kustomization.yaml", doubled_object()),
            Change::write("object/all.yaml", MAP),
            Change::write("files/kustomization.yaml", file_many_times()),
            Change::write("files/large", "x".repeat(40 << 20)),
            Change::write("variables/all.yaml", variables.join("---\n")),
        ];
        repository.commit("main", "bombs", &files)?;
        let source = objects::git_repository(&scene.attacker, "app", repository.url(), "main");
        scene.apply(&source).await?;
        let sources = scene.api(SOURCE, "GitRepository", &scene.attacker);
        wait_for(&sources, "app", objects::is_ready, PATIENCE).await?;
        let bombs = ["text", "object", "files", "variables"];
        for folder in bombs {
            let object = objects::kustomization(
                &scene.attacker,
                folder,
                ("GitRepository", "app"),
                &format!("./{folder}"),
            );
            let mut spec = json!({"targetNamespace": scene.attacker});
            if folder == "variables" {
                // A list of 400,000 values in each of a thousand objects.
                let list = Value::from(format!("[{}x]", "x,".repeat(400_000)));
                spec["postBuild"] = json!({"substitute": {"v": list}});
            }
            scene.apply_own(&objects::with_spec(object, spec)).await?;
        }
        let kustomizations = scene.api(KUSTOMIZE, "Kustomization", &scene.attacker);
        for folder in bombs {
            let message = scene.refused(&kustomizations, folder).await?;
            ensure!(message.contains("more than"), "{folder}: {message}");
        }
        let peak = controller.usage()?.peak_resident_bytes;
        ensure!(peak < LIMIT, "the controller took {} MiB", peak >> 20);
        scene.secret_source().await?;
        let own = objects::kustomization(&scene.victim, "app", ("GitRepository", "app"), "./deploy");
        scene
            .apply_own(&objects::with_spec(own, json!({"targetNamespace": scene.victim})))
            .await?;
        let own = scene.api(KUSTOMIZE, "Kustomization", &scene.victim);
        wait_for(&own, "app", objects::is_ready, PATIENCE).await?;
        Ok(())
    });
}
