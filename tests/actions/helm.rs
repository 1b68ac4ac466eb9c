//! The real helm, of both lines, on our records; and its records, read by us.

use std::path::{Path, PathBuf};
use std::process::Command;

use helm_release::{
    ApplyMethod, HookPhase, Labels, Record, Status, Time, description, made, observation, record, snapshot,
};
use helm_render::Options;
use jiff::Timestamp;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{ControlPlane, tools};

use crate::hooks::{job, pod};
use crate::scene::{Scene, content};

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {word: {{ .Values.word }}, file: {{ .Files.Get \"files/a.txt\" | quote }}}\n";

/// A helm, and a home for it.
struct Helm {
    program: PathBuf,
    home: TempDir,
    namespace: String,
    kubeconfig: PathBuf,
}

impl Helm {
    async fn new(scene: &Scene, find: fn() -> anyhow::Result<PathBuf>) -> Self {
        let program = tokio::task::spawn_blocking(find).await.unwrap().unwrap();
        Self {
            program,
            home: testkit::scratch::directory("helm").unwrap(),
            namespace: scene.namespace.clone(),
            kubeconfig: ControlPlane::shared().await.unwrap().kubeconfig_path().to_owned(),
        }
    }

    async fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.program);
        command.args(arguments).args(["--namespace", &self.namespace]);
        command
            .env_clear()
            .env("HOME", self.home.path())
            .env("KUBECONFIG", &self.kubeconfig);
        let output = tokio::task::spawn_blocking(move || command.output())
            .await
            .unwrap()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "helm {arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    async fn json(&self, arguments: &[&str]) -> Value {
        let text = self.run(&[arguments, &["--output", "json"]].concat()).await;
        serde_json::from_str(&text).unwrap()
    }
}

/// The files of a chart with everything that a record has.
fn files() -> Vec<(String, String)> {
    let hook = |mut manifest: Value, event: &str| {
        manifest["metadata"]["annotations"]["helm.sh/hook"] = json!(event);
        manifest.to_string()
    };
    [
        ("values.yaml", "word: default\n".to_owned()),
        ("values.schema.json", r#"{"type": "object"}"#.to_owned()),
        ("files/a.txt", "<a> & b".to_owned()),
        (
            "templates/NOTES.txt",
            "The word is {{ .Values.word }}.".to_owned(),
        ),
        ("templates/a.yaml", CONFIG_MAP.to_owned()),
        ("templates/test.yaml", hook(pod("try", Some("Succeeded")), "test")),
        (
            "templates/migrate.yaml",
            hook(job("migrate", None), "pre-rollback"),
        ),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .into()
}

/// Stores a revision as an install or upgrade leaves it behind, without applying anything.
async fn store(scene: &Scene, version: i64, word: &str, status: Status) -> Record {
    let files = files();
    let files: Vec<_> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let content = content(&files, json!({"word": word}));
    let options = Options::new(helm_render::Release {
        revision: version,
        is_upgrade: version > 1,
        ..helm_render::Release::new("web", scene.namespace.as_str())
    });
    let rendered = content.chart.render(&content.values, &options).unwrap();
    let mut release = made::release(rendered, ("web", &scene.namespace), version, content.values);
    release.info.first_deployed = Some(Time::from_timestamp(Timestamp::now()));
    release.info.last_deployed = Some(Time::from_timestamp(Timestamp::now()));
    release.apply_method = Some(ApplyMethod::ServerSide);
    release.set_status(status, description::UPGRADE_COMPLETE);
    let record = Record {
        release,
        labels: Labels::new(),
    };
    scene.storage.create(&record).await.unwrap();
    record
}

async fn works_on_our_records(purpose: &str, find: fn() -> anyhow::Result<PathBuf>) {
    let scene = Scene::new(purpose).await;
    let helm = Helm::new(&scene, find).await;
    store(&scene, 1, "one", Status::Superseded).await;
    let second = store(&scene, 2, "two", Status::Deployed).await;

    let listed = helm.json(&["list"]).await;
    assert_eq!(
        (&listed[0]["name"], &listed[0]["revision"]),
        (&json!("web"), &json!("2"))
    );
    assert_eq!(
        (&listed[0]["chart"], &listed[0]["app_version"]),
        (&json!("demo-1.0.0"), &json!("1.2.3"))
    );
    let history = helm.json(&["history", "web"]).await;
    let statuses: Vec<_> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["status"])
        .collect();
    assert_eq!(statuses, ["superseded", "deployed"]);
    let status = helm.json(&["status", "web"]).await;
    assert_eq!(status["info"]["notes"], json!("The word is two."));
    assert_eq!(
        helm.run(&["get", "manifest", "web"]).await.trim(),
        second.release.manifest.trim()
    );
    assert_eq!(helm.json(&["get", "values", "web"]).await, json!({"word": "two"}));
    let all = helm.run(&["get", "all", "web"]).await;
    for part in ["kind: ConfigMap", "word: two", "helm.sh/hook", "The word is two."] {
        assert!(all.contains(part), "{part:?} is not in\n{all}");
    }

    helm.run(&["rollback", "web", "1", "--wait", "--timeout", "60s"])
        .await;
    let applied = scene.read(&scene.config_maps(), "web").await;
    assert_eq!(applied["data"], json!({"word": "one", "file": "<a> & b"}));
    let third = scene.storage.last("web").await.unwrap().unwrap().release;
    assert_eq!((third.version, &third.info.status), (3, &Status::Deployed));
    assert_eq!(third.info.description, description::rollback_to(1));
    let migrated = third.hooks.iter().find(|hook| hook.name == "migrate").unwrap();
    assert_eq!(migrated.last_run.phase, HookPhase::Succeeded);
    let second = scene.storage.get("web", 2).await.unwrap().unwrap().release;
    assert_eq!(second.info.status, Status::Superseded);

    helm.run(&["test", "web", "--timeout", "60s"]).await;
    let tested = scene.storage.last("web").await.unwrap().unwrap().release;
    assert_eq!(
        snapshot::test_hooks(&tested, &[])["try"].phase,
        HookPhase::Succeeded
    );
    assert_eq!(
        observation::digest(&tested, None),
        observation::digest(&third, None)
    );

    helm.run(&["uninstall", "web", "--wait", "--timeout", "60s"])
        .await;
    assert_eq!(scene.storage.last("web").await.unwrap(), None);
    assert_eq!(scene.read(&scene.config_maps(), "web").await, Value::Null);
}

async fn is_read_by_us(purpose: &str, find: fn() -> anyhow::Result<PathBuf>, method: Option<ApplyMethod>) {
    let scene = Scene::new(purpose).await;
    let helm = Helm::new(&scene, find).await;
    let folder = helm.home.path().join("demo");
    write_chart(&folder);
    let folder = folder.to_str().unwrap();
    helm.run(&[
        "install", "web", folder, "--set", "word=one", "--labels", "team=a",
    ])
    .await;
    helm.run(&["upgrade", "web", folder, "--set", "word=two,count=3"])
        .await;

    let history = scene.storage.history("web").await.unwrap();
    assert_eq!(
        (history.deployed().unwrap().version, history.next_version()),
        (2, 3)
    );
    let record = scene.storage.last("web").await.unwrap().unwrap();
    assert_eq!(record.labels, [("team".to_owned(), "a".to_owned())].into());
    let release = &record.release;
    assert_eq!(
        (&release.info.status, release.apply_method),
        (&Status::Deployed, method)
    );
    assert_eq!(release.info.description, description::UPGRADE_COMPLETE);
    assert_eq!(json!(release.config), json!({"word": "two", "count": 3}));
    let chart = release.chart.as_ref().unwrap();
    assert_eq!(
        (chart.name(), chart.version(), chart.app_version()),
        ("demo", "1.0.0", "1.2.3")
    );
    assert_eq!(
        json!(chart.values().unwrap().as_ref()),
        json!({"word": "default"})
    );
    assert_eq!(release.hooks.len(), 2);
    assert!(
        release
            .manifest
            .starts_with("---\n# Source: demo/templates/a.yaml\n"),
        "{}",
        release.manifest
    );
    // What we write of it again is the same to helm.
    let before = helm.run(&["get", "all", "web"]).await;
    scene.storage.update(&record).await.unwrap();
    assert_eq!(helm.run(&["get", "all", "web"]).await, before);
    assert_eq!(
        record::decode(&record::encode(release).unwrap()).unwrap(),
        *release
    );
    helm.run(&["rollback", "web", "1"]).await;
    helm.run(&["uninstall", "web"]).await;
}

fn write_chart(folder: &Path) {
    std::fs::create_dir_all(folder.join("templates")).unwrap();
    std::fs::create_dir_all(folder.join("files")).unwrap();
    std::fs::write(
        folder.join("Chart.yaml"),
        "{apiVersion: v2, name: demo, version: 1.0.0, appVersion: 1.2.3}",
    )
    .unwrap();
    for (name, text) in files() {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

#[tokio::test]
async fn helm_4_works_on_our_records() {
    works_on_our_records("helm4", tools::helm).await;
}

#[tokio::test]
async fn helm_3_works_on_our_records() {
    works_on_our_records("helm3", tools::helm_3).await;
}

#[tokio::test]
async fn a_release_of_helm_4_is_read_and_written_again() {
    is_read_by_us("of-helm4", tools::helm, Some(ApplyMethod::ServerSide)).await;
}

#[tokio::test]
async fn a_release_of_helm_3_is_read_and_written_again() {
    is_read_by_us("of-helm3", tools::helm_3, None).await;
}
