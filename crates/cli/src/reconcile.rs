//! `windlass reconcile`: asks for a reconcile now, and waits for what comes of it.

use std::time::Duration;

use clap::{ArgAction, Args};
use delivery_graph::object::{self, ready, text};
use delivery_graph::{one_line, request};
use manifest::ObjectId;
use serde_json::Value;

use crate::cluster::{self, Cluster, ClusterFlags, Failure, parse_timeout, print, select};
use crate::progress::Progress;

/// Command line of `reconcile`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// KIND/NAME, or KIND NAME
    #[arg(value_name = "OBJECT", required = true)]
    words: Vec<String>,

    /// Reconcile the source of the object first
    #[arg(long)]
    with_source: bool,

    /// Wait for the result
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "true")]
    wait: bool,

    /// Timeout per object
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_timeout)]
    timeout: Duration,

    /// HelmRelease: install or upgrade once, even if nothing changed
    #[arg(long)]
    force: bool,

    /// HelmRelease: reset the failure counts
    #[arg(long)]
    reset: bool,

    /// Do not show progress
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Asks, and waits.
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let target = select::one_target(&flags.words)?;
    if !target.kind.answers {
        let message = format!("{} are never reconciled by themselves", target.kind.plural);
        return Err(Failure::Usage(message));
    }
    if (flags.force || flags.reset) && target.kind.kind != "HelmRelease" {
        return Err(Failure::Usage(
            "--force and --reset are for HelmReleases".to_owned(),
        ));
    }
    cluster::run(&flags.cluster, async |cluster| {
        let root = target.id(&cluster.namespace);
        let mut line = vec![cluster.need(&root).await?];
        if flags.with_source {
            line = with_sources(&cluster, line).await?;
        }
        // Nothing is asked for before it is known that all of it can be.
        if let Some(suspended) = line.iter().find(|object| object::is_suspended(object)) {
            return Err(self::suspended(&object::id(suspended)));
        }
        let progress = Progress::new(flags.quiet);
        for object in line.iter().rev() {
            let id = object::id(object);
            let token = jiff::Timestamp::now().to_string();
            let asked = request::reconcile(&token, id == root && flags.force, id == root && flags.reset);
            cluster.merge(&id, "ask for a reconcile of", &asked).await?;
            progress.show(&format!("asked for a reconcile of {id}"));
            if flags.wait {
                let revision = answered(&cluster, &id, &token, flags.timeout, &progress).await?;
                progress.clear();
                print(&format!("{id} is ready{revision}\n"))?;
            }
        }
        Ok(())
    })
}

/// Nothing is done for an object that is suspended.
pub(crate) fn suspended(id: &ObjectId) -> Failure {
    let name = format!("{}/{}", id.kind.to_lowercase(), id.name);
    Failure::NotReady(format!(
        "{id} is suspended: `windlass resume {name} -n {}` first",
        id.namespace
    ))
}

/// The objects that content comes through, the first being the one that was asked for.
async fn with_sources(cluster: &Cluster, mut line: Vec<Value>) -> Result<Vec<Value>, Failure> {
    while let Some(source) = line.last().and_then(request::source_of) {
        if line.iter().any(|object| object::id(object) == source) {
            break;
        }
        line.push(cluster.need(&source).await?);
    }
    line.retain(request::is_answered);
    Ok(line)
}

/// Waits until the request is answered; says at which revision.
async fn answered(
    cluster: &Cluster,
    id: &ObjectId,
    token: &str,
    timeout: Duration,
    progress: &Progress,
) -> Result<String, Failure> {
    let is_new = |object: &Value| text(object, "/status/lastHandledReconcileAt") == token;
    settled(cluster, id, timeout, progress, is_new).await
}

/// Waits until an object is ready; says at which revision.
pub(crate) async fn ready_at(
    cluster: &Cluster,
    id: &ObjectId,
    timeout: Duration,
    progress: &Progress,
) -> Result<String, Failure> {
    settled(cluster, id, timeout, progress, |_| true).await
}

async fn settled(
    cluster: &Cluster,
    id: &ObjectId,
    timeout: Duration,
    progress: &Progress,
    is_new: impl Fn(&Value) -> bool,
) -> Result<String, Failure> {
    let mut last = "nothing was seen of it".to_owned();
    let said = cluster
        .watch_until(id, timeout, |object| {
            let Some(object) = object else {
                return Some(Err(Failure::NotReady(format!("{id} does not exist any more"))));
            };
            last = describe_state(object);
            match answer(object, is_new(object)) {
                Answer::Open => {
                    progress.show(&format!("waiting for {id}: {last}"));
                    None
                }
                Answer::Ready => Some(Ok(at_revision(object))),
                Answer::NotReady => Some(Err(Failure::NotReady(format!(
                    "{id} is not ready: {}",
                    describe_state(object)
                )))),
            }
        })
        .await;
    progress.clear();
    said?.unwrap_or_else(|| {
        let name = format!("{}/{}", id.kind.to_lowercase(), id.name);
        let timeout = api::meta::Duration::from(timeout);
        Err(Failure::TimedOut(format!(
            "{id} is not done after {timeout}: {last}; `windlass why {name} -n {}` says more",
            id.namespace
        )))
    })
}

/// Outcome of a request.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Open,
    Ready,
    NotReady,
}

/// Reads an answer. Controllers note the request before they are done with it, so what counts is what they say after that;
/// a failure that they will try again is an answer all the same.
fn answer(object: &Value, is_new: bool) -> Answer {
    if !is_new || !object::is_observed(object) || object::is_in_progress(object) {
        return Answer::Open;
    }
    match ready(object).status {
        "True" => Answer::Ready,
        "False" => Answer::NotReady,
        _ if object::is_stalled(object) => Answer::NotReady,
        _ => Answer::Open,
    }
}

fn describe_state(object: &Value) -> String {
    let condition = ready(object);
    match (condition.reason, condition.message) {
        ("", message) => one_line(message),
        (reason, message) => one_line(&format!("{reason}: {message}")),
    }
}

fn at_revision(object: &Value) -> String {
    match object::revision(object) {
        "" => String::new(),
        revision => format!(" at {revision}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(ready: &str, reconciling: Option<&str>) -> Value {
        let mut conditions = vec![json!({"type": "Ready", "status": ready, "observedGeneration": 1})];
        if let Some(reason) = reconciling {
            conditions.push(json!({"type": "Reconciling", "status": "True", "reason": reason}));
        }
        json!({"kind": "Kustomization", "metadata": {"generation": 1},
            "status": {"observedGeneration": 1, "conditions": conditions}})
    }

    #[test]
    fn an_answer_is_what_is_said_when_the_run_is_over() {
        for (ready, reconciling, expected) in [
            ("True", None, Answer::Ready),
            ("False", None, Answer::NotReady),
            ("Unknown", Some("Progressing"), Answer::Open),
            // What the last run said.
            ("False", Some("Progressing"), Answer::Open),
            ("False", Some("ProgressingWithRetry"), Answer::NotReady),
            ("Unknown", None, Answer::Open),
        ] {
            assert_eq!(
                answer(&object(ready, reconciling), true),
                expected,
                "{ready} {reconciling:?}"
            );
            assert_eq!(answer(&object(ready, reconciling), false), Answer::Open);
        }
    }
}
