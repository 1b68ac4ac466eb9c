//! Events and answers in every order that a cluster can send them.

use kube::core::ApiResource;
use serde_json::json;

use super::*;
use crate::policy::Policy;

const KIND: (&str, &str) = ("", "ConfigMap");

fn owner(name: &str) -> Owner {
    Owner {
        namespace: "flux-system".into(),
        name: name.into(),
    }
}

fn id() -> ObjectId {
    ObjectId {
        group: String::new(),
        kind: "ConfigMap".into(),
        namespace: "a".into(),
        name: "x".into(),
    }
}

fn digest(n: u32) -> Digest {
    Digest::from_value(&json!(n))
}

fn facts(fingerprint: u32, resource_version: u64) -> Facts {
    Facts {
        fingerprint: digest(fingerprint),
        resource_version: Some(resource_version),
        uid: None,
        owner: Some(Arc::new(owner("apps"))),
        policy: Policy::default(),
        needs_take_over: false,
        applied_at: None,
        owner_label_is_ours: true,
        terminating: false,
    }
}

const APPLYING: Applying = Applying {
    desired: Digest::NOTHING,
    expires: false,
    ignored: None,
};

fn resource() -> Resource {
    let api = ApiResource {
        group: String::new(),
        version: "v1".into(),
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        plural: "configmaps".into(),
    };
    Resource {
        api,
        namespaced: true,
        watchable: true,
    }
}

/// An index whose list is in, on a clock that the test moves.
struct Fixture {
    index: Index,
    now: Instant,
}

impl Fixture {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let task = runtime.spawn(std::future::pending::<()>()).abort_handle();
        let mut fixture = Self {
            index: Index::default(),
            now: Instant::now(),
        };
        fixture
            .index
            .acquire(&owner("apps"), &resource(), || task.clone());
        fixture.index.relist_begins(KIND.0, KIND.1);
        assert_eq!(fixture.index.relist_ends(KIND.0, KIND.1, fixture.now), []);
        fixture
    }
    fn observe(&mut self, facts: Facts) -> Option<What> {
        self.index
            .observe(KIND, "a", "x", facts, self.now)
            .map(|due| due.drift.what)
    }
    fn vanish(&mut self, version: u64) -> Option<What> {
        self.index
            .vanish(KIND, "a", "x", Some(version), self.now)
            .map(|due| due.drift.what)
    }
    fn record(&mut self, facts: &Facts) -> Option<What> {
        self.index
            .record(&id(), &owner("apps"), APPLYING, facts, self.now)
            .map(|due| due.drift.what)
    }
    fn end(&mut self) -> Option<What> {
        self.index.end(&id(), self.now).map(|due| due.drift.what)
    }
    fn is_current(&self) -> bool {
        self.index.is_current(&id(), &owner("apps"), APPLYING.desired)
    }
}

#[test]
fn the_event_of_our_own_write_is_no_drift_whichever_comes_first() {
    for event_first in [true, false] {
        let mut f = Fixture::new();
        f.observe(facts(1, 10));
        f.record(&facts(1, 10));
        f.index.begin(&id());
        if event_first {
            assert_eq!(f.observe(facts(2, 11)), None);
        }
        assert_eq!(f.record(&facts(2, 11)), None);
        assert_eq!(f.end(), None);
        assert!(f.is_current());
        if !event_first {
            assert_eq!(f.observe(facts(2, 11)), None);
        }
        assert!(f.is_current());
    }
}

#[test]
fn an_event_of_somebody_else_during_our_write_is_told_after_it() {
    let mut f = Fixture::new();
    f.record(&facts(1, 10));
    f.index.begin(&id());
    assert_eq!(f.observe(facts(3, 12)), None);
    assert_eq!(f.record(&facts(2, 11)), None);
    assert_eq!(f.end(), Some(What::Modified));
    assert!(!f.is_current());
}

#[test]
fn an_event_older_than_our_answer_is_ignored() {
    let mut f = Fixture::new();
    f.index.begin(&id());
    f.record(&facts(2, 12));
    f.end();
    assert_eq!(f.observe(facts(3, 11)), None);
    assert_eq!(f.vanish(11), None);
    assert!(f.is_current());
}

#[test]
fn edits_and_deletes_are_told_once() {
    let mut f = Fixture::new();
    f.record(&facts(1, 10));
    assert_eq!(f.observe(facts(2, 11)), Some(What::Modified));
    assert_eq!(f.observe(facts(3, 12)), None);
    f.record(&facts(4, 13));
    assert_eq!(f.vanish(14), Some(What::Deleted));
    assert!(!f.is_current());
    assert_eq!(f.index.live(&id()), Live::Absent);
}

#[test]
fn what_was_applied_but_not_recorded_by_us_is_not_told() {
    let mut f = Fixture::new();
    assert_eq!(f.observe(facts(1, 10)), None);
    assert_eq!(f.observe(facts(2, 11)), None);
    assert_eq!(f.vanish(12), None);
    assert!(!f.is_current());
}

#[test]
fn a_relist_shows_what_was_deleted_meanwhile() {
    let mut f = Fixture::new();
    f.observe(facts(1, 10));
    f.record(&facts(1, 10));
    f.index.relist_begins(KIND.0, KIND.1);
    let due = f.index.relist_ends(KIND.0, KIND.1, f.now);
    assert_eq!(due.len(), 1);
    assert_eq!(
        due[0].drift,
        Drift {
            owner: owner("apps"),
            object: id(),
            what: What::Deleted,
            by: None,
        }
    );
}

#[test]
fn a_lost_watch_makes_everything_unknown_until_it_is_back() {
    let mut f = Fixture::new();
    f.observe(facts(1, 10));
    f.record(&facts(1, 10));
    assert!(f.is_current());
    f.index.lose(KIND.0, KIND.1);
    assert!(!f.is_current());
    assert_eq!(f.index.live(&id()), Live::Unknown);
    f.index.relist_begins(KIND.0, KIND.1);
    f.observe(facts(1, 10));
    f.index.relist_ends(KIND.0, KIND.1, f.now);
    assert!(f.is_current());
}

#[test]
fn another_owner_of_the_same_controller_is_not_fought() {
    let mut f = Fixture::new();
    f.record(&facts(1, 10));
    let theirs = Facts {
        owner: Some(Arc::new(owner("other"))),
        ..facts(2, 11)
    };
    assert_eq!(f.observe(theirs.clone()), Some(What::Taken));
    assert_eq!(f.observe(theirs.clone()), None, "it is told once");
    assert!(!f.is_current(), "the interval still finds it changed");
    assert_eq!(
        f.observe(Facts {
            owner_label_is_ours: false,
            ..theirs
        }),
        Some(What::Modified),
        "an edit by hand"
    );
}

#[test]
fn a_quarrel_is_told_ever_more_slowly_and_forgotten_after_a_while() {
    let mut f = Fixture::new();
    let mut pauses = Vec::new();
    for n in 0..6 {
        f.record(&facts(2 * n, u64::from(2 * n)));
        let due = f
            .index
            .observe(KIND, "a", "x", facts(2 * n + 1, u64::from(2 * n + 1)), f.now)
            .unwrap();
        pauses.push(due.after.as_secs());
    }
    assert_eq!(pauses, [0, 0, 0, 1, 2, 4]);
    assert_eq!(f.index.due_now(&id()).unwrap().drift.what, What::Modified);
    f.now += QUARREL;
    f.record(&facts(50, 50));
    assert_eq!(
        f.index
            .observe(KIND, "a", "x", facts(51, 51), f.now)
            .unwrap()
            .after,
        Duration::ZERO
    );
}

#[test]
fn drift_that_was_repaired_during_its_pause_is_not_told() {
    let mut f = Fixture::new();
    f.record(&facts(1, 10));
    f.observe(facts(2, 11));
    f.record(&facts(3, 12));
    assert_eq!(f.index.due_now(&id()), None);
}

#[test]
fn an_object_that_ends_by_itself_is_no_drift_but_is_applied_at_the_next_occasion() {
    let mut f = Fixture::new();
    f.observe(facts(1, 10));
    let job = Applying {
        expires: true,
        ..APPLYING
    };
    f.index
        .record(&id(), &owner("apps"), job.clone(), &facts(1, 10), f.now);
    assert_eq!(f.vanish(11), None);
    assert!(!f.is_current());
    f.index.record(&id(), &owner("apps"), job, &facts(2, 12), f.now);
    assert_eq!(f.observe(facts(3, 13)), Some(What::Modified));
}

#[test]
fn a_lost_watch_starts_anew_in_the_version_that_is_used_now() {
    let mut f = Fixture::new();
    let mut newer = resource();
    newer.api.version = "v2".into();
    f.index
        .acquire(&owner("apps"), &newer, || panic!("the watch is fine"));
    f.index.lose(KIND.0, KIND.1);
    f.index
        .acquire(&owner("apps"), &resource(), || panic!("nothing new to try"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let task = runtime.spawn(std::future::pending::<()>()).abort_handle();
    let ready = f.index.acquire(&owner("apps"), &newer, || task.clone());
    assert!(!*ready.borrow());
}

#[test]
fn kinds_are_watched_as_long_as_an_owner_uses_them() {
    let mut f = Fixture::new();
    f.index
        .acquire(&owner("other"), &resource(), || panic!("the watch runs already"));
    f.record(&facts(1, 10));
    f.index.forget_records(&owner("apps"), &|_| false);
    f.index.release(&owner("apps"), &|_, _| false);
    assert_eq!(f.index.recorded(&id()), None);
    assert_eq!(f.index.live(&id()), Live::Absent);
    f.index.release(&owner("other"), &|_, kind| kind == "ConfigMap");
    assert_eq!(f.index.live(&id()), Live::Absent);
    f.index.release(&owner("other"), &|_, _| false);
    assert_eq!(f.index.live(&id()), Live::Unknown);
}

#[test]
fn an_object_whose_ignored_fields_change_is_as_it_was_left() {
    let replicas = [crate::ignore::Step::Field("replicas".into())];
    let ignoring = || Applying {
        ignored: Some(Arc::new(Ignored::new([replicas.as_slice()]))),
        ..APPLYING
    };
    let mut f = Fixture::new();
    let told = |f: &mut Fixture, applying: Applying, facts: &Facts| {
        let due = f.index.record(&id(), &owner("apps"), applying, facts, f.now);
        due.map(|due| due.drift.what)
    };
    // Seen with all fields, recorded without the ignored ones: another fingerprint of the same object.
    f.observe(facts(1, 10));
    assert_eq!(told(&mut f, ignoring(), &facts(2, 10)), None);
    assert_eq!(f.index.ignored(KIND, "a", "x"), ignoring().ignored);
    assert_eq!(f.observe(facts(2, 11)), None);
    // The rule goes.
    assert_eq!(told(&mut f, APPLYING, &facts(1, 11)), None);
    assert_eq!(f.index.ignored(KIND, "a", "x"), None);
    // What was seen of a newer version cannot be compared, so it is looked at again.
    f.observe(facts(1, 13));
    assert_eq!(told(&mut f, ignoring(), &facts(2, 12)), Some(What::Modified));
}
