//! What pull requests say of their environments: a comment that is kept up to date, and a commit status.
//!
//! Messages of objects are left out where pull requests may be from forks: their authors need not be allowed to see them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api::delivery::{
    EnvironmentPolicy, EnvironmentTestState as TestState, RequestEnvironment,
    RequestEnvironmentState as State,
};
use api::flux_operator::ResourceSetInputProvider;
use forge::Forge;
use forge::check::{State as CommitState, Status};
use forge::comment::Comment;
use forge::markdown::code;
use kube::ResourceExt as _;
use kube::runtime::reflector::ObjectRef;
use resource_set::environment::{Limits, is_over};
use sha2::{Digest as _, Sha256};

use crate::context::Context;
use crate::provider::git;

/// Longest time for a request to the Git service.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The repositories of a policy's pull requests, each opened once.
pub(super) struct Forges<'a> {
    object: &'a EnvironmentPolicy,
    context: &'a Context,
    opened: HashMap<String, Result<Arc<Place>, String>>,
}

struct Place {
    forge: Forge<'static>,
    shows_messages: bool,
}

impl<'a> Forges<'a> {
    pub(super) fn new(object: &'a EnvironmentPolicy, context: &'a Context) -> Self {
        Self {
            object,
            context,
            opened: HashMap::new(),
        }
    }

    /// Says what became of environments, as far as it has not been said. One that fails does not keep the others from it.
    pub(super) async fn report(
        &mut self,
        gone: &[&RequestEnvironment],
        environments: &mut [RequestEnvironment],
        limits: Limits,
    ) -> Result<(), String> {
        let mut problem = None;
        for environment in environments {
            if let Err(error) = self.say(environment, limits).await {
                let number = environment.number;
                problem.get_or_insert_with(|| format!("failed to report on pull request {number}: {error}"));
            }
        }
        for environment in gone {
            self.say_gone(environment).await;
        }
        problem.map_or(Ok(()), Err)
    }

    /// Says how an environment is, unless that has been said.
    async fn say(&mut self, environment: &mut RequestEnvironment, limits: Limits) -> Result<(), String> {
        let policy = self.object;
        let said = digest(environment, policy);
        if environment.said == said {
            return Ok(());
        }
        let place = self.place(&environment.provider).await?;
        let text = Text::new(environment, limits, place.shows_messages);
        if policy.spec.comment.unwrap_or(true) {
            self.comment(&place, environment.number, &text).await?;
        }
        if policy.spec.commit_status.unwrap_or(true) {
            let own = commit_state(environment.state).map(|state| ("environment", state, text.line.as_str()));
            let test = environment.test.as_ref().map(|test| match test.state {
                TestState::Running => ("environment-test", CommitState::Pending, "running"),
                TestState::Passed => ("environment-test", CommitState::Success, "passed"),
                TestState::Failed => ("environment-test", CommitState::Failure, "failed"),
            });
            for status in own.into_iter().chain(test) {
                self.status(&place, environment, status).await?;
            }
        }
        environment.said = said;
        Ok(())
    }

    /// Says that a pull request has no environment any more, if anything was said of it. It may be closed, and the Git service need not
    /// take it.
    async fn say_gone(&mut self, environment: &RequestEnvironment) {
        let was_there = !environment.said.is_empty() && !is_over(environment.state);
        if !was_there || !self.object.spec.comment.unwrap_or(true) {
            return;
        }
        let said = match self.place(&environment.provider).await {
            Ok(place) => self.comment(&place, environment.number, &Text::gone()).await,
            Err(error) => Err(error),
        };
        if let Err(error) = said {
            tracing::info!(
                number = environment.number,
                error,
                "the pull request does not say that its environment is gone"
            );
        }
    }

    async fn status(
        &self,
        place: &Place,
        environment: &RequestEnvironment,
        (what, state, description): (&str, CommitState, &str),
    ) -> Result<(), String> {
        let (namespace, name) = (
            self.object.namespace().unwrap_or_default(),
            self.object.name_any(),
        );
        let name = format!("windlass/{what}/{namespace}/{name}");
        let status = Status {
            commit: &environment.commit,
            name: &name,
            state,
            description,
            url: &environment.address,
        };
        let set = place.forge.set_status(status, &name).await;
        set.map_err(|error| error.to_string())
    }

    async fn comment(&self, place: &Place, number: u64, text: &Text) -> Result<(), String> {
        let marker = format!(
            "<!-- windlass-environment:{} -->",
            self.object.uid().unwrap_or_default()
        );
        let body = format!("{marker}\n### Environment: {}\n\n{}", text.line, text.body);
        let comment = Comment {
            marker: &marker,
            body: &body,
        };
        let kept = place.forge.keep_comment(number, comment).await;
        kept.map_err(|error| error.to_string())
    }

    async fn place(&mut self, provider: &str) -> Result<Arc<Place>, String> {
        if let Some(known) = self.opened.get(provider) {
            return known.clone();
        }
        let opened = self.open(provider).await;
        self.opened.insert(provider.to_owned(), opened.clone());
        opened
    }

    async fn open(&self, name: &str) -> Result<Arc<Place>, String> {
        let namespace = self.object.namespace().unwrap_or_default();
        let at = ObjectRef::<ResourceSetInputProvider>::new(name).within(&namespace);
        let provider = self.context.providers.cache.get(&at);
        let provider = provider.ok_or_else(|| format!("the ResourceSetInputProvider '{name}' is gone"))?;
        let opened = git::open(&provider, TIMEOUT, self.context).await;
        Ok(Arc::new(Place {
            forge: opened.map_err(|error| error_chain::chain(&error))?,
            shows_messages: git::ignores_forks(&provider),
        }))
    }
}

/// Digest of what there is to say, and how.
fn digest(environment: &RequestEnvironment, policy: &EnvironmentPolicy) -> String {
    let parts = serde_json::json!([
        environment.commit,
        environment.state,
        environment.message,
        environment.address,
        environment.test,
        policy.spec.comment,
        policy.spec.commit_status,
        policy.spec.expires_after,
    ]);
    hex::encode(&Sha256::digest(parts.to_string())[..8])
}

/// What requires the commit status must not let a failed environment through; one that is over says nothing new.
fn commit_state(state: State) -> Option<CommitState> {
    match state {
        State::Pending | State::Waiting => Some(CommitState::Pending),
        State::Ready => Some(CommitState::Success),
        State::Failed => Some(CommitState::Failure),
        State::Expired | State::Tested => None,
    }
}

/// What is said of an environment. Pure.
#[derive(Debug, PartialEq, Eq)]
struct Text {
    /// How it is, in words.
    line: String,
    /// The rest, in Markdown.
    body: String,
}

impl Text {
    fn new(environment: &RequestEnvironment, limits: Limits, shows_messages: bool) -> Self {
        let commit = code(&environment.commit.chars().take(12).collect::<String>());
        let address = match environment.address.as_str() {
            "" => String::new(),
            address => format!("<{address}>\n\n"),
        };
        let since = environment.since.as_ref().map(|since| since.0);
        let end = match since.and_then(|since| limits.expiry(since)) {
            Some(end) => format!(" It stays until {}.", end.strftime("%Y-%m-%d %H:%M UTC")),
            None => String::new(),
        };
        let (line, body) = match environment.state {
            State::Pending => (
                "being made",
                format!("{address}Commit {commit} is being deployed.{end}\n"),
            ),
            State::Ready => (
                "ready",
                format!("{address}Commit {commit} is deployed, and all objects are healthy.{end}\n"),
            ),
            State::Failed if shows_messages => (
                "failed",
                format!(
                    "{address}Commit {commit} is not healthy: {}\n",
                    code(&environment.message)
                ),
            ),
            State::Failed => (
                "failed",
                format!(
                    "{address}Commit {commit} is not healthy. The status of the EnvironmentPolicy says why.\n"
                ),
            ),
            State::Waiting => (
                "waiting",
                format!(
                    "As many environments as there may be exist. Commit {commit} is deployed when another goes.\n"
                ),
            ),
            State::Tested => (
                "removed",
                "It was there for its test only. Another push brings it back.\n".to_owned(),
            ),
            State::Expired => (
                "removed",
                "Its time is over. Another push brings it back, as does its label, removed and set again.\n"
                    .to_owned(),
            ),
        };
        let test = environment.test.as_ref().map(|test| match test.state {
            TestState::Running => "\nIts test runs.\n".to_owned(),
            TestState::Passed => "\nIts test passed.\n".to_owned(),
            TestState::Failed if shows_messages => format!("\nIts test failed: {}\n", code(&test.message)),
            TestState::Failed => {
                "\nIts test failed. The status of the EnvironmentPolicy says why.\n".to_owned()
            }
        });
        Self {
            line: line.to_owned(),
            body: body + &test.unwrap_or_default(),
        }
    }

    fn gone() -> Self {
        Self {
            line: "removed".to_owned(),
            body: "The pull request is closed, or asks for no environment any more.\n".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn environment(state: State) -> RequestEnvironment {
        RequestEnvironment {
            commit: "0123456789abcdef".to_owned(),
            state,
            message: "Deployment/a/b `x`\n@all password".to_owned(),
            address: "https://pr-7.example.com/".to_owned(),
            since: Some(Time(Timestamp::UNIX_EPOCH)),
            ..RequestEnvironment::default()
        }
    }

    #[test]
    fn a_ready_environment_says_where_it_is_and_until_when() {
        let limits = Limits {
            max: None,
            expires_after: Some(Duration::from_hours(72)),
        };
        let text = Text::new(&environment(State::Ready), limits, false);
        assert_eq!(text.line, "ready");
        assert_eq!(
            text.body,
            "<https://pr-7.example.com/>\n\nCommit `0123456789ab` is deployed, and all objects are healthy. \
             It stays until 1970-01-04 00:00 UTC.\n"
        );
    }

    #[test]
    fn messages_are_code_and_not_for_strangers() {
        let of = |shows| Text::new(&environment(State::Failed), Limits::default(), shows).body;
        assert!(
            of(true).ends_with("is not healthy: `Deployment/a/b  x  @all password`\n"),
            "{}",
            of(true)
        );
        assert!(!of(false).contains("password"));
    }

    #[test]
    fn what_is_said_is_said_again_when_it_changes() {
        let policy = EnvironmentPolicy::default();
        let ready = environment(State::Ready);
        let known = digest(&ready, &policy);
        assert_eq!(digest(&ready.clone(), &policy), known);
        let later = RequestEnvironment {
            commit: "b".to_owned(),
            ..ready.clone()
        };
        assert_ne!(digest(&later, &policy), known);
        assert_ne!(digest(&environment(State::Failed), &policy), known);
        // What was said last is no part of it.
        let said = RequestEnvironment {
            said: known.clone(),
            ..ready
        };
        assert_eq!(digest(&said, &policy), known);
    }
}
