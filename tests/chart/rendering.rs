//! Our engine prints what the real helm prints.

use std::process::Command;

use testkit::controller::program;

use crate::cluster::{Helm, NAMESPACE, chart, said};

/// Sets of values that reach each branch of the templates.
const VALUES: [&[&str]; 13] = [
    &[],
    &[
        "sharding.shards={a,b}",
        "source.storage.size=10Gi",
        "source.replicas=2",
    ],
    &[
        "watch.allNamespaces=false",
        "crds.install=false",
        "notification.enabled=false",
    ],
    &[
        "source.enabled=false",
        "eventsAddress=http://elsewhere/",
        "crds.keep=false",
    ],
    &[
        "apply.clusterAdmin=false",
        "tenancy.defaultServiceAccount=deployer",
        "tenancy.noCrossNamespaceRefs=true",
    ],
    &[
        "monitoring.serviceMonitor.create=true",
        "monitoring.serviceMonitor.interval=30s",
        "source.httpDownloads=false",
        "source.storage.emptyDirSizeLimit=5Gi",
        "source.sigstoreTrustedRootSecret=sigstore",
        "networkPolicy.create=false",
    ],
    &[
        "images.enabled=true",
        "images.storage.size=1Gi",
        "images.replicas=2",
        "sharding.shards={a}",
    ],
    &[
        "images.enabled=true",
        "pipelines.enabled=true",
        "pipelines.replicas=2",
        "pipelines.weave=true",
        "pipelines.gateHosts={prometheus.monitoring,*.example.com}",
        "pipelines.webhookURL=https://hooks.example.com",
        "resourceSets.enabled=true",
        "watch.allNamespaces=false",
        "watch.labelSelector=team=a",
        "monitoring.serviceMonitor.create=true",
    ],
    &[
        "console.enabled=true",
        "console.ledger.storage.size=1Gi",
        "console.clustersNamespace=clusters",
        "console.signInSecret=people",
        "console.actions=fine-grained",
        "console.mcp=true",
        "console.grpc=true",
        "console.cdeventsSecret=cdevents",
        "console.extraEnv[0].name=A",
        "console.extraEnv[0].value=b",
        "networkPolicy.consoleFrom.matchLabels.ingress=yes",
    ],
    &[
        "console.enabled=true",
        "console.replicas=2",
        "console.ledger.urlSecret=postgres",
        "console.actions=impersonated",
        "source.replicas=2",
        "monitoring.serviceMonitor.create=true",
    ],
    &[
        "singlePod.enabled=true",
        "singlePod.podLabels.team=a",
        "images.enabled=true",
        "images.sigstoreTrustedRootSecret=sigstore",
        "source.sigstoreTrustedRootSecret=sigstore",
        "source.storage.size=10Gi",
        "pipelines.enabled=true",
        "resourceSets.enabled=true",
        "console.enabled=true",
        "flowControl.create=true",
        "monitoring.serviceMonitor.create=true",
        "tenancy.noCrossNamespaceRefs=true",
        "helm.extraArgs={--concurrent=20}",
    ],
    &["image.shared=true", "console.enabled=true", "images.enabled=true"],
    &[
        "monitoring.podMonitor.create=true",
        "monitoring.podMonitor.labels.release=prometheus",
        "monitoring.prometheusRule.create=true",
        "monitoring.dashboards.create=true",
        "helm.extraArgs={--concurrent=20}",
        "image.registry=registry.example.com/",
        "apply.podLabels.team=a",
        "apply.nodeSelector.disk=ssd",
        "source.serviceAccountAnnotations.role=reader",
        "podDisruptionBudget.create=false",
        "flowControl.create=true",
        "flowControl.shares=10",
        "freezes.admissionPolicy=false",
        "source.replicas=3",
        "source.storage.existingClaim=artifacts",
        "source.backup.bucket=artifacts",
        "source.backup.endpoint=minio:9000",
        "source.backup.secret=backup",
        "source.backup.certSecret=authority",
        "source.backup.prefix=clusters/eu",
        "source.backup.insecure=true",
        "topologySpread.create=false",
        "rbac.aggregate=false",
    ],
];

#[tokio::test]
async fn our_engine_renders_the_chart_as_the_real_helm_does() {
    let helm = Helm::new(None).await;
    for values in VALUES {
        let arguments = template(values);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let theirs = helm.run(&arguments).await.unwrap();
        let mut ours = Command::new(program("windlass").unwrap());
        let ours = ours
            .args(&arguments)
            .args(["--namespace", NAMESPACE])
            .output()
            .unwrap();
        assert_eq!(said(&ours, &arguments).unwrap(), theirs, "with {values:?}");
        assert!(theirs.contains("kind: Deployment"));
    }
}

#[tokio::test]
async fn the_chart_has_no_fault_that_helm_finds() {
    let helm = Helm::new(None).await;
    helm.run(&["lint", chart().to_str().unwrap(), "--strict"])
        .await
        .unwrap();
}

#[tokio::test]
async fn values_that_cannot_work_are_refused_by_name() {
    let refused = [
        ("loging.level=debug", "additional properties 'loging' not allowed"),
        ("logging.level=loud", "logging/level"),
        ("apply.clusterAdmin=false", "set tenancy.defaultServiceAccount"),
        ("source.extraArgs={concurrent}", "source/extraArgs/0"),
        (
            "images.storage.size=1Gi,images.storage.existingClaim=tags",
            "images.storage.size and images.storage.existingClaim exclude each other",
        ),
        (
            "console.enabled=true,console.replicas=2,console.ledger.storage.size=1Gi",
            "set console.ledger.urlSecret to share a PostgreSQL",
        ),
        (
            "console.ledger.urlSecret=a,console.ledger.storage.existingClaim=b",
            "the ledger is in one place",
        ),
        (
            "source.backup.bucket=artifacts",
            "source.backup.bucket needs source.backup.endpoint",
        ),
        ("source.backup.provider=ftp", "source/backup/provider"),
        (
            "singlePod.enabled=true,sharding.shards={a}",
            "singlePod.enabled and sharding.shards exclude each other",
        ),
        (
            "singlePod.enabled=true,helm.replicas=2",
            "helm.replicas must be 1",
        ),
        ("console.clusterName=a/b", "console/clusterName"),
        ("console.actions=all", "console/actions"),
        (
            "monitoring.podMonitor.create=true,monitoring.serviceMonitor.create=true",
            "create one of them",
        ),
    ];
    let helm = Helm::new(None).await;
    for (value, problem) in refused {
        let arguments = template(&[value]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let error = helm.run(&arguments).await.unwrap_err().to_string();
        assert!(error.contains(problem), "{value}: {error}");
    }
}

fn template(values: &[&str]) -> Vec<String> {
    let mut arguments = vec!["template".to_owned(), "windlass".to_owned()];
    arguments.push(chart().to_str().unwrap().to_owned());
    for value in values {
        arguments.extend(["--set".to_owned(), (*value).to_owned()]);
    }
    arguments
}
