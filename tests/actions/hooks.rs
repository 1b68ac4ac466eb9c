//! Hooks on a real control plane: Jobs and Pods really run to their end, or do not.

use std::time::{Duration, Instant};

use helm_action::hooks::{HookOptions, run_hooks};
use helm_action::{Error, ErrorKind, WaitStrategy, Waiting};
use helm_release::{Hook, HookPhase, Record, Status};
use helm_render::manifest::HookEvent;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::scene::{Scene, waiting};
use crate::storage::release;

/// A hook with this manifest, of which only what is needed is given.
pub fn hook(name: &str, event: &str, policies: &[&str], manifest: &Value) -> Hook {
    Hook {
        name: name.to_owned(),
        kind: manifest["kind"].as_str().unwrap().to_owned(),
        path: format!("demo/templates/{name}.yaml"),
        manifest: manifest.to_string(),
        events: vec![event.to_owned()],
        delete_policies: policies.iter().map(|policy| (*policy).to_owned()).collect(),
        ..Hook::default()
    }
}

/// A Job whose Pod ends as the label says.
pub fn job(name: &str, outcome: Option<&str>) -> Value {
    let labels = outcome.map_or(
        json!({}),
        |outcome| json!({"testkit.windlass.dev/outcome": outcome}),
    );
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {
            "metadata": {"labels": labels},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example.com/migrate:1"}]},
        }},
    })
}

/// A Pod that ends in this phase, or runs for ever.
pub fn pod(name: &str, phase: Option<&str>) -> Value {
    let (labels, annotations) = match phase {
        None => (json!({}), json!({})),
        Some(phase) => (
            json!({"testkit.windlass.dev/outcome": "annotated"}),
            json!({"testkit.windlass.dev/status": format!("phase: {phase}\nstartTime: \"2026-01-01T00:00:00Z\"\n")}),
        ),
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "example.com/test:1"}]},
    })
}

fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}})
}

pub async fn stored(scene: &Scene, hooks: Vec<Hook>) -> Record {
    let mut record = release(scene, "web", 1, Status::PendingInstall);
    record.release.hooks = hooks;
    scene.storage.create(&record).await.unwrap();
    scene.requests();
    record
}

async fn run(scene: &Scene, record: &mut Record, waiting: &Waiting, server_side: bool) -> Result<(), Error> {
    let options = HookOptions::new(waiting, server_side);
    run_hooks(&scene.context(), record, HookEvent::PreInstall, &options).await
}

fn phases(record: &Record) -> Vec<(&str, HookPhase)> {
    let hooks = record.release.hooks.iter();
    hooks
        .map(|hook| (hook.name.as_str(), hook.last_run.phase))
        .collect()
}

#[tokio::test]
async fn hooks_run_to_their_end_one_after_another_and_are_cleaned_up_as_they_say() {
    let scene = Scene::new("hooks").await;
    let mut later = hook("later", "pre-install", &["hook-succeeded"], &job("later", None));
    later.weight = 5;
    let mut record = stored(
        &scene,
        vec![
            later,
            hook("first", "pre-install", &[], &job("first", None)),
            hook(
                "settings",
                "pre-install",
                &["hook-succeeded", "before-hook-creation"],
                &config_map("settings", "1"),
            ),
            hook("other", "post-install", &[], &job("other", None)),
        ],
    )
    .await;
    run(&scene, &mut record, &waiting(), true).await.unwrap();
    assert_eq!(
        phases(&record),
        [
            ("later", HookPhase::Succeeded),
            ("first", HookPhase::Succeeded),
            ("settings", HookPhase::Succeeded),
            ("other", HookPhase::Never),
        ]
    );
    let run = |index: usize| record.release.hooks[index].last_run.clone();
    let (later, first) = (run(0), run(1));
    assert!(first.completed_at.unwrap().at() <= later.started_at.unwrap().at());
    assert_eq!(record.release.hooks[1].delete_policies, ["before-hook-creation"]);

    let jobs = scene.api("batch/v1", "Job", "jobs");
    let first = scene.read(&jobs, "first").await;
    assert_eq!(first["status"]["succeeded"], json!(1));
    assert_eq!(
        first["metadata"]["managedFields"][0]["manager"],
        json!("helm-controller")
    );
    assert_eq!(first["metadata"]["managedFields"][0]["operation"], json!("Apply"));
    assert_eq!(scene.read(&jobs, "later").await, Value::Null);
    assert_eq!(scene.read(&scene.config_maps(), "settings").await, Value::Null);
    // What runs is in the record while it does.
    let kept = scene.storage.get("web", 1).await.unwrap().unwrap();
    assert_eq!(kept.release.hooks[0].last_run.phase, HookPhase::Running);
}

#[tokio::test]
async fn what_is_left_over_from_the_last_time_is_replaced() {
    let scene = Scene::new("hooks-again").await;
    for (server_side, value) in [(true, "1"), (false, "2")] {
        let manifests = [
            job("migrate", None),
            config_map("settings", value),
            pod("try", Some("Succeeded")),
        ];
        let hooks = manifests.iter().map(|manifest| {
            hook(
                manifest["metadata"]["name"].as_str().unwrap(),
                "pre-install",
                &[],
                manifest,
            )
        });
        let hooks = hooks.collect();
        let mut record = if server_side {
            stored(&scene, hooks).await
        } else {
            let mut record = scene.storage.get("web", 1).await.unwrap().unwrap();
            record.release.hooks = hooks;
            record
        };
        run(&scene, &mut record, &waiting(), server_side).await.unwrap();
        let found = scene.read(&scene.config_maps(), "settings").await;
        assert_eq!(found["data"]["key"], json!(value));
        let operation = if server_side { "Apply" } else { "Update" };
        assert_eq!(
            found["metadata"]["managedFields"][0]["operation"],
            json!(operation)
        );
        assert_eq!(
            found["metadata"]["managedFields"][0]["manager"],
            json!("helm-controller")
        );
    }
}

#[tokio::test]
async fn what_is_kept_is_in_the_way_where_nothing_is_applied_on_the_server() {
    let scene = Scene::new("hooks-kept").await;
    let kept = || {
        vec![hook(
            "settings",
            "pre-install",
            &["hook-failed"],
            &config_map("settings", "1"),
        )]
    };
    let mut record = stored(&scene, kept()).await;
    run(&scene, &mut record, &waiting(), false).await.unwrap();
    let error = run(&scene, &mut record, &waiting(), false).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "warning: Hook pre-install demo/templates/settings.yaml failed: configmaps \"settings\" already exists"
    );
    assert_eq!(
        (error.kind(), record.release.hooks[0].last_run.phase),
        (ErrorKind::Hook, HookPhase::Failed)
    );
    run(&scene, &mut record, &waiting(), true).await.unwrap();
}

#[tokio::test]
async fn a_hook_that_fails_ends_it_and_those_before_it_are_cleaned_up() {
    let scene = Scene::new("hooks-fail").await;
    let mut record = stored(
        &scene,
        vec![
            hook("a", "pre-install", &["hook-succeeded"], &config_map("a", "1")),
            hook(
                "b",
                "pre-install",
                &["hook-failed"],
                &job("b", Some("job-failure")),
            ),
            hook("c", "pre-install", &[], &config_map("c", "1")),
        ],
    )
    .await;
    record.release.hooks[1].output_log_policies = vec!["hook-failed".to_owned()];
    let error = run(&scene, &mut record, &waiting(), true).await.unwrap_err();
    let text = error.to_string();
    let start = format!(
        "failed early due to stalled resources: [Job/{}/b status: 'Failed'",
        scene.namespace
    );
    assert!(text.starts_with(&start), "{text}");
    assert_eq!(error.kind(), ErrorKind::Hook);
    assert!(error.report().is_some());
    assert_eq!(
        phases(&record),
        [
            ("a", HookPhase::Succeeded),
            ("b", HookPhase::Failed),
            ("c", HookPhase::Never)
        ]
    );
    assert_eq!(scene.read(&scene.config_maps(), "a").await, Value::Null);
    assert_eq!(scene.read(&scene.config_maps(), "c").await, Value::Null);
    assert_eq!(
        scene.read(&scene.api("batch/v1", "Job", "jobs"), "b").await,
        Value::Null
    );
    // kwok's nodes have no logs. That is told, and changes nothing.
    assert!(
        scene
            .log
            .to_string()
            .contains("error outputting logs for hook failure"),
        "{}",
        scene.log
    );
}

/// Passes requests on, but for logs, which kwok's nodes do not have.
fn with_logs(client: &Client) -> Client {
    let client = client.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let client = client.clone();
        async move {
            if !request.uri().path().ends_with("/log") {
                return client.send(request).await;
            }
            let text = format!("asked {}\nsecond\n", request.uri().query().unwrap_or_default());
            Ok(http::Response::new(Body::from(text.into_bytes())))
        }
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn what_a_hook_printed_is_logged_only_where_it_asks_for_it_and_bounded() {
    let mut scene = Scene::new("hooks-logs").await;
    scene.cluster.client = with_logs(&scene.client);
    let mut asks = hook("asks", "pre-install", &[], &job("asks", None));
    asks.output_log_policies = vec!["hook-succeeded".to_owned()];
    let mut record = stored(
        &scene,
        vec![asks, hook("silent", "pre-install", &[], &job("silent", None))],
    )
    .await;
    run(&scene, &mut record, &waiting(), true).await.unwrap();
    let log = scene.log.to_string();
    let asked = "/main: asked &container=main&limitBytes=16384&tailLines=10";
    assert!(
        log.contains("asks-") && log.contains(asked) && log.contains("/main: second"),
        "{log}"
    );
    assert!(!log.contains("silent"), "{log}");
}

#[tokio::test]
async fn a_pod_that_only_runs_is_not_done_and_one_that_failed_has_failed() {
    let scene = Scene::new("hooks-pods").await;
    let short = Waiting {
        timeout: Duration::from_secs(3),
        ..waiting()
    };
    let mut record = stored(&scene, vec![hook("runs", "pre-install", &[], &pod("runs", None))]).await;
    let error = run(&scene, &mut record, &short, true).await.unwrap_err();
    let start = format!(
        "timeout waiting for: [Pod/{}/runs status: 'InProgress': running",
        scene.namespace
    );
    assert!(error.to_string().starts_with(&start), "{error}");
    record.release.hooks = vec![hook("fails", "pre-install", &[], &pod("fails", Some("Failed")))];
    let began = Instant::now();
    let error = run(&scene, &mut record, &waiting(), true).await.unwrap_err();
    let start = format!(
        "failed early due to stalled resources: [Pod/{}/fails status: 'Failed': failed",
        scene.namespace
    );
    assert!(error.to_string().starts_with(&start), "{error}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[tokio::test]
async fn what_cannot_be_understood_is_told_with_the_hook_that_it_is() {
    let scene = Scene::new("hooks-broken").await;
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}});
    let mut record = stored(&scene, vec![hook("a", "pre-install", &["hook-failed"], &thing)]).await;
    let error = run(&scene, &mut record, &waiting(), true).await.unwrap_err();
    let text = error.to_string();
    let start = "unable to build kubernetes object for pre-install hook demo/templates/a.yaml: ";
    assert!(
        text.starts_with(start)
            && text.contains("no matches for kind \"Thing\" in version \"example.com/v1\""),
        "{text}"
    );
    assert_eq!(record.release.hooks[0].last_run.phase, HookPhase::Never);

    let mut wrong = config_map("a", "1");
    wrong["surplus"] = json!(true);
    record.release.hooks = vec![hook("a", "pre-install", &[], &wrong)];
    let error = run(&scene, &mut record, &waiting(), true)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with(
            "warning: Hook pre-install demo/templates/a.yaml failed: server-side apply failed for object "
        ) && error.contains("surplus"),
        "{error}"
    );
}

#[tokio::test]
async fn a_wait_ends_when_it_is_stopped_but_not_because_there_is_something_newer() {
    let scene = Scene::new("hooks-stop").await;
    scene.cancelled.cancel();
    let mut record = stored(&scene, vec![hook("done", "pre-install", &[], &job("done", None))]).await;
    run(&scene, &mut record, &waiting(), true).await.unwrap();

    record.release.hooks = vec![hook("runs", "pre-install", &[], &pod("runs", None))];
    let options = HookOptions::new(&waiting(), true);
    scene.stopped.cancel();
    let error = run_hooks(&scene.context(), &mut record, HookEvent::PreInstall, &options)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(record.release.hooks[0].last_run.phase, HookPhase::Failed);
}

#[tokio::test]
async fn a_hook_that_is_deleted_is_awaited_unless_nothing_but_hooks_is_waited_for() {
    let scene = Scene::new("hooks-held").await;
    let mut held = config_map("held", "1");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    let hooks = vec![hook("held", "pre-install", &["hook-succeeded"], &held)];
    let mut record = stored(&scene, hooks).await;
    let short = Waiting {
        timeout: Duration::from_secs(2),
        ..waiting()
    };
    let error = run(&scene, &mut record, &short, true).await.unwrap_err();
    let expected = format!(
        "timeout waiting for termination of: [ConfigMap/{}/held]",
        scene.namespace
    );
    assert_eq!(error.to_string(), expected);
    let only_hooks = Waiting {
        strategy: WaitStrategy::HookOnly,
        ..short
    };
    let options = HookOptions::new(&only_hooks, true);
    record.release.hooks[0].delete_policies = vec!["before-hook-creation".to_owned()];
    // It is still there, and applied to.
    run_hooks(&scene.context(), &mut record, HookEvent::PreInstall, &options)
        .await
        .unwrap();
    let released = json!({"metadata": {"finalizers": null}});
    let patch = kube::api::Patch::Merge(released);
    scene
        .config_maps()
        .patch("held", &kube::api::PatchParams::default(), &patch)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_definition_is_never_deleted() {
    let scene = Scene::new("hooks-crd").await;
    let group = format!("{}.example.com", scene.namespace);
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    });
    let mut record = stored(
        &scene,
        vec![hook("things", "pre-install", &["hook-succeeded"], &definition)],
    )
    .await;
    run(&scene, &mut record, &waiting(), true).await.unwrap();
    run(&scene, &mut record, &waiting(), true).await.unwrap();
    let requests = scene.requests();
    assert!(
        !requests.iter().any(|request| request.starts_with("DELETE")),
        "{requests:?}"
    );
}

#[tokio::test]
async fn a_hook_that_is_no_job_costs_three_requests() {
    let scene = Scene::new("hooks-cost").await;
    let mut record = stored(&scene, vec![hook("a", "pre-install", &[], &config_map("a", "1"))]).await;
    run(&scene, &mut record, &waiting(), true).await.unwrap();
    let requests = scene.requests();
    let own: Vec<_> = requests
        .iter()
        .filter(|request| request.contains("/namespaces/"))
        .collect();
    assert_eq!(own.len(), 3, "{requests:?}");
}
