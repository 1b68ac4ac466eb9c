//! A process that is killed at any moment of an action leaves a release that can be gone on with.

use helm_action::{install, rollback, upgrade};
use helm_release::Status;
use serde_json::{Value, json};

use crate::scene::{CONFIG_MAP, Scene, content, succeeded};

/// More requests than an action of these needs.
const ENOUGH: usize = 60;

const SECOND: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-second}\ndata: {word: x}\n";

/// Does what the controller does next: a pending record is taken for failed, and the release is made again.
async fn recovered(scene: &Scene, name: &str) {
    let scene = &Scene::in_namespace(scene.client.clone(), scene.namespace.clone());
    let files = [("templates/config.yaml", CONFIG_MAP)];
    let last = scene.storage.last(name).await.unwrap();
    match last {
        None => drop(scene.installed(name, &files, json!({"word": "z"})).await),
        Some(mut record) => {
            if record.release.info.status.is_pending() {
                record.release.info.status = Status::Failed;
                scene.storage.update(&record).await.unwrap();
            }
            drop(scene.upgraded(name, &files, json!({"word": "z"})).await);
        }
    }
    let statuses = scene.statuses(name).await;
    let deployed = statuses.iter().filter(|status| *status == "deployed");
    assert_eq!(deployed.count(), 1, "{statuses:?}");
    assert_eq!(statuses.last().unwrap(), "deployed");
    let config_maps = scene.config_maps();
    assert_eq!(scene.read(&config_maps, name).await["data"]["word"], "z");
    assert_eq!(
        scene.read(&config_maps, &format!("{name}-second")).await,
        Value::Null
    );
}

/// Kills an action after each of its requests, each time on a release of its own; `before` makes what it begins with.
async fn killed_everywhere(
    purpose: &str,
    before: impl AsyncFn(&Scene, &str),
    act: impl AsyncFn(&Scene, &str) -> helm_action::Outcome,
) {
    let whole = Scene::new(purpose).await;
    let mut cut = 0;
    for requests in 1..ENOUGH {
        let scene = Scene::in_namespace(whole.client.clone(), whole.namespace.clone());
        let name = format!("r{requests}");
        before(&scene, &name).await;
        let scene = Scene::in_namespace(whole.client.clone(), whole.namespace.clone());
        match scene.killed_after(requests, act(&scene, &name)).await {
            None => cut += 1,
            Some(outcome) => {
                succeeded(outcome);
                assert!(cut >= 5, "only {cut} moments were looked at");
                return;
            }
        }
        // What is there was declared before.
        if scene.read(&scene.config_maps(), &format!("{name}-second")).await != Value::Null {
            assert_ne!(scene.statuses(&name).await, [""; 0]);
        }
        recovered(&scene, &name).await;
    }
    panic!("the action does not come to an end");
}

const FILES: [(&str, &str); 2] = [
    ("templates/config.yaml", CONFIG_MAP),
    ("templates/second.yaml", SECOND),
];

#[tokio::test]
async fn installs_are_recovered() {
    let act = async |scene: &Scene, name: &str| {
        let order = scene.install(name, content(&FILES, json!({"word": "a"})));
        install(&scene.context(), &order).await
    };
    killed_everywhere("killed-install", async |_: &Scene, _: &str| (), act).await;
}

#[tokio::test]
async fn upgrades_are_recovered() {
    let before = async |scene: &Scene, name: &str| {
        scene.installed(name, &FILES[..1], json!({"word": "a"})).await;
    };
    let act = async |scene: &Scene, name: &str| {
        let order = scene.upgrade(name, content(&FILES, json!({"word": "b"})));
        upgrade(&scene.context(), &order).await
    };
    killed_everywhere("killed-upgrade", before, act).await;
}

#[tokio::test]
async fn rollbacks_are_recovered() {
    let before = async |scene: &Scene, name: &str| {
        scene.installed(name, &FILES, json!({"word": "a"})).await;
        scene.upgraded(name, &FILES[..1], json!({"word": "b"})).await;
    };
    let act = async |scene: &Scene, name: &str| rollback(&scene.context(), &scene.rollback(name, 1)).await;
    killed_everywhere("killed-rollback", before, act).await;
}
