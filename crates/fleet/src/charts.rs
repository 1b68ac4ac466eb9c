//! Which charts are released where. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;

use crate::row::{Key, Row, Status};

/// Rows of an answer.
const MAX_ROWS: usize = 5000;

/// A version of a chart that is released in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Released {
    /// The chart.
    pub chart: String,
    /// Its version; empty while nothing is released.
    pub version: String,
    /// Version of what it deploys, as its author says.
    pub app_version: String,
    /// Cluster.
    pub cluster: String,
    /// How many releases there are of it.
    pub releases: usize,
    /// How many of these are ready.
    pub ready: usize,
}

impl Released {
    /// Columns of a table.
    pub const COLUMNS: &[&str] = &["chart", "version", "appVersion", "cluster", "releases", "ready"];
}

/// All charts that are released.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Charts {
    /// By chart, version and cluster; at most 5,000.
    pub items: Vec<Released>,
    /// How many there are.
    pub total: usize,
    /// Clusters in question that are away, or do not say what you may get: they may have more.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub silent: BTreeSet<Arc<str>>,
}

/// Counts the releases of each version of each chart in each cluster. Rows of other kinds are passed over.
pub fn charts(rows: &[(Key, Arc<Row>)], silent: BTreeSet<Arc<str>>) -> Charts {
    let mut counts: BTreeMap<(&str, &str, &str, &str), (usize, usize)> = BTreeMap::new();
    for (_, row) in rows {
        if row.kind != "HelmRelease" || row.chart.is_empty() {
            continue;
        }
        let key = (&*row.chart, &*row.version, &*row.app_version, &*row.cluster);
        let (releases, ready) = counts.entry(key).or_default();
        *releases += 1;
        *ready += usize::from(row.status == Status::Ready);
    }
    let total = counts.len();
    let items = counts.into_iter().take(MAX_ROWS);
    let items = items.map(
        |((chart, version, app_version, cluster), (releases, ready))| Released {
            chart: chart.to_owned(),
            version: version.to_owned(),
            app_version: app_version.to_owned(),
            cluster: cluster.to_owned(),
            releases,
            ready,
        },
    );
    Charts {
        items: items.collect(),
        total,
        silent,
    }
}

#[cfg(test)]
mod tests {
    use delivery_graph::kind;
    use serde_json::json;

    use super::*;

    #[test]
    fn releases_of_a_version_are_counted_in_each_cluster() {
        let row = |cluster: &str, name: &str, version: &str, ready: &str| {
            let (cluster, kind) = (Arc::from(cluster), kind::exact("HelmRelease").unwrap());
            let object = json!({
                "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
                "metadata": {"name": name, "namespace": "shop"},
                "status": {
                    "history": [{"chartName": "web", "chartVersion": version, "appVersion": "1"}],
                    "conditions": [{"type": "Ready", "status": ready}],
                },
            });
            let key = Key::new(&cluster, kind, "shop", name);
            (key, Arc::new(Row::new(&cluster, kind, &object)))
        };
        let rows = [
            row("a", "one", "1.0.0", "True"),
            row("a", "two", "1.0.0", "False"),
            row("b", "one", "1.1.0", "True"),
        ];
        let found = charts(&rows, BTreeSet::new());
        assert_eq!(found.total, 2);
        let shown: Vec<_> = found
            .items
            .iter()
            .map(|one| (&*one.version, &*one.cluster, one.releases, one.ready))
            .collect();
        assert_eq!(shown, [("1.0.0", "a", 2, 1), ("1.1.0", "b", 1, 1)]);
    }
}
