//! A tenant's charts make much out of little, or work without end.
//!
//! They hold: a repository with charts of a few lines, and as many HelmReleases as they like. helm-controller must not take the
//! memory of its Pod for them, must end each, and the victim's release must become Ready meanwhile.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testkit::git::Change;
use testkit::objects;
use testkit::wait_for;

use crate::scene::{HELM, PATIENCE, SOURCE, Scene, play};

/// Below the chart's limit for the Pod, 1 GiB.
const LIMIT: u64 = 768 << 20;

/// A map that holds another twice, and that one another twice, and so on.
const DOUBLED: &str =
    "{{ $a := dict \"x\" 1 }}{{ range until 60 }}{{ $a = dict \"x\" $a \"y\" $a }}{{ end }}";

fn release(namespace: &str, name: &str, chart: &str) -> Value {
    json!({"apiVersion": HELM, "kind": "HelmRelease", "metadata": {"name": name, "namespace": namespace},
        "spec": {"interval": "1h", "chart": {"spec": {"chart": chart,
            "sourceRef": {"kind": "GitRepository", "name": "app"}}}}})
}

/// Makes the attacker's repository with a chart for each template, and a release of each.
async fn plant(scene: &Scene, bombs: &[(&str, String)]) -> Result<()> {
    let repository = scene.world.git.create_repository(&scene.attacker)?;
    let files = bombs.iter().flat_map(|(name, template)| {
        let chart = format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
        [
            Change::write(&format!("{name}/Chart.yaml"), chart),
            Change::write(&format!("{name}/templates/bomb.yaml"), template.clone()),
        ]
    });
    repository.commit("main", "bombs", &files.collect::<Vec<_>>())?;
    let source = objects::git_repository(&scene.attacker, "app", repository.url(), "main");
    scene.apply(&source).await?;
    let sources = scene.api(SOURCE, "GitRepository", &scene.attacker);
    wait_for(&sources, "app", objects::is_ready, PATIENCE).await?;
    for (name, _) in bombs {
        scene
            .apply_own(&release(&scene.attacker, name, &format!("./{name}")))
            .await?;
    }
    Ok(())
}

#[test]
fn charts_that_make_much_of_little_take_turns_and_are_ended() {
    play("chart-bombs", |scene| async move {
        let bombs = [
            ("text", "{{ sha256sum (repeat 1000000000 \"a\") }}".to_owned()),
            ("copy", format!("{DOUBLED}{{{{ $_ := deepCopy $a }}}}")),
            ("toml", format!("{DOUBLED}{{{{ toToml $a }}}}")),
            ("yaml", format!("{DOUBLED}{{{{ toYamlPretty $a }}}}")),
            (
                "json",
                "{{ fromJson (printf \"[%s1]\" (repeat 30000000 \"1,\")) | len }}".to_owned(),
            ),
            (
                "manifest",
                "a:{{ range until 12000000 }}\n- b{{ end }}".to_owned(),
            ),
        ];
        let controller = scene.own_helm().await?;
        plant(&scene, &bombs).await?;
        let releases = scene.api(HELM, "HelmRelease", &scene.attacker);
        for (name, _) in &bombs {
            let message = scene.refused(&releases, name).await?;
            ensure!(
                message.contains("more than") || message.contains("exceeded"),
                "{name}: {message}"
            );
        }
        let peak = controller.usage()?.peak_resident_bytes;
        ensure!(peak < LIMIT, "the controller took {} MiB", peak >> 20);
        Ok(())
    });
}

#[test]
fn charts_that_work_without_end_are_ended_and_hold_nobody_else() {
    play("endless-charts", |scene| async move {
        let keys = "{{ range until 100000 }}{{ $_ := genPrivateKey \"rsa\" }}{{ end }}";
        let _controller = scene.own_helm().await?;
        let names = ["one", "two", "three", "four", "five", "six"];
        plant(&scene, &names.map(|name| (name, keys.to_owned()))).await?;
        scene.secret_source().await?;
        scene.apply_own(&release(&scene.victim, "app", "./chart")).await?;
        let releases = scene.api(HELM, "HelmRelease", &scene.victim);
        wait_for(&releases, "app", objects::is_ready, PATIENCE).await?;
        let releases = scene.api(HELM, "HelmRelease", &scene.attacker);
        let is_ended = |object: &kube::api::DynamicObject| {
            objects::condition(object, "Ready")
                .is_some_and(|(_, _, message)| message.contains("took longer than 60 seconds"))
        };
        wait_for(&releases, "one", is_ended, 4 * PATIENCE).await?;
        Ok(())
    });
}
