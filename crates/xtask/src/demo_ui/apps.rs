//! The applications: their manifests, and the objects that deliver them to a cluster.

use anyhow::Result;
use kube::Client;
use serde_json::{Value, json};
use testkit::git::{Change, Repository};
use testkit::objects::{api_of, apply, git_repository, kustomization, poke, with_spec};

/// Those of the applications.
pub(super) const NAMESPACES: [&str; 3] = ["shop", "bank", "platform"];

/// How many applications are so at least, of both clusters together, once all have been looked at.
pub(super) const SETTLED: [(&str, u64); 3] = [("Ready", 16), ("Suspended", 2), ("Failed", 18)];

/// Applications that are well.
const WELL: [(&str, &str); 7] = [
    ("shop", "web"),
    ("shop", "cart"),
    ("shop", "search"),
    ("bank", "accounts"),
    ("bank", "transfers"),
    ("platform", "ingress"),
    ("platform", "metrics"),
];

const CHART: &str = "apiVersion: v2\nname: api\nversion: 1.4.2\nappVersion: \"7.1\"\n";
const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  greeting: {{ required \"greeting is required\" .Values.greeting }}\n";

/// The first commits.
pub(super) fn commit(repository: &Repository) -> Result<()> {
    let mut changes = vec![
        Change::write("charts/api/Chart.yaml", CHART),
        Change::write("charts/api/templates/settings.yaml", TEMPLATE),
        // Its YAML is wrong.
        Change::write(
            "bank/billing/settings.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: [\n",
        ),
        // No such field value: the API server refuses it.
        Change::write(
            "shop/mail/service.yaml",
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: mail\nspec:\n  ports:\n  - port: 99999\n",
        ),
        // Nothing makes Pods here: it does not become healthy.
        Change::write("shop/payments/deployment.yaml", DEPLOYMENT),
        Change::write(
            "platform/alerts/settings.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: alerts\ndata:\n  to: ${ONCALL}\n",
        ),
    ];
    for (namespace, name) in WELL {
        changes.push(Change::write(
            &format!("{namespace}/{name}/settings.yaml"),
            settings(name, "1"),
        ));
        changes.push(Change::write(
            &format!("{namespace}/{name}/account.yaml"),
            account(name),
        ));
    }
    changes.push(Change::write(
        "platform/legacy/settings.yaml",
        settings("legacy", "1"),
    ));
    changes.push(Change::write(
        "bank/reports/settings.yaml",
        settings("reports", "1"),
    ));
    repository.commit("main", "Deliver the shop, the bank and the platform", &changes)?;
    Ok(())
}

/// Another change, to some of them.
pub(super) fn commit_again(repository: &Repository) -> Result<()> {
    let changes = [
        Change::write("shop/web/settings.yaml", settings("web", "2")),
        Change::write("shop/cart/settings.yaml", settings("cart", "2")),
        Change::write("bank/accounts/settings.yaml", settings("accounts", "2")),
    ];
    repository.commit("main", "Raise limits of web, cart and accounts", &changes)?;
    Ok(())
}

fn settings(name: &str, version: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  version: \"{version}\"\n")
}

fn account(name: &str) -> String {
    format!("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {name}\n")
}

const DEPLOYMENT: &str = "apiVersion: apps/v1
kind: Deployment
metadata:
  name: payments
spec:
  selector: {matchLabels: {app: payments}}
  template:
    metadata: {labels: {app: payments}}
    spec:
      containers:
      - {name: payments, image: \"registry.example.com/payments:3.2.0\"}
";

/// Has them delivered to a cluster.
pub(super) async fn deploy(client: &Client, url: &str) -> Result<()> {
    for object in objects(url) {
        apply(client, &object).await?;
    }
    Ok(())
}

/// Has the sources looked at now.
pub(super) async fn reconcile(client: &Client) -> Result<()> {
    for namespace in NAMESPACES {
        let source = git_repository(namespace, "apps", "", "main");
        let (api, name) = api_of(client, &source)?;
        poke(&api, &name).await?;
    }
    Ok(())
}

fn objects(url: &str) -> Vec<Value> {
    let mut all: Vec<Value> = NAMESPACES
        .iter()
        .map(|namespace| git_repository(namespace, "apps", url, "main"))
        .collect();
    let app = |namespace: &str, name: &str| {
        let path = format!("./{namespace}/{name}");
        let app = kustomization(namespace, name, ("GitRepository", "apps"), &path);
        with_spec(app, json!({"targetNamespace": namespace}))
    };
    all.extend(WELL.iter().map(|(namespace, name)| app(namespace, name)));
    all.extend([
        // Failures, each for a cause of its own.
        app("shop", "mail"),
        app("bank", "billing"),
        with_spec(
            app("bank", "reports"),
            json!({"dependsOn": [{"name": "billing"}]}),
        ),
        app("bank", "gone"),
        git_repository("shop", "experiments", url, "no-such-branch"),
        kustomization("shop", "experiments", ("GitRepository", "experiments"), "./"),
        with_spec(
            app("platform", "alerts"),
            json!({"postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "oncall"}]}}),
        ),
        with_spec(
            app("platform", "secrets"),
            json!({"serviceAccountName": "nobody", "path": "./platform/metrics"}),
        ),
        with_spec(
            app("shop", "orders"),
            json!({"path": "./shop/payments", "targetNamespace": "bank", "timeout": "30s"}),
        ),
        with_spec(app("platform", "legacy"), json!({"suspend": true})),
        with_spec(app("shop", "payments"), json!({"timeout": "30m"})),
        release("shop", "api", "charts/api", json!({"greeting": "hello"})),
        release("bank", "api", "charts/api", json!({})),
        release("platform", "portal", "charts/portal", json!({})),
    ]);
    all
}

fn release(namespace: &str, name: &str, chart: &str, values: Value) -> Value {
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "interval": "1h", "timeout": "1m", "values": values,
            "chart": {"spec": {"chart": chart, "sourceRef": {"kind": "GitRepository", "name": "apps"}, "interval": "1h"}},
        },
    })
}
