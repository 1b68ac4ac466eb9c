//! Messages for the case that someone else has written or removed Helm's records of a release, so that they
//! learn why it is undone.

use api::helm::{HelmReleaseStatus, Snapshot};
use controller_kit::events::Severity;
use helm_release::{Release, Status};

use super::events::Event;
use super::history::{self, full_name};
use super::reasons;
use super::state::State;

/// Says what was found in place of the revision that was left, if it was another's.
pub(super) fn found(status: &HelmReleaseStatus, state: &State, last: Option<&Release>) -> Option<String> {
    // Without a history there is nothing that could have been replaced.
    let left = history::latest(&status.history)?;
    match state {
        State::Unmanaged(_) => Some(replaced(left, last?)),
        State::Absent(_) if left.status == Status::Deployed.to_string() => Some(removed(left)),
        _ => None,
    }
}

fn replaced(left: &Snapshot, last: &Release) -> String {
    let how = match last.info.rollback_revision {
        0 => String::new(),
        to => format!(", a rollback to revision {to}"),
    };
    let at = match &last.info.last_deployed {
        Some(at) => format!(" at {at}"),
        None => String::new(),
    };
    format!(
        "found revision {} of release {}/{} ({}{at}{how}), which someone else made after revision {}",
        last.version, last.namespace, last.name, last.info.status, left.version
    )
}

fn removed(left: &Snapshot) -> String {
    format!("release {} was uninstalled by someone else", full_name(left))
}

/// Tells of it.
pub(super) fn event(found: &str) -> Event {
    Event {
        severity: Severity::Info,
        reason: reasons::FOREIGN_CHANGE,
        message: format!("{found}; the release is set back to what the HelmRelease says"),
        annotations: std::collections::BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use helm_release::Time;

    use super::super::testing::{record, status_of};
    use super::*;

    #[test]
    fn what_someone_else_did_is_named() {
        let status = status_of(&[&record(4, "deployed")]);
        let mut theirs = record(5, "deployed");
        theirs.info.rollback_revision = 3;
        theirs.info.last_deployed = Time::read("2026-11-23T06:00:00Z").unwrap();
        let unmanaged = State::Unmanaged(String::new());
        assert_eq!(
            found(&status, &unmanaged, Some(&theirs)).unwrap(),
            "found revision 5 of release apps/web (deployed at 2026-11-23T06:00:00Z, a rollback to revision 3), which \
             someone else made after revision 4"
        );
        assert_eq!(
            found(&status, &State::Absent(""), None).unwrap(),
            "release apps/web.v4 was uninstalled by someone else"
        );
    }

    #[test]
    fn what_we_did_ourselves_is_not_blamed_on_others() {
        let status = status_of(&[&record(4, "uninstalled")]);
        assert_eq!(found(&status, &State::Absent(""), None), None);
        assert_eq!(
            found(&status_of(&[]), &State::Unmanaged(String::new()), None),
            None
        );
        assert_eq!(found(&status, &State::InSync, None), None);
    }
}
