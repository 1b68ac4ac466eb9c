//! Deliveries as CDEvents 0.4, for other tools of continuous delivery. Pure.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::delivery::{Delivery, Outcome};

/// Version of the specification.
const VERSION: &str = "0.4.1";

/// What there is to tell of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// An app is there for the first time.
    Deployed,
    /// An app is there in another state.
    Upgraded,
    /// A delivery failed.
    IncidentDetected,
    /// A delivery went well after one that failed.
    IncidentResolved,
}

impl Type {
    /// As CDEvents and the store have it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Deployed => "dev.cdevents.service.deployed.0.2.0",
            Self::Upgraded => "dev.cdevents.service.upgraded.0.2.0",
            Self::IncidentDetected => "dev.cdevents.incident.detected.0.2.0",
            Self::IncidentResolved => "dev.cdevents.incident.resolved.0.2.0",
        }
    }

    /// Reads [`word`](Self::word).
    pub fn parse(text: &str) -> Option<Self> {
        let all = [
            Self::Deployed,
            Self::Upgraded,
            Self::IncidentDetected,
            Self::IncidentResolved,
        ];
        all.into_iter().find(|one| one.word() == text)
    }

    /// What a new row tells, after the rows of its object before it, newest first. A failure that goes on is told once.
    pub fn of(row: &Delivery, before: &[Delivery]) -> Vec<Self> {
        let mut known = before.iter().filter(|row| row.outcome != Outcome::Gap);
        let failed = known.next().is_some_and(|last| last.outcome == Outcome::Failed);
        let was_there = before.iter().any(|row| row.outcome == Outcome::Succeeded);
        match row.outcome {
            // What it promotes is delivered, and told, by the applications.
            _ if row.kind == "Pipeline" => Vec::new(),
            Outcome::Gap => Vec::new(),
            Outcome::Failed if failed => Vec::new(),
            Outcome::Failed => vec![Self::IncidentDetected],
            Outcome::Succeeded => {
                let deployed = if was_there { Self::Upgraded } else { Self::Deployed };
                let mut told = vec![deployed];
                told.extend(failed.then_some(Self::IncidentResolved));
                told
            }
        }
    }
}

/// An event: its id, which is the same however often it is sent, and its body.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Identifies it.
    pub id: String,
    /// Its type.
    pub kind: &'static str,
    /// Who tells it: `/windlass/CLUSTER`.
    pub source: String,
    /// What it is about.
    pub subject: String,
    /// When it was so.
    pub time: Timestamp,
    /// The event as JSON.
    pub body: Value,
}

/// Makes the event of a delivery.
pub fn event(row: &Delivery, kind: Type) -> Event {
    let source = format!("/windlass/{}", row.cluster);
    let app = format!("{}/{}/{}", row.kind, row.namespace, row.name);
    let environment = json!({"id": format!("{}/{}", row.cluster, row.namespace), "source": source});
    let artifact = artifact(row);
    let id = format!("{}-{}", row.id, kind.word().split('.').nth(3).unwrap_or_default());
    let (subject, content) = match kind {
        Type::Deployed | Type::Upgraded => (app, json!({"environment": environment, "artifactId": artifact})),
        Type::IncidentDetected | Type::IncidentResolved => {
            let mut content = json!({
                "environment": environment, "service": {"id": app, "source": source}, "artifactId": artifact,
            });
            if kind == Type::IncidentDetected {
                content["description"] = json!(format!("{}: {}", row.reason, row.message));
            }
            (format!("{app}/incident"), content)
        }
    };
    let subject_type = kind.word().split('.').nth(2).unwrap_or_default();
    let body = json!({
        "context": {
            "version": VERSION, "id": id, "source": source, "type": kind.word(), "timestamp": row.ended,
        },
        "subject": {"id": subject, "source": source, "type": subject_type, "content": content},
        "customData": {
            "revision": row.revision, "origin": row.origin, "author": row.author, "subject": row.subject, "source": row.source,
            "committed": row.committed, "began": row.began, "built": row.built, "applied": row.applied, "trigger": row.trigger, "labels": row.labels,
        },
        "customDataContentType": "application/json",
    });
    Event {
        id,
        kind: kind.word(),
        source,
        subject,
        time: row.ended,
        body,
    }
}

/// What was delivered, as a package URL.
fn artifact(row: &Delivery) -> String {
    let encoded = |text: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
        let encoded = text.bytes().map(|byte| match is_plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        });
        encoded.collect::<String>()
    };
    let version = if row.origin.is_empty() {
        &row.revision
    } else {
        &row.origin
    };
    let kind = if row.kind == "HelmRelease" {
        "helm"
    } else {
        "generic"
    };
    format!(
        "pkg:{kind}/{}/{}@{}",
        encoded(&row.namespace),
        encoded(&row.name),
        encoded(version)
    )
}

#[cfg(test)]
mod tests {
    use crate::delivery::Trigger;

    use super::*;

    fn row(outcome: Outcome) -> Delivery {
        Delivery {
            id: "17".to_owned(),
            cluster: "eu".to_owned(),
            kind: "Kustomization".to_owned(),
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            outcome,
            reason: "HealthCheckFailed".to_owned(),
            message: "it is down".to_owned(),
            trigger: Trigger::Revision,
            source: "GitRepository/shop/repo".to_owned(),
            revision: "main@sha1:abc".to_owned(),
            origin: String::new(),
            digest: String::new(),
            author: "Ana".to_owned(),
            subject: "Fix it".to_owned(),
            committed: None,
            seen: None,
            built: None,
            applied: None,
            began: Timestamp::UNIX_EPOCH,
            ended: Timestamp::UNIX_EPOCH,
            last: Timestamp::UNIX_EPOCH,
            attempts: 1,
            changes: String::new(),
            causes: String::new(),
            attestation: String::new(),
            labels: std::collections::BTreeMap::new(),
        }
    }

    #[test]
    fn a_failure_is_told_once_and_its_end_too() {
        let (good, bad, gap) = (row(Outcome::Succeeded), row(Outcome::Failed), row(Outcome::Gap));
        use Type::{Deployed, IncidentDetected, IncidentResolved, Upgraded};
        let of = |new: &Delivery, before: &[&Delivery]| {
            let before: Vec<Delivery> = before.iter().map(|row| (*row).clone()).collect();
            Type::of(new, &before)
        };
        assert_eq!(of(&good, &[]), [Deployed]);
        assert_eq!(of(&good, &[&good]), [Upgraded]);
        assert_eq!(of(&bad, &[&good]), [IncidentDetected]);
        assert_eq!(of(&bad, &[&gap, &bad, &good]), []);
        assert_eq!(of(&good, &[&bad, &good]), [Upgraded, IncidentResolved]);
        assert_eq!(of(&good, &[&bad]), [Deployed, IncidentResolved]);
        assert_eq!(of(&gap, &[]), []);
    }

    #[test]
    fn an_event_is_as_the_specification_has_it() {
        let told = event(&row(Outcome::Succeeded), Type::Upgraded);
        assert_eq!(
            (told.id.as_str(), told.source.as_str()),
            ("17-upgraded", "/windlass/eu")
        );
        assert_eq!(
            told.body["context"]["type"],
            "dev.cdevents.service.upgraded.0.2.0"
        );
        let subject = &told.body["subject"];
        assert_eq!(
            (&subject["type"], &subject["id"]),
            (&json!("service"), &json!("Kustomization/shop/web"))
        );
        assert_eq!(subject["content"]["environment"]["id"], "eu/shop");
        assert_eq!(
            subject["content"]["artifactId"],
            "pkg:generic/shop/web@main%40sha1%3Aabc"
        );
        let told = event(&row(Outcome::Failed), Type::IncidentDetected);
        assert_eq!(told.body["subject"]["type"], "incident");
        assert_eq!(
            told.body["subject"]["content"]["description"],
            "HealthCheckFailed: it is down"
        );
        assert_eq!(Type::parse(told.kind), Some(Type::IncidentDetected));
    }
}
