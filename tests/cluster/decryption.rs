//! spec.decryption: what is encrypted with SOPS arrives decrypted for those who have the keys, and no one else sees it.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Event, Secret};
use kube::Api;
use kube::api::{DynamicObject, ListParams};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::git::{Change, Repository};
use testkit::objects::{condition, is_ready};
use testkit::{Controller, wait_for};

use crate::vault::Vault;
use crate::world::{PATIENCE, Test, config_map, run};

/// Keys of the recorded cases.
const ONE: &str = include_str!("../../crates/sops/tests/keys/one.agekey");
const TWO: &str = include_str!("../../crates/sops/tests/keys/two.agekey");
const CURVE: &str = include_str!("../../crates/sops/tests/keys/curve.asc");

/// Password in the recorded Secret.
const PASSWORD: &str = "hunter2";

/// A file that the real SOPS encrypted, and what it holds.
struct Recorded {
    encrypted: String,
    plain: String,
}

impl Recorded {
    fn from_name(name: &str) -> Result<Self> {
        let mut cases = include_str!("../../crates/sops/tests/cases.jsonl").lines();
        let case = cases.find(|line| line.contains(&format!("\"name\":\"{name}\"")));
        let case: Value = serde_json::from_str(case.context("there is no such case")?)?;
        let text = |field: &str| case[field].as_str().unwrap_or_default().to_owned();
        Ok(Self {
            encrypted: text("encrypted"),
            plain: text("plain"),
        })
    }
}

async fn keys(test: &Test, entries: Value) -> Result<()> {
    test.apply(&json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "keys", "namespace": test.namespace},
        "stringData": entries,
    }))
    .await
}

fn secrets(test: &Test) -> Api<Secret> {
    Api::namespaced(test.client.clone(), &test.namespace)
}

async fn secret(test: &Test, name: &str) -> Result<BTreeMap<String, String>> {
    let data = secrets(test).get(name).await?.data.unwrap_or_default();
    let text = data
        .into_iter()
        .map(|(key, value)| Ok((key, String::from_utf8(value.0)?)));
    text.collect()
}

/// A spec that decrypts with the Secret `keys`, into the namespace of the test.
fn decrypting(test: &Test) -> Value {
    json!({
        "targetNamespace": test.namespace, "retryInterval": "1h",
        "decryption": {"provider": "sops", "secretRef": {"name": "keys"}},
    })
}

/// A repository with the recorded Secret.
fn with_secret(test: &Test) -> Result<Repository> {
    test.repository(&[(
        "deploy/secret.yaml",
        Recorded::from_name("yaml secret")?.encrypted,
    )])
}

/// Waits until the Kustomization failed with these words; returns the message.
async fn fails(test: &Test, name: &str, words: &str) -> Result<String> {
    let says = |object: &DynamicObject| {
        condition(object, "Ready").is_some_and(|(status, reason, message)| {
            status == "False" && reason == "BuildFailed" && message.contains(words)
        })
    };
    let object = wait_for(&test.kustomizations(), name, says, PATIENCE).await?;
    let message = condition(&object, "Ready").map(|(_, _, message)| message.to_owned());
    Ok(message.unwrap_or_default())
}

/// Nothing that people may read, who may not read Secrets, holds what was encrypted.
async fn nothing_is_told(test: &Test, log: &str) -> Result<()> {
    let events: Api<Event> = Api::namespaced(test.client.clone(), &test.namespace);
    let events = events.list(&ListParams::default()).await?;
    let objects = test.kustomizations().list(&ListParams::default()).await?;
    for text in [
        serde_json::to_string(&events)?,
        serde_json::to_string(&objects)?,
        log.to_owned(),
    ] {
        for words in [PASSWORD, "aHVudGVyMg", "AGE-SECRET-KEY"] {
            ensure!(!text.contains(words), "{words} in {text}");
        }
    }
    Ok(())
}

#[test]
fn files_and_objects_of_every_format_are_decrypted_with_age() {
    run("sops-age", |test| async move {
        keys(&test, json!({"identity.agekey": ONE})).await?;
        let kustomization = json!({
            "resources": ["base.yaml"],
            // An encrypted patch, with a part of a Secret.
            "patches": [{"path": "secret.yaml"}],
            "generatorOptions": {"disableNameSuffixHash": true},
            "secretGenerator": [{
                "name": "generated",
                "envs": ["app.env"],
                "files": ["config.json", "app.ini", "token=token.bin", "app.yaml=app.enc.yaml"],
            }],
            "components": ["../component"],
        });
        let component = json!({
            "apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component",
            "generatorOptions": {"disableNameSuffixHash": true},
            "secretGenerator": [{"name": "of-component", "files": ["inside.yaml"]}],
        });
        let base = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default}\nstringData: {own: plain}\n";
        let recorded = |name| Recorded::from_name(name);
        let binary = recorded("binary text")?;
        let repository = test.repository(&[
            ("deploy/kustomization.yaml", kustomization.to_string()),
            ("deploy/base.yaml", base.to_owned()),
            ("deploy/secret.yaml", recorded("yaml secret")?.encrypted),
            ("deploy/app.env", recorded("dotenv with one")?.encrypted),
            ("deploy/config.json", recorded("json with one")?.encrypted),
            ("deploy/app.ini", recorded("ini with one")?.encrypted),
            ("deploy/token.bin", binary.encrypted),
            ("deploy/app.enc.yaml", recorded("yaml with one")?.encrypted),
            ("component/kustomization.yaml", component.to_string()),
            (
                "component/inside.yaml",
                recorded("yaml comments in unencrypted")?.encrypted,
            ),
        ])?;
        test.deliver(&repository, decrypting(&test)).await?;
        let patched = secret(&test, "s").await?;
        ensure!(
            patched["password"] == PASSWORD && patched["own"] == "plain",
            "{patched:?}"
        );
        let generated = secret(&test, "generated").await?;
        for (key, plain) in [
            ("A", "secret"),
            ("B", "5"),
            ("config.json", &recorded("json with one")?.plain),
            ("app.ini", &recorded("ini with one")?.plain),
            ("token", &binary.plain),
            ("app.yaml", &recorded("yaml with one")?.plain),
        ] {
            ensure!(
                generated.get(key).is_some_and(|value| value == plain),
                "{key}: {generated:?}"
            );
        }
        let inside = secret(&test, "of-component").await?;
        ensure!(
            inside["inside.yaml"] == recorded("yaml comments in unencrypted")?.plain,
            "{inside:?}"
        );
        nothing_is_told(&test, &test.world.apply.log()).await
    });
}

#[test]
fn openpgp_keys_decrypt_and_objects_may_stay_as_they_are() {
    run("sops-pgp", |test| async move {
        keys(&test, json!({"curve.asc": CURVE, "one.agekey": ONE})).await?;
        let generator = json!({
            "resources": ["values.yaml", "left.yaml"],
            "generatorOptions": {"disableNameSuffixHash": true},
            "secretGenerator": [{"name": "generated", "files": ["app.yaml"]}],
        });
        let encrypted = Recorded::from_name("yaml with one")?;
        let with_value = |name: &str, annotations: Value| {
            let metadata = json!({"name": name, "annotations": annotations});
            let data = json!({"a.yaml": encrypted.encrypted});
            // The API server takes data as base64 only, and so does decryption.
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": base64(&data)})
                .to_string()
        };
        let disabled = json!({"kustomize.toolkit.fluxcd.io/decrypt": "Disabled"});
        let curve = Recorded::from_name("yaml with curve")?;
        let repository = test.repository(&[
            ("deploy/kustomization.yaml", generator.to_string()),
            ("deploy/app.yaml", curve.encrypted),
            ("deploy/values.yaml", with_value("values", json!({}))),
            ("deploy/left.yaml", with_value("left", disabled)),
        ])?;
        test.deliver(&repository, decrypting(&test)).await?;
        ensure!(secret(&test, "generated").await?["app.yaml"] == curve.plain);
        ensure!(secret(&test, "values").await?["a.yaml"] == encrypted.plain);
        ensure!(secret(&test, "left").await?["a.yaml"] == encrypted.encrypted);
        Ok(())
    });
}

/// Values as the API server writes them.
fn base64(data: &Value) -> Value {
    let encoded = |value: &Value| {
        let bytes = value.as_str().unwrap_or_default().as_bytes().to_vec();
        json!(k8s_openapi::ByteString(bytes))
    };
    let entries = data.as_object().into_iter().flatten();
    entries
        .map(|(key, value)| (key.clone(), encoded(value)))
        .collect()
}

#[test]
fn a_key_that_comes_or_goes_is_seen_at_once() {
    run("sops-rotate", |test| async move {
        let repository = with_secret(&test)?;
        test.git_source(&repository).await?;
        test.apply(&test.kustomization("app", decrypting(&test))).await?;
        let ns = &test.namespace;
        let message = fails(&test, "app", "cannot get sops decryption Secret").await?;
        ensure!(
            message.contains(&format!("'{ns}/keys': secrets \"keys\" not found")),
            "{message}"
        );

        keys(&test, json!({"identity.agekey": "hunter2"})).await?;
        fails(
            &test,
            "app",
            "failed to import 'identity.agekey' data from sops decryption Secret",
        )
        .await?;
        keys(&test, json!({"identity.agekey": TWO})).await?;
        let message = fails(&test, "app", "decryption failed for 'Secret.v1.[noGrp]/s'").await?;
        let tried = [
            "cannot get sops data key",
            "Group 0: FAILED",
            "age14q8xuq8kmfg55mcngay6cfruj8ajapq6za990d9pmmce665e25sqywpguv",
        ];
        ensure!(tried.iter().all(|words| message.contains(words)), "{message}");

        keys(&test, json!({"identity.agekey": ONE})).await?;
        wait_for(&test.kustomizations(), "app", is_ready, PATIENCE).await?;
        ensure!(secret(&test, "s").await?["password"] == PASSWORD);

        // What was decrypted is not remembered for those who have lost the key.
        keys(&test, json!({"identity.agekey": TWO})).await?;
        fails(&test, "app", "decryption failed for").await?;
        nothing_is_told(&test, &test.world.apply.log()).await
    });
}

#[test]
fn what_one_may_decrypt_is_not_shared_with_others() {
    run("sops-shared", |test| async move {
        keys(&test, json!({"identity.agekey": ONE})).await?;
        let generator = json!({"secretGenerator": [{"name": "generated", "envs": ["app.env"]}]});
        let repository = test.repository(&[
            ("deploy/kustomization.yaml", generator.to_string()),
            (
                "deploy/app.env",
                Recorded::from_name("dotenv with one")?.encrypted,
            ),
        ])?;
        test.deliver(&repository, decrypting(&test)).await?;

        // The same folder, and keys that do not fit.
        test.apply(&json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "others", "namespace": test.namespace},
            "stringData": {"identity.agekey": TWO},
        }))
        .await?;
        let mut spec = decrypting(&test);
        spec["decryption"]["secretRef"]["name"] = json!("others");
        test.apply(&test.kustomization("other", spec.clone())).await?;
        let message = fails(
            &test,
            "other",
            "error decrypting sources: failed to decrypt deploy/app.env",
        )
        .await?;
        ensure!(
            !message.contains("secret=") && !message.contains("A=secret"),
            "{message}"
        );

        // A Secret of another namespace cannot be named, whatever the name says.
        for name in [
            format!("../../{}/secrets/keys", test.namespace),
            "keys/".to_owned(),
        ] {
            spec["decryption"]["secretRef"]["name"] = json!(name);
            test.apply(&test.kustomization("foreign", spec.clone())).await?;
            fails(&test, "foreign", "invalid resource name").await?;
        }
        let elsewhere = test.world.control_plane.namespace("sops-elsewhere").await?;
        let mut foreign = test.kustomization("foreign", decrypting(&test));
        foreign["metadata"]["namespace"] = json!(elsewhere);
        foreign["spec"]["sourceRef"]["namespace"] = json!(test.namespace);
        test.apply(&foreign).await?;
        let api = testkit::objects::api(&test.client, crate::world::KUSTOMIZE, "Kustomization", &elsewhere);
        let message = test.not_ready(&api, "foreign", "BuildFailed").await?;
        ensure!(message.contains(&format!("'{elsewhere}/keys'")), "{message}");
        Ok(())
    });
}

#[test]
fn an_encrypted_secret_is_refused_without_decryption() {
    run("sops-without", |test| async move {
        let repository = with_secret(&test)?;
        test.git_source(&repository).await?;
        let spec = json!({"targetNamespace": test.namespace});
        test.apply(&test.kustomization("app", spec)).await?;
        fails(
            &test,
            "app",
            "is SOPS encrypted, configuring decryption is required",
        )
        .await?;
        ensure!(secrets(&test).get_opt("s").await?.is_none());

        // Decryption without a Secret: no key service has the key.
        let spec = json!({"targetNamespace": test.namespace, "decryption": {"provider": "sops"}});
        test.apply(&test.kustomization("app", spec)).await?;
        fails(
            &test,
            "app",
            "spec.decryption.secretRef names no Secret with keys",
        )
        .await?;
        Ok(())
    });
}

#[test]
fn a_commit_beside_what_was_decrypted_costs_no_build() {
    run("sops-builds", |test| async move {
        keys(&test, json!({"identity.agekey": ONE})).await?;
        let generator = json!({
            "resources": ["secret.yaml"],
            "secretGenerator": [{"name": "generated", "envs": ["app.env"]}],
        });
        let repository = test.repository(&[
            ("deploy/kustomization.yaml", generator.to_string()),
            (
                "deploy/secret.yaml",
                Recorded::from_name("yaml secret")?.encrypted,
            ),
            (
                "deploy/app.env",
                Recorded::from_name("dotenv with one")?.encrypted,
            ),
        ])?;
        let mut options = test.own_shard();
        options.flags.push("--log-level=debug".to_owned());
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let source = Controller::start_source(kubeconfig, test.own_shard()).await?;
        let apply = Controller::start_apply(kubeconfig, &source, options).await?;
        let git = testkit::objects::git_repository(&test.namespace, "app", repository.url(), "main");
        test.apply(&test.in_own_shard(git)).await?;
        test.apply(&test.in_own_shard(test.kustomization("app", decrypting(&test))))
            .await?;
        let revision = format!("main@sha1:{}", repository.resolve("main")?);
        test.ready("app", &revision).await?;
        let builds = || apply.log().matches("\"msg\":\"built\"").count();
        ensure!(builds() == 1, "{} builds", builds());
        let revision = test
            .push(&repository, &[Change::write("elsewhere", "text")])
            .await?;
        test.ready("app", &revision).await?;
        ensure!(builds() == 1, "{} builds", builds());
        nothing_is_told(&test, &apply.log()).await
    });
}

/// Controllers find each other's certificates in the namespace where they run.
fn options_of_source(test: &Test) -> ControllerOptions {
    let mut options = test.own_shard();
    options.namespace.clone_from(&test.namespace);
    options
}

/// The GitRepository `sharded` for the source-controller of the test's own.
fn sharded_source(test: &Test, repository: &Repository) -> Value {
    test.in_own_shard(testkit::objects::git_repository(
        &test.namespace,
        "sharded",
        repository.url(),
        "main",
    ))
}

#[test]
fn the_age_keys_of_the_controller_are_for_those_that_name_none() {
    run("sops-global", |test| async move {
        let ns = &test.namespace;
        keys(
            &test,
            json!({"identity.agekey": TWO, "sops.vault-token": "hvs.token"}),
        )
        .await?;
        let mut options = test.own_shard();
        options.namespace = ns.clone();
        options.flags.push("--sops-age-secret=keys".to_owned());
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let source = Controller::start_source(kubeconfig, options_of_source(&test)).await?;
        let apply = Controller::start_apply(kubeconfig, &source, options).await?;
        let repository = test.repository(&[
            (
                "deploy/secret.yaml",
                Recorded::from_name("yaml secret")?.encrypted,
            ),
            ("vault/a.yaml", Vault::file("http://127.0.0.1:9")?),
            (
                "vault/kustomization.yaml",
                json!({"secretGenerator": [{"name": "v", "files": ["a.yaml"]}]}).to_string(),
            ),
        ])?;
        test.apply(&sharded_source(&test, &repository)).await?;
        let spec = json!({
            "sourceRef": {"kind": "GitRepository", "name": "sharded"}, "targetNamespace": ns, "retryInterval": "1h",
            "decryption": {"provider": "sops"},
        });
        let app = test.in_own_shard(test.kustomization("app", spec.clone()));
        test.apply(&app).await?;
        fails(&test, "app", "decryption failed for").await?;
        // It is watched as well.
        keys(
            &test,
            json!({"identity.agekey": ONE, "sops.vault-token": "hvs.token"}),
        )
        .await?;
        wait_for(&test.kustomizations(), "app", is_ready, PATIENCE).await?;
        ensure!(secret(&test, "s").await?["password"] == PASSWORD);
        // Only keys of age are taken from there.
        let mut spec = spec;
        spec["path"] = json!("./vault");
        test.apply(&test.in_own_shard(test.kustomization("vault", spec)))
            .await?;
        fails(&test, "vault", "no token for Vault is configured").await?;
        nothing_is_told(&test, &apply.log()).await
    });
}

#[test]
fn vault_is_asked_with_the_token_of_the_secret_or_as_an_account() {
    run("sops-vault", |test| async move {
        let ns = &test.namespace;
        let vault = Vault::start("hvs.token").await?;
        let generator = json!({
            "generatorOptions": {"disableNameSuffixHash": true},
            "secretGenerator": [{"name": "generated", "files": ["a.yaml"]}],
        });
        let repository = test.repository(&[
            ("deploy/kustomization.yaml", generator.to_string()),
            ("deploy/a.yaml", Vault::file(&vault.address)?),
        ])?;
        keys(&test, json!({"sops.vault-token": "wrong"})).await?;
        test.git_source(&repository).await?;
        test.apply(&test.kustomization("app", decrypting(&test))).await?;
        fails(&test, "app", "Forbidden: permission denied").await?;
        keys(&test, json!({"sops.vault-token": "hvs.token\n"})).await?;
        wait_for(&test.kustomizations(), "app", is_ready, PATIENCE).await?;
        ensure!(secret(&test, "generated").await?["a.yaml"] == Recorded::from_name("yaml with one")?.plain);
        test.delete_kustomization("app").await?;

        // Without a token: the account logs in, where the operator says.
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "decryptor", "namespace": ns}});
        test.apply(&account).await?;
        let servers = format!(
            "instances:\n- address: {}\n  loginPath: auth/kubernetes/login\n",
            vault.address
        );
        test.apply(&json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "vaults", "namespace": ns},
            "data": {"config.yaml": servers},
        }))
        .await?;
        let mut options = test.own_shard();
        options.namespace = ns.clone();
        options.flags.extend([
            "--sops-vault-configmap=vaults".to_owned(),
            "--feature-gates=ObjectLevelWorkloadIdentity=true".to_owned(),
            "--default-decryption-service-account=nobody".to_owned(),
        ]);
        let kubeconfig = test.world.control_plane.kubeconfig_path();
        let source = Controller::start_source(kubeconfig, options_of_source(&test)).await?;
        let _apply = Controller::start_apply(kubeconfig, &source, options).await?;
        test.apply(&sharded_source(&test, &repository)).await?;
        let mut spec = json!({
            "sourceRef": {"kind": "GitRepository", "name": "sharded"}, "targetNamespace": ns,
            "decryption": {"provider": "sops", "serviceAccountName": "decryptor"},
        });
        test.apply(&test.in_own_shard(test.kustomization("app", spec.clone())))
            .await?;
        wait_for(&test.kustomizations(), "app", is_ready, PATIENCE).await?;
        ensure!(
            vault.logins() == [format!("{ns}_decryptor for {}", vault.address)],
            "{:?}",
            vault.logins()
        );
        // The lock: whoever names no account is this one, which is not there.
        spec["decryption"] = json!({"provider": "sops"});
        test.apply(&test.in_own_shard(test.kustomization("locked", spec)))
            .await?;
        fails(&test, "locked", "serviceaccounts \"nobody\" not found").await?;
        ensure!(vault.logins().len() == 1, "{:?}", vault.logins());
        Ok(())
    });
}

#[test]
fn variables_are_put_into_what_was_decrypted() {
    run("sops-variables", |test| async move {
        keys(&test, json!({"identity.agekey": ONE})).await?;
        let repository = test.repository(&[
            (
                "deploy/secret.yaml",
                Recorded::from_name("yaml secret")?.encrypted,
            ),
            ("deploy/map.yaml", config_map(&test.namespace, "map", "${name}")),
        ])?;
        let mut spec = decrypting(&test);
        spec["postBuild"] = json!({"substitute": {"name": "value"}});
        test.deliver(&repository, spec).await?;
        test.config_map_has("map", "key", "value").await?;
        ensure!(secret(&test, "s").await?["password"] == PASSWORD);
        Ok(())
    });
}
