//! Outages, minute by minute.

mod recovery;

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::alert::options::Options;

#[derive(Default)]
struct Known {
    failing: BTreeMap<String, bool>,
    parents: BTreeMap<String, Vec<String>>,
}

impl Facts for Known {
    fn is_failing(&self, object: &str) -> Option<bool> {
        self.failing.get(object).copied()
    }

    fn parents(&self, object: &str) -> Vec<String> {
        self.parents.get(object).cloned().unwrap_or_default()
    }
}

/// An engine, and a clock that the test moves.
struct Run {
    engine: Engine,
    options: Options,
    known: Known,
    by_object: bool,
    seconds: i64,
    steps: usize,
    /// All that was said.
    said: Vec<Message>,
}

impl Run {
    fn new(annotations: &[(&str, &str)]) -> Self {
        let annotations = annotations
            .iter()
            .map(|(name, value)| (format!("windlass.dev/{name}"), (*value).to_owned()));
        let (options, problems) = Options::from_annotations(&annotations.collect());
        assert_eq!(problems, []);
        Self {
            engine: Engine::default(),
            options,
            known: Known::default(),
            by_object: false,
            seconds: 0,
            steps: 0,
            said: Vec::new(),
        }
    }

    fn step(&mut self, act: impl FnOnce(&mut Engine, &Setting<'_>) -> Vec<Message>) -> Vec<String> {
        let now = Timestamp::from_second(1_700_000_000 + self.seconds).unwrap();
        let setting = Setting {
            options: &self.options,
            facts: &self.known,
            by_object: self.by_object,
            group: "Alert/apps/a",
            now,
        };
        let messages = act(&mut self.engine, &setting);
        self.steps += 1;
        if self.steps < 50 {
            // What survives a restart is the same.
            let saved = serde_json::to_string(&self.engine).unwrap();
            assert_eq!(serde_json::from_str::<Engine>(&saved).unwrap(), self.engine);
        }
        let said = messages
            .iter()
            .map(|message| format!("{:?} {} {}", message.state, message.key, message.event.message))
            .collect();
        self.said.extend(messages);
        said
    }

    fn event(&mut self, name: &str, severity: &str, reason: &str, message: &str) -> Vec<String> {
        let event = json!({
            "involvedObject": {"kind": "Kustomization", "namespace": "apps", "name": name},
            "severity": severity, "reason": reason, "message": message,
        });
        self.step(|engine, setting| engine.take(serde_json::from_value(event).unwrap(), setting))
    }

    fn fail(&mut self, name: &str) -> Vec<String> {
        self.event(name, "error", "BuildFailed", "broken")
    }

    fn succeed(&mut self, name: &str) -> Vec<String> {
        self.event(name, "info", "ReconciliationSucceeded", "applied")
    }

    fn ready(&mut self, name: &str) -> Vec<String> {
        let object = format!("Kustomization/apps/{name}");
        self.step(|engine, setting| engine.ready(&object, setting))
    }

    /// Lets these depend on a GitRepository that fails and that the Alert is not about.
    fn depend_on_repo(&mut self, names: &[&str]) {
        let source = "GitRepository/apps/repo".to_owned();
        self.known.failing.insert(source.clone(), true);
        for name in names {
            self.known
                .parents
                .insert(format!("Kustomization/apps/{name}"), vec![source.clone()]);
        }
    }

    fn gone(&mut self, name: &str) -> Vec<String> {
        let object = format!("Kustomization/apps/{name}");
        self.step(|engine, setting| engine.gone(|other| other == object, setting))
    }

    /// Lets time pass, and does what is due as it comes due.
    fn pass(&mut self, seconds: i64) -> Vec<String> {
        let end = self.seconds + seconds;
        let mut said = Vec::new();
        while let Some(due) = self
            .engine
            .deadline()
            .map(|due| due.as_second() - 1_700_000_000)
            .filter(|due| *due <= end)
        {
            self.seconds = due.max(self.seconds);
            said.extend(self.step(super::Engine::tick));
        }
        self.seconds = end;
        said
    }
}

#[test]
fn an_error_that_passes_soon_is_not_told() {
    let mut run = Run::new(&[("for", "2m")]);
    assert!(run.fail("web").is_empty());
    run.pass(60);
    run.ready("web");
    assert!(run.pass(600).is_empty());
    assert!(run.engine.is_empty());
}

#[test]
fn an_error_that_lasts_is_told_once_its_time_has_come() {
    let mut run = Run::new(&[("for", "2m")]);
    run.fail("web");
    run.pass(60);
    run.event("web", "error", "BuildFailed", "still broken");
    assert!(run.pass(59).is_empty());
    assert_eq!(run.pass(2), ["Event Kustomization/apps/web still broken"]);
    assert_eq!(run.fail("web").len(), 1, "it is told of at once from then on");
}

#[test]
fn an_error_is_not_told_if_the_object_is_known_to_be_ready() {
    let mut run = Run::new(&[("for", "2m")]);
    run.fail("web");
    run.known
        .failing
        .insert("Kustomization/apps/web".to_owned(), false);
    assert!(run.pass(600).is_empty());
}

#[test]
fn what_was_told_as_failing_is_told_as_ready_again_and_only_once_in_between() {
    let mut run = Run::new(&[("resolve", "true")]);
    assert_eq!(run.fail("web"), ["Firing Kustomization/apps/web broken"]);
    run.pass(300);
    assert!(run.fail("web").is_empty(), "it fails in the same way");
    let other = run.event("web", "error", "BuildFailed", "broken otherwise");
    assert_eq!(other, ["Firing Kustomization/apps/web broken otherwise"]);
    let over = run.ready("web");
    assert_eq!(
        over,
        ["Resolved Kustomization/apps/web ready again; it had failed with: broken otherwise"]
    );
    assert!(run.ready("web").is_empty());
    assert!(run.engine.is_empty());
    run.fail("web");
    assert_eq!(run.succeed("web"), ["Resolved Kustomization/apps/web applied"]);
}

#[test]
fn what_is_deleted_while_it_fails_is_over() {
    let mut run = Run::new(&[("resolve", "true"), ("for", "2m"), ("group-window", "5m")]);
    run.fail("web");
    run.fail("held");
    run.fail("other");
    run.pass(60);
    assert!(run.gone("held").is_empty() && run.gone("nothing").is_empty());
    assert_eq!(run.pass(60), ["Firing Kustomization/apps/other broken"]);
    run.gone("other");
    run.gone("web");
    let told = run.pass(300);
    assert_eq!(
        told,
        ["Resolved Kustomization/apps/other deleted; it had failed with: broken"],
        "that web failed was not told yet, and so not that it is deleted"
    );
    run.pass(600);
    assert!(run.engine.is_empty());

    let mut silent = Run::new(&[("fold", "true")]);
    silent.fail("web");
    assert!(silent.gone("web").is_empty() && silent.engine.is_empty());
}

#[test]
fn what_is_deleted_is_not_told_of_in_place_of_what_depends_on_it() {
    let mut run = Run::new(&[("fold", "true"), ("resolve", "true")]);
    let base = "Kustomization/apps/base".to_owned();
    run.known.failing.insert(base.clone(), true);
    run.known
        .parents
        .insert("Kustomization/apps/web".to_owned(), vec![base]);
    assert_eq!(run.fail("web").len(), 1);
    assert!(run.gone("base").is_empty());
    assert_eq!(
        run.gone("web"),
        ["Resolved Kustomization/apps/web deleted; it had failed with: broken"]
    );
    assert!(run.engine.is_empty());
}

#[test]
fn a_digest_does_not_list_what_is_deleted_as_failing() {
    let mut run = Run::new(&[("digest", "1h")]);
    run.fail("a");
    run.fail("b");
    run.gone("a");
    let told = run.pass(3600);
    assert_eq!(
        told,
        ["Event Alert/apps/a 2 events of 2 objects in 1h, 1 objects fail\n\
             Kustomization/apps/b: 1 events, 1 errors; last: broken\n\
             Kustomization/apps/a: 1 events, 1 errors; last: deleted; it had failed with: broken"]
    );
}

#[test]
fn what_never_failed_is_not_told_as_ready_again() {
    let mut run = Run::new(&[("resolve", "true")]);
    assert!(run.ready("web").is_empty());
    assert_eq!(run.succeed("web"), ["Event Kustomization/apps/web applied"]);
}

#[test]
fn what_comes_within_the_window_after_a_message_is_one_message() {
    let mut run = Run::new(&[("group-window", "5m")]);
    assert_eq!(run.fail("a"), ["Event Kustomization/apps/a broken"]);
    assert!(run.fail("b").is_empty() && run.fail("c").is_empty());
    let told = run.pass(300);
    assert_eq!(
        told,
        [
            "Event Alert/apps/a 2 events of 2 objects\nKustomization/apps/b: broken\nKustomization/apps/c: broken"
        ]
    );
    run.pass(300);
    assert!(run.engine.is_empty(), "nothing came, so the next is told at once");
    assert_eq!(run.fail("d"), ["Event Kustomization/apps/d broken"]);
}

#[test]
fn what_broke_and_healed_within_a_window_is_not_told() {
    let mut run = Run::new(&[("group-window", "5m"), ("resolve", "true")]);
    run.fail("a");
    run.fail("b");
    run.ready("b");
    assert!(run.pass(600).is_empty());
}

#[test]
fn what_was_told_before_a_window_is_told_as_over_however_it_failed_meanwhile() {
    let mut run = Run::new(&[("group-window", "5m"), ("resolve", "true")]);
    run.fail("a");
    run.event("a", "error", "BuildFailed", "broken otherwise");
    run.event("a", "error", "BuildFailed", "broken again");
    run.ready("a");
    assert_eq!(
        run.pass(600),
        ["Resolved Kustomization/apps/a ready again; it had failed with: broken again"]
    );
}

#[test]
fn a_success_is_told_as_such_if_nobody_knows_of_a_failure() {
    let mut run = Run::new(&[("group-window", "5m"), ("resolve", "true")]);
    run.fail("a");
    run.fail("b");
    run.succeed("b");
    assert_eq!(run.pass(300), ["Event Kustomization/apps/b applied"]);
}

#[test]
fn what_was_only_counted_is_told_when_it_fails_on_and_not_when_it_recovers() {
    for annotation in [("group-window", "15m"), ("digest", "15m")] {
        let mut run = Run::new(&[annotation, ("resolve", "true")]);
        for number in 0..400 {
            run.fail(&format!("{number:03}"));
        }
        run.ready("399");
        run.pass(900);
        run.fail("398");
        run.pass(900);
        run.ready("398");
        run.pass(900);
        let about = |name: &str| {
            let all = run.said.iter().flat_map(|message| {
                let alone = message.events.is_empty().then_some(&message.event);
                message.events.iter().chain(alone)
            });
            all.filter(|event| event.involved_object.name == name)
                .map(|event| event.reason.clone())
                .collect::<Vec<_>>()
        };
        assert!(about("399").is_empty(), "{annotation:?}");
        assert_eq!(about("398"), ["BuildFailed", "Resolved"], "{annotation:?}");
    }
}

#[test]
fn no_incident_is_opened_that_nobody_will_close() {
    let mut run = Run::new(&[("resolve", "true")]);
    run.by_object = true;
    for number in 0..501 {
        run.fail(&format!("{number:03}"));
    }
    let firing = run.said.iter().filter(|message| message.state == State::Firing);
    assert_eq!((firing.count(), run.said.len()), (500, 501));
}

#[test]
fn incident_services_get_each_object_by_itself() {
    let mut run = Run::new(&[("group-window", "5m"), ("resolve", "true"), ("digest", "1h")]);
    run.by_object = true;
    assert_eq!(
        run.fail("a").len() + run.fail("b").len() + run.ready("a").len(),
        3
    );
}

#[test]
fn failures_of_dependents_are_part_of_the_failure_of_their_source() {
    let mut run = Run::new(&[("fold", "true"), ("resolve", "true")]);
    for name in ["a", "b"] {
        run.known.parents.insert(
            format!("Kustomization/apps/{name}"),
            vec!["Kustomization/apps/base".to_owned()],
        );
    }
    assert_eq!(run.fail("base").len(), 1);
    assert!(run.fail("a").is_empty() && run.fail("b").is_empty() && run.fail("a").is_empty());
    assert_eq!(run.fail("other").len(), 1);
    let over = run.ready("base");
    assert_eq!(
        over,
        [
            "Resolved Kustomization/apps/base ready again (2 objects that depend on it failed too); it had failed with: broken"
        ]
    );
}

#[test]
fn of_dependents_of_something_that_is_not_alerted_on_the_first_is_told() {
    let mut run = Run::new(&[("fold", "true")]);
    run.depend_on_repo(&["a", "b", "c"]);
    assert_eq!(run.fail("a"), ["Event Kustomization/apps/a broken"]);
    assert!(run.fail("b").is_empty() && run.fail("c").is_empty() && run.fail("a").is_empty());
}

#[test]
fn who_stands_for_its_source_is_ready_when_it_is_and_not_when_the_source_is() {
    let mut run = Run::new(&[("fold", "true"), ("resolve", "true")]);
    run.depend_on_repo(&["a", "b", "c"]);
    assert_eq!(run.fail("a"), ["Firing Kustomization/apps/a broken"]);
    assert!(run.fail("b").is_empty() && run.fail("a").is_empty());
    run.known
        .failing
        .insert("GitRepository/apps/repo".to_owned(), false);
    let said = run.step(|engine, setting| engine.ready("GitRepository/apps/repo", setting));
    assert!(said.is_empty(), "it fails on: {said:?}");
    assert_eq!(
        run.ready("a"),
        ["Resolved Kustomization/apps/a ready again; it had failed with: broken"]
    );
    assert!(run.engine.is_empty());
}

#[test]
fn when_who_stands_for_its_source_is_ready_another_takes_its_place() {
    let mut run = Run::new(&[("fold", "true"), ("resolve", "true")]);
    run.depend_on_repo(&["a", "b", "c"]);
    run.fail("a");
    assert!(run.fail("b").is_empty());
    assert_eq!(run.ready("a").len(), 1);
    assert_eq!(run.fail("b"), ["Firing Kustomization/apps/b broken"]);
    assert!(run.fail("c").is_empty());
    assert_eq!(run.ready("b").len(), 1);
}

#[test]
fn a_digest_is_all_that_is_said() {
    let mut run = Run::new(&[("digest", "1h")]);
    for _ in 0..59 {
        assert!(run.fail("a").is_empty());
        assert!(run.pass(60).is_empty());
    }
    run.succeed("b");
    let told = run.pass(120);
    assert_eq!(told.len(), 1);
    assert!(
        told[0].starts_with("Event Alert/apps/a 60 events of 2 objects in 1h, 1 objects fail\n"),
        "{}",
        told[0]
    );
}

/// A source that fails for an hour, and 100 dependents that fail each minute.
fn outage(annotations: &[(&str, &str)]) -> usize {
    let mut run = Run::new(annotations);
    for number in 0..100 {
        let parent = "Kustomization/apps/base".to_owned();
        run.known
            .parents
            .insert(format!("Kustomization/apps/{number}"), vec![parent]);
    }
    let mut said = 0;
    for _ in 0..60 {
        said += run.fail("base").len();
        for number in 0..100 {
            said += run.fail(&number.to_string()).len();
        }
        said += run.pass(60).len();
    }
    said += run.succeed("base").len();
    for number in 0..100 {
        said += run.succeed(&number.to_string()).len();
    }
    said + run.pass(7200).len()
}

#[test]
fn an_outage_of_an_hour_is_a_handful_of_messages() {
    let window = ("group-window", "15m");
    for annotations in [
        &[window][..],
        &[window, ("resolve", "true")],
        &[window, ("resolve", "true"), ("fold", "true")],
        &[("digest", "1h")],
        &[window, ("for", "5m"), ("resolve", "true")],
    ] {
        let number = outage(annotations);
        assert!((2..=6).contains(&number), "{annotations:?}: {number}");
    }
    assert_eq!(outage(&[]), 61 * 101, "as in Flux, but for its rate limit");
}

#[test]
fn however_much_comes_the_state_is_bounded() {
    let annotations = [("for", "1h"), ("resolve", "true"), ("group-window", "1h")];
    for annotations in [&annotations[..], &annotations[1..], &[("digest", "24h")]] {
        let mut run = Run::new(annotations);
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        for number in 0..5_000 {
            let object = json!({"kind": "Kustomization", "namespace": "apps", "name": number.to_string()});
            let event = json!({
                "involvedObject": object, "severity": "error", "message": "x".repeat(5_000),
                "metadata": {"revision": "1", "long": "y".repeat(10_000)},
            });
            let setting = Setting {
                options: &run.options,
                facts: &run.known,
                by_object: false,
                group: "g",
                now,
            };
            run.engine.take(serde_json::from_value(event).unwrap(), &setting);
        }
        let size = serde_json::to_string(&run.engine).unwrap().len();
        assert!(size < 2_200_000, "{size}");
    }
}
