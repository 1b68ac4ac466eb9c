//! Environments of pull requests: which may be there by an EnvironmentPolicy, and where they are found. Pure.

use std::time::Duration;

use api::delivery::{RequestEnvironment, RequestEnvironmentState as State};
use api::flux_operator::AnyMap;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;
use url::Url;

use crate::template::{Bounds, Text, render_all};

/// More pull requests have no environment: a status has to hold them.
pub const MAX: usize = 500;

/// Bytes of an address.
const MAX_ADDRESS: usize = 2048;

/// An open pull request, as a provider's inputs say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Name of the provider.
    pub provider: String,
    /// Its number.
    pub number: u64,
    /// The commit of its branch.
    pub commit: String,
}

impl Request {
    /// Reads a set of inputs of this provider; None if it is not that of a pull request.
    pub fn of(provider: &str, set: &AnyMap) -> Option<Self> {
        let number = match set.get("id")? {
            Value::String(text) => text.parse().ok()?,
            other => other.as_u64()?,
        };
        Some(Self {
            provider: provider.to_owned(),
            number,
            commit: set.get("sha")?.as_str()?.to_owned(),
        })
    }

    fn is_of(&self, environment: &RequestEnvironment) -> bool {
        (environment.number, &environment.provider) == (self.number, &self.provider)
    }
}

/// How many environments there may be, and for how long.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// How many at a time.
    pub max: Option<usize>,
    /// How long after a commit was seen first.
    pub expires_after: Option<Duration>,
}

impl Limits {
    /// When the environment of a commit that was seen then expires.
    pub fn expiry(&self, since: Timestamp) -> Option<Timestamp> {
        let after = SignedDuration::try_from(self.expires_after?).ok()?;
        since.checked_add(after).ok()
    }
}

/// Returns whether the state is that of an environment that may be there.
pub fn is_admitted(state: State) -> bool {
    matches!(state, State::Pending | State::Ready | State::Failed)
}

/// Returns whether the environment was removed for good at this commit.
pub fn is_over(state: State) -> bool {
    matches!(state, State::Expired | State::Tested)
}

/// Returns whether a pull request may have its environment, by what an EnvironmentPolicy recorded.
pub fn admits(recorded: &[RequestEnvironment], request: &Request) -> bool {
    recorded
        .iter()
        .any(|environment| request.is_of(environment) && is_admitted(environment.state))
}

/// Decides which pull requests have an environment. Those that have one keep it; the others follow by their numbers.
pub fn admit(
    recorded: &[RequestEnvironment],
    requests: &[Request],
    limits: Limits,
    now: Timestamp,
) -> Vec<RequestEnvironment> {
    let mut environments: Vec<_> = requests
        .iter()
        .take(MAX)
        .map(|request| followed(recorded, request, limits, now))
        .collect();
    let mut order: Vec<_> = (0..environments.len())
        .filter(|&place| !is_over(environments[place].state))
        .collect();
    order.sort_by_key(|&place| {
        let environment = &environments[place];
        let has_one = recorded.iter().any(|known| {
            (known.number, &known.provider) == (environment.number, &environment.provider)
                && is_admitted(known.state)
        });
        (!has_one, environment.number, environment.provider.clone())
    });
    let max = limits.max.unwrap_or(usize::MAX);
    for (turn, place) in order.into_iter().enumerate() {
        let environment = &mut environments[place];
        if turn >= max {
            environment.state = State::Waiting;
            environment.message = format!(
                "{max} of {max} environments are there; {} before it",
                waiting(turn - max)
            );
        } else if environment.state == State::Waiting {
            environment.state = State::Pending;
            environment.message.clear();
            // It has not been there yet.
            environment.since = Some(Time(now));
        }
    }
    environments.sort_by(|one, other| (&one.provider, one.number).cmp(&(&other.provider, other.number)));
    environments
}

fn waiting(before: usize) -> String {
    match before {
        0 => "none waits".to_owned(),
        1 => "1 waits".to_owned(),
        more => format!("{more} wait"),
    }
}

/// The record of a pull request, as far as its commit and the time decide it.
fn followed(
    recorded: &[RequestEnvironment],
    request: &Request,
    limits: Limits,
    now: Timestamp,
) -> RequestEnvironment {
    let known = recorded.iter().find(|known| request.is_of(known));
    let same = known.filter(|known| known.commit == request.commit);
    let since = same
        .and_then(|same| same.since.as_ref())
        .map_or(now, |since| since.0);
    let has_waited = same.is_some_and(|same| same.state == State::Waiting);
    let is_late = !has_waited && limits.expiry(since).is_some_and(|end| end <= now);
    let (state, message) = match same {
        Some(same) if same.state == State::Tested => (State::Tested, String::new()),
        _ if is_late => (State::Expired, String::new()),
        Some(same) if same.state != State::Expired => (same.state, same.message.clone()),
        _ => (State::Pending, String::new()),
    };
    RequestEnvironment {
        provider: request.provider.clone(),
        number: request.number,
        commit: request.commit.clone(),
        state,
        message,
        address: known.map(|known| known.address.clone()).unwrap_or_default(),
        test: same.and_then(|same| same.test.clone()),
        since: Some(Time(since)),
        said: known.map(|known| known.said.clone()).unwrap_or_default(),
    }
}

/// Renders the address of each set of inputs. What is no http or https URL without a login becomes empty: a title can be part of it.
///
/// # Errors
/// When the template cannot be carried out, in the words of Go's engine.
pub fn addresses(template: &str, sets: &[AnyMap]) -> Result<Vec<String>, String> {
    let made = lines("address", template, sets)?.into_iter();
    Ok(made.map(|line| address(&line).unwrap_or_default()).collect())
}

/// Renders a line for each set of inputs.
///
/// # Errors
/// When the template cannot be carried out, in the words of Go's engine.
pub fn lines(name: &str, template: &str, sets: &[AnyMap]) -> Result<Vec<String>, String> {
    let mut lines = vec![String::new(); sets.len()];
    let text = Text {
        name: name.to_owned(),
        text: template.to_owned(),
    };
    render_all(&[text], sets, Bounds::LINES, |_, place, made| {
        lines[place] = made.trim().to_owned();
        Ok(())
    })?;
    Ok(lines)
}

fn address(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let is_plain =
        matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
    // A URL of this kind has no spaces, angle brackets or line breaks left.
    Some(url.to_string()).filter(|text| is_plain && text.len() <= MAX_ADDRESS)
}

#[cfg(test)]
mod tests {
    use api::delivery::EnvironmentTestResult;
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn requests(commits: &[(u64, &str)]) -> Vec<Request> {
        let requests = commits.iter().map(|&(number, commit)| Request {
            provider: "requests".to_owned(),
            number,
            commit: commit.to_owned(),
        });
        requests.collect()
    }

    fn states(environments: &[RequestEnvironment]) -> Vec<(u64, State)> {
        let states = environments
            .iter()
            .map(|environment| (environment.number, environment.state));
        states.collect()
    }

    fn limits(max: Option<usize>, seconds: Option<u64>) -> Limits {
        Limits {
            max,
            expires_after: seconds.map(Duration::from_secs),
        }
    }

    #[test]
    fn those_that_are_there_stay_and_the_others_follow_by_number() {
        let two = limits(Some(2), None);
        let first = admit(&[], &requests(&[(3, "a"), (9, "b")]), two, at(0));
        assert_eq!(states(&first), [(3, State::Pending), (9, State::Pending)]);
        let more = requests(&[(1, "c"), (2, "d"), (3, "a"), (9, "b")]);
        let second = admit(&first, &more, two, at(1));
        assert_eq!(
            states(&second),
            [
                (1, State::Waiting),
                (2, State::Waiting),
                (3, State::Pending),
                (9, State::Pending)
            ]
        );
        assert_eq!(
            second[1].message,
            "2 of 2 environments are there; 1 waits before it"
        );
        assert!(admits(&second, &more[2]) && !admits(&second, &more[0]));
        // One goes: the first of those that wait has its turn, also after another push.
        let third = admit(&second, &requests(&[(1, "e"), (2, "d"), (9, "b")]), two, at(2));
        assert_eq!(
            states(&third),
            [(1, State::Pending), (2, State::Waiting), (9, State::Pending)]
        );
        assert_eq!(third[0].message, "");
    }

    #[test]
    fn an_environment_expires_after_its_last_commit_and_comes_back_with_another() {
        let short = limits(Some(1), Some(60));
        let one = requests(&[(1, "a"), (2, "b")]);
        let first = admit(&[], &one, short, at(0));
        let mut first = admit(&first, &one, short, at(59));
        first[0].state = State::Ready;
        assert_eq!(states(&first), [(1, State::Ready), (2, State::Waiting)]);
        let over = admit(&first, &one, short, at(60));
        // The time of the other begins with its turn.
        assert_eq!(states(&over), [(1, State::Expired), (2, State::Pending)]);
        let over = admit(&over, &one, short, at(119));
        assert_eq!(states(&over), [(1, State::Expired), (2, State::Pending)]);
        let over = admit(&over, &one, short, at(120));
        assert_eq!(states(&over), [(1, State::Expired), (2, State::Expired)]);
        let pushed = requests(&[(1, "c"), (2, "b")]);
        let back = admit(&over, &pushed, short, at(130));
        assert_eq!(states(&back), [(1, State::Pending), (2, State::Expired)]);
        // Its label was removed, and set again.
        let without = admit(&back, &requests(&[(1, "c")]), short, at(131));
        let again = admit(&without, &pushed, limits(None, Some(60)), at(132));
        assert_eq!(states(&again), [(1, State::Pending), (2, State::Pending)]);
        // A longer time counts for those that are over, too.
        let longer = admit(&over, &one, limits(None, Some(3600)), at(133));
        assert_eq!(states(&longer), [(1, State::Pending), (2, State::Pending)]);
    }

    #[test]
    fn what_was_tested_stays_away_until_the_next_push() {
        let mut first = admit(
            &[],
            &requests(&[(1, "a"), (2, "b")]),
            limits(Some(1), Some(60)),
            at(0),
        );
        first[0].state = State::Tested;
        first[0].test = Some(EnvironmentTestResult::default());
        let one = limits(Some(1), Some(60));
        let second = admit(&first, &requests(&[(1, "a"), (2, "b")]), one, at(100));
        assert_eq!(states(&second), [(1, State::Tested), (2, State::Pending)]);
        assert!(second[0].test.is_some());
        let third = admit(&second, &requests(&[(1, "c")]), one, at(101));
        assert_eq!(
            (states(&third), third[0].test.clone()),
            (vec![(1, State::Pending)], None)
        );
    }

    #[test]
    fn a_push_is_pending_again_and_keeps_what_was_said() {
        let mut first = admit(&[], &requests(&[(1, "a")]), Limits::default(), at(0));
        first[0].state = State::Failed;
        first[0].message = "no".to_owned();
        first[0].said = "digest".to_owned();
        let same = admit(&first, &requests(&[(1, "a")]), Limits::default(), at(1));
        assert_eq!(same, first);
        let pushed = admit(&first, &requests(&[(1, "b")]), Limits::default(), at(2));
        assert_eq!((pushed[0].state, &*pushed[0].message), (State::Pending, ""));
        assert_eq!(
            (&*pushed[0].said, pushed[0].since.clone()),
            ("digest", Some(Time(at(2))))
        );
    }

    #[test]
    fn inputs_of_pull_requests_are_recognized() {
        let set = |value: Value| match value {
            Value::Object(set) => set,
            _ => AnyMap::new(),
        };
        let request = Request::of("p", &set(json!({"id": "7", "sha": "a"}))).unwrap();
        assert_eq!((request.number, &*request.commit), (7, "a"));
        assert!(Request::of("p", &set(json!({"id": 7, "sha": "a"}))).is_some());
        for other in [
            json!({"id": "x", "sha": "a"}),
            json!({"id": "7"}),
            json!({"sha": "a"}),
        ] {
            assert_eq!(Request::of("p", &set(other)), None);
        }
    }

    #[test]
    fn an_address_is_a_web_address_or_nothing() {
        let sets = [json!({"title": "a b"}), json!({"title": "x\u{a0}> @all"})];
        let sets: Vec<AnyMap> = serde_json::from_value(json!(sets)).unwrap();
        let made = addresses("https://example.com/<< inputs.title >>", &sets).unwrap();
        assert_eq!(
            made,
            [
                "https://example.com/a%20b",
                "https://example.com/x%C2%A0%3E%20@all"
            ]
        );
        for bad in [
            "javascript:alert(1)",
            "<< inputs.title >>",
            "https://me:secret@example.com/",
        ] {
            assert_eq!(addresses(bad, &sets[..1]).unwrap(), [""]);
        }
        assert!(addresses("<< inputs.nothing >>", &sets).is_err());
        let endless = "<< range until 10000 >><< range until 10000 >>x<< end >><< end >>";
        assert!(addresses(endless, &sets).is_err());
    }
}
