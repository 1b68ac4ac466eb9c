//! Diagnoses one Pod from its status.

use serde_json::Value;

use super::cause::Kind;
use super::detail::DETAIL_LIMIT;
use super::event::Filter;
use crate::conditions;
use crate::fields::{integer_or, text_or};
use crate::text::one_line;

/// Problem of a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// How much it explains.
    pub(super) rank: Rank,
    /// Its class.
    pub(super) kind: Kind,
    /// The container that has it.
    pub(super) container: Option<String>,
    /// Goes on after `pod <name>`: starts with a space or a colon.
    pub(super) text: String,
    /// Which Warning events tell more; None when the status has told all.
    pub(super) explained_by: Option<Filter>,
    /// True if unbound claims may be behind it.
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

/// A probe that fails, which the status does not tell of.
const PROBE: Filter = Filter {
    reasons: &["Unhealthy"],
    containing: "",
};
/// Events with the registry's answer: a Pod that waits for its next try does not repeat it.
const PULL: Filter = Filter {
    reasons: &["Failed"],
    containing: "Failed to pull",
};

/// Exit codes of programs that the kubelet ended: SIGKILL and SIGTERM.
const ENDED_BY_SIGNAL: [i64; 2] = [137, 143];

/// Refines the class by an event.
pub(super) fn kind_of_event(kind: Kind, event: &Value) -> Kind {
    let kind = match text_or(event, "reason", "") {
        "Unhealthy" => Kind::Probe,
        "FailedMount" | "FailedAttachVolume" | "FailedMapVolume" => Kind::Volume,
        _ => kind,
    };
    kind.or_missing_config(text_or(event, "message", ""))
}

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
    let container = text_or(status, "name", "");
    let name = format!(" {role} {container}");
    let trouble = |kind, rank, text| Trouble {
        container: Some(container.to_owned()),
        ..plain(kind, rank, text)
    };
    let waiting = text_or(status, "state.waiting.reason", "");
    if waiting == "CrashLoopBackOff" {
        let restarts = integer_or(status, "restartCount", 0);
        let last = status.pointer("/lastState/terminated");
        let ended = last.map(|ended| exit(pod, status, ended)).unwrap_or_default();
        return Some(Trouble {
            explained_by: last.and_then(by_probe),
            ..trouble(
                last.map_or(Kind::Crash, kind_of_exit),
                Rank::Crashes,
                format!("{name}: {waiting} after {restarts} restarts{ended}"),
            )
        });
    }
    if !WAITS_ITS_TURN.contains(&waiting) {
        return Some(Trouble {
            container: Some(container.to_owned()),
            ..cannot_start(pod, &name, status, waiting)
        });
    }
    // Between two runs, or for good: the last run ended badly.
    let ended = ["/state/terminated", "/lastState/terminated"]
        .into_iter()
        .find_map(|path| status.pointer(path))?;
    let running_again =
        status.pointer("/state/running").is_some() && text_or(pod, "status.phase", "") == "Running";
    let failed = integer_or(ended, "exitCode", 0) != 0;
    (failed && !running_again).then(|| Trouble {
        explained_by: by_probe(ended),
        ..trouble(
            kind_of_exit(ended),
            Rank::Crashes,
            format!("{name}{}", exit(pod, status, ended)),
        )
    })
}

fn cannot_start(pod: &Value, name: &str, status: &Value, reason: &str) -> Trouble {
    let message = one_line(text_or(status, "state.waiting.message", ""), DETAIL_LIMIT);
    let image = image_of(pod, status);
    let of_image = reason.contains("Image") || reason == "RegistryUnavailable";
    let shown = if of_image && !message.contains(image) {
        format!(" (image {image})")
    } else {
        String::new()
    };
    let detail = if message.is_empty() {
        String::new()
    } else {
        format!(": {message}")
    };
    // Newer kubelets say why in the message itself.
    let is_silent =
        of_image && (message.is_empty() || message.starts_with("Back-off")) && !message.contains(": ");
    let kind = if of_image {
        Kind::ImagePull
    } else {
        Kind::ContainerConfig.or_missing_config(&message)
    };
    Trouble {
        explained_by: is_silent.then_some(PULL),
        ..plain(
            kind,
            Rank::CannotStart,
            format!("{name}: {reason}{shown}{detail}"),
        )
    }
}

/// The image as it was written: the status may hold a resolved one.
fn image_of<'a>(pod: &'a Value, status: &'a Value) -> &'a str {
    let written = written(pod, status).unwrap_or(status);
    text_or(written, "image", "")
}

/// The container of the Pod's spec that a status is of.
fn written<'a>(pod: &'a Value, status: &Value) -> Option<&'a Value> {
    let name = text_or(status, "name", "");
    let lists = ["/spec/containers", "/spec/initContainers"];
    let mut written = lists
        .into_iter()
        .filter_map(|path| pod.pointer(path)?.as_array())
        .flatten();
    written.find(|container| text_or(container, "name", "") == name)
}

/// Writes `: exit code 1 (Error): message` of a terminated state.
fn exit(pod: &Value, status: &Value, terminated: &Value) -> String {
    let code = integer_or(terminated, "exitCode", 0);
    let reason = text_or(terminated, "reason", "");
    let message = one_line(text_or(terminated, "message", ""), DETAIL_LIMIT);
    let mut text = match integer_or(terminated, "signal", 0) {
        0 => format!(": exit code {code}"),
        signal => format!(": signal {signal}"),
    };
    let limit =
        written(pod, status).and_then(|written| written.pointer("/resources/limits/memory")?.as_str());
    match (reason, limit) {
        ("", _) => {}
        ("OOMKilled", Some(limit)) => text.push_str(&format!(" ({reason}, memory limit {limit})")),
        (reason, _) => text.push_str(&format!(" ({reason})")),
    }
    if !message.is_empty() {
        text.push_str(&format!(": {message}"));
    }
    text
}

fn kind_of_exit(terminated: &Value) -> Kind {
    if text_or(terminated, "reason", "") == "OOMKilled" {
        Kind::OutOfMemory
    } else {
        Kind::Crash
    }
}

/// A container that the kubelet ended may have failed its liveness or startup probe.
fn by_probe(terminated: &Value) -> Option<Filter> {
    let killed = ENDED_BY_SIGNAL.contains(&integer_or(terminated, "exitCode", 0));
    (killed && kind_of_exit(terminated) == Kind::Crash).then_some(PROBE)
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
        plain(Kind::PodFailed, Rank::Ended, format!(": {reason}{detail}"))
    })
}

fn not_scheduled(pod: &Value) -> Option<Trouble> {
    let scheduled = conditions::find(pod, "PodScheduled").filter(|condition| condition.status == "False")?;
    let text = format!(
        ": {}",
        one_line(&scheduled.explained("not scheduled"), DETAIL_LIMIT)
    );
    Some(Trouble {
        asks_for_claims: true,
        ..plain(Kind::Unschedulable, Rank::NotScheduled, text)
    })
}

/// Waits for an init container; or for a sandbox, a volume, a Secret: only events say for which.
fn not_started(pod: &Value, phase: &str) -> Option<Trouble> {
    let running = containers(pod).find(|(_, status)| status.pointer("/state/running").is_some());
    if let Some((role, status)) = running.filter(|_| phase == "Pending") {
        let name = text_or(status, "name", "");
        let text = format!(" {role} {name}: still running");
        return Some(Trouble {
            container: Some(name.to_owned()),
            ..plain(Kind::NotStarted, Rank::NotStarted, text)
        });
    }
    let started = phase == "Running" || running.is_some();
    let waiting = containers(pod)
        .map(|(_, s)| text_or(s, "state.waiting.reason", ""))
        .find(|r| !r.is_empty());
    (!started).then(|| Trouble {
        explained_by: Some(Filter::ANY),
        asks_for_claims: true,
        ..plain(
            Kind::NotStarted,
            Rank::NotStarted,
            format!(": {}", waiting.unwrap_or("Pending")),
        )
    })
}

fn not_ready(pod: &Value, phase: &str) -> Option<Trouble> {
    if phase != "Running" {
        return None;
    }
    let unready = |(_, status): &(&str, &Value)| status.get("ready").and_then(Value::as_bool) == Some(false);
    let unready = containers(pod)
        .filter(|(role, _)| *role == "container")
        .find(unready);
    let Some((role, status)) = unready else {
        // All containers are ready: a readiness gate is not, and the condition names it.
        let ready = conditions::find(pod, "Ready").unwrap_or_default();
        let told = one_line(&ready.explained("running but not ready"), DETAIL_LIMIT);
        return Some(Trouble {
            explained_by: Some(PROBE),
            ..plain(Kind::NotReady, Rank::NotReady, format!(": {told}"))
        });
    };
    let name = text_or(status, "name", "");
    let (kind, before) = restarted(pod, status);
    Some(Trouble {
        container: Some(name.to_owned()),
        explained_by: Some(PROBE),
        ..plain(
            kind,
            Rank::NotReady,
            format!(" {role} {name}: running but not ready{before}"),
        )
    })
}

/// A container that crashes runs for a while each time.
fn restarted(pod: &Value, status: &Value) -> (Kind, String) {
    let restarts = integer_or(status, "restartCount", 0);
    let last = status
        .pointer("/lastState/terminated")
        .filter(|last| integer_or(last, "exitCode", 0) != 0);
    match last {
        Some(last) if restarts > 0 => {
            let ended = exit(pod, status, last);
            (kind_of_exit(last), format!(" after {restarts} restarts{ended}"))
        }
        _ => (Kind::NotReady, String::new()),
    }
}

fn plain(kind: Kind, rank: Rank, text: String) -> Trouble {
    Trouble {
        rank,
        kind,
        container: None,
        text,
        explained_by: None,
        asks_for_claims: false,
    }
}
