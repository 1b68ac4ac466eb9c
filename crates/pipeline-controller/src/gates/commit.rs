//! Gates over the statuses of the commit that a release comes from.

use api::delivery::{GateCommitStatus, Release};
use api::source::GitRepository;
use forge::check::{Check, State, Verdict, judge};
use promotion::values::{Field, Reference};
use serde_json::{Value, json};

use super::{Closed, TIMEOUT};
use crate::context::Context;

/// Statuses that an expression is given.
const MAX_STATUSES: usize = 200;
/// Names of statuses in a message.
const MAX_NAMED: usize = 5;

/// Asks the Git service for the statuses. Returns what was asked, for people, and what an expression is given; an error if the names that
/// are wanted say by themselves that the gate is closed.
pub(super) async fn statuses(
    gate: &GateCommitStatus,
    has_expression: bool,
    release: &Release,
    (namespace, context): (&str, &Context),
) -> Result<(String, Value), Closed> {
    let name = &gate.repository_ref.name;
    let commit = commit_of(release, name).ok_or_else(|| {
        format!(
            "it is not known which commit of GitRepository/{name} release {} comes from",
            release.number
        )
    })?;
    let failed =
        |error: &dyn std::error::Error| format!("GitRepository/{name}: {}", error_chain::chain(error));
    let reader = context.reader(namespace);
    let address = match &gate.forge.url {
        Some(url) => url.clone(),
        None => {
            let repository = reader.object::<GitRepository>(name).await;
            repository.map_err(|error| failed(&error))?.spec.url
        }
    };
    let ways = remote_access::forge::Ways {
        clients: &context.clients,
        identities: &context.identities,
        timeout: TIMEOUT,
    };
    let signed_in = remote_access::forge::sign_in(&gate.forge, &address, &reader, ways).await;
    let checks = signed_in.map_err(|error| failed(&error))?.checks(commit).await;
    let checks = checks.map_err(|error| failed(&error))?;
    let subject = format!("commit {}", commit.get(..7).unwrap_or(commit));
    if !has_expression {
        let named = |names: Vec<String>| {
            let rest = names.len().saturating_sub(MAX_NAMED);
            let names: Vec<_> = names.into_iter().take(MAX_NAMED).collect();
            let more = if rest > 0 {
                format!(" and {rest} more")
            } else {
                String::new()
            };
            format!("{}{more}", names.join(", "))
        };
        return match judge(&checks, &gate.checks) {
            Verdict::Passed => Ok((subject, Value::Null)),
            Verdict::Failed(names) => Err(Closed::False(format!("{subject}: {} failed", named(names)))),
            // Not over yet is no answer.
            Verdict::Waiting(names) => Err(Closed::Unknown(format!("{subject} waits for {}", named(names)))),
        };
    }
    Ok((subject, json!({"commit": commit, "statuses": by_name(checks)})))
}

/// Statuses as expressions have them.
fn by_name(checks: Vec<Check>) -> Value {
    let checks = checks.into_iter().take(MAX_STATUSES).map(|check| {
        let state = match check.state {
            State::Pending => "pending",
            State::Success => "success",
            State::Failure => "failure",
        };
        (
            check.name,
            json!({"state": state, "description": check.description}),
        )
    });
    Value::Object(checks.collect())
}

/// The commit of a repository that a release comes from: what it carries of that GitRepository, or the one by which the first environment has
/// it.
fn commit_of<'a>(release: &'a Release, repository: &str) -> Option<&'a str> {
    let field = Field::Reference(Reference::Commit);
    let carried = release
        .values
        .get(&format!("GitRepository/{repository}: {field}"));
    let revision = || {
        let (_, commit) = release.revision.as_ref()?.rsplit_once("@sha1:")?;
        Some(commit)
    };
    let commit = carried.map(String::as_str).or_else(revision)?;
    let is_commit = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then_some(commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commit_is_what_is_carried_or_what_the_first_environment_has() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let release = |revision: &str, carried: &str| -> Release {
            let mut release = Release {
                revision: Some(revision.to_owned()).filter(|revision| !revision.is_empty()),
                ..Release::default()
            };
            if !carried.is_empty() {
                let key = "GitRepository/shop: ref commit".to_owned();
                release.values.insert(key, carried.to_owned());
            }
            release
        };
        for (revision, carried, expected) in [
            (format!("main@sha1:{a}"), "", Some(&a)),
            (format!("main@sha1:{a}"), b.as_str(), Some(&b)),
            (String::new(), b.as_str(), Some(&b)),
            (format!("latest@sha256:{a}"), "", None),
            ("main@sha1:../../admin".to_owned(), "", None),
            (format!("main@sha1:{a}"), "../x", None),
            (String::new(), "", None),
        ] {
            let release = release(&revision, carried);
            assert_eq!(
                commit_of(&release, "shop"),
                expected.map(String::as_str),
                "{revision} {carried}"
            );
        }
        assert_eq!(
            commit_of(&release(&format!("main@sha1:{a}"), &b), "other"),
            Some(a.as_str())
        );
    }

    #[test]
    fn expressions_have_statuses_by_name() {
        let check = |name: &str, state: State| Check {
            name: name.to_owned(),
            state,
            description: "d".to_owned(),
        };
        let all = by_name(vec![
            check("ci/build", State::Success),
            check("e2e", State::Pending),
        ]);
        assert_eq!(all["ci/build"], json!({"state": "success", "description": "d"}));
        assert_eq!(all["e2e"]["state"], "pending");
    }
}
