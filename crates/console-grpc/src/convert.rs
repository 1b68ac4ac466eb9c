//! Between messages and the API's parameters and rows.

use std::collections::HashMap;

use console_proto::v1::watch_response::Event as Kind;
use console_proto::v1::{Delivery, Filter, ListDeliveriesRequest, Row, WatchResponse};
use serde_json::Value;
use url::form_urlencoded::Serializer;

use crate::events::Event;

/// Parameters of the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameters(Vec<(&'static str, String)>);

impl Parameters {
    /// Those of rows.
    pub fn of(filter: Filter) -> Self {
        Self(vec![
            ("kind", filter.kinds.join(",")),
            ("cluster", filter.clusters.join(",")),
            ("namespace", filter.namespaces.join(",")),
            ("status", filter.statuses.join(",")),
            ("label", filter.labels.join(",")),
            ("source", filter.source),
            ("revision", filter.revision),
            ("chart", filter.chart),
            ("version", filter.version),
            ("owner", filter.owner),
            ("text", filter.text),
            ("filter", filter.expression),
        ])
    }

    /// Those of deliveries.
    pub fn of_deliveries(request: ListDeliveriesRequest) -> Self {
        Self(vec![
            ("cluster", request.clusters.join(",")),
            ("kind", request.kind),
            ("namespace", request.namespaces.join(",")),
            ("name", request.name),
            ("outcome", request.outcome),
            ("revision", request.revision),
            ("since", request.since),
            ("until", request.until),
        ])
    }

    /// The address that asks, with further parameters.
    pub fn address(&self, path: &str, more: &[(&'static str, &str)]) -> String {
        let own = self.0.iter().map(|(name, value)| (*name, value.as_str()));
        let given = own
            .chain(more.iter().copied())
            .filter(|(_, value)| !value.is_empty());
        let query = Serializer::new(String::new()).extend_pairs(given).finish();
        format!("/api/v1/{path}?{query}")
    }
}

/// A message without a row.
pub fn told(event: Kind, change: u64) -> WatchResponse {
    WatchResponse {
        event: event.into(),
        change,
        ..WatchResponse::default()
    }
}

/// A row that is new or has changed.
pub fn changed(row: &Value, change: u64) -> WatchResponse {
    WatchResponse {
        row: Some(self::row(row)),
        key: key(row),
        ..told(Kind::Changed, change)
    }
}

/// What an event `rows` tells. The last message alone has the number to resume at: until then not all of it was received.
pub fn changes(event: &Event) -> Vec<WatchResponse> {
    let list = |name: &str| event.data[name].as_array().into_iter().flatten();
    let gone = list("gone").map(|key| WatchResponse {
        key: key.as_str().unwrap_or_default().to_owned(),
        ..told(Kind::Gone, 0)
    });
    let mut all: Vec<WatchResponse> = list("changed").map(|row| changed(row, 0)).chain(gone).collect();
    if let Some(last) = all.last_mut() {
        last.change = event.id;
    }
    all
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn labels(value: &Value) -> HashMap<String, String> {
    let labels = value["labels"].as_object().into_iter().flatten();
    labels
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect()
}

fn key(row: &Value) -> String {
    let part = |field| row[field].as_str().unwrap_or_default();
    format!(
        "{}/{}/{}/{}",
        part("kind"),
        part("namespace"),
        part("name"),
        part("cluster")
    )
}

fn row(value: &Value) -> Row {
    Row {
        cluster: text(value, "cluster"),
        group: text(value, "group"),
        kind: text(value, "kind"),
        namespace: text(value, "namespace"),
        name: text(value, "name"),
        status: text(value, "status"),
        reason: text(value, "reason"),
        message: text(value, "message"),
        revision: text(value, "revision"),
        source: text(value, "source"),
        repository: text(value, "repository"),
        chart: text(value, "chart"),
        version: text(value, "version"),
        app_version: text(value, "appVersion"),
        owner: text(value, "owner"),
        labels: labels(value),
        since: text(value, "since"),
    }
}

/// A delivery.
pub fn delivery(value: &Value) -> Delivery {
    Delivery {
        id: text(value, "id"),
        cluster: text(value, "cluster"),
        kind: text(value, "kind"),
        namespace: text(value, "namespace"),
        name: text(value, "name"),
        outcome: text(value, "outcome"),
        reason: text(value, "reason"),
        message: text(value, "message"),
        trigger: text(value, "trigger"),
        source: text(value, "source"),
        revision: text(value, "revision"),
        origin: text(value, "origin"),
        digest: text(value, "digest"),
        author: text(value, "author"),
        subject: text(value, "subject"),
        committed: text(value, "committed"),
        seen: text(value, "seen"),
        began: text(value, "began"),
        built: text(value, "built"),
        applied: text(value, "applied"),
        ended: text(value, "ended"),
        last: text(value, "last"),
        attempts: value["attempts"].as_i64().unwrap_or_default(),
        changes: text(value, "changes"),
        causes: text(value, "causes"),
        attestation: text(value, "attestation"),
        labels: labels(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_become_parameters_and_no_other_address() {
        let filter = Filter {
            kinds: vec!["ks".to_owned(), "hr".to_owned()],
            expression: "row.a && '#&limit=1'".to_owned(),
            ..Filter::default()
        };
        assert_eq!(
            Parameters::of(filter).address("watch", &[("since", "7"), ("after", "")]),
            "/api/v1/watch?kind=ks%2Chr&filter=row.a+%26%26+%27%23%26limit%3D1%27&since=7"
        );
    }

    #[test]
    fn an_event_is_received_when_its_last_message_is() {
        let row = json!({"kind": "Kustomization", "namespace": "shop", "name": "a", "cluster": "eu",
            "status": "Ready", "appVersion": "1", "labels": {"team": "x"}});
        let event = Event {
            name: "rows".to_owned(),
            id: 9,
            data: json!({"changed": [row], "gone": ["Kustomization/shop/b/eu"]}),
        };
        let told = changes(&event);
        let short: Vec<_> = told
            .iter()
            .map(|one| (one.event(), one.key.as_str(), one.change))
            .collect();
        assert_eq!(
            short,
            [
                (Kind::Changed, "Kustomization/shop/a/eu", 0),
                (Kind::Gone, "Kustomization/shop/b/eu", 9)
            ]
        );
        let row = told[0].row.as_ref().unwrap();
        assert_eq!(
            (row.app_version.as_str(), row.labels["team"].as_str()),
            ("1", "x")
        );
    }

    /// What the API has in a row and a delivery, messages have, too.
    #[test]
    fn nothing_of_the_api_is_left_out() {
        let proto = include_str!("../../../proto/windlass/console/v1/console.proto");
        let description: Value =
            serde_json::from_str(include_str!("../../console-server/openapi.json")).unwrap();
        for name in ["Row", "Delivery"] {
            let message = proto.split(&format!("message {name} {{")).nth(1).unwrap();
            let message = message.split('}').next().unwrap();
            let properties = description["components"]["schemas"][name]["properties"]
                .as_object()
                .unwrap();
            assert!(properties.len() > 10);
            for property in properties.keys() {
                let field: String = property
                    .chars()
                    .flat_map(|c| {
                        c.is_uppercase()
                            .then_some('_')
                            .into_iter()
                            .chain(c.to_lowercase())
                    })
                    .collect();
                assert!(message.contains(&format!(" {field} = ")), "{name}: {field}");
            }
        }
    }
}
