//! What is wrong with one Pod, read from its status.

use serde_json::Value;

use super::DETAIL_LIMIT;
use crate::conditions;
use crate::fields::{integer_or, text_or};
use crate::text::one_line;

/// What is wrong with a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// How much it explains.
    pub(super) rank: Rank,
    /// Goes on after `pod <name>`: starts with a space or a colon.
    pub(super) text: String,
    /// The reasons of the Warning events that tell more; None when the status has told all.
    pub(super) explained_by: Option<&'static [&'static str]>,
    /// Whether unbound claims may be behind it.
    pub(super) asks_for_claims: bool,
}

/// Troubles, the most telling first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// A container cannot be started as it is written.
    CannotStart,
    /// A container starts and ends with an error.
    Crashes,
    /// The Pod as a whole was ended.
    Ended,
    /// No node takes it.
    NotScheduled,
    /// It waits for something outside, such as a volume.
    NotStarted,
    /// It runs, and is not ready.
    NotReady,
}

/// Waiting reasons of containers that have nothing wrong.
const WAITS_ITS_TURN: [&str; 3] = ["ContainerCreating", "PodInitializing", ""];

/// Finds what is wrong with a Pod; None when it is ready, has succeeded, or is being deleted.
pub(crate) fn trouble(pod: &Value) -> Option<Trouble> {
    let deleted = !text_or(pod, "metadata.deletionTimestamp", "").is_empty();
    let phase = text_or(pod, "status.phase", "");
    let ready =
        phase == "Running" && conditions::find(pod, "Ready").is_some_and(|ready| ready.status == "True");
    if deleted || phase == "Succeeded" || ready {
        return None;
    }
    worst_container(pod)
        .or_else(|| ended(pod, phase))
        .or_else(|| not_scheduled(pod))
        .or_else(|| not_started(pod, phase))
        .or_else(|| not_ready(pod, phase))
}

fn worst_container(pod: &Value) -> Option<Trouble> {
    containers(pod)
        .filter_map(|(role, status)| of_container(pod, role, status))
        .min_by_key(|trouble| trouble.rank)
}

fn containers(pod: &Value) -> impl Iterator<Item = (&'static str, &Value)> {
    [
        ("init container", "initContainerStatuses"),
        ("container", "containerStatuses"),
    ]
    .into_iter()
    .flat_map(|(role, field)| {
        let statuses = pod
            .get("status")
            .and_then(|status| status.get(field))
            .and_then(Value::as_array);
        statuses.into_iter().flatten().map(move |status| (role, status))
    })
}

fn of_container(pod: &Value, role: &str, status: &Value) -> Option<Trouble> {
    let name = format!(" {role} {}", text_or(status, "name", ""));
    let waiting = text_or(status, "state.waiting.reason", "");
    if waiting == "CrashLoopBackOff" {
        let restarts = integer_or(status, "restartCount", 0);
        let last = status
            .pointer("/lastState/terminated")
            .map(exit)
            .unwrap_or_default();
        return Some(plain(
            Rank::Crashes,
            format!("{name}: {waiting} after {restarts} restarts{last}"),
        ));
    }
    if !WAITS_ITS_TURN.contains(&waiting) {
        return Some(cannot_start(pod, &name, status, waiting));
    }
    // Between two runs, or for good: the last run ended badly.
    let ended = ["/state/terminated", "/lastState/terminated"]
        .into_iter()
        .find_map(|path| status.pointer(path))?;
    let running_again =
        status.pointer("/state/running").is_some() && text_or(pod, "status.phase", "") == "Running";
    let failed = integer_or(ended, "exitCode", 0) != 0;
    (failed && !running_again).then(|| plain(Rank::Crashes, format!("{name}{}", exit(ended))))
}

fn cannot_start(pod: &Value, name: &str, status: &Value, reason: &str) -> Trouble {
    let message = one_line(text_or(status, "state.waiting.message", ""), DETAIL_LIMIT);
    let image = image_of(pod, status);
    let of_image = (reason.contains("Image") || reason == "RegistryUnavailable") && !message.contains(image);
    let image = if of_image {
        format!(" (image {image})")
    } else {
        String::new()
    };
    let detail = if message.is_empty() {
        String::new()
    } else {
        format!(": {message}")
    };
    plain(Rank::CannotStart, format!("{name}: {reason}{image}{detail}"))
}

/// The image as it was written: the status may hold a resolved one.
fn image_of<'a>(pod: &'a Value, status: &'a Value) -> &'a str {
    let name = text_or(status, "name", "");
    let lists = ["/spec/containers", "/spec/initContainers"];
    let mut written = lists
        .into_iter()
        .filter_map(|path| pod.pointer(path)?.as_array())
        .flatten();
    let container = written.find(|container| text_or(container, "name", "") == name);
    container.map_or_else(
        || text_or(status, "image", ""),
        |container| text_or(container, "image", ""),
    )
}

/// Writes `: exit code 1 (Error): message` of a terminated state.
fn exit(terminated: &Value) -> String {
    let code = integer_or(terminated, "exitCode", 0);
    let reason = text_or(terminated, "reason", "");
    let message = one_line(text_or(terminated, "message", ""), DETAIL_LIMIT);
    let mut text = match integer_or(terminated, "signal", 0) {
        0 => format!(": exit code {code}"),
        signal => format!(": signal {signal}"),
    };
    if !reason.is_empty() {
        text.push_str(&format!(" ({reason})"));
    }
    if !message.is_empty() {
        text.push_str(&format!(": {message}"));
    }
    text
}

/// Evicted, preempted, past its deadline, or refused by the kubelet.
fn ended(pod: &Value, phase: &str) -> Option<Trouble> {
    let reason = text_or(pod, "status.reason", "");
    let message = one_line(text_or(pod, "status.message", ""), DETAIL_LIMIT);
    (phase == "Failed").then(|| {
        let reason = if reason.is_empty() { "Failed" } else { reason };
        let detail = if message.is_empty() {
            String::new()
        } else {
            format!(": {message}")
        };
        plain(Rank::Ended, format!(": {reason}{detail}"))
    })
}

fn not_scheduled(pod: &Value) -> Option<Trouble> {
    let scheduled = conditions::find(pod, "PodScheduled").filter(|condition| condition.status == "False")?;
    let text = format!(
        ": {}",
        one_line(&scheduled.explained("not scheduled"), DETAIL_LIMIT)
    );
    Some(Trouble {
        rank: Rank::NotScheduled,
        text,
        explained_by: None,
        asks_for_claims: true,
    })
}

/// Waits for an init container; or for a sandbox, a volume, a Secret: only events say for which.
fn not_started(pod: &Value, phase: &str) -> Option<Trouble> {
    let running = containers(pod).find(|(_, status)| status.pointer("/state/running").is_some());
    if let Some((role, status)) = running.filter(|_| phase == "Pending") {
        let text = format!(" {role} {}: still running", text_or(status, "name", ""));
        return Some(plain(Rank::NotStarted, text));
    }
    let started = phase == "Running" || running.is_some();
    let waiting = containers(pod)
        .map(|(_, s)| text_or(s, "state.waiting.reason", ""))
        .find(|r| !r.is_empty());
    (!started).then(|| Trouble {
        rank: Rank::NotStarted,
        text: format!(": {}", waiting.unwrap_or("Pending")),
        explained_by: Some(&[]),
        asks_for_claims: true,
    })
}

fn not_ready(pod: &Value, phase: &str) -> Option<Trouble> {
    if phase != "Running" {
        return None;
    }
    let unready = |(_, status): &(&str, &Value)| status.get("ready").and_then(Value::as_bool) == Some(false);
    let text = match containers(pod)
        .filter(|(role, _)| *role == "container")
        .find(unready)
    {
        Some((role, status)) => format!(" {role} {}: running but not ready", text_or(status, "name", "")),
        // All containers are ready: a readiness gate is not, and the condition names it.
        None => {
            let ready = conditions::find(pod, "Ready").unwrap_or_default();
            format!(
                ": {}",
                one_line(&ready.explained("running but not ready"), DETAIL_LIMIT)
            )
        }
    };
    Some(Trouble {
        rank: Rank::NotReady,
        text,
        explained_by: Some(&["Unhealthy"]),
        asks_for_claims: false,
    })
}

fn plain(rank: Rank, text: String) -> Trouble {
    Trouble {
        rank,
        text,
        explained_by: None,
        asks_for_claims: false,
    }
}
