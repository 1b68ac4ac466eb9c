//! VerificationPolicies (ADR 33): what is not signed is not delivered, by Kustomizations and HelmReleases.

use anyhow::{Context as _, Result, ensure};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::git::{Change, Repository};
use testkit::objects::{self, text};
use testkit::registry::{Artifact, CosignKey};
use testkit::{Controller, wait_for};

use crate::cli::Windlass;
use crate::freezes::DELIVERY;
use crate::world::{PATIENCE, Test, config_map, deployment, run};
use crate::{changes, helm};

const REASON: &str = "ImageVerificationFailed";
const IMAGE: &str = "/spec/template/spec/containers/0/image";
const PROVENANCE: &str = "https://slsa.dev/provenance/v1";

/// A policy, a key that it trusts, and an image of the tag `v1` that is not signed yet.
struct Scene<'a> {
    test: &'a Test,
    key: CosignKey,
    /// Registry and repository.
    image: String,
}

impl<'a> Scene<'a> {
    async fn new(test: &'a Test, spec: Value) -> Result<Self> {
        let (ns, key) = (&test.namespace, CosignKey::generate()?);
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": ns},
            "stringData": {"cosign.pub": key.public_key()?},
        });
        test.apply(&secret).await?;
        let scene = Self {
            test,
            key,
            image: format!("{}/{ns}", test.world.registry.address()),
        };
        scene.push("1").await?;
        scene.write(spec).await?;
        Ok(scene)
    }

    async fn write(&self, spec: Value) -> Result<()> {
        let mut policy = json!({
            "apiVersion": DELIVERY, "kind": "VerificationPolicy",
            "metadata": {"name": "signed", "namespace": self.test.namespace},
            "spec": {"images": {"match": [&self.image]}, "reason": "ask the platform"},
        });
        if let (Some(all), Some(more)) = (policy["spec"].as_object_mut(), spec.as_object()) {
            all.extend(more.clone());
        }
        self.test.apply(&policy).await
    }

    /// Pushes other content as the tag `v1`; returns its digest.
    async fn push(&self, content: &str) -> Result<String> {
        let artifact = Artifact::image("linux", "amd64", content)?;
        let registry = &self.test.world.registry;
        registry.push(&self.test.namespace, &["v1"], &artifact).await
    }

    async fn sign(&self, digest: &str) -> Result<()> {
        let registry = &self.test.world.registry;
        self.key.sign(registry, &self.test.namespace, digest).await
    }

    /// A controller that begins with the policy known.
    async fn controller(&self) -> Result<Controller> {
        let (world, options) = (self.test.world, self.test.own_shard());
        Controller::start_apply(world.control_plane.kubeconfig_path(), &world.source, options).await
    }

    /// A repository with a Deployment of the image, and a Kustomization of it.
    async fn deliver(&self, image: &str) -> Result<Repository> {
        let test = self.test;
        let files = [("deploy/web.yaml", deployment(&test.namespace, "web", image, 1))];
        let repository = test.repository(&files)?;
        test.git_source(&repository).await?;
        let object = test.kustomization(
            "app",
            json!({"interval": "5s", "retryInterval": "1s", "wait": false}),
        );
        test.apply(&test.in_own_shard(object)).await?;
        Ok(repository)
    }

    fn deployments(&self) -> Api<DynamicObject> {
        self.test.objects("apps/v1", "Deployment")
    }
}

/// By keys in the namespace of the policy.
fn signed() -> Value {
    json!({"provider": "cosign", "secretRef": {"name": "keys"}})
}

#[test]
fn an_image_that_is_not_signed_stops_the_revision_until_it_is() {
    run("verify", |test| async move {
        let scene = Scene::new(&test, json!({"verify": signed()})).await?;
        let _apply = scene.controller().await?;
        let image = format!("{}:v1", scene.image);
        let repository = scene.deliver(&image).await?;
        let message = test.not_ready(&test.kustomizations(), "app", REASON).await?;
        let ns = &test.namespace;
        let beginning =
            format!("image '{image}' of Deployment/{ns}/web is refused by VerificationPolicy {ns}/signed: ");
        ensure!(message.starts_with(&beginning), "{message}");
        ensure!(
            message.ends_with("no signatures found (ask the platform)"),
            "{message}"
        );
        ensure!(
            scene.deployments().get_opt("web").await?.is_none(),
            "it was applied"
        );

        let digest = scene.push("1").await?;
        scene.sign(&digest).await?;
        let first = format!("main@sha1:{}", repository.resolve("main")?);
        test.ready("app", &first).await?;
        let web = scene.deployments().get("web").await?;
        ensure!(text(&web, IMAGE) == image, "{}", text(&web, IMAGE));

        // What was delivered stays when another image is refused, and another key is not that key.
        let other = format!("{}@{}", scene.image, scene.push("2").await?);
        let second = CosignKey::generate()?;
        let pushed = other.rsplit_once('@').context("no digest")?.1;
        second.sign(&test.world.registry, ns, pushed).await?;
        let change = Change::write("deploy/web.yaml", deployment(ns, "web", &other, 1));
        let revision = test.push(&repository, &[change]).await?;
        let message = test.not_ready_at("app", &revision).await?;
        ensure!(
            message.contains(&format!("image '{other}' of Deployment")),
            "{message}"
        );
        let web = scene.deployments().get("web").await?;
        ensure!(text(&web, IMAGE) == image, "{}", text(&web, IMAGE));

        // Without the policy nothing is in its way.
        let policies = test.objects(DELIVERY, "VerificationPolicy");
        policies.delete("signed", &DeleteParams::default()).await?;
        test.ready("app", &revision).await?;
        Ok(())
    });
}

#[test]
fn a_pinned_image_stays_what_was_verified() {
    run("verify-pin", |test| async move {
        let scene = Scene::new(&test, json!({"verify": signed()})).await?;
        let images = json!({"match": [&scene.image], "pin": true});
        scene.write(json!({"verify": signed(), "images": images})).await?;
        let _apply = scene.controller().await?;
        let digest = scene.push("1").await?;
        scene.sign(&digest).await?;
        let image = format!("{}:v1", scene.image);
        let repository = scene.deliver(&image).await?;
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        test.ready("app", &revision).await?;
        let pinned = format!("{image}@{digest}");
        let web = scene.deployments().get("web").await?;
        ensure!(text(&web, IMAGE) == pinned, "{}", text(&web, IMAGE));

        // The tag is moved to what is not signed. The next run refuses it, and changes nothing.
        let moved = scene.push("2").await?;
        ensure!(moved != digest);
        let message = test.not_ready(&test.kustomizations(), "app", REASON).await?;
        ensure!(message.contains(&moved), "{message}");
        let web = scene.deployments().get("web").await?;
        ensure!(text(&web, IMAGE) == pinned, "{}", text(&web, IMAGE));
        scene.sign(&moved).await?;
        test.ready("app", &revision).await?;
        let web = scene.deployments().get("web").await?;
        ensure!(
            text(&web, IMAGE) == format!("{image}@{moved}"),
            "{}",
            text(&web, IMAGE)
        );
        Ok(())
    });
}

#[test]
fn an_image_needs_the_attestations_of_its_policy() {
    run("verify-attested", |test| async move {
        let ci = json!({
            "predicateType": PROVENANCE, "verify": signed(),
            "expression": "predicate.builder.startsWith('https://ci.example.com')",
        });
        let scene = Scene::new(&test, json!({"attestations": [ci]})).await?;
        let _apply = scene.controller().await?;
        let digest = scene.push("1").await?;
        let registry = &test.world.registry;
        let built_by = async |builder: &str| {
            let predicate = json!({"builder": builder});
            let (key, repository) = (&scene.key, &test.namespace);
            key.attest(registry, repository, &digest, PROVENANCE, &predicate)
                .await
        };
        built_by("https://laptop.example.com").await?;
        let repository = scene.deliver(&format!("{}:v1", scene.image)).await?;
        let message = test.not_ready(&test.kustomizations(), "app", REASON).await?;
        ensure!(message.contains("it does not meet the expression"), "{message}");
        built_by("https://ci.example.com").await?;
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        test.ready("app", &revision).await?;
        Ok(())
    });
}

#[test]
fn a_policy_may_only_warn() {
    run("verify-warn", |test| async move {
        let spec = json!({"action": "Warn", "images": {"from": ["ghcr.io/acme/*"]}});
        let scene = Scene::new(&test, spec).await?;
        let apply = scene.controller().await?;
        let image = format!("{}:v1", scene.image);
        let repository = scene.deliver(&image).await?;
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        test.ready("app", &revision).await?;
        let message = changes::event(&test, "does not meet").await?;
        let ns = &test.namespace;
        let expected = format!(
            "image '{image}' of Deployment/{ns}/web does not meet VerificationPolicy {ns}/signed: images may not \
             come from {} (ask the platform)",
            scene.image
        );
        ensure!(message == expected, "{message}");
        let counted = r#"windlass_verified_images_total{kind="Kustomization",result="warned"} "#;
        let metrics = apply.metrics().await?;
        ensure!(metrics.contains(counted), "{metrics}");
        Ok(())
    });
}

/// A Job that runs before the release.
const HOOK: &str = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-before
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-delete-policy: before-hook-creation
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: before
        image: {{ .Values.hook }}
";

#[test]
fn a_release_is_refused_before_anything_of_it_is_recorded() {
    helm::run("verify-helm", |test| async move {
        let scene = Scene::new(&test, json!({"verify": signed()})).await?;
        let policy = json!({"verify": signed(), "images": {"match": [&scene.image], "pin": true}});
        scene.write(policy).await?;
        let world = test.world;
        let kubeconfig = world.control_plane.kubeconfig_path();
        let _helm = Controller::start_helm(kubeconfig, &world.source, test.own_shard()).await?;
        let templates = [("web.yaml", helm::DEPLOYMENT), ("hook.yaml", HOOK)];
        // The chart is in the repository of its namespace, the image beside it.
        test.oci_chart("1.0.0", helm::chart("1.0.0", &templates)?).await?;
        let image = format!("{}:v1", scene.image);
        let values = json!({"image": "example.com/web:1", "hook": image});
        let release = test.release(json!({"values": values}));
        test.apply(&test.in_own_shard(release)).await?;
        let message = test.refused(REASON).await?;
        ensure!(
            message.contains("-before is refused by VerificationPolicy"),
            "{message}"
        );
        let status = test.releases().get("web").await?;
        ensure!(
            status.data.pointer("/status/installFailures").is_none(),
            "it counts as an attempt: {}",
            status.data["status"]
        );
        let records = test.records("web").await?;
        ensure!(records.is_empty(), "{records:?}");
        let digest = scene.push("1").await?;
        scene.sign(&digest).await?;
        let ready = test.ready().await?;
        ensure!(objects::is_ready(&ready));
        // With the image in the Deployment, too, it is applied by its digest.
        let values = json!({"image": image, "hook": image});
        let release = test.release(json!({"values": values}));
        test.apply(&test.in_own_shard(release)).await?;
        let pinned = format!("{image}@{digest}");
        let deployments = scene.deployments();
        let is_pinned = |web: &DynamicObject| text(web, IMAGE) == pinned;
        wait_for(&deployments, "web", is_pinned, PATIENCE).await?;
        test.ready_at(2).await?;
        let windlass = Windlass { test: &test };
        let said = windlass.run(&["verify", "deployment/web"], 3).await?;
        let delivery = format!("HelmRelease/{}/web", test.namespace);
        ensure!(has(&said, "good", "signature", &digest), "{said}");
        ensure!(has(&said, "good", "delivery", &delivery), "{said}");
        ensure!(
            has(&said, "unproven", "source", "spec.verify is not set"),
            "{said}"
        );
        Ok(())
    });
}

/// Returns whether a link was found to be so, with this in its line.
fn has(said: &str, verdict: &str, link: &str, words: &str) -> bool {
    said.lines().any(|line| {
        let mut columns = line.split_whitespace();
        columns.next() == Some(verdict) && columns.next() == Some(link) && line.contains(words)
    })
}

/// Waits until a Pod of the Deployment runs, and has its node tell which digest that is.
async fn run_as(test: &Test, digest: &str) -> Result<()> {
    let pods = test.objects("v1", "Pod");
    let running = async {
        loop {
            let list = pods.list(&Default::default()).await?;
            let is_running = |pod: &DynamicObject| text(pod, "/status/containerStatuses/0/name") == "app";
            if let Some(pod) = list.items.into_iter().find(is_running) {
                return anyhow::Ok(pod);
            }
            tokio::task::yield_now().await;
        }
    };
    let mut pod = tokio::time::timeout(PATIENCE, running).await??;
    let name = pod.metadata.name.clone().context("no name")?;
    let statuses = pod.data["status"]["containerStatuses"].take();
    let mut statuses = statuses.as_array().cloned().unwrap_or_default();
    statuses[0]["imageID"] = json!(format!("registry.example.com/web@{digest}"));
    let patch = Patch::Merge(json!({"status": {"containerStatuses": statuses}}));
    pods.patch_status(&name, &PatchParams::default(), &patch).await?;
    Ok(())
}

#[test]
fn what_runs_is_verified_link_by_link() {
    run("verify-chain", |test| async move {
        let ns = &test.namespace;
        let scene = Scene::new(&test, json!({"verify": signed()})).await?;
        let _apply = scene.controller().await?;
        let digest = scene.push("1").await?;
        scene.sign(&digest).await?;
        let image = format!("{}:v1@{digest}", scene.image);
        // The manifests are an artifact that is signed, too.
        let (registry, manifests) = (&test.world.registry, format!("{ns}-manifests"));
        let files = [("deploy/web.yaml", deployment(ns, "web", &image, 1))];
        let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
        let artifact = Artifact::from_files("main@sha1:1", &files)?;
        let signed_manifests = registry.push(&manifests, &["v1"], &artifact).await?;
        scene.key.sign(registry, &manifests, &signed_manifests).await?;
        let source = objects::oci_repository(ns, "app", &registry.url(&manifests), "v1");
        test.apply(&objects::with_spec(source, json!({"verify": signed()})))
            .await?;
        let object = objects::kustomization(ns, "app", ("OCIRepository", "app"), "./deploy");
        test.apply(&test.in_own_shard(object)).await?;
        wait_for(&test.kustomizations(), "app", objects::is_ready, PATIENCE).await?;
        run_as(&test, &digest).await?;
        let windlass = Windlass { test: &test };
        let said = windlass.run(&["verify", "deployment/web"], 0).await?;
        for (link, message) in [
            ("image", format!("1 container runs {digest}")),
            ("signature", format!("as VerificationPolicy {ns}/signed demands")),
            ("delivery", "has applied v1@sha256:".to_owned()),
            ("source", "verified signature of revision v1@sha256:".to_owned()),
        ] {
            ensure!(has(&said, "good", link, &message), "no good link {link}: {said}");
        }

        // Another key, an image that was set by hand, and Pods that run something else.
        let key = tempfile::NamedTempFile::new()?;
        std::fs::write(key.path(), CosignKey::generate()?.public_key()?)?;
        let path = key.path().display().to_string();
        let said = windlass
            .run(&["verify", "deployment/web", "--key", &path], 3)
            .await?;
        let first = said.lines().nth(1).unwrap_or_default();
        ensure!(
            first.starts_with("broken") && first.contains("signature"),
            "{said}"
        );
        let containers = json!([{"name": "app", "image": image}]);
        let by_hand = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "spec": {"template": {"spec": {"containers": containers}}},
        });
        let hand = PatchParams::apply("k9s").force();
        let deployments = scene.deployments();
        deployments.patch("web", &hand, &Patch::Apply(by_hand)).await?;
        run_as(&test, &signed_manifests).await?;
        let said = windlass.run(&["verify", "deployment/web"], 3).await?;
        ensure!(said.contains("its image was set by k9s"), "{said}");
        ensure!(
            said.contains(&format!("{signed_manifests} runs, and not {digest}")),
            "{said}"
        );
        let maps = test.objects("v1", "ConfigMap");
        objects::apply(
            &test.client,
            &json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "stray", "namespace": ns}}),
        )
        .await?;
        ensure!(maps.get_opt("stray").await?.is_some());
        let said = windlass.run(&["verify", "configmap/stray"], 3).await?;
        ensure!(said.contains("nothing of Flux delivers it"), "{said}");
        // Labels that claim a delivery prove nothing.
        let labels = json!({
            "kustomize.toolkit.fluxcd.io/name": "app", "kustomize.toolkit.fluxcd.io/namespace": ns,
        });
        let stray = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "stray", "namespace": ns, "labels": labels}});
        objects::apply(&test.client, &stray).await?;
        let said = windlass.run(&["verify", "configmap/stray"], 3).await?;
        ensure!(
            has(&said, "broken", "delivery", "its inventory does not have it"),
            "{said}"
        );
        Ok(())
    });
}

#[test]
fn a_source_of_another_namespace_does_not_get_around_a_policy() {
    run("verify-elsewhere", |test| async move {
        let (world, ns) = (test.world, &test.namespace);
        let dev = world.control_plane.namespace("verify-elsewhere-dev").await?;
        let files = [
            ("deploy/map.yaml", config_map(ns, "map", "1")),
            (
                "chart/Chart.yaml",
                "{apiVersion: v2, name: app, version: 1.0.0}".to_owned(),
            ),
        ];
        let repository = test.repository(&files)?;
        test.apply(&objects::git_repository(&dev, "app", repository.url(), "main"))
            .await?;
        let policy = |namespaces: &[&str]| {
            json!({
                "apiVersion": DELIVERY, "kind": "VerificationPolicy",
                "metadata": {"name": ns, "namespace": "default"},
                "spec": {"namespaces": namespaces, "sources": {"from": ["http://127.0.0.1:*"]}},
            })
        };
        test.apply(&policy(&[ns])).await?;
        let kubeconfig = world.control_plane.kubeconfig_path();
        let _apply = Controller::start_apply(kubeconfig, &world.source, test.own_shard()).await?;
        let _helm = Controller::start_helm(kubeconfig, &world.source, test.own_shard()).await?;
        let source = json!({"kind": "GitRepository", "name": "app", "namespace": dev});
        let object = test.kustomization("app", json!({"sourceRef": source}));
        test.apply(&test.in_own_shard(object)).await?;
        let release = json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": "app", "namespace": ns},
            "spec": {"interval": "1m", "chart": {"spec": {"chart": "./chart", "sourceRef": source}}},
        });
        test.apply(&test.in_own_shard(release)).await?;
        let generator = json!({
            "apiVersion": "source.extensions.fluxcd.io/v1beta1", "kind": "ArtifactGenerator",
            "metadata": {"name": "app", "namespace": ns},
            "spec": {
                "sources": [{"alias": "app", "kind": "GitRepository", "name": "app", "namespace": dev}],
                "artifacts": [{"name": "made", "copy": [{"from": "@app/**", "to": "@artifact/"}]}],
            },
        });
        test.apply(&generator).await?;
        let releases = test.objects("helm.toolkit.fluxcd.io/v2", "HelmRelease");
        let generators = test.objects("source.extensions.fluxcd.io/v1beta1", "ArtifactGenerator");
        let expected = format!("of namespace '{dev}' is refused by VerificationPolicy default/{ns}: ");
        for api in [&test.kustomizations(), &releases, &generators] {
            let is_refused = |object: &DynamicObject| {
                objects::condition(object, "Ready").is_some_and(|(_, _, message)| message.contains(&expected))
            };
            wait_for(api, "app", is_refused, PATIENCE).await?;
        }
        let maps = test.objects("v1", "ConfigMap");
        ensure!(maps.get_opt("map").await?.is_none(), "it was applied");

        // With a policy that applies there, too, the source is one that meets it.
        test.apply(&policy(&[ns, &dev])).await?;
        for api in [&test.kustomizations(), &generators] {
            wait_for(api, "app", objects::is_ready, PATIENCE).await?;
        }
        Ok(())
    });
}
