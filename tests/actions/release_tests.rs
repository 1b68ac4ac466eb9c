//! `helm test`: the tests of a release, and how they went.

use std::time::Duration;

use helm_action::{ErrorKind, Outcome, Test};
use helm_release::{HookPhase, observation};
use serde_json::Value;

use crate::hooks::{hook, job, pod, stored};
use crate::scene::Scene;

fn order(scene: &Scene, filters: &[(&str, bool)]) -> Test {
    Test {
        name: "web".to_owned(),
        namespace: scene.namespace.clone(),
        timeout: Duration::from_secs(30),
        checks: std::sync::Arc::default(),
        filters: filters
            .iter()
            .map(|(name, exclude)| ((*name).to_owned(), *exclude))
            .collect(),
    }
}

fn phases(outcome: &Outcome) -> Vec<(&str, HookPhase)> {
    let hooks = outcome.written[&1].hooks.iter();
    hooks
        .map(|hook| (hook.name.as_str(), hook.last_run.phase))
        .collect()
}

#[tokio::test]
async fn tests_run_as_asked_and_their_phases_are_kept_though_the_digest_stays() {
    let scene = Scene::new("tests").await;
    let record = stored(
        &scene,
        vec![
            hook("a", "test", &["hook-succeeded"], &pod("a", Some("Succeeded"))),
            hook("migrate", "pre-install", &[], &job("migrate", None)),
            hook("b", "test", &[], &job("b", None)),
            hook("c", "test", &[], &pod("c", Some("Failed"))),
        ],
    )
    .await;
    let digest = observation::digest(&record.release, None);

    let outcome = helm_action::test(&scene.context(), &order(&scene, &[("a", false), ("b", false)])).await;
    outcome.result.as_ref().unwrap();
    let expected = [
        ("a", HookPhase::Succeeded),
        ("migrate", HookPhase::Never),
        ("b", HookPhase::Succeeded),
        ("c", HookPhase::Never),
    ];
    assert_eq!(phases(&outcome), expected);
    let kept = scene.storage.get("web", 1).await.unwrap().unwrap();
    assert_eq!(Some(&kept.release), outcome.written.get(&1));
    assert_eq!(observation::digest(&kept.release, None), digest);
    let pods = scene.api("v1", "Pod", "pods");
    assert_eq!(scene.read(&pods, "a").await, Value::Null);

    let outcome = helm_action::test(&scene.context(), &order(&scene, &[("a", true)])).await;
    let error = outcome.result.as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Test);
    assert!(
        error.to_string().contains("Pod/") && error.to_string().contains("/c status: 'Failed'"),
        "{error}"
    );
    assert_eq!(phases(&outcome)[3], ("c", HookPhase::Failed));
    let kept = scene.storage.get("web", 1).await.unwrap().unwrap();
    assert_eq!(kept.release.hooks[3].last_run.phase, HookPhase::Failed);
}

#[tokio::test]
async fn without_tests_nothing_is_written_and_without_a_release_it_is_told() {
    let scene = Scene::new("tests-none").await;
    let outcome = helm_action::test(&scene.context(), &order(&scene, &[])).await;
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(outcome.written.is_empty());

    stored(&scene, vec![hook("a", "test", &[], &pod("a", Some("Succeeded")))]).await;
    let outcome = helm_action::test(&scene.context(), &order(&scene, &[("x", false)])).await;
    outcome.result.as_ref().unwrap();
    assert_eq!(phases(&outcome), [("a", HookPhase::Never)]);
    let requests = scene.requests();
    assert_eq!(requests.len(), 2, "{requests:?}");
}
