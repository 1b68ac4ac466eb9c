use delivery_graph::kind;
use delivery_graph::walk::{Fetched, Lookup, walk};
use serde_json::Value;
use serde_json::json;

use super::*;
use crate::cluster::output::Colours;

/// An object of the namespace `shop`.
fn object(kind: &str, name: &str, ready: (&str, &str, &str), more: Value) -> Value {
    let known = kind::exact(kind).unwrap();
    let (status, reason, message) = ready;
    let mut object = json!({
        "apiVersion": format!("{}/{}", known.group, known.version), "kind": kind,
        "metadata": {"name": name, "namespace": "shop", "generation": 1}, "spec": {},
        "status": {"observedGeneration": 1, "conditions": [
            {"type": "Ready", "status": status, "reason": reason, "message": message}]},
    });
    for part in ["spec", "status"] {
        if let (Some(fields), Some(Value::Object(more))) = (object[part].as_object_mut(), more.get(part)) {
            fields.extend(more.clone());
        }
    }
    object
}

const READY: (&str, &str, &str) = ("True", "Succeeded", "done");

fn app(name: &str, ready: (&str, &str, &str), more: Value) -> Value {
    let mut object = object("Kustomization", name, ready, more);
    object["spec"]["sourceRef"] = json!({"kind": "GitRepository", "name": "app"});
    object
}

fn source(ready: (&str, &str, &str), revision: &str) -> Value {
    let more =
        json!({"spec": {"url": "https://git.example/app"}, "status": {"artifact": {"revision": revision}}});
    object("GitRepository", "app", ready, more)
}

/// Walks from the first object, fetching as the command does, and compares what is printed.
fn check(objects: &[Value], expected: &str) {
    assert_eq!(printed(objects), expected);
}

fn printed(objects: &[Value]) -> String {
    let mut fetched = Fetched::new();
    let root = delivery_graph::object::id(&objects[0]);
    loop {
        let mut wanted = Vec::new();
        let found = walk(&root, &fetched, &mut wanted);
        if wanted.is_empty() {
            return shown(&found, Colours::none());
        }
        for id in wanted {
            let there = objects
                .iter()
                .find(|object| delivery_graph::object::id(object) == id)
                .cloned();
            fetched.insert(id, there.map_or(Lookup::Absent, Lookup::Found));
        }
    }
}

#[test]
fn a_ready_object_is_said_to_be_ready_at_its_commit() {
    let at = json!({"status": {"lastAppliedRevision": "main@sha1:aa"}});
    check(
        &[app("web", READY, at), source(READY, "main@sha1:aa")],
        "Kustomization/shop/web: ready\n  revision main@sha1:aa\n",
    );
}

#[test]
fn the_walk_goes_through_dependencies_to_the_object_that_fails() {
    let waits = ("False", "DependencyNotReady", "dependency 'shop/db' is not ready");
    let why = json!([{"object": "StatefulSet/shop/db", "status": "InProgress", "cause": "ImagePull",
        "message": "pod db-0 container db: ImagePullBackOff"}]);
    let failed = ("False", "HealthCheckFailed", "health check failed after 1m0s");
    let history = json!([{"metadata": {"windlass.dev/why": why.to_string()}}]);
    let status = json!({"lastAppliedRevision": "main@sha1:aa", "lastAttemptedRevision": "main@sha1:bb", "history": history});
    check(
        &[
            app(
                "web",
                waits,
                json!({"spec": {"dependsOn": [{"name": "db"}, {"name": "fine"}]}}),
            ),
            app("db", failed, json!({"status": status})),
            app(
                "fine",
                READY,
                json!({"status": {"lastAppliedRevision": "main@sha1:bb"}}),
            ),
            source(READY, "main@sha1:bb"),
        ],
        "Kustomization/shop/web: not ready (DependencyNotReady)\n\
         \x20 dependency 'shop/db' is not ready\n\
         └── dependency Kustomization/shop/db: not ready (HealthCheckFailed)\n\
         \x20     health check failed after 1m0s\n\
         \x20     revision main@sha1:aa; main@sha1:bb was tried\n\
         \x20   └── applied StatefulSet/shop/db: not ready (ImagePull)\n\
         \x20         pod db-0 container db: ImagePullBackOff\n\
         \n\
         cause: StatefulSet/shop/db: ImagePull: pod db-0 container db: ImagePullBackOff\n",
    );
}

#[test]
fn a_source_that_cannot_be_fetched_is_the_cause_even_of_what_is_ready() {
    let failed = (
        "False",
        "GitOperationFailed",
        "failed to checkout:\nno such branch",
    );
    check(
        &[
            app(
                "web",
                READY,
                json!({"status": {"lastAppliedRevision": "main@sha1:aa"}}),
            ),
            source(failed, "main@sha1:aa"),
        ],
        "Kustomization/shop/web: ready\n  revision main@sha1:aa\n\
         └── source GitRepository/shop/app: not ready (GitOperationFailed)\n\
         \x20     failed to checkout: no such branch\n\
         \x20     revision main@sha1:aa of https://git.example/app\n\
         \n\
         cause: GitRepository/shop/app: GitOperationFailed: failed to checkout: no such branch\n",
    );
}

#[test]
fn what_is_missing_suspended_or_behind_is_said() {
    let waits = ("False", "ArtifactFailed", "no artifact");
    check(
        &[app("web", waits, json!({}))],
        "Kustomization/shop/web: not ready (ArtifactFailed)\n  no artifact\n\
         └── source GitRepository/shop/app: absent\n      does not exist\n\
         \ncause: GitRepository/shop/app: absent: does not exist\n",
    );
    check(
        &[
            app("web", READY, json!({"spec": {"suspend": true}})),
            source(READY, "main@sha1:aa"),
        ],
        "Kustomization/shop/web: suspended\n  \
         nothing is done for it before it is resumed; before that: done\n\
         \ncause: Kustomization/shop/web: suspended: nothing is done for it before it is resumed; before that: done\n",
    );
    check(
        &[
            app("web", READY, json!({"status": {"lastAppliedRevision": "old"}})),
            source(READY, "new"),
        ],
        "Kustomization/shop/web: behind\n  new is there and not applied yet\n  revision old\n\
         \ncause: Kustomization/shop/web: behind: new is there and not applied yet\n",
    );
}

#[test]
fn objects_of_flux_that_flux_itself_names_are_looked_into() {
    let message = "timeout waiting for: [Kustomization/shop/child status: 'InProgress', \
                   Deployment/shop/web status: 'Failed': 0 of 2, really]";
    let child = ("False", "BuildFailed", "kustomization path not found: ./nowhere");
    check(
        &[
            app("web", ("False", "HealthCheckFailed", message), json!({})),
            app("child", child, json!({})),
            source(READY, "main@sha1:aa"),
        ],
        &format!(
            "Kustomization/shop/web: not ready (HealthCheckFailed)\n  {message}\n\
             ├── applied Kustomization/shop/child: not ready (BuildFailed)\n\
             │     kustomization path not found: ./nowhere\n\
             └── applied Deployment/shop/web: not ready (Failed)\n      0 of 2, really\n\
             \ncause: Kustomization/shop/child: BuildFailed: kustomization path not found: ./nowhere\n\
             cause: Deployment/shop/web: Failed: 0 of 2, really\n"
        ),
    );
}

#[test]
fn a_circle_of_dependencies_ends() {
    let waits = ("False", "DependencyNotReady", "waiting");
    let on = |name: &str| json!({"spec": {"dependsOn": [{"name": name}]}});
    check(
        &[
            app("a", waits, on("b")),
            app("b", waits, on("a")),
            source(READY, "main@sha1:aa"),
        ],
        "Kustomization/shop/a: not ready (DependencyNotReady)\n  waiting\n\
         └── dependency Kustomization/shop/b: not ready (DependencyNotReady)\n      waiting\n\
         \x20   └── dependency Kustomization/shop/a: not ready\n\
         \x20         waits for itself: Kustomization/shop/a → Kustomization/shop/b → Kustomization/shop/a\n\
         \ncause: Kustomization/shop/a: not ready: waits for itself: Kustomization/shop/a → Kustomization/shop/b → \
         Kustomization/shop/a\n",
    );
}

/// Each waits for all that come after it.
fn waiting_for_all_others(names: &[String]) -> Vec<Value> {
    let waits = ("False", "DependencyNotReady", "waiting");
    let apps = names.iter().enumerate().map(|(number, name)| {
        let on: Vec<_> = names[number + 1..]
            .iter()
            .map(|name| json!({"name": name}))
            .collect();
        app(name, waits, json!({"spec": {"dependsOn": on}}))
    });
    apps.collect()
}

#[test]
fn what_several_wait_for_is_told_once() {
    let mut objects = waiting_for_all_others(&["a", "b", "c"].map(str::to_owned));
    objects.push(source(READY, "main@sha1:aa"));
    check(
        &objects,
        "Kustomization/shop/a: not ready (DependencyNotReady)\n  waiting\n\
         ├── dependency Kustomization/shop/b: not ready (DependencyNotReady)\n│     waiting\n\
         │   └── dependency Kustomization/shop/c: not ready (DependencyNotReady)\n│         waiting\n\
         └── dependency Kustomization/shop/c: not ready\n      see above\n\
         \ncause: Kustomization/shop/c: DependencyNotReady: waiting\n",
    );
    // The source, which is absent, too: one line for each object, two for each way between them, and the cause.
    let names: Vec<_> = (0..12).map(|number| format!("app-{number}")).collect();
    let text = printed(&waiting_for_all_others(&names));
    assert_eq!(text.matches("(DependencyNotReady)").count(), names.len());
    assert_eq!(text.matches("does not exist").count(), 2);
    assert_eq!(text.matches("\ncause: ").count(), 1);
}

#[test]
fn an_automation_that_is_ready_says_what_is_proposed_and_which_markers_do_nothing() {
    let conditions = json!([
        {"type": "Ready", "status": "True", "reason": "Succeeded", "message": "pull request 7 is open"},
        {"type": "Proposed", "status": "True", "reason": "PullRequestOpen", "message": "pull request 7 (https://h/7) is open\npull request 8 is open, waits for ci"},
        {"type": "MarkersIgnored", "status": "True", "reason": "MarkersIgnored", "message": "a.yaml:3: the marker names 'x'"},
    ]);
    let more = json!({"spec": {"sourceRef": {"kind": "GitRepository", "name": "app"}}, "status": {"conditions": conditions}});
    let automation = object("ImageUpdateAutomation", "auto", READY, more);
    let text = printed(&[automation, source(READY, "main@sha1:1")]);
    assert_eq!(
        text,
        "ImageUpdateAutomation/shop/auto: ready\n  \
         pull request 7 (https://h/7) is open; pull request 8 is open, waits for ci; a.yaml:3: the marker names 'x'\n"
    );
}
