use git_client::ObjectId;
use serde_json::Value;

use super::super::run::{Pushed, Run};
use super::super::settled;
use super::super::update::Tally;
use super::*;

const COMMIT: &str = "1111111111111111111111111111111111111111";
const OTHER: &str = "2222222222222222222222222222222222222222";

fn automation(annotations: &Value) -> ImageUpdateAutomation {
    serde_json::from_value(json!({
        "metadata": {"name": "app", "namespace": "shop", "annotations": annotations},
        "spec": {"sourceRef": {"kind": "GitRepository", "name": "app"}, "interval": "1h"},
    }))
    .unwrap()
}

fn policy(tag: &str, held: &[&str]) -> Arc<ImagePolicy> {
    let holds: Vec<_> = held.iter().map(|tag| json!({"tag": tag})).collect();
    let policy = json!({
        "metadata": {"name": "web", "namespace": "shop",
            "annotations": {hold::ANNOTATION: serde_json::to_string(&holds).unwrap()}},
        "spec": {"imageRepositoryRef": {"name": "web"}, "policy": {}},
        "status": {"latestRef": {"name": "h.io/web", "tag": tag}},
    });
    Arc::new(serde_json::from_value(policy).unwrap())
}

fn way_back(settled: &Value) -> WayBack {
    let object = automation(&json!({
        HOLD_FAILED: "apps", HOLD_REVERTED: "true", settled::ANNOTATION: settled.to_string(),
    }));
    read(&object).unwrap().unwrap()
}

fn read(object: &ImageUpdateAutomation) -> Result<Option<WayBack>, Error> {
    WayBack::read(object, &SettledTags::read(object))
}

fn looked(changed: usize, kept: usize) -> Looked {
    Looked {
        base: OTHER.to_owned(),
        tallies: [(
            "shop:web".to_owned(),
            Tally {
                changed,
                kept,
                has_digest: true,
            },
        )]
        .into(),
    }
}

fn run(looked: Looked, pushed: bool) -> Run {
    Run {
        pushed: pushed.then(|| Pushed {
            commit: ObjectId::from_hex(COMMIT.as_bytes()).unwrap(),
            message: String::new(),
        }),
        looked: Some(looked),
        ..Run::default()
    }
}

fn failures(commit: &str) -> Vec<(String, Failed)> {
    let failed = Failed {
        commit: commit.to_owned(),
        message: "timeout waiting for: [Deployment/web]\nmore".to_owned(),
    };
    vec![("apps".to_owned(), failed)]
}

#[test]
fn nothing_is_held_unless_it_is_asked_for() {
    assert!(read(&automation(&json!({}))).unwrap().is_none());
    assert!(
        read(&automation(&json!({HOLD_REVERTED: "false"})))
            .unwrap()
            .is_none()
    );
    for (annotation, value) in [
        (HOLD_REVERTED, "yes"),
        (HOLD_FAILED, "kustomization/apps"),
        (HOLD_FAILED, "a b"),
    ] {
        let error = read(&automation(&json!({annotation: value}))).unwrap_err();
        assert!(error.to_string().contains(annotation), "{error}");
    }
    let many = vec!["a"; delivery::MAX_NAMES + 1].join(",");
    assert!(read(&automation(&json!({HOLD_FAILED: many}))).is_err());
}

#[test]
fn a_tag_settles_with_the_commit_that_brought_it() {
    let policies = [policy("2.0.0", &[])];
    let settled = |before: &Value, run: &Run| {
        let before = way_back(before).settled;
        let after = before.after(&policies, run);
        (after != before).then(|| serde_json::to_value(after.get(&policies[0])).unwrap())
    };
    let old = json!({"web": {"tag": "1.0.0"}});
    assert_eq!(
        settled(&old, &run(looked(1, 0), true)),
        Some(json!({"tag": "2.0.0", "commit": COMMIT, "before": "1.0.0"}))
    );
    assert_eq!(
        settled(&json!({}), &run(looked(0, 1), false)),
        Some(json!({"tag": "2.0.0"}))
    );
    // A merge brought it.
    assert_eq!(
        settled(&old, &run(looked(0, 2), false)),
        Some(json!({"tag": "2.0.0", "commit": OTHER, "before": "1.0.0"}))
    );
    // It is proposed, and not there yet.
    assert_eq!(settled(&old, &run(looked(2, 0), false)), None);
    let now = json!({"web": {"tag": "2.0.0", "commit": OTHER}});
    assert_eq!(
        settled(&now, &run(looked(0, 1), false)),
        None,
        "its commit stays the first one"
    );
}

#[test]
fn a_delivery_that_fails_at_its_commit_holds_a_tag() {
    let here = way_back(&json!({"web": {"tag": "2.0.0", "commit": COMMIT, "before": "1.0.0"}}));
    let held = |policy, commit| {
        let held = here.failed(&[policy], &failures(commit));
        held.into_iter()
            .map(|held| (held.hold.tag, held.hold.reason))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        held(policy("2.0.0", &[]), COMMIT),
        [(
            "2.0.0".to_owned(),
            "Kustomization apps failed at commit 1111111: timeout waiting for: [Deployment/web]".to_owned()
        )]
    );
    assert_eq!(held(policy("2.0.0", &[]), OTHER), [], "another commit failed");
    assert_eq!(
        held(policy("2.0.0", &["2.0.0"]), COMMIT),
        [],
        "it is held already"
    );
    assert_eq!(held(policy("3.0.0", &[]), COMMIT), [], "the policy has gone on");
    assert_eq!(
        held(policy("2.0.0", &["1.0.0"]), COMMIT),
        [],
        "a step back goes back no further"
    );
    let unknown = way_back(&json!({"web": {"tag": "2.0.0"}}));
    assert!(
        unknown
            .failed(&[policy("2.0.0", &[])], &failures(COMMIT))
            .is_empty()
    );
}

#[test]
fn a_tag_is_taken_back_when_no_place_has_it_any_more() {
    let here = way_back(&json!({"web": {"tag": "2.0.0", "commit": COMMIT}}));
    let count = |tag, looked| here.reverted(&[policy(tag, &[])], &looked).len();
    assert_eq!(count("2.0.0", looked(2, 0)), 1);
    assert_eq!(
        count("2.0.0", looked(1, 1)),
        0,
        "only one place is new, or was edited"
    );
    assert_eq!(count("2.0.0", looked(0, 1)), 0);
    assert_eq!(count("3.0.0", looked(1, 0)), 0, "it was never there");
}

#[test]
fn an_annotation_that_was_broken_holds_nothing() {
    let object = automation(&json!({HOLD_REVERTED: "true", settled::ANNOTATION: "{"}));
    let here = read(&object).unwrap().unwrap();
    assert!(here.reverted(&[policy("2.0.0", &[])], &looked(1, 0)).is_empty());
}

#[test]
fn a_long_name_and_message_still_make_a_hold() {
    let here = way_back(&json!({"web": {"tag": "2.0.0", "commit": COMMIT}}));
    let failed = Failed {
        commit: COMMIT.to_owned(),
        message: "x".repeat(1000),
    };
    let held = here.failed(&[policy("2.0.0", &[])], &[("a".repeat(253), failed)]);
    let [held] = held.as_slice() else {
        panic!("{held:?}");
    };
    holds_of(&held.policy).add(held.hold.clone()).unwrap();
}

#[test]
fn a_policy_of_another_namespace_is_not_held() {
    let way_back = way_back(&json!({"web": {"tag": "2", "commit": COMMIT}}));
    let mut foreign = ImagePolicy::clone(&policy("2", &[]));
    assert_eq!(
        way_back
            .failed(&[Arc::new(foreign.clone())], &failures(COMMIT))
            .len(),
        1
    );
    foreign.metadata.namespace = Some("tools".to_owned());
    let foreign = Arc::new(foreign);
    assert!(
        way_back
            .failed(std::slice::from_ref(&foreign), &failures(COMMIT))
            .is_empty()
    );
    let looked = Looked {
        base: OTHER.to_owned(),
        tallies: [(
            "tools:web".to_owned(),
            Tally {
                changed: 1,
                kept: 0,
                has_digest: true,
            },
        )]
        .into(),
    };
    assert!(way_back.reverted(&[foreign], &looked).is_empty());
}

/// A policy that follows a tag which moves.
fn moved(digest: &str, held: &[&str]) -> Arc<ImagePolicy> {
    let mut policy = ImagePolicy::clone(&policy("released", &[]));
    let holds: Vec<_> = held
        .iter()
        .map(|digest| json!({"tag": "released", "digest": digest}))
        .collect();
    let annotations = policy.metadata.annotations.get_or_insert_default();
    annotations.insert(
        hold::ANNOTATION.to_owned(),
        serde_json::to_string(&holds).unwrap(),
    );
    let latest = policy.status.as_mut().unwrap().latest_ref.as_mut().unwrap();
    latest.digest = Some(digest.to_owned());
    Arc::new(policy)
}

#[test]
fn a_tag_that_moved_is_held_at_its_digest() {
    let old = json!({"web": {"tag": "released", "digest": "sha256:1"}});
    let now = json!({"web": {"tag": "released", "digest": "sha256:2", "commit": COMMIT,
        "before": "released", "beforeDigest": "sha256:1"}});
    let moved_on = moved("sha256:2", &[]);
    let after = way_back(&old)
        .settled
        .after(std::slice::from_ref(&moved_on), &run(looked(1, 0), true));
    assert_eq!(serde_json::to_value(after.get(&moved_on)).unwrap(), now["web"]);
    let here = way_back(&now);
    let held = here.failed(&[moved("sha256:2", &[])], &failures(COMMIT));
    let [held] = held.as_slice() else {
        panic!("{held:?}");
    };
    assert_eq!(
        (&*held.hold.digest, &*held.hold.instead),
        ("sha256:2", "sha256:1")
    );
    let count = |policy| here.failed(&[policy], &failures(COMMIT)).len();
    assert_eq!(count(moved("sha256:3", &[])), 0, "the tag has gone on");
    assert_eq!(count(moved("sha256:2", &["sha256:2"])), 0, "it is held already");
    assert_eq!(
        count(moved("sha256:2", &["sha256:1"])),
        0,
        "a step back goes back no further"
    );
    assert_eq!(here.reverted(&[moved("sha256:2", &[])], &looked(1, 0)).len(), 1);
}

#[test]
fn a_branch_without_digests_knows_tags_only() {
    let mut looked = looked(0, 1);
    looked.tallies.get_mut("shop:web").unwrap().has_digest = false;
    let old = way_back(&json!({"web": {"tag": "released", "commit": COMMIT}})).settled;
    assert_eq!(old.after(&[moved("sha256:2", &[])], &run(looked, false)), old);
}
