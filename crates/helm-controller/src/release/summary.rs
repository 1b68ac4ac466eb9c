//! Ready, as the conditions of a release have it together.

use api::meta::condition_types::{READY, RELEASED, REMEDIATED, STALLED, TEST_SUCCESS};
use api::meta::{Condition, FALSE, TRUE, UNKNOWN};
use controller_kit::conditions::Fact;

use super::ledger::Ledger;
use super::policy;

/// Makes Ready of Remediated, TestSuccess and Released: the first of them, of the newest generation, counts.
///
/// Not the object's generation: a new one that asks for no new revision is ready because of an older one.
pub(super) fn summarize(ledger: &mut Ledger<'_>) {
    let tests = policy::tests(ledger.object);
    if !tests {
        ledger.remove(TEST_SUCCESS);
    }
    let counts_tests = tests && !policy::tests_may_fail(ledger.object);
    let Some(first) = first(&ledger.status.conditions, counts_tests) else {
        return;
    };
    // What was remedied had failed.
    let status = if first.type_ == REMEDIATED {
        FALSE
    } else {
        known(&first.status)
    };
    let fact = Fact {
        type_: READY.to_owned(),
        status,
        reason: first.reason.clone(),
        message: first.message.clone(),
    };
    if status == TRUE {
        ledger.remove(STALLED);
    }
    ledger.state(fact);
}

/// The condition that counts. Without any of the three it is the first of all.
fn first(conditions: &[Condition], counts_tests: bool) -> Option<&Condition> {
    let rank = |condition: &Condition| match condition.type_.as_str() {
        REMEDIATED => Some(0),
        TEST_SUCCESS if counts_tests => Some(1),
        RELEASED => Some(2),
        _ => None,
    };
    // Which goes first depends on which stood first where neither goes before the other, as in a stable sort by insertion.
    let mut sorted: Vec<(i32, &Condition)> = Vec::new();
    for condition in conditions {
        let Some(rank) = rank(condition) else {
            continue;
        };
        let before =
            |(other, than): &(i32, &Condition)| generation(condition) >= generation(than) && rank < *other;
        let position = sorted.iter().rposition(|other| !before(other));
        sorted.insert(position.map_or(0, |position| position + 1), (rank, condition));
    }
    sorted
        .first()
        .map(|(_, condition)| *condition)
        .or_else(|| conditions.first())
}

fn generation(condition: &Condition) -> i64 {
    condition.observed_generation.unwrap_or_default()
}

fn known(status: &str) -> &'static str {
    match status {
        TRUE => TRUE,
        FALSE => FALSE,
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::super::testing::object;
    use super::*;

    /// The type that counts, of conditions with a generation each, in the order in which they are set.
    fn counting(conditions: &[(&str, &'static str, i64)], spec: &serde_json::Value) -> (String, String) {
        let mut object = object(spec);
        let mut status = api::helm::HelmReleaseStatus::default();
        for (type_, holds, generation) in conditions {
            object.metadata.generation = Some(*generation);
            let mut ledger = Ledger::new(&object, &mut status, Timestamp::UNIX_EPOCH);
            ledger.state(Fact {
                type_: (*type_).to_owned(),
                status: holds,
                reason: (*type_).to_owned(),
                message: String::new(),
            });
        }
        let mut ledger = Ledger::new(&object, &mut status, Timestamp::UNIX_EPOCH);
        summarize(&mut ledger);
        let ready = status
            .conditions
            .iter()
            .find(|condition| condition.type_ == READY)
            .unwrap();
        (ready.reason.clone(), ready.status.clone())
    }

    #[test]
    fn what_was_remedied_is_not_ready_and_old_news_do_not_count() {
        let tested = json!({"test": {"enable": true}});
        let lenient = json!({"test": {"enable": true, "ignoreFailures": true}});
        for (conditions, spec, expected) in [
            (&[(RELEASED, TRUE, 1)][..], &tested, (RELEASED, TRUE)),
            (
                &[(RELEASED, FALSE, 1), (REMEDIATED, TRUE, 1)],
                &tested,
                (REMEDIATED, FALSE),
            ),
            (
                &[(REMEDIATED, TRUE, 1), (RELEASED, TRUE, 2)],
                &tested,
                (RELEASED, TRUE),
            ),
            (
                &[(RELEASED, TRUE, 1), (TEST_SUCCESS, FALSE, 1)],
                &tested,
                (TEST_SUCCESS, FALSE),
            ),
            (
                &[(RELEASED, TRUE, 1), (TEST_SUCCESS, UNKNOWN, 1)],
                &tested,
                (TEST_SUCCESS, UNKNOWN),
            ),
            (
                &[(RELEASED, TRUE, 1), (TEST_SUCCESS, FALSE, 1)],
                &lenient,
                (RELEASED, TRUE),
            ),
            (
                &[(RELEASED, TRUE, 1), (TEST_SUCCESS, FALSE, 1)],
                &json!({}),
                (RELEASED, TRUE),
            ),
        ] {
            let (reason, status) = counting(conditions, spec);
            assert_eq!((reason.as_str(), status.as_str()), expected, "{conditions:?}");
        }
    }

    /// Go's stable sort of a list as short as this, by exchanging neighbours, with Flux's order.
    fn sorted_by_go(mut conditions: Vec<(usize, i64)>) -> usize {
        let less = |left: (usize, i64), right: (usize, i64)| left.1 >= right.1 && left.0 < right.0;
        for end in 1..conditions.len() {
            let mut at = end;
            while at > 0 && less(conditions[at], conditions[at - 1]) {
                conditions.swap(at, at - 1);
                at -= 1;
            }
        }
        conditions[0].0
    }

    #[test]
    fn whatever_the_generations_are_it_counts_what_flux_counts() {
        let types = [REMEDIATED, TEST_SUCCESS, RELEASED];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            for generations in 0..27 {
                let generation = |rank: usize| 1 + generations / 3_i64.pow(u32::try_from(rank).unwrap()) % 3;
                let conditions = order.map(|rank| (rank, generation(rank)));
                let written = conditions.map(|(rank, generation)| Condition {
                    type_: types[rank].to_owned(),
                    status: TRUE.to_owned(),
                    observed_generation: Some(generation),
                    last_transition_time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
                        Timestamp::UNIX_EPOCH,
                    ),
                    reason: String::new(),
                    message: String::new(),
                });
                let counts = &first(&written, true).unwrap().type_;
                assert_eq!(counts, types[sorted_by_go(conditions.to_vec())], "{conditions:?}");
            }
        }
    }
}
