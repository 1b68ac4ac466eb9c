//! Manifests as people write them survive being read and written: nothing is lost, and nothing is added.

use std::fmt::Debug;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::trees;
use api::{helm, kustomize, notification, source, source_extensions};

/// Reads the manifest as `K`, writes it, and compares.
#[track_caller]
fn check<K: DeserializeOwned + Serialize + PartialEq + Debug>(manifest: &str) -> K {
    let tree: Value = serde_saphyr::from_str(manifest).unwrap();
    let object: K = serde_json::from_value(tree.clone()).unwrap();
    let written = serde_json::to_value(&object).unwrap();
    let differences = trees::differences(&tree, &written);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!(serde_json::from_value::<K>(written).unwrap(), object);
    object
}

#[test]
fn a_git_repository_with_everything() {
    let repository: source::GitRepository = check(
        r#"
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: shop
  namespace: team
  generation: 3
  finalizers: [finalizers.fluxcd.io]
spec:
  url: https://git.example.com/team/shop
  provider: github
  interval: 1m30s
  timeout: 20s
  ref:
    branch: main
    commit: 9a5b0c8d
  secretRef: { name: login }
  proxySecretRef: { name: proxy }
  verify:
    mode: TagAndHEAD
    secretRef: { name: authors }
  ignore: ""
  recurseSubmodules: true
  include:
  - repository: { name: library }
    fromPath: deploy
  sparseCheckout: [deploy, charts]
status:
  observedGeneration: -1
  conditions:
  - type: Ready
    status: "True"
    reason: Succeeded
    message: stored artifact for revision 'main@sha1:9a5b0c8d'
    observedGeneration: 3
    lastTransitionTime: "2026-11-21T10:00:00Z"
  artifact:
    digest: sha256:2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
    lastUpdateTime: "2026-11-21T10:00:00Z"
    path: gitrepository/team/shop/9a5b0c8d.tar.gz
    revision: main@sha1:9a5b0c8d
    size: 1024
    url: http://source-controller.flux-system.svc.cluster.local./gitrepository/team/shop/9a5b0c8d.tar.gz
  observedIgnore: ""
  observedRecurseSubmodules: true
  observedInclude:
  - repository: { name: library }
    fromPath: deploy
  observedSparseCheckout: [deploy, charts]
  sourceVerificationMode: TagAndHEAD
  lastHandledReconcileAt: "2026-11-21T10:00:00.123456789Z"
"#,
    );
    assert_eq!(repository.spec.interval.to_std().as_secs(), 90);
    assert_eq!(repository.spec.include[0].to_path(), "library");
}

#[test]
fn an_oci_repository_with_everything() {
    let repository: source::OCIRepository = check(
        r#"
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: { name: shop, namespace: team }
spec:
  url: oci://registry.example.com/team/shop
  interval: 10m0s
  provider: aws
  insecure: true
  ref:
    semver: ">=1.0.0"
    semverFilter: ".*-rc.*"
  layerSelector:
    mediaType: application/vnd.cncf.helm.chart.content.v1.tar+gzip
    operation: copy
  verify:
    provider: cosign
    matchOIDCIdentity:
    - issuer: ^https://token.actions.githubusercontent.com$
      subject: ^https://github.com/team/.*$
    trustedRootSecretRef: { name: root }
"#,
    );
    assert_eq!(repository.provider(), source::OCIProvider::Aws);
    assert_eq!(source::Source::timeout(&repository).to_string(), "1m0s");
}

#[test]
fn the_other_sources() {
    check::<source::Bucket>(
        r#"
apiVersion: source.toolkit.fluxcd.io/v1
kind: Bucket
metadata: { name: files }
spec:
  provider: generic
  bucketName: files
  endpoint: minio.example.com:9000
  interval: 5m0s
  sts:
    provider: ldap
    endpoint: https://minio.example.com:9000
    secretRef: { name: ldap }
"#,
    );
    check::<source::HelmRepository>(
        r#"
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: { name: charts }
spec:
  type: oci
  url: oci://registry.example.com/charts
  accessFrom:
    namespaceSelectors:
    - matchLabels: { team: shop }
"#,
    );
    check::<source::HelmChart>(
        r#"
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmChart
metadata: { name: shop }
spec:
  chart: shop
  version: 1.x
  interval: 1h0m0s
  reconcileStrategy: Revision
  sourceRef: { kind: HelmRepository, name: charts }
  valuesFiles: [values.yaml, values-prod.yaml]
"#,
    );
    check::<source::ExternalArtifact>(
        r#"
apiVersion: source.toolkit.fluxcd.io/v1
kind: ExternalArtifact
metadata: { name: made }
spec:
  sourceRef: { apiVersion: example.com/v1, kind: Generator, name: made }
"#,
    );
}

#[test]
fn a_kustomization_with_everything() {
    let kustomization: kustomize::Kustomization = check(
        r#"
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: { name: shop, namespace: team }
spec:
  interval: 10m0s
  retryInterval: 1m0s
  timeout: 3m0s
  path: ./deploy
  prune: false
  deletionPolicy: WaitForTermination
  sourceRef: { kind: GitRepository, name: shop, namespace: sources }
  dependsOn:
  - name: database
    readyExpr: dep.status.observedGeneration > 0
  decryption:
    provider: sops
    secretRef: { name: keys }
  commonMetadata:
    labels: { team: shop }
  postBuild:
    substituteStrategy: Always
    substitute: { region: eu, empty: "" }
    substituteFrom:
    - { kind: ConfigMap, name: settings, optional: true }
  healthChecks:
  - { apiVersion: apps/v1, kind: Deployment, name: web, namespace: team }
  healthCheckExprs:
  - { apiVersion: example.com/v1, kind: Database, current: status.ready }
  patches:
  - patch: |
      - op: remove
        path: /spec/replicas
    target: { kind: Deployment, labelSelector: app=web }
  images:
  - { name: web, newTag: v2 }
  ignore:
  - paths: [/spec/replicas]
    target: { kind: Deployment }
  buildMetadata: [originAnnotations, transformerAnnotations]
  components: [../components/tls]
  ignoreMissingComponents: true
  kubeConfig:
    secretRef: { name: remote, key: config }
  force: true
  wait: true
  suspend: true
status:
  lastAppliedRevision: main@sha1:9a5b0c8d
  inventory:
    entries:
    - { id: team_web_apps_Deployment, v: v1 }
  history:
  - digest: sha256:2c26b46b
    firstReconciled: "2026-11-21T10:00:00Z"
    lastReconciled: "2026-11-21T10:00:01Z"
    lastReconciledDuration: 1.234567891s
    lastReconciledStatus: ReconciliationSucceeded
    totalReconciliations: 1
    metadata: { revision: main@sha1:9a5b0c8d }
"#,
    );
    assert_eq!(
        kustomization.spec.source_ref.to_string(),
        "GitRepository/sources/shop"
    );
    assert_eq!(
        kustomization.spec.depends_on[0].to_string(),
        "database@dep.status.observedGeneration > 0"
    );
}

#[test]
fn a_helm_release_with_much() {
    let release: helm::HelmRelease = check(
        r#"
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: { name: shop, namespace: team }
spec:
  interval: 10m0s
  chart:
    metadata:
      labels: { team: shop }
    spec:
      chart: shop
      version: 1.x
      sourceRef: { kind: HelmRepository, name: charts }
  maxHistory: 0
  driftDetection:
    mode: warn
    ignore:
    - paths: [/spec/replicas]
  install:
    crds: CreateReplace
    disableOpenAPIValidation: true
    skipCRDs: true
    remediation: { retries: -1, remediateLastFailure: false }
    strategy: { name: RetryOnFailure, retryInterval: 5m0s }
  upgrade:
    serverSideApply: auto
    remediation: { retries: 3, strategy: uninstall }
  test: { enable: true, filters: [{ name: smoke, exclude: true }] }
  uninstall: { deletionPropagation: foreground }
  values:
    replicas: 3
    ratio: 0.5
    nothing: null
    list: [1, { a: b }]
  valuesFrom:
  - { kind: Secret, name: values, targetPath: a.b, literal: true }
  postRenderers:
  - kustomize:
      images: [{ name: web, newName: registry.example.com/web }]
  postRenderStrategy: nohooks
  waitStrategy: { name: legacy }
status:
  lastAttemptedReleaseAction: upgrade
  lastAttemptedReleaseActionDuration: 15.2s
  failures: 2
  history:
  - digest: sha256:2c26b46b
    name: shop
    namespace: team
    version: 4
    status: deployed
    chartName: shop
    chartVersion: 1.2.3
    configDigest: sha256:2c26b46b
    firstDeployed: "2026-11-21T10:00:00Z"
    lastDeployed: "2026-11-21T10:00:00Z"
    ociDigest: sha256:2c26b46b
    testHooks:
      smoke: { phase: Succeeded }
"#,
    );
    assert_eq!(release.max_history(), 0);
    assert_eq!(release.timeout().to_string(), "5m0s");
    assert_eq!(release.spec.values_from[0].key(), "values.yaml");
}

#[test]
fn the_notification_kinds() {
    check::<notification::Provider>(
        r#"
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Provider
metadata: { name: chat }
spec:
  type: giteapullrequestcomment
  address: https://git.example.com/team/shop
  secretRef: { name: token }
"#,
    );
    check::<notification::Alert>(
        r#"
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Alert
metadata: { name: all }
spec:
  providerRef: { name: chat }
  eventSeverity: error
  eventSources:
  - { kind: Kustomization, name: "*", matchLabels: { team: shop } }
  eventMetadata: { cluster: eu }
"#,
    );
    check::<notification::Receiver>(
        r#"
apiVersion: notification.toolkit.fluxcd.io/v1
kind: Receiver
metadata: { name: push }
spec:
  type: generic-oidc
  interval: 10m0s
  resources:
  - { kind: GitRepository, name: shop, filter: "true" }
  oidcProviders:
  - issuerURL: https://token.actions.githubusercontent.com
    variables: [{ name: repository, expression: claims.repository }]
    validations: [{ expression: vars.repository == "team/shop", message: wrong repository }]
status:
  webhookPath: /hook/2c26b46b
"#,
    );
}

#[test]
fn what_is_unknown_absent_null_or_empty_does_no_harm() {
    let object = serde_json::json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": { "name": "shop" },
        "spec": {
            "interval": "99999999999h",
            "prune": true,
            "path": "",
            "serviceAccountName": null,
            "sourceRef": { "kind": "Bucket", "name": "files", "namespace": "" },
            "fieldOfTomorrow": 1,
        },
    });
    let read: kustomize::Kustomization = serde_json::from_value(object).unwrap();
    assert_eq!(read.spec.path, None);
    assert_eq!(read.spec.service_account_name, None);
    assert_eq!(read.spec.source_ref.namespace_or("team"), "team");
    assert_eq!(read.spec.interval, api::meta::Duration::MAX);
}

/// The CRDs, as Flux's, demand no spec: one object without it must not make a list unreadable.
#[test]
fn an_object_without_a_spec_can_be_read() {
    let bare = serde_json::json!({ "metadata": { "name": "bare" } });
    let read: source::GitRepository = serde_json::from_value(bare).unwrap();
    assert_eq!(read.metadata.name.as_deref(), Some("bare"));
    assert_eq!(read.spec, source::GitRepositorySpec::default());
    assert_eq!(read.status, None);
}

/// A tenant may be allowed to write a status, and its fields are hardly validated. Watches of these types can go
/// through kube's guard, and the guard must be able to tell the objects apart.
#[test]
fn an_unreadable_object_does_not_hide_the_others() {
    use kube::core::{DeserializeGuard, ObjectList};

    let item = |name: &str, duration: &str| {
        serde_json::json!({
            "metadata": { "name": name },
            "status": { "history": [{
                "digest": "sha256:2c26b46b",
                "firstReconciled": "2026-11-21T10:00:00Z",
                "lastReconciled": "2026-11-21T10:00:00Z",
                "lastReconciledDuration": duration,
                "lastReconciledStatus": "ReconciliationSucceeded",
                "totalReconciliations": 1,
            }] },
        })
    };
    let list = serde_json::json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "KustomizationList",
        "metadata": {},
        "items": [item("good", "1.5s"), item("bad", "soon")],
    });
    let list: ObjectList<DeserializeGuard<kustomize::Kustomization>> = serde_json::from_value(list).unwrap();
    let read: Vec<_> = list
        .items
        .into_iter()
        .map(|item| item.0.map_err(|error| error.metadata.name))
        .collect();
    assert_eq!(read[0].as_ref().unwrap().metadata.name.as_deref(), Some("good"));
    assert_eq!(read[1].as_ref().unwrap_err().as_deref(), Some("bad"));
}

#[test]
fn an_artifact_generator_with_everything() {
    let generator: source_extensions::ArtifactGenerator = check(
        r#"
apiVersion: source.extensions.fluxcd.io/v1beta1
kind: ArtifactGenerator
metadata:
  name: shop
  namespace: team
  annotations: { source.extensions.fluxcd.io/reconcile: Disabled }
spec:
  commonMetadata:
    labels: { team: shop }
  sources:
  - { alias: repo, kind: GitRepository, name: shop, namespace: sources }
  - { alias: chart, kind: OCIRepository, name: chart }
  pathPattern: "@repo/apps/{app}"
  artifacts:
  - name: "shop-{app}"
    revision: "@repo"
    originRevision: "@chart"
    copy:
    - from: "@repo/apps/{app}/**"
      to: "@artifact/"
      exclude: ["*.md"]
    - from: "@chart/values.yaml"
      to: "@artifact/values.yaml"
      strategy: Merge
status:
  conditions:
  - type: Ready
    status: "True"
    reason: Succeeded
    message: reconciliation succeeded, generated 1 artifact(s)
    observedGeneration: 1
    lastTransitionTime: "2026-11-21T10:00:00Z"
  inventory:
  - { name: shop-web, namespace: team, digest: "sha256:2c26b46b", filename: 1234.tar.gz }
  observedSourcesDigest: sha256:2c26b46b
  lastHandledReconcileAt: now
"#,
    );
    assert!(api::meta::StatusObject::suspended(&generator));
    let copies = &generator.spec.artifacts[0].copy;
    assert_eq!(copies[0].strategy(), source_extensions::CopyStrategy::Overwrite);
    assert_eq!(copies[1].strategy(), source_extensions::CopyStrategy::Merge);
}
