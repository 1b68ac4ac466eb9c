//! kubeConfig.configMapRef: another cluster, that trusts the service accounts of this one.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::git::Repository;
use testkit::objects::{condition, is_ready};
use testkit::{ControlPlane, Controller, HelmRepository, Options, wait_for, wait_until_gone};

use crate::world::{PATIENCE, Test, config_map, run};

/// Audience of tokens for the other cluster.
const AUDIENCE: &str = "the-other-cluster";

/// A cluster that takes tokens of this one's service accounts, with `first:` before their names.
pub struct Other {
    control_plane: ControlPlane,
    // Where it finds this cluster's keys.
    _documents: HelmRepository,
    _directory: TempDir,
}

impl Other {
    pub async fn start(test: &Test) -> Result<Self> {
        let directory = testkit::scratch::directory("trusting")?;
        let documents = HelmRepository::start_tls().await?;
        let keys = http::Request::get("/openid/v1/jwks").body(Vec::new())?;
        let keys = test.client.request_text(keys).await?;
        documents.set_file("jwks", Some(keys.into_bytes()));
        let discovery = json!({
            "issuer": "https://kubernetes.default.svc", "jwks_uri": format!("{}/jwks", documents.url()),
            "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256", "RS256"],
        });
        documents.set_file("discovery", Some(discovery.to_string().into_bytes()));
        let authentication = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
            "jwt": [{
                "issuer": {
                    "url": "https://kubernetes.default.svc",
                    "discoveryURL": format!("{}/discovery", documents.url()),
                    "certificateAuthority": documents.authority(),
                    "audiences": [AUDIENCE],
                },
                "claimMappings": {"username": {"claim": "sub", "prefix": "first:"}},
            }],
        });
        let file = directory.path().join("authentication.json");
        std::fs::write(&file, authentication.to_string())?;
        let mut options = Options::api_server_only();
        options.api_server_flags = vec![
            "--service-account-issuer=https://the-other-cluster".to_owned(),
            format!("--authentication-config={}", file.display()),
        ];
        let control_plane = ControlPlane::start(options).await?;
        let name = Some(test.namespace.clone());
        let namespace = Namespace {
            metadata: ObjectMeta {
                name,
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let namespaces: Api<Namespace> = Api::all(control_plane.client());
        namespaces.create(&PostParams::default(), &namespace).await?;
        Ok(Self {
            control_plane,
            _documents: documents,
            _directory: directory,
        })
    }

    /// Lets a service account of the first cluster do everything here.
    pub async fn allow(&self, test: &Test, account: &str) -> Result<()> {
        let user = format!("first:system:serviceaccount:{}:{account}", test.namespace);
        let rbac = "rbac.authorization.k8s.io";
        let binding = json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": account},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"apiGroup": rbac, "kind": "User", "name": user}],
        });
        testkit::objects::apply(&self.control_plane.client(), &binding)
            .await
            .map(drop)
    }

    /// The ConfigMaps of the test's namespace there.
    pub fn maps(&self, test: &Test) -> Api<ConfigMap> {
        Api::namespaced(self.control_plane.client(), &test.namespace)
    }

    /// Describes it, in a ConfigMap `cluster` of the first one.
    pub async fn describe(&self, test: &Test, account: Option<&str>) -> Result<()> {
        let config = self.control_plane.config();
        let authority = config
            .root_cert
            .as_ref()
            .and_then(|all| all.first())
            .context("it has an authority")?;
        let authority = pem(authority);
        let mut data = json!({
            "provider": "generic", "address": config.cluster_url.to_string(), "ca.crt": authority, "audiences": AUDIENCE,
        });
        if let Some(account) = account {
            data["serviceAccountName"] = json!(account);
        }
        describe(test, data).await
    }
}

/// A certificate in PEM.
fn pem(der: &[u8]) -> String {
    let encoded = json!(k8s_openapi::ByteString(der.to_vec()));
    let encoded = encoded.as_str().unwrap_or_default();
    format!("-----BEGIN CERTIFICATE-----\n{encoded}\n-----END CERTIFICATE-----\n")
}

async fn describe(test: &Test, data: Value) -> Result<()> {
    let metadata = json!({"name": "cluster", "namespace": test.namespace});
    let maps = test.objects("v1", "ConfigMap");
    maps.delete("cluster", &Default::default()).await.ok();
    test.apply(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
        .await
}

/// Makes a service account in this cluster.
pub async fn account(test: &Test, name: &str) -> Result<()> {
    let metadata = json!({"name": name, "namespace": test.namespace});
    test.apply(&json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}))
        .await
}

fn spec() -> Value {
    json!({"retryInterval": "1h", "kubeConfig": {"configMapRef": {"name": "cluster"}}})
}

/// Waits until the Kustomization failed with these words.
async fn fails(test: &Test, words: &str) -> Result<()> {
    let says = |object: &DynamicObject| {
        condition(object, "Ready").is_some_and(|(status, reason, message)| {
            status == "False" && reason == "ReconciliationFailed" && message.contains(words)
        })
    };
    wait_for(&test.kustomizations(), "app", says, PATIENCE)
        .await
        .map(drop)
}

async fn controller(test: &Test, flags: &[&str]) -> Result<Controller> {
    let mut options = test.own_shard();
    options
        .flags
        .push("--feature-gates=ObjectLevelWorkloadIdentity=true".to_owned());
    options.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
    let kubeconfig = test.world.control_plane.kubeconfig_path();
    Controller::start_apply(kubeconfig, &test.world.source, options).await
}

async fn source(test: &Test) -> Result<Repository> {
    let repository = test.repository(&[("deploy/a.yaml", config_map(&test.namespace, "far", "1"))])?;
    test.git_source(&repository).await?;
    Ok(repository)
}

#[test]
fn a_service_account_of_this_cluster_delivers_to_the_other_one() {
    run("remote-generic", |test| async move {
        let ns = &test.namespace;
        let other = Other::start(&test).await?;
        let apply = controller(&test, &[]).await?;
        let maps = other.maps(&test);
        source(&test).await?;
        account(&test, "remote").await?;
        account(&test, "nobody").await?;

        // Who is known there and may do nothing.
        other.describe(&test, Some("nobody")).await?;
        test.apply(&test.in_own_shard(test.kustomization("app", spec())))
            .await?;
        fails(
            &test,
            &format!("User \"first:system:serviceaccount:{ns}:nobody\" cannot"),
        )
        .await?;

        // A changed ConfigMap is seen at once.
        other.allow(&test, "remote").await?;
        other.describe(&test, Some("remote")).await?;
        wait_for(&test.kustomizations(), "app", is_ready, PATIENCE).await?;
        maps.get("far").await.context("it should be there")?;
        test.no_config_map("far").await?;
        let edit = Patch::Merge(json!({"data": {"key": "drifted"}}));
        maps.patch("far", &PatchParams::default(), &edit).await?;
        let is_restored = |map: &ConfigMap| {
            map.data
                .as_ref()
                .and_then(|data| data.get("key"))
                .is_some_and(|value| value == "1")
        };
        wait_for(&maps, "far", is_restored, PATIENCE).await?;

        // With an account of the other cluster, it is that one who acts.
        let mut tenant = spec();
        tenant["serviceAccountName"] = json!("tenant");
        test.apply(&test.in_own_shard(test.kustomization("app", tenant)))
            .await?;
        fails(
            &test,
            &format!("User \"system:serviceaccount:{ns}:tenant\" cannot"),
        )
        .await?;

        test.apply(&test.in_own_shard(test.kustomization("app", spec())))
            .await?;
        wait_for(&test.kustomizations(), "app", is_ready, PATIENCE).await?;
        test.delete_kustomization("app").await?;
        wait_until_gone(&maps, "far", PATIENCE).await?;
        // Tokens begin so.
        ensure!(!apply.log().contains("eyJ"), "a token was logged");
        Ok(())
    });
}

#[test]
fn the_lock_gives_an_account_to_clusters_that_name_none() {
    run("remote-lock", |test| async move {
        let ns = &test.namespace;
        let other = Other::start(&test).await?;
        let _apply = controller(&test, &["--default-kubeconfig-service-account=locked"]).await?;
        source(&test).await?;
        other.describe(&test, None).await?;
        test.apply(&test.in_own_shard(test.kustomization("app", spec())))
            .await?;
        fails(&test, &format!("service account '{ns}/locked'")).await?;
        account(&test, "locked").await?;
        other.allow(&test, "locked").await?;
        testkit::objects::poke(&test.kustomizations(), "app").await?;
        wait_for(&test.kustomizations(), "app", is_ready, PATIENCE).await?;
        other.maps(&test).get("far").await.context("it should be there")?;
        test.delete_kustomization("app").await
    });
}

#[test]
fn what_describes_no_cluster_is_refused_with_the_reason() {
    run("remote-described", |test| async move {
        let ns = &test.namespace;
        source(&test).await?;
        test.apply(&test.kustomization("app", spec())).await?;
        fails(
            &test,
            &format!("failed to get configmap {ns}/cluster: configmaps \"cluster\" not found"),
        )
        .await?;
        // No one listens there.
        let address = "https://127.0.0.1:9";
        for (data, words) in [
            (json!({"provider": "other"}), "provider 'other' not implemented"),
            (json!({"provider": "generic"}), "cluster address is required"),
            (
                json!({"provider": "generic", "address": "http://127.0.0.1:9"}),
                "must use https scheme",
            ),
            (
                json!({"provider": "generic", "address": address, "ca.crt": "none"}),
                "ca.crt holds no certificate in PEM",
            ),
            (
                json!({"provider": "generic", "address": address, "serviceAccountName": "default"}),
                "ObjectLevelWorkloadIdentity feature gate is not enabled",
            ),
            (
                json!({"provider": "generic", "address": address}),
                "failed to read service account token file",
            ),
            (
                json!({"provider": "aws", "cluster": "mine"}),
                "invalid EKS cluster ARN: 'mine'",
            ),
            (json!({"provider": "azure"}), "invalid AKS cluster ID: ''"),
            (json!({"provider": "gcp"}), "invalid GKE cluster ID: ''"),
        ] {
            describe(&test, data).await?;
            fails(&test, words).await?;
        }
        // Whatever the name says, it is one of this namespace.
        let mut foreign = spec();
        foreign["kubeConfig"]["configMapRef"]["name"] = json!(format!("../../{ns}/configmaps/cluster"));
        test.apply(&test.kustomization("app", foreign)).await?;
        fails(&test, "invalid resource name").await?;
        let secret = json!({"kubeConfig": {"secretRef": {"name": "../secrets/cluster"}}});
        test.apply(&test.kustomization("app", secret)).await?;
        fails(&test, "invalid resource name").await
    });
}
