//! How many requests the API server has answered, by verb and resource, from its own `/metrics`.
//!
//! Take one reading before and one after, and subtract: the counts of other clients of the same control plane (its
//! controllers, other tests) are in there too. A watch is counted when it ends.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use kube::Client;

/// Counts of `apiserver_request_total`, by (verb, resource). A subresource is written `deployments/status`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApiMetrics {
    requests: BTreeMap<(String, String), u64>,
}

impl ApiMetrics {
    pub(super) async fn read(client: &Client) -> Result<Self> {
        let request = http::Request::get("/metrics").body(Vec::new())?;
        let text = client
            .request_text(request)
            .await
            .context("failed to read the API server's metrics")?;
        Ok(Self::parse(&text))
    }

    /// Reads the exposition text of the API server.
    pub fn parse(text: &str) -> Self {
        let mut requests: BTreeMap<(String, String), u64> = BTreeMap::new();
        for line in text
            .lines()
            .filter_map(|line| line.strip_prefix("apiserver_request_total{"))
        {
            let Some((labels, value)) = line.rsplit_once("} ") else {
                continue;
            };
            let Ok(count) = value.trim().parse::<f64>() else {
                continue;
            };
            let (verb, resource) = (label(labels, "verb"), label(labels, "resource"));
            let resource = match label(labels, "subresource") {
                "" => resource.to_owned(),
                subresource => format!("{resource}/{subresource}"),
            };
            *requests.entry((verb.to_owned(), resource)).or_default() += count as u64;
        }
        Self { requests }
    }

    /// Returns the counts since `earlier`.
    pub fn since(&self, earlier: &Self) -> Self {
        let more = |(key, count): (&(String, String), &u64)| {
            let difference = count.saturating_sub(earlier.requests.get(key).copied().unwrap_or(0));
            (difference > 0).then(|| (key.clone(), difference))
        };
        Self {
            requests: self.requests.iter().filter_map(more).collect(),
        }
    }

    /// The count of one verb (`GET`, `LIST`, `WATCH`, `POST`, `PATCH`, `APPLY`, `DELETE`, …) on one resource.
    pub fn count(&self, verb: &str, resource: &str) -> u64 {
        self.requests
            .get(&(verb.to_owned(), resource.to_owned()))
            .copied()
            .unwrap_or(0)
    }

    /// All requests together.
    pub fn total(&self) -> u64 {
        self.requests.values().sum()
    }

    /// ((verb, resource), count), sorted by verb and resource.
    pub fn iter(&self) -> impl Iterator<Item = (&(String, String), &u64)> {
        self.requests.iter()
    }
}

/// Label values of this metric never hold a quote or a comma.
fn label<'a>(labels: &'a str, name: &str) -> &'a str {
    let value = labels
        .split(',')
        .find_map(|label| label.strip_prefix(name)?.strip_prefix("=\""));
    value
        .and_then(|value| value.strip_suffix('"'))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_summed_over_codes_and_versions_and_kept_apart_by_subresource() {
        let text = r#"
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="",verb="GET",version="v1"} 3
apiserver_request_total{code="404",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="",verb="GET",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="apps",resource="deployments",scope="resource",subresource="status",verb="PATCH",version="v1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 1.2e+06
other_total{verb="GET"} 9
"#;
        let metrics = ApiMetrics::parse(text);
        assert_eq!(metrics.count("GET", "deployments"), 4);
        assert_eq!(metrics.count("PATCH", "deployments/status"), 2);
        assert_eq!(metrics.count("LIST", "pods"), 1_200_000);
        assert_eq!(metrics.total(), 1_200_006);
    }

    #[test]
    fn a_difference_holds_only_what_grew() {
        let reading = |gets, lists| {
            ApiMetrics::parse(&format!(
                "apiserver_request_total{{resource=\"a\",verb=\"GET\"}} {gets}\napiserver_request_total{{resource=\"a\",verb=\"LIST\"}} {lists}"
            ))
        };
        let difference = reading(5, 7).since(&reading(2, 7));
        assert_eq!(
            difference.iter().collect::<Vec<_>>(),
            [(&("GET".to_owned(), "a".to_owned()), &3)]
        );
    }
}
