//! `windlass template --dry-run=server` beside the real helm, of both lines, on one cluster.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;
use tempfile::TempDir;
use testkit::controller::program;
use testkit::{ControlPlane, tools};

use crate::scene::Scene;

const LOOKUP: &str = r#"
{{- $found := lookup "v1" "ConfigMap" .Release.Namespace "settings" }}
{{- $all := lookup "v1" "ConfigMap" .Release.Namespace "" }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: web
data:
  colour: {{ dig "data" "colour" "unknown" $found | quote }}
  names: {{ range $all.items }}{{ .metadata.name }},{{ end }}
  missing: {{ lookup "v1" "ConfigMap" "nowhere" "nothing" | toJson | quote }}
  version: {{ .Capabilities.KubeVersion.Version }}
  stream: {{ .Capabilities.KubeVersion.Major }}.{{ .Capabilities.KubeVersion.Minor }}
  flows: {{ .Capabilities.APIVersions.Has "flowcontrol.apiserver.k8s.io/v1" | quote }}
  kinds: {{ .Capabilities.APIVersions.Has "apps/v1/Deployment" | quote }}
  asked: {{ .Capabilities.APIVersions.Has "asked/v1" | quote }}
  namespace: {{ .Release.Namespace }}
"#;

/// A chart in a folder, and both commands.
struct Commands {
    scene: Scene,
    kubeconfig: PathBuf,
    home: TempDir,
    helm: PathBuf,
    is_3: bool,
}

impl Commands {
    async fn new(purpose: &str, find: fn() -> anyhow::Result<PathBuf>) -> Self {
        let scene = Scene::new(purpose).await;
        let helm = tokio::task::spawn_blocking(find).await.unwrap().unwrap();
        Self {
            scene,
            kubeconfig: ControlPlane::shared().await.unwrap().kubeconfig_path().to_owned(),
            home: testkit::scratch::directory("template").unwrap(),
            is_3: purpose.ends_with('3'),
            helm,
        }
    }

    fn chart(&self, template: &str) {
        let folder = self.home.path().join("chart");
        fs::create_dir_all(folder.join("templates")).unwrap();
        fs::write(
            folder.join("Chart.yaml"),
            "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        )
        .unwrap();
        fs::write(folder.join("templates/a.yaml"), template).unwrap();
    }

    /// Runs `helm template` and `windlass template` with the same words; what each prints and says, and whether it ended well.
    async fn both(&self, arguments: &[&str]) -> [(bool, String, String); 2] {
        let ours = program("windlass").unwrap();
        let said = |mut command: Command| {
            command
                .args(["template", "web", "chart", "--namespace", &self.scene.namespace])
                .args(arguments)
                .current_dir(self.home.path())
                .env("HOME", self.home.path())
                .env("KUBECONFIG", &self.kubeconfig)
                .env("WINDLASS_HELM_VERSION", if self.is_3 { "v3" } else { "v4" });
            async move {
                let output = tokio::task::spawn_blocking(move || command.output())
                    .await
                    .unwrap()
                    .unwrap();
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                (
                    output.status.success(),
                    text(&output.stdout),
                    text(&output.stderr),
                )
            }
        };
        [
            said(Command::new(&self.helm)).await,
            said(Command::new(ours)).await,
        ]
    }

    /// The same output, or the same error.
    async fn are_alike(&self, arguments: &[&str]) -> (bool, String) {
        let [helm, ours] = self.both(arguments).await;
        assert_eq!(ours.0, helm.0, "{arguments:?}\n{}\n{}", ours.2, helm.2);
        assert_eq!(ours.1, helm.1, "{arguments:?}");
        let error = |said: &str| {
            let lines: Vec<&str> = said.lines().filter(|line| !is_log(line)).collect();
            lines.join("\n")
        };
        assert_eq!(error(&ours.2), error(&helm.2), "{arguments:?}");
        let text = if ours.0 { ours.1 } else { error(&ours.2) };
        (ours.0, text)
    }
}

/// Lines of Helm's logger, and what it warns of.
fn is_log(line: &str) -> bool {
    let starts = ["level=", "Flag --", "WARNING", "W1", "I1", "E1"];
    starts.iter().any(|start| line.starts_with(start))
}

async fn asks_the_cluster_as_helm_does(commands: Commands) {
    let namespace = commands.scene.namespace.clone();
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": namespace}, "data": {"colour": "green"}});
    testkit::objects::apply(&commands.scene.client, &settings)
        .await
        .unwrap();
    commands.chart(LOOKUP);
    let (_, offline) = commands
        .are_alike(&["--api-versions=asked/v1", "--kube-version=1.30.1"])
        .await;
    assert!(offline.contains("colour: \"unknown\"") && offline.contains("asked: \"true\""));
    let all: &[&str] = if commands.is_3 {
        &["--dry-run=server", "--validate"]
    } else {
        &["--dry-run=server"]
    };
    let (_, asked) = commands
        .are_alike(&[all, &["--api-versions=asked/v1", "--kube-version=1.20.0"]].concat())
        .await;
    assert!(asked.contains("colour: \"green\"") && asked.contains("asked: \"false\""));
    assert!(asked.contains("kinds: \"true\""), "{asked}");
    commands.are_alike(&["--validate"]).await;
    // Helm fails here.
    commands.chart("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: unknown}\ndata: {found: {{ lookup \"nobody.example/v1\" \"Nothing\" \"\" \"\" | toJson | quote }}}\n");
    let [helm, ours] = commands.both(&["--dry-run=server"]).await;
    assert!(!helm.0 && ours.1.contains("found: \"{}\""), "{}", ours.2);
    commands.chart(LOOKUP);
    if commands.is_3 {
        let version = "--kube-version=1.30.1";
        let (_, looked_up) = commands.are_alike(&["--dry-run=server", version]).await;
        assert!(looked_up.contains("colour: \"green\""));
    }

    commands.chart("apiVersion: nobody.example/v1\nkind: Nothing\nmetadata: {name: a}\n");
    let (taken, error) = commands.are_alike(&["--validate"]).await;
    assert!(
        !taken && error.contains("ensure CRDs are installed first"),
        "{error}"
    );
    commands.chart("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n");
    let (taken, error) = commands.are_alike(&["--validate"]).await;
    assert!(
        !taken && error.contains("exists and cannot be imported"),
        "{error}"
    );
    let (taken, _) = commands.are_alike(&["--validate", "--is-upgrade"]).await;
    assert!(taken);
    commands.chart("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\ndatum: {a: b}\n");
    let (taken, _) = commands.are_alike(&["--validate"]).await;
    assert!(
        taken,
        "Helm leaves the validation to the API server, and sends nothing"
    );
    let [_, (taken, _, error)] = commands.both(&["--validate", "--dry-run-apply"]).await;
    assert!(
        !taken && error.contains("datum: field not declared in schema"),
        "{error}"
    );
    assert!(is_absent(&commands.scene, "other").await);
}

async fn is_absent(scene: &Scene, name: &str) -> bool {
    use k8s_openapi::api::core::v1::ConfigMap;
    let maps: kube::Api<ConfigMap> = kube::Api::namespaced(scene.client.clone(), &scene.namespace);
    maps.get_opt(name).await.unwrap().is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn asks_the_cluster_as_helm_3_does() {
    asks_the_cluster_as_helm_does(Commands::new("template-3", tools::helm_3).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn asks_the_cluster_as_helm_4_does() {
    asks_the_cluster_as_helm_does(Commands::new("template-4", tools::helm).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_may_be_named_by_helms_flags() {
    let commands = Commands::new("template-flags-4", tools::helm).await;
    commands.chart(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Capabilities.KubeVersion.Version }}}\n",
    );
    let (_, plain) = commands.are_alike(&["--dry-run=server"]).await;
    let (_, impersonated) = commands
        .are_alike(&[
            "--dry-run=server",
            "--kube-as-user=ana",
            "--kube-as-group=system:masters",
        ])
        .await;
    assert_eq!(plain, impersonated);
    commands.chart("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {b: {{ lookup \"v1\" \"Secret\" \"kube-system\" \"\" | toJson | quote }}}\n");
    let (allowed, error) = commands
        .are_alike(&["--dry-run=server", "--kube-as-user=ana"])
        .await;
    assert!(!allowed && error.contains("secrets is forbidden"), "{error}");
    let [helm, ours] = commands
        .both(&["--dry-run=server", "--kube-apiserver=https://127.0.0.1:1"])
        .await;
    let words = "Error: cluster reachability check failed: kubernetes cluster unreachable: ";
    assert!(!ours.0 && ours.2.starts_with(words), "{}", ours.2);
    assert!(!helm.0 && helm.2.contains(words), "{}", helm.2);
}
