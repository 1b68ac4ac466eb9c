//! What is said of environments in the cluster: the condition's message, and events.

use std::collections::HashMap;

use api::delivery::{
    EnvironmentPolicy, EnvironmentTestState as TestState, RequestEnvironment,
    RequestEnvironmentState as State,
};
use api::meta::reasons;
use controller_kit::events::Severity;

use crate::context::Context;

/// Reasons of events about tests.
const TEST_SUCCEEDED: &str = "TestSucceeded";
const TEST_FAILED: &str = "TestFailed";

/// The environments, counted.
pub(super) fn summary(environments: &[RequestEnvironment]) -> String {
    let words = [
        (State::Failed, "failed"),
        (State::Pending, "pending"),
        (State::Ready, "ready"),
        (State::Waiting, "waiting"),
        (State::Expired, "expired"),
        (State::Tested, "tested"),
    ];
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for environment in environments {
        let word = words.iter().find(|(state, _)| *state == environment.state);
        *counts.entry(word.map_or("", |(_, word)| word)).or_default() += 1;
    }
    let parts = words
        .iter()
        .filter_map(|(_, word)| Some(format!("{} {word}", counts.get(word)?)));
    match parts.collect::<Vec<_>>().as_slice() {
        [] => "no pull request has an environment".to_owned(),
        parts => format!("environments: {}", parts.join(", ")),
    }
}

/// Publishes what became of environments and their tests.
pub(super) fn announce(
    object: &EnvironmentPolicy,
    before: &[RequestEnvironment],
    now: &[RequestEnvironment],
    context: &Context,
) {
    for environment in now {
        let known = before.iter().find(|known| {
            (known.number, &known.provider, &known.commit)
                == (environment.number, &environment.provider, &environment.commit)
        });
        let subject = format!("environment of pull request {}", environment.number);
        for (severity, reason, news) in [tested(known, environment), news(known, environment)]
            .into_iter()
            .flatten()
        {
            let text = format!("{subject} {news}");
            context
                .environments
                .writer
                .publish(object, severity, reason, &text);
        }
    }
}

type News = (Severity, &'static str, String);

fn news(known: Option<&RequestEnvironment>, now: &RequestEnvironment) -> Option<News> {
    if known.is_some_and(|known| (known.state, &known.message) == (now.state, &now.message)) {
        return None;
    }
    match now.state {
        State::Ready => Some((
            Severity::Info,
            reasons::RECONCILIATION_SUCCEEDED,
            format!("is ready at commit {}", now.commit),
        )),
        State::Failed => Some((
            Severity::Error,
            reasons::HEALTH_CHECK_FAILED,
            format!("failed: {}", now.message),
        )),
        State::Expired => Some((
            Severity::Info,
            reasons::PROGRESSING,
            "is removed: its time is over".to_owned(),
        )),
        State::Tested => Some((
            Severity::Info,
            reasons::PROGRESSING,
            "is removed: its test has ended".to_owned(),
        )),
        State::Pending | State::Waiting => None,
    }
}

fn tested(known: Option<&RequestEnvironment>, now: &RequestEnvironment) -> Option<News> {
    let test = now.test.as_ref()?;
    if known.is_some_and(|known| known.test.as_ref() == Some(test)) {
        return None;
    }
    match test.state {
        TestState::Running => None,
        TestState::Passed => Some((
            Severity::Info,
            TEST_SUCCEEDED,
            format!("passed its test at commit {}", now.commit),
        )),
        TestState::Failed => Some((
            Severity::Error,
            TEST_FAILED,
            format!("failed its test: {}", test.message),
        )),
    }
}

#[cfg(test)]
mod tests {
    use api::delivery::EnvironmentTestResult;

    use super::*;

    #[test]
    fn environments_are_counted_by_their_state() {
        let of = |state| RequestEnvironment {
            state,
            ..RequestEnvironment::default()
        };
        assert_eq!(summary(&[]), "no pull request has an environment");
        let all = [
            of(State::Ready),
            of(State::Waiting),
            of(State::Failed),
            of(State::Ready),
        ];
        assert_eq!(summary(&all), "environments: 1 failed, 2 ready, 1 waiting");
    }

    #[test]
    fn a_test_that_ends_is_news_once() {
        let of = |state| RequestEnvironment {
            state: State::Ready,
            test: Some(EnvironmentTestResult {
                state,
                message: "no".to_owned(),
            }),
            ..RequestEnvironment::default()
        };
        let (running, failed) = (of(TestState::Running), of(TestState::Failed));
        assert!(tested(None, &running).is_none());
        let (_, reason, text) = tested(Some(&running), &failed).unwrap();
        assert_eq!((reason, &*text), (TEST_FAILED, "failed its test: no"));
        assert!(tested(Some(&failed), &failed).is_none());
        assert!(news(Some(&running), &failed).is_none());
    }
}
