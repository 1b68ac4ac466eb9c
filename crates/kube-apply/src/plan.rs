//! Plans what to do with an object, from what is known of it. Pure.
//!
//! Three questions: is a request needed at all ([`opening`]); must its dry run wait for something that this same set
//! creates ([`Pending::blocks`]); and what does the server's answer to the dry run mean ([`verdict`]).

use std::collections::HashSet;

use k8s_openapi::jiff::Timestamp;
use manifest::{GroupVersionKind, ObjectId};
use serde_json::{Map, Value};

use crate::fingerprint::{Digest, Facts};
use crate::managed::{Live, Recorded};
use crate::policy::Policy;
use crate::settings::Owner;

/// The first decision about an object, before any request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Left alone because it says so.
    Skip,
    /// Applied before, and untouched since.
    Unchanged,
    /// The server is to be asked.
    Work,
}

/// Decides without a request. What another owner's live object says is not used: the one who asks may not be allowed to
/// see it, so the server is asked in his name.
pub(crate) fn opening(policy: Policy, owner: &Owner, live: &Live, is_current: bool) -> Opening {
    match live {
        _ if policy.excluded => Opening::Skip,
        Live::Present(facts)
            if facts.owner.as_deref() == Some(owner) && (facts.policy.excluded || policy.if_not_present) =>
        {
            Opening::Skip
        }
        _ if is_current => Opening::Unchanged,
        _ => Opening::Work,
    }
}

/// Returns whether the object may be applied without a dry run when nothing else needs work: one apply is as good as its
/// own validation. Only for objects that are known well enough to need no question first.
pub(crate) fn may_go_unasked(live: &Live) -> bool {
    matches!(live, Live::Present(facts) if !facts.needs_take_over && !facts.terminating)
}

/// Action that follows from the dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Left alone because the live object says so, or because it is there already.
    Skip,
    /// An apply would change nothing.
    Unchanged,
    /// To be applied; there is no such object.
    Create,
    /// To be applied over what is there, after other tools' field managers were taken over if need be.
    Configure {
        /// True if other tools left field managers.
        take_over: bool,
        /// Version of the live object that the dry run saw; None when there was no dry run.
        asked: Option<u64>,
    },
    /// To be deleted and created anew.
    Recreate,
}

impl Verdict {
    /// Returns whether the object will be written.
    pub(crate) fn is_work(self) -> bool {
        !matches!(self, Verdict::Skip | Verdict::Unchanged)
    }
}

/// Returns whether an equal fingerprint means an equal object. It holds field names and a time to the second, so that a new
/// value that is applied within the second of the old one leaves it as it was. With a record that question does not come
/// up: the manifest is the same, or it is not. Without one (after a restart) what was applied just now is not trusted.
pub(crate) fn is_telling(
    recorded: Option<&Recorded>,
    desired: Digest,
    answer: &Facts,
    now: Timestamp,
) -> bool {
    match recorded {
        Some(recorded) => recorded.desired == desired,
        None => answer
            .applied_at
            .is_some_and(|at| now.as_second() - at.as_second() > JUST_NOW),
    }
}

/// Seconds; more than clocks of servers usually differ.
const JUST_NOW: i64 = 5;

/// Returns whether a write left the object as it was: by its version, or else (its status may move) by its fingerprint.
pub(crate) fn is_unchanged(before: &Live, asked: Option<u64>, answer: &Facts, is_telling: bool) -> bool {
    let known = match before {
        Live::Present(facts) => Some(facts),
        _ => None,
    };
    let version = asked.or(known.and_then(|facts| facts.resource_version));
    let same_version = version.is_some() && version == answer.resource_version;
    same_version || (is_telling && known.is_some_and(|facts| facts.fingerprint == answer.fingerprint))
}

/// Reads the answer to a dry run. `exists` is whether the answer has a resourceVersion: that of a create has none.
pub(crate) fn verdict(
    policy: Policy,
    live: &Live,
    answer: &Facts,
    exists: bool,
    is_telling: bool,
) -> Verdict {
    if !exists {
        return Verdict::Create;
    }
    if answer.policy.excluded || policy.if_not_present {
        return Verdict::Skip;
    }
    let take_over = answer.needs_take_over && !policy.merge;
    match live {
        Live::Present(before) if is_telling && !take_over && before.fingerprint == answer.fingerprint => {
            Verdict::Unchanged
        }
        _ => Verdict::Configure {
            take_over,
            asked: answer.resource_version,
        },
    }
}

/// Why a dry run has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// Until the stage before this object's is done: its kind or namespace comes with it.
    UntilItsStage,
    /// Until objects of lower rank in its own stage are applied: a binding is refused while its role is missing.
    UntilItsTurn,
}

/// Objects that this set creates or changes and that other objects of the set may need.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    kinds: HashSet<(String, String)>,
    namespaces: HashSet<String>,
    roles: HashSet<(String, String, String)>,
}

impl Pending {
    /// Adds a kind whose CRD is created or changed.
    pub(crate) fn add_kind(&mut self, group: &str, kind: &str) {
        self.kinds.insert((group.to_owned(), kind.to_owned()));
    }

    /// Adds a namespace that is created.
    pub(crate) fn add_namespace(&mut self, name: &str) {
        self.namespaces.insert(name.to_owned());
    }

    /// Adds a Role or ClusterRole that is created or changed; other kinds are ignored.
    pub(crate) fn add_role(&mut self, id: &ObjectId) {
        if id.group == RBAC && matches!(id.kind.as_str(), "Role" | "ClusterRole") {
            self.roles
                .insert((id.kind.clone(), id.namespace.clone(), id.name.clone()));
        }
    }

    /// Returns whether the object's dry run has to wait.
    pub(crate) fn blocks(
        &self,
        gvk: &GroupVersionKind,
        id: &ObjectId,
        object: &Map<String, Value>,
    ) -> Option<Blocked> {
        let is_pending_kind = self.kinds.contains(&(gvk.group.clone(), gvk.kind.clone()));
        if is_pending_kind || self.namespaces.contains(&id.namespace) {
            Some(Blocked::UntilItsStage)
        } else if self
            .role_of(id, object)
            .is_some_and(|role| self.roles.contains(&role))
        {
            Some(Blocked::UntilItsTurn)
        } else {
            None
        }
    }

    fn role_of(&self, id: &ObjectId, object: &Map<String, Value>) -> Option<(String, String, String)> {
        if id.group != RBAC || !id.kind.ends_with("Binding") {
            return None;
        }
        let text = |field: &str| Some(object.get("roleRef")?.get(field)?.as_str()?.to_owned());
        let kind = text("kind")?;
        let namespace = if kind == "Role" {
            id.namespace.clone()
        } else {
            String::new()
        };
        Some((kind, namespace, text("name")?))
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn facts(fingerprint: u32) -> Facts {
        Facts {
            fingerprint: Digest::from_value(&json!(fingerprint)),
            resource_version: Some(1),
            uid: None,
            owner: None,
            policy: Policy::default(),
            needs_take_over: false,
            applied_at: None,
            owner_label_is_ours: true,
            terminating: false,
        }
    }

    fn excluded() -> Policy {
        Policy {
            excluded: true,
            ..Policy::default()
        }
    }

    #[test]
    fn objects_that_need_no_request_are_settled_first() {
        let plain = Policy::default();
        let if_absent = Policy {
            if_not_present: true,
            ..plain
        };
        let owner = Owner {
            namespace: "a".into(),
            name: "b".into(),
        };
        let ours = Facts {
            owner: Some(std::sync::Arc::new(owner.clone())),
            ..facts(1)
        };
        let theirs = Live::Present(facts(1));
        let present = Live::Present(ours.clone());
        let shielded = Live::Present(Facts {
            policy: excluded(),
            ..ours
        });
        for (policy, live, is_current, expected) in [
            (excluded(), &Live::Unknown, true, Opening::Skip),
            (plain, &shielded, true, Opening::Skip),
            (if_absent, &present, false, Opening::Skip),
            (if_absent, &theirs, false, Opening::Work),
            (if_absent, &Live::Absent, false, Opening::Work),
            (plain, &present, true, Opening::Unchanged),
            (plain, &present, false, Opening::Work),
            (plain, &Live::Unknown, false, Opening::Work),
        ] {
            assert_eq!(
                opening(policy, &owner, live, is_current),
                expected,
                "{policy:?} {live:?}"
            );
        }
    }

    #[test]
    fn only_a_well_known_object_goes_without_a_dry_run() {
        assert!(may_go_unasked(&Live::Present(facts(1))));
        assert!(!may_go_unasked(&Live::Absent));
        assert!(!may_go_unasked(&Live::Unknown));
        assert!(!may_go_unasked(&Live::Present(Facts {
            needs_take_over: true,
            ..facts(1)
        })));
    }

    #[test]
    fn answers_of_the_dry_run_are_understood() {
        let plain = Policy::default();
        let if_absent = Policy {
            if_not_present: true,
            ..plain
        };
        let merge = Policy { merge: true, ..plain };
        let before = Live::Present(facts(1));
        let leftover = Facts {
            needs_take_over: true,
            ..facts(1)
        };
        let shielded = Facts {
            policy: excluded(),
            ..facts(2)
        };
        for (policy, live, answer, exists, expected) in [
            (plain, &Live::Absent, facts(1), false, Verdict::Create),
            (if_absent, &Live::Absent, facts(1), false, Verdict::Create),
            (if_absent, &Live::Unknown, facts(1), true, Verdict::Skip),
            (plain, &before, shielded, true, Verdict::Skip),
            (plain, &before, facts(1), true, Verdict::Unchanged),
            (
                plain,
                &before,
                facts(2),
                true,
                Verdict::Configure {
                    take_over: false,
                    asked: Some(1),
                },
            ),
            (
                plain,
                &Live::Unknown,
                facts(1),
                true,
                Verdict::Configure {
                    take_over: false,
                    asked: Some(1),
                },
            ),
            (
                plain,
                &before,
                leftover.clone(),
                true,
                Verdict::Configure {
                    take_over: true,
                    asked: Some(1),
                },
            ),
            (merge, &before, leftover, true, Verdict::Unchanged),
        ] {
            assert_eq!(
                verdict(policy, live, &answer, exists, true),
                expected,
                "{policy:?} {live:?}"
            );
        }
    }

    #[test]
    fn an_equal_fingerprint_is_believed_only_when_it_can_tell() {
        let desired = Digest::from_value(&json!("desired"));
        let recorded = |desired: Digest| Recorded {
            owner: std::sync::Arc::new(crate::Owner {
                namespace: "a".into(),
                name: "b".into(),
            }),
            desired,
            expires: false,
            ignored: None,
            fingerprint: Digest::from_value(&json!(1)),
            resource_version: Some(1),
        };
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().unwrap();
        let at = |text: &str| Facts {
            applied_at: text.parse().ok(),
            ..facts(1)
        };
        let (long_ago, just_now) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T00:01:00Z"));
        assert!(is_telling(Some(&recorded(desired)), desired, &just_now, now));
        assert!(!is_telling(
            Some(&recorded(Digest::from_value(&json!("other")))),
            desired,
            &long_ago,
            now
        ));
        assert!(is_telling(None, desired, &long_ago, now));
        assert!(!is_telling(None, desired, &just_now, now));
        let before = Live::Present(facts(1));
        assert!(matches!(
            verdict(Policy::default(), &before, &facts(1), true, false),
            Verdict::Configure { .. }
        ));
    }

    #[test]
    fn a_write_changed_nothing_when_version_or_telling_fingerprint_say_so() {
        let before = Live::Present(facts(1));
        let version = |version: u64| Facts {
            resource_version: Some(version),
            ..facts(1)
        };
        for (live, asked, answer, telling, expected) in [
            (&before, None, version(1), false, true),
            (&before, None, version(2), false, false),
            (&before, None, version(2), true, true),
            (&Live::Unknown, Some(2), version(2), false, true),
            (&Live::Unknown, Some(2), version(3), true, false),
            (&Live::Unknown, None, version(3), true, false),
        ] {
            assert_eq!(is_unchanged(live, asked, &answer, telling), expected);
        }
    }

    #[test]
    fn objects_wait_for_what_their_own_set_creates() {
        let id = |group: &str, kind: &str, namespace: &str, name: &str| ObjectId {
            group: group.into(),
            kind: kind.into(),
            namespace: namespace.into(),
            name: name.into(),
        };
        let mut pending = Pending::default();
        pending.add_kind("example.com", "Widget");
        pending.add_namespace("new");
        pending.add_role(&id(RBAC, "Role", "old", "reader"));
        pending.add_role(&id(RBAC, "ClusterRole", "", "admin"));
        let role_ref = |kind: &str, name: &str| json!({"roleRef": {"kind": kind, "name": name}});
        for (object, body, expected) in [
            (
                id("example.com", "Widget", "old", "w"),
                json!({}),
                Some(Blocked::UntilItsStage),
            ),
            (
                id("", "ConfigMap", "new", "c"),
                json!({}),
                Some(Blocked::UntilItsStage),
            ),
            (id("", "ConfigMap", "old", "c"), json!({}), None),
            (
                id(RBAC, "RoleBinding", "old", "b"),
                role_ref("Role", "reader"),
                Some(Blocked::UntilItsTurn),
            ),
            (
                id(RBAC, "RoleBinding", "other", "b"),
                role_ref("Role", "reader"),
                None,
            ),
            (
                id(RBAC, "RoleBinding", "other", "b"),
                role_ref("ClusterRole", "admin"),
                Some(Blocked::UntilItsTurn),
            ),
            (
                id(RBAC, "ClusterRoleBinding", "", "b"),
                role_ref("ClusterRole", "view"),
                None,
            ),
        ] {
            let gvk = GroupVersionKind {
                group: object.group.clone(),
                version: "v1".into(),
                kind: object.kind.clone(),
            };
            let body = body.as_object().unwrap();
            assert_eq!(pending.blocks(&gvk, &object, body), expected, "{object}");
        }
    }
}
