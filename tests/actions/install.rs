//! Installs.

use std::time::Duration;

use helm_action::{ErrorKind, install};
use helm_release::{ApplyMethod, HookPhase, Status};
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use crate::scene::{CONFIG_MAP, DEPLOYMENT, Scene, content, succeeded, text};

const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Release.Name }}\n  labels: {helm.toolkit.fluxcd.io/name: demo, helm.toolkit.fluxcd.io/namespace: flux-system}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n";

#[tokio::test]
async fn an_install_makes_the_objects_and_the_record_with_few_requests() {
    let scene = Scene::new("install").await;
    let files = [
        ("templates/web.yaml", DEPLOYMENT),
        ("templates/service.yaml", SERVICE),
        ("templates/config.yaml", CONFIG_MAP),
        ("templates/NOTES.txt", "Hello {{ .Values.word }}"),
    ];
    scene.requests();
    let outcome = scene.installed("web", &files, json!({"word": "a"})).await;

    let release = &outcome.written[&1];
    assert_eq!(release.info.status, Status::Deployed);
    assert_eq!(release.info.description, "Install complete");
    assert_eq!(release.info.notes, "Hello a");
    assert_eq!(release.apply_method, Some(ApplyMethod::ServerSide));
    assert_eq!(scene.last("web").await.manifest, release.manifest);
    let live = scene.read(&scene.config_maps(), "web").await;
    assert_eq!(live["data"]["word"], "a");
    assert_eq!(live["metadata"]["labels"]["app.kubernetes.io/managed-by"], "Helm");
    assert_eq!(
        live["metadata"]["annotations"],
        json!({"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": scene.namespace})
    );
    let manager = &live["metadata"]["managedFields"][0];
    assert_eq!(
        (&manager["manager"], &manager["operation"]),
        (&json!("helm-controller"), &json!("Apply"))
    );
    let deployment = scene
        .read(&scene.api("apps/v1", "Deployment", "deployments"), "web")
        .await;
    assert_eq!(deployment["status"]["availableReplicas"], 1);

    // Discovery, version, history, two records, three objects; a list and a watch for drift of each kind with labels, and
    // one of each for the wait.
    let requests = scene.requests();
    let written = requests
        .iter()
        .filter(|line| !line.starts_with("GET") && !line.starts_with("WATCH"));
    assert_eq!(written.count(), 5, "{requests:#?}");
    assert!(requests.len() <= 16, "{requests:#?}");
}

#[tokio::test]
async fn what_the_server_refuses_is_told_and_recorded() {
    let scene = Scene::new("refused").await;
    let broken = DEPLOYMENT.replace("replicas: {{", "replicaz: {{");
    let files = [
        ("templates/web.yaml", broken.as_str()),
        ("templates/config.yaml", CONFIG_MAP),
    ];
    let order = scene.install("web", content(&files, json!({"word": "a"})));
    let outcome = install(&scene.context(), &order).await;
    let error = outcome.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Apply);
    let namespace = &scene.namespace;
    let expected = format!("server-side apply failed for object {namespace}/web apps/v1, Kind=Deployment: ");
    assert!(error.to_string().starts_with(&expected), "{error}");
    assert!(
        error
            .to_string()
            .contains(".spec.replicaz: field not declared in schema"),
        "{error}"
    );
    let release = scene.last("web").await;
    assert_eq!(release.info.status, Status::Failed);
    assert_eq!(
        release.info.description,
        format!("Release \"web\" failed: {error}")
    );
    assert_eq!(release.info.description, outcome.written[&1].info.description);
}

#[tokio::test]
async fn a_chart_that_does_not_render_or_names_unknown_kinds_touches_nothing() {
    let scene = Scene::new("unrendered").await;
    for (template, kind, words) in [
        (
            "{{ fail \"no\" }}",
            ErrorKind::Render,
            "execution error at (demo/templates/a.yaml:1:3): no",
        ),
        (
            "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}",
            ErrorKind::Build,
            "unable to build kubernetes objects from release manifest: resource mapping not found for name: \"a\" namespace: \"\" from \"\": \
             no matches for kind \"Thing\" in version \"example.com/v1\"\nensure CRDs are installed first",
        ),
    ] {
        let files = [
            ("templates/a.yaml", template),
            ("templates/config.yaml", CONFIG_MAP),
        ];
        let order = scene.install("web", content(&files, json!({"word": "a"})));
        let outcome = install(&scene.context(), &order).await;
        let error = outcome.result.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(outcome.written.is_empty());
        assert_eq!(scene.statuses("web").await, [""; 0]);
    }
}

#[tokio::test]
async fn objects_of_others_are_refused_unless_they_are_to_be_taken() {
    let scene = Scene::new("ownership").await;
    let config_maps = scene.config_maps();
    let other =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"own": "x"}});
    config_maps
        .create(&PostParams::default(), &serde_json::from_value(other).unwrap())
        .await
        .unwrap();
    let content = content(&[("templates/config.yaml", CONFIG_MAP)], json!({"word": "a"}));
    let mut order = scene.install("web", content);
    order.take_ownership = false;
    let outcome = install(&scene.context(), &order).await;
    let error = outcome.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Ownership);
    let namespace = &scene.namespace;
    assert_eq!(
        error.to_string(),
        format!(
            "unable to continue with install: ConfigMap \"web\" in namespace \"{namespace}\" exists and cannot be imported into the current \
             release: invalid ownership metadata; label validation error: missing key \"app.kubernetes.io/managed-by\": must be set to \
             \"Helm\"; annotation validation error: missing key \"meta.helm.sh/release-name\": must be set to \"web\"; annotation \
             validation error: missing key \"meta.helm.sh/release-namespace\": must be set to \"{namespace}\""
        )
    );
    assert!(outcome.written.is_empty());

    order.take_ownership = true;
    succeeded(install(&scene.context(), &order).await);
    let live = scene.read(&config_maps, "web").await;
    assert_eq!(live["data"], json!({"own": "x", "word": "a"}));
    assert_eq!(
        text(&live, "/metadata/annotations/meta.helm.sh~1release-name"),
        "web"
    );
}

#[tokio::test]
async fn a_name_is_taken_again_only_after_a_failure_and_when_asked() {
    let scene = Scene::new("names").await;
    let files = [("templates/config.yaml", CONFIG_MAP)];
    scene.installed("web", &files, json!({"word": "a"})).await;
    let mut order = scene.install("web", content(&files, json!({"word": "b"})));
    order.replace = true;
    let error = install(&scene.context(), &order).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InUse);
    assert_eq!(
        error.to_string(),
        "release name check failed: cannot reuse a name that is still in use"
    );

    let mut record = scene.storage.last("web").await.unwrap().unwrap();
    record.release.info.status = Status::Failed;
    scene.storage.update(&record).await.unwrap();
    order.replace = false;
    assert!(install(&scene.context(), &order).await.result.is_err());
    order.replace = true;
    succeeded(install(&scene.context(), &order).await);
    assert_eq!(scene.statuses("web").await, ["failed", "deployed"]);

    record.release.info.status = Status::Uninstalled;
    record.release.version = 2;
    scene.storage.update(&record).await.unwrap();
    succeeded(install(&scene.context(), &order).await);
    assert_eq!(scene.statuses("web").await, ["failed", "superseded", "deployed"]);
}

#[tokio::test]
async fn a_wait_names_the_cause_and_ends_when_it_is_cancelled() {
    let scene = Scene::new("waits").await;
    let stuck = DEPLOYMENT.replace(
        "      containers:",
        "      nodeSelector: {no: such}\n      containers:",
    );
    let mut order = scene.install("web", content(&[("templates/web.yaml", &stuck)], json!({})));
    order.waiting.timeout = Duration::from_secs(3);
    let outcome = install(&scene.context(), &order).await;
    let error = outcome.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Wait);
    let expected = format!(
        "timeout waiting for: [Deployment/{}/web status: 'InProgress'",
        scene.namespace
    );
    assert!(error.to_string().starts_with(&expected), "{error}");
    assert!(error.to_string().contains("node"), "{error}");
    assert_eq!(error.report().unwrap().objects.len(), 1);
    assert_eq!(scene.last("web").await.info.status, Status::Failed);

    let scene = Scene::in_namespace(scene.client.clone(), scene.namespace.clone());
    let mut order = scene.install("other", content(&[("templates/web.yaml", &stuck)], json!({})));
    order.waiting.timeout = Duration::from_secs(60);
    let cancelled = scene.cancelled.clone();
    let deployments = scene.api("apps/v1", "Deployment", "deployments");
    let cancel = async {
        while deployments.get_opt("other").await.unwrap().is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        cancelled.cancel();
    };
    let context = scene.context();
    let (outcome, ()) = tokio::join!(install(&context, &order), cancel);
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Cancelled);
    let release = scene.last("other").await;
    assert_eq!(
        release.info.description,
        "Release \"other\" failed: context canceled"
    );
    deployments
        .delete("other", &DeleteParams::background())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_record_that_is_too_large_means_that_nothing_is_applied() {
    let scene = Scene::new("large").await;
    // What does not shrink: digits of a generator.
    let mut state = 1_u64;
    let noise: String = (0..1_200_000)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(33 + ((state >> 33) % 90) as u8)
        })
        .collect();
    let files = [
        ("files/noise", noise.as_str()),
        ("templates/config.yaml", CONFIG_MAP),
    ];
    let order = scene.install("web", content(&files, json!({"word": "a"})));
    let outcome = install(&scene.context(), &order).await;
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::TooLarge);
    assert!(outcome.written.is_empty());
    assert_eq!(scene.read(&scene.config_maps(), "web").await, Value::Null);
}

#[tokio::test]
async fn the_namespace_is_made_when_asked_and_lookup_finds_what_is_there() {
    let scene = Scene::new("looks").await;
    let target = format!("{}-made", scene.namespace);
    let template = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web, namespace: {target}}}\ndata:\n  \
         found: {{{{ (lookup \"v1\" \"ConfigMap\" \"{0}\" \"kube-root-ca.crt\").metadata.name | quote }}}}\n  \
         count: {{{{ len (lookup \"v1\" \"ServiceAccount\" \"{0}\" \"\").items | quote }}}}\n  \
         none: {{{{ len (lookup \"v1\" \"ConfigMap\" \"{0}\" \"nothing\") | quote }}}}\n  \
         has: {{{{ .Capabilities.APIVersions.Has \"apps/v1/Deployment\" | quote }}}}\n  \
         version: {{{{ .Capabilities.KubeVersion.Version | quote }}}}\n",
        scene.namespace
    );
    let mut order = scene.install("web", content(&[("templates/config.yaml", &template)], json!({})));
    order.namespace.clone_from(&target);
    order.create_namespace = true;
    succeeded(install(&scene.context(), &order).await);
    let made = Scene::in_namespace(scene.client.clone(), target.clone());
    let live = made.read(&made.config_maps(), "web").await;
    assert_eq!(live["data"]["found"], "kube-root-ca.crt");
    assert_eq!(live["data"]["count"], "1");
    assert_eq!(
        (&live["data"]["none"], &live["data"]["has"]),
        (&json!("0"), &json!("true"))
    );
    assert!(text(&live, "/data/version").starts_with("v1."));
}

#[tokio::test]
async fn a_hook_that_fails_means_that_nothing_else_is_made() {
    let scene = Scene::new("hooked").await;
    let hook = |name: &str, event: &str, outcome: Option<&str>| {
        let mut job = crate::hooks::job(name, outcome);
        job["metadata"]["annotations"] = json!({"helm.sh/hook": event});
        job.to_string()
    };
    let (before, after) = (
        hook("before", "pre-install", None),
        hook("after", "post-install", Some("job-failure")),
    );
    let files = [
        ("templates/before.yaml", before.as_str()),
        ("templates/after.yaml", after.as_str()),
        ("templates/config.yaml", CONFIG_MAP),
    ];
    let order = scene.install("web", content(&files, json!({"word": "a"})));
    let outcome = install(&scene.context(), &order).await;
    let error = outcome.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Hook, "{error}");
    assert!(error.to_string().starts_with("failed post-install: "), "{error}");
    assert_ne!(scene.read(&scene.config_maps(), "web").await, Value::Null);
    let release = scene.last("web").await;
    let phases: Vec<_> = release
        .hooks
        .iter()
        .map(|hook| (hook.name.as_str(), hook.last_run.phase))
        .collect();
    assert!(
        phases.contains(&("before", HookPhase::Succeeded)) && phases.contains(&("after", HookPhase::Failed)),
        "{phases:?}"
    );

    let before = hook("before", "pre-install", Some("job-failure"));
    let other = CONFIG_MAP.replace("{{ .Release.Name }}", "never");
    let files = [
        ("templates/before.yaml", before.as_str()),
        ("templates/config.yaml", other.as_str()),
    ];
    let order = scene.install("other", content(&files, json!({"word": "a"})));
    let error = install(&scene.context(), &order).await.result.unwrap_err();
    assert!(error.to_string().starts_with("failed pre-install: "), "{error}");
    assert_eq!(scene.last("other").await.info.status, Status::Failed);
    assert_eq!(scene.read(&scene.config_maps(), "never").await, Value::Null);
    succeeded_hooks_off(&scene, &files).await;
}

/// Hooks that are switched off do not run.
async fn succeeded_hooks_off(scene: &Scene, files: &[(&str, &str)]) {
    let mut order = scene.install("third", content(files, json!({"word": "a"})));
    order.disable_hooks = true;
    succeeded(install(&scene.context(), &order).await);
}

#[tokio::test]
async fn hosts_are_looked_for_only_where_that_is_allowed() {
    let scene = Scene::new("hosts").await;
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {host: {{ getHostByName .Values.host | quote }}}\n";
    let order = |name: &str, host: &str, allowed: bool| {
        let mut order = scene.install(
            name,
            content(&[("templates/map.yaml", map)], json!({"host": host})),
        );
        order.content.enable_dns = allowed;
        order
    };
    let maps = scene.api("v1", "ConfigMap", "configmaps");
    for (name, allowed, expected) in [("shut", false, ""), ("open", true, "127.0.0.1")] {
        succeeded(install(&scene.context(), &order(name, "localhost", allowed)).await);
        assert_eq!(scene.read(&maps, name).await["data"]["host"], expected);
    }
    let nowhere = order("nowhere", "nobody.invalid", true);
    let error = install(&scene.context(), &nowhere).await.result.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("error calling getHostByName: invalid argument to Intn"),
        "{error}"
    );
}
