//! Which hooks run at an event, in which order, and what is done with them before and after. Pure.

use helm_release::Hook;
use helm_render::manifest::HookEvent;

/// When a hook is deleted that says nothing of it.
const DEFAULT: Policy = Policy::BeforeCreation;
/// Deleting a definition would delete all objects of the kind.
const NEVER_DELETED: &str = "CustomResourceDefinition";

/// When a hook is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// Before it is created again.
    BeforeCreation,
    /// When it has succeeded.
    Succeeded,
    /// When it has failed.
    Failed,
}

/// When what a hook printed is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    Succeeded,
    Failed,
}

impl Policy {
    fn word(self) -> &'static str {
        match self {
            Self::BeforeCreation => "before-hook-creation",
            Self::Succeeded => "hook-succeeded",
            Self::Failed => "hook-failed",
        }
    }
}

/// Returns which hooks run at an event, by their places in the list, in the order in which they run. The list is sorted by
/// kind, and that decides among equals. One that names the event twice runs twice.
pub(super) fn hooks_at(
    hooks: &[Hook],
    event: HookEvent,
    is_meant: &(dyn Fn(&Hook) -> bool + Sync),
) -> Vec<usize> {
    let places = hooks.iter().enumerate().filter(|(_, hook)| is_meant(hook));
    let mut order: Vec<usize> = places
        .flat_map(|(place, hook)| {
            let times = hook.events.iter().filter(|own| *own == event.name()).count();
            std::iter::repeat_n(place, times)
        })
        .collect();
    order.sort_by(|a, b| {
        let key = |place: &usize| (hooks[*place].weight, &hooks[*place].name);
        key(a).cmp(&key(b))
    });
    order
}

/// Writes down the policy of a hook that has none, as it then stands in the record.
pub(super) fn set_default(hook: &mut Hook) {
    if hook.delete_policies.is_empty() {
        hook.delete_policies.push(DEFAULT.word().to_owned());
    }
}

/// Returns whether a hook is deleted now.
pub(super) fn is_deleted(hook: &Hook, now: Policy) -> bool {
    hook.kind != NEVER_DELETED && hook.delete_policies.iter().any(|policy| policy == now.word())
}

/// Returns whether what a hook printed is logged now.
pub(super) fn is_logged(hook: &Hook, now: Output) -> bool {
    let word = match now {
        Output::Succeeded => "hook-succeeded",
        Output::Failed => "hook-failed",
    };
    hook.output_log_policies.iter().any(|policy| policy == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(name: &str, weight: i64, events: &[&str]) -> Hook {
        Hook {
            name: name.to_owned(),
            kind: "Job".to_owned(),
            weight,
            events: events.iter().map(|event| (*event).to_owned()).collect(),
            ..Hook::default()
        }
    }

    #[test]
    fn weight_goes_before_name_and_name_before_the_place() {
        let hooks = [
            hook("c", 0, &["pre-install"]),
            hook("b", 5, &["pre-install", "pre-upgrade"]),
            hook("a", 5, &["pre-install"]),
            hook("z", -1, &["post-install", "pre-install"]),
            hook("c", 0, &["pre-install"]),
            hook("x", 0, &["test"]),
            hook("twice", 9, &["pre-install", "pre-install"]),
        ];
        let order = |event| hooks_at(&hooks, event, &|_| true);
        assert_eq!(order(HookEvent::PreInstall), [3, 0, 4, 2, 1, 6, 6]);
        assert_eq!(order(HookEvent::PreUpgrade), [1]);
        assert_eq!(order(HookEvent::PostDelete), [0_usize; 0]);
        assert_eq!(
            hooks_at(&hooks, HookEvent::PreInstall, &|hook| hook.name != "c"),
            [3, 2, 1, 6, 6]
        );
    }

    #[test]
    fn hooks_are_deleted_as_they_say_but_definitions_never() {
        let mut job = hook("a", 0, &[]);
        set_default(&mut job);
        assert_eq!(job.delete_policies, ["before-hook-creation"]);
        assert!(is_deleted(&job, Policy::BeforeCreation) && !is_deleted(&job, Policy::Succeeded));
        job.delete_policies = vec!["hook-failed".to_owned()];
        set_default(&mut job);
        assert!(is_deleted(&job, Policy::Failed) && !is_deleted(&job, Policy::BeforeCreation));
        job.kind = NEVER_DELETED.to_owned();
        assert!(!is_deleted(&job, Policy::Failed));
    }
}
