//! Filters, pages and counts of rows. Pure.
//!
//! Rows come cut to what the caller may see, so that nothing of what they may not see is counted.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cel_expression::Expression;
use delivery_graph::kind::{self, Kind};
use go_semver::Constraints;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::row::{Key, Row, Status};
use crate::version;

/// Rows of a page if nothing else is asked for, and at most.
const USUAL_LIMIT: usize = 50;
const MAX_LIMIT: usize = 500;
/// Bytes of any one parameter.
const MAX_PARAMETER: usize = 2048;
/// All rows together may take so long; only a filter does.
const MAX_TIME: Duration = Duration::from_secs(2);
/// Steps from a source to what is made of what is made of it.
const MAX_STEPS: usize = 5;
/// Values of a facet; of more, the most frequent.
const MAX_FACET: usize = 50;

/// What is asked for. All that is given must hold; of a list, one value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Parameters {
    /// Kinds, as `Kustomization`, `ks` or `kustomizations`, separated by commas.
    pub kind: String,
    /// Clusters, separated by commas.
    pub cluster: String,
    /// Namespaces, separated by commas.
    pub namespace: String,
    /// `Ready`, `Failed`, `InProgress`, `Suspended` or `Unknown`, separated by commas.
    pub status: String,
    /// Labels as `key=value`, or `key` for any value, separated by commas; all must be there.
    pub label: String,
    /// What it is made of: `GitRepository/namespace/name`.
    pub source: String,
    /// Beginning of the revision, or of its commit or digest.
    pub revision: String,
    /// Name of the chart that is delivered.
    pub chart: String,
    /// Range that the version of the chart or the revision is in: `<1.4.2`.
    pub version: String,
    /// What applied it, as its labels say: `Kustomization/namespace/name`.
    pub owner: String,
    /// Address of the source that it is made of, or the end of it: `team/app`.
    pub repository: String,
    /// Image that its workloads run, without tag, or the end of its name, by Pods that you may get.
    pub image: String,
    /// Text in the name, the message or the revision, in any case of letters.
    pub text: String,
    /// CEL expression over `row`, whose fields are those of the answer, such as `row.name.startsWith('web') && row.status != 'Ready'`.
    pub filter: String,
    /// Order of the rows: `status` (what fails first), `newest` or `oldest` (change of the condition Ready); by kind, namespace, name
    /// and cluster by default.
    pub sort: String,
    /// Rows of the page: 50 by default, 500 at most.
    pub limit: Option<usize>,
    /// `next` of the page before.
    pub after: String,
}

/// Parameters that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{parameter}: {problem}")]
pub struct Error {
    parameter: &'static str,
    problem: String,
}

/// A question that was understood.
#[derive(Debug)]
pub struct Query {
    kinds: Vec<&'static str>,
    clusters: Vec<String>,
    namespaces: Vec<String>,
    statuses: Vec<Status>,
    labels: Vec<(String, Option<String>)>,
    source: String,
    revision: String,
    chart: String,
    version: Option<Constraints>,
    owner: String,
    repository: String,
    image: String,
    text: String,
    filter: Option<Expression>,
    sort: Option<Sort>,
    limit: usize,
    after: Option<(i64, Key)>,
}

/// An order of rows that is not that of their keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Status,
    Newest,
    Oldest,
}

impl Sort {
    /// Rows with a lower one come first; of equal ones, those with a lower key.
    fn rank(self, row: &Row) -> i64 {
        let since = row.since.map(Timestamp::as_millisecond);
        match self {
            Self::Status => row.status as i64,
            Self::Newest => since.map_or(i64::MAX, |since| -since),
            Self::Oldest => since.unwrap_or(i64::MAX),
        }
    }
}

/// A page of rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Page {
    /// The rows, in their order.
    #[schema(value_type = Vec<Row>)]
    pub items: Vec<Arc<Row>>,
    /// `after` for the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Rows of all pages.
    pub total: usize,
    /// How many rows of all pages have which value: by `status`, `kind`, `namespace` and `cluster`.
    pub facets: BTreeMap<&'static str, BTreeMap<String, usize>>,
    /// The number of the last change that this page has, for a stream that goes on from here.
    pub change: u64,
    /// Clusters in question that are away, or do not say what you may get: what they said in the last hour holds, and of the rest
    /// nothing is in the page.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub silent: BTreeSet<Arc<str>>,
}

impl Query {
    /// Reads the parameters.
    ///
    /// # Errors
    /// With the parameter that cannot be used, and why.
    pub fn read(parameters: &Parameters) -> Result<Self, Error> {
        let Parameters {
            kind,
            cluster,
            namespace,
            status,
            label,
            source,
            revision,
            chart,
            version,
            owner,
            repository,
            image,
            text,
            filter,
            sort,
            limit,
            after,
        } = parameters;
        for (parameter, value) in [
            ("kind", kind),
            ("cluster", cluster),
            ("namespace", namespace),
            ("status", status),
            ("label", label),
            ("source", source),
            ("revision", revision),
            ("chart", chart),
            ("version", version),
            ("owner", owner),
            ("repository", repository),
            ("image", image),
            ("text", text),
            ("filter", filter),
            ("after", after),
        ] {
            if value.len() > MAX_PARAMETER {
                let problem = format!("it is longer than {MAX_PARAMETER} bytes");
                return Err(Error { parameter, problem });
            }
        }
        let kinds = words(kind).map(|word| {
            let known = kind::named(word).map(|kind| kind.kind);
            known.ok_or_else(|| unknown("kind", word, "a kind of Flux or Windlass"))
        });
        let statuses = words(status).map(|word| {
            let known = serde_json::from_value(json!(word));
            known.map_err(|_| unknown("status", word, "Ready, Failed, InProgress, Suspended or Unknown"))
        });
        let labels = words(label).map(|word| match word.split_once('=') {
            Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
            None => (word.to_owned(), None),
        });
        let filter = match filter.as_str() {
            "" => None,
            text => Some(
                Expression::parse_with_variables(text, &["row"]).map_err(|error| Error {
                    parameter: "filter",
                    problem: error.to_string(),
                })?,
            ),
        };
        let version = version::range(version).map_err(|problem| Error {
            parameter: "version",
            problem,
        })?;
        let limit = limit.unwrap_or(USUAL_LIMIT);
        if limit == 0 || limit > MAX_LIMIT {
            let problem = format!("it must be from 1 to {MAX_LIMIT}");
            return Err(Error {
                parameter: "limit",
                problem,
            });
        }
        let sort = match sort.as_str() {
            "" => None,
            "status" => Some(Sort::Status),
            "newest" => Some(Sort::Newest),
            "oldest" => Some(Sort::Oldest),
            word => return Err(unknown("sort", word, "status, newest or oldest")),
        };
        let after = match after.as_str() {
            "" => None,
            text => {
                let parsed = match sort {
                    None => Some((0, text)),
                    Some(_) => text
                        .split_once('|')
                        .and_then(|(rank, key)| Some((rank.parse().ok()?, key))),
                };
                let parsed = parsed.and_then(|(rank, key)| Some((rank, Key::parse(key)?)));
                Some(parsed.ok_or_else(|| unknown("after", text, "the `next` of a page"))?)
            }
        };
        let owned = |text| words(text).map(str::to_owned).collect();
        Ok(Self {
            kinds: kinds.collect::<Result<_, _>>()?,
            clusters: owned(cluster),
            namespaces: owned(namespace),
            statuses: statuses.collect::<Result<_, _>>()?,
            labels: labels.collect(),
            source: source.clone(),
            revision: revision.clone(),
            chart: chart.clone(),
            version,
            owner: owner.clone(),
            repository: repository.clone(),
            image: image.clone(),
            text: text.to_lowercase(),
            filter,
            sort,
            limit,
            after,
        })
    }

    /// Returns whether objects of a kind may be an answer.
    pub fn concerns_kind(&self, kind: &Kind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind.kind)
    }

    /// Returns whether objects of a cluster may be an answer.
    pub fn concerns_cluster(&self, cluster: &str) -> bool {
        self.clusters.is_empty() || self.clusters.iter().any(|one| one == cluster)
    }

    /// The repository that objects are to be made of, if one is asked for. Rows do not tell it of what is made of a source: leave
    /// those of [`of_repository`].
    pub fn repository(&self) -> Option<&str> {
        Some(&*self.repository).filter(|wanted| !wanted.is_empty())
    }

    /// The image that workloads of objects are to run, if one is asked for. Rows do not tell it.
    pub fn image(&self) -> Option<&str> {
        Some(&*self.image).filter(|wanted| !wanted.is_empty())
    }

    /// Returns whether a row of this key may be an answer, now or at another time.
    pub fn concerns(&self, key: &Key) -> bool {
        let any = |list: &[String], value: &str| list.is_empty() || list.iter().any(|one| one == value);
        self.concerns_kind(key.kind())
            && any(&self.clusters, &key.cluster)
            && any(&self.namespaces, &key.namespace)
    }

    /// Returns whether a row may be an answer, by what costs nothing to ask: who may see it need not be asked of others.
    pub fn may_match(&self, row: &Row) -> bool {
        let any = |list: &[String], value: &str| list.is_empty() || list.iter().any(|one| one == value);
        (self.kinds.is_empty() || self.kinds.contains(&row.kind))
            && any(&self.clusters, &row.cluster)
            && any(&self.namespaces, &row.namespace)
            && (self.statuses.is_empty() || self.statuses.contains(&row.status))
            && self.labels.iter().all(|(key, wanted)| {
                let found = row.labels.get(key.as_str());
                found.is_some_and(|found| wanted.as_deref().is_none_or(|wanted| wanted == &**found))
            })
            && (self.source.is_empty() || *self.source == *row.source)
            && (self.chart.is_empty() || *self.chart == *row.chart)
            && (self.owner.is_empty() || *self.owner == *row.owner)
            && self
                .version
                .as_ref()
                .is_none_or(|range| version::is_within(range, &row.version))
            && self.has_revision(row)
            && self.has_text(row)
    }

    /// Leaves those rows that are an answer.
    ///
    /// # Errors
    /// When the filter cannot be evaluated for a row, or takes too long for all of them.
    pub fn matching(&self, mut rows: Vec<(Key, Arc<Row>)>) -> Result<Vec<(Key, Arc<Row>)>, Error> {
        rows.retain(|(_, row)| self.may_match(row));
        let Some(filter) = &self.filter else {
            return Ok(rows);
        };
        let began = Instant::now();
        let variables = rows.iter().map(|(_, row)| row.variables());
        let answers = filter.evaluate_booleans(variables, || began.elapsed() <= MAX_TIME);
        let is_cut = answers.len() < rows.len();
        let mut matching = Vec::new();
        for ((key, row), answer) in rows.into_iter().zip(answers) {
            let is_answer = answer.map_err(|error| Error {
                parameter: "filter",
                problem: format!("{}/{}/{}: {error}", row.kind, row.namespace, row.name),
            })?;
            if is_answer {
                matching.push((key, row));
            }
        }
        if is_cut {
            return Err(Error {
                parameter: "filter",
                problem: format!(
                    "it takes longer than {MAX_TIME:?}: simplify it, or ask for less by other parameters"
                ),
            });
        }
        Ok(matching)
    }

    /// Returns whether matching takes processor time: there is an expression to evaluate.
    pub fn is_costly(&self) -> bool {
        self.filter.is_some()
    }

    /// The page that was asked for, of rows that the caller may see, in their order.
    ///
    /// # Errors
    /// When the filter cannot be evaluated for a row, or takes too long for all of them.
    pub fn page(
        &self,
        change: u64,
        rows: Vec<(Key, Arc<Row>)>,
        silent: BTreeSet<Arc<str>>,
    ) -> Result<Page, Error> {
        let mut page = Page {
            items: Vec::new(),
            next: None,
            total: 0,
            facets: BTreeMap::new(),
            change,
            silent,
        };
        let mut last = None;
        let rank = |row: &Row| self.sort.map_or(0, |sort| sort.rank(row));
        let mut rows = self.matching(rows)?;
        if self.sort.is_some() {
            // Those of one rank stay in the order of their keys.
            rows.sort_by_key(|(_, row)| rank(row));
        }
        for (key, row) in rows {
            page.total += 1;
            for (facet, value) in [
                ("status", row.status.word()),
                ("kind", row.kind),
                ("namespace", &*row.namespace),
                ("cluster", &*row.cluster),
            ] {
                let counts = page.facets.entry(facet).or_default();
                match counts.get_mut(value) {
                    Some(count) => *count += 1,
                    None => drop(counts.insert(value.to_owned(), 1)),
                }
            }
            let place = (rank(&row), key);
            if self.after.as_ref().is_some_and(|after| place <= *after) {
                continue;
            }
            if page.items.len() < self.limit {
                page.items.push(row);
                last = Some(place);
            } else if page.next.is_none() {
                page.next = last.as_ref().map(|(rank, key)| match self.sort {
                    None => key.to_string(),
                    Some(_) => format!("{rank}|{key}"),
                });
            }
        }
        page.facets.values_mut().for_each(keep_most_frequent);
        Ok(page)
    }

    fn has_revision(&self, row: &Row) -> bool {
        let revision = &*row.revision;
        let digest = revision.rsplit_once(':').map_or("", |(_, digest)| digest);
        self.revision.is_empty()
            || revision.starts_with(&self.revision)
            || (!digest.is_empty() && digest.starts_with(&self.revision))
    }

    fn has_text(&self, row: &Row) -> bool {
        let mut texts = [&row.name, &row.message, &row.revision].into_iter();
        self.text.is_empty() || texts.any(|text| text.to_lowercase().contains(&self.text))
    }
}

/// Sources with this address, or one that ends so, and what is made of them, directly or not.
pub fn of_repository(rows: &[(Key, Arc<Row>)], wanted: &str) -> HashSet<Key> {
    let plain = |address: &str| {
        let address = address.split_once("://").map_or(address, |(_, rest)| rest);
        let address = address.trim_end_matches('/');
        address.strip_suffix(".git").unwrap_or(address).to_lowercase()
    };
    let wanted = plain(wanted);
    let is_wanted = |row: &Row| {
        let address = plain(&row.repository);
        let before = address.strip_suffix(&wanted);
        before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    let id = |row: &Row| (row.cluster.clone(), row.id());
    let mut found: HashSet<Key> = HashSet::new();
    let mut ids: HashSet<(Arc<str>, String)> = HashSet::new();
    // A release is made of a chart, which is made of a repository; an artifact of several sources is made of the first.
    for _ in 0..MAX_STEPS {
        let before = ids.len();
        for (key, row) in rows {
            let is_made_of = || ids.contains(&(row.cluster.clone(), row.source.to_string()));
            if !found.contains(key) && (is_wanted(row) || (!row.source.is_empty() && is_made_of())) {
                found.insert(key.clone());
                ids.insert(id(row));
            }
        }
        if ids.len() == before {
            break;
        }
    }
    found
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

fn unknown(parameter: &'static str, word: &str, expected: &str) -> Error {
    let shown: String = word.chars().filter(|c| !c.is_control()).take(60).collect();
    let problem = format!("'{shown}' is not {expected}");
    Error { parameter, problem }
}

fn keep_most_frequent(facet: &mut BTreeMap<String, usize>) {
    if facet.len() <= MAX_FACET {
        return;
    }
    let mut counts: Vec<usize> = facet.values().copied().collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let least = counts[MAX_FACET - 1];
    facet.retain(|_, count| *count >= least);
    while facet.len() > MAX_FACET {
        let last = facet.iter().rev().find(|(_, count)| **count == least);
        let Some(name) = last.map(|(name, _)| name.clone()) else {
            return;
        };
        facet.remove(&name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: &str, namespace: &str, name: &str, status: &str) -> (Key, Arc<Row>) {
        let kind = kind::exact(kind).unwrap();
        let object = json!({
            "apiVersion": format!("{}/{}", kind.group, kind.version), "kind": kind.kind,
            "metadata": {"name": name, "namespace": namespace, "labels": {"team": namespace}},
            "spec": {"sourceRef": {"kind": "GitRepository", "name": "repo"}},
            "status": {
                "lastAppliedRevision": "main@sha1:abc123",
                "conditions": [{"type": "Ready", "status": status, "reason": "R", "message": format!("It is {status}")}],
            },
        });
        let cluster = "here".into();
        let key = Key::new(&cluster, kind, namespace, name);
        (key, Arc::new(Row::new(&cluster, kind, &object)))
    }

    fn rows() -> Vec<(Key, Arc<Row>)> {
        let mut rows = vec![
            row("Kustomization", "shop", "web", "True"),
            row("Kustomization", "shop", "api", "False"),
            row("Kustomization", "bank", "ledger", "True"),
            row("GitRepository", "shop", "repo", "True"),
        ];
        rows.sort_by(|(a, _), (b, _)| a.cmp(b));
        rows
    }

    fn names(parameters: Parameters) -> Vec<String> {
        let page = Query::read(&parameters)
            .unwrap()
            .page(1, rows(), BTreeSet::new())
            .unwrap();
        page.items.iter().map(|row| row.name.to_string()).collect()
    }

    fn of(change: impl FnOnce(&mut Parameters)) -> Parameters {
        let mut parameters = Parameters::default();
        change(&mut parameters);
        parameters
    }

    #[test]
    fn all_that_is_given_must_hold() {
        assert_eq!(names(Parameters::default()), ["repo", "ledger", "api", "web"]);
        assert_eq!(names(of(|p| p.kind = "ks".into())), ["ledger", "api", "web"]);
        assert_eq!(names(of(|p| p.kind = "git, HelmRelease".into())), ["repo"]);
        assert_eq!(names(of(|p| p.namespace = "bank,none".into())), ["ledger"]);
        assert_eq!(names(of(|p| p.cluster = "there".into())), [""; 0]);
        assert_eq!(
            names(of(|p| p.label = "team=shop,team".into())),
            ["repo", "api", "web"]
        );
        assert_eq!(
            names(of(|p| p.source = "GitRepository/bank/repo".into())),
            ["ledger"]
        );
        for revision in ["main@", "abc", "main@sha1:abc123"] {
            assert_eq!(names(of(|p| p.revision = revision.into())).len(), 3, "{revision}");
        }
        assert_eq!(names(of(|p| p.revision = "bc".into())), [""; 0]);
        assert_eq!(names(of(|p| p.text = "LEDG".into())), ["ledger"]);
        assert_eq!(names(of(|p| p.text = "it is false".into())), ["api"]);
        let filter = "row.namespace == 'shop' && row.kind == 'Kustomization' && !row.name.startsWith('w')";
        assert_eq!(names(of(|p| p.filter = filter.into())), ["api"]);
    }

    #[test]
    fn pages_go_on_in_any_order() {
        for (sort, expected) in [
            ("", ["repo", "ledger", "api", "web"]),
            ("status", ["api", "repo", "ledger", "web"]),
            ("newest", ["repo", "ledger", "api", "web"]),
            ("oldest", ["repo", "ledger", "api", "web"]),
        ] {
            let (mut found, mut after) = (Vec::new(), String::new());
            loop {
                let parameters = of(|p| {
                    (p.sort, p.after, p.limit) = (sort.into(), after.clone(), Some(1));
                });
                let page = Query::read(&parameters)
                    .unwrap()
                    .page(1, rows(), BTreeSet::new())
                    .unwrap();
                found.extend(page.items.iter().map(|row| row.name.to_string()));
                match page.next {
                    Some(next) => after = next,
                    None => break,
                }
            }
            assert_eq!(found, expected, "{sort}");
        }
        for (sort, after) in [("size", ""), ("status", "Kustomization/a/b/c"), ("", "1|x")] {
            assert!(Query::read(&of(|p| (p.sort, p.after) = (sort.into(), after.into()))).is_err());
        }
    }

    #[test]
    fn a_filter_may_ask_for_fields_that_are_empty() {
        for (filter, expected) in [
            ("row.source == '' && row.since == ''", 1),
            // Those of docs/operations/console.md.
            (
                "row.kind == 'Kustomization' && 'team' in row.labels && row.labels['team'] == 'shop'",
                2,
            ),
            ("row.revision.startsWith('main@')", 3),
        ] {
            assert_eq!(
                names(of(|p| p.filter = filter.into())).len(),
                expected,
                "{filter}"
            );
        }
    }

    #[test]
    fn what_is_made_of_a_repository_is_found_however_far() {
        let cluster: Arc<str> = "here".into();
        let row = |kind: &str, name: &str, spec: serde_json::Value| {
            let kind = kind::exact(kind).unwrap();
            let object =
                json!({"kind": kind.kind, "metadata": {"name": name, "namespace": "shop"}, "spec": spec});
            (
                Key::new(&cluster, kind, "shop", name),
                Arc::new(Row::new(&cluster, kind, &object)),
            )
        };
        let rows = [
            row(
                "GitRepository",
                "repo",
                json!({"url": "https://Git.example.com/team/app.git"}),
            ),
            row(
                "GitRepository",
                "other",
                json!({"url": "ssh://git@git.example.com/steam/app"}),
            ),
            row(
                "HelmChart",
                "shop-web",
                json!({"sourceRef": {"kind": "GitRepository", "name": "repo"}}),
            ),
            row(
                "HelmRelease",
                "web",
                json!({"chart": {"spec": {"chart": "web", "sourceRef": {"kind": "GitRepository", "name": "repo"}}}}),
            ),
            row(
                "Kustomization",
                "app",
                json!({"sourceRef": {"kind": "GitRepository", "name": "other"}}),
            ),
        ];
        let found = |wanted: &str| {
            let found = of_repository(&rows, wanted);
            let mut names: Vec<_> = found.iter().map(|key| key.name.to_string()).collect();
            names.sort();
            names
        };
        for wanted in [
            "team/app",
            "git.example.com/team/app",
            "ssh://git.example.com/team/app/",
        ] {
            assert_eq!(found(wanted), ["repo", "shop-web", "web"], "{wanted}");
        }
        assert_eq!(found("steam/app"), ["app", "other"]);
        assert_eq!(found("eam/app"), [""; 0]);
    }

    #[test]
    fn pages_go_on_after_the_last_row() {
        let mut after = String::new();
        let mut seen = Vec::new();
        for expected in [2, 2] {
            let parameters = of(|p| {
                p.limit = Some(2);
                p.after.clone_from(&after);
            });
            let page = Query::read(&parameters)
                .unwrap()
                .page(7, rows(), BTreeSet::new())
                .unwrap();
            assert_eq!((page.items.len(), page.total, page.change), (expected, 4, 7));
            seen.extend(page.items.iter().map(|row| row.name.to_string()));
            after = page.next.unwrap_or_default();
        }
        assert_eq!(after, "");
        assert_eq!(seen, ["repo", "ledger", "api", "web"]);
    }

    #[test]
    fn facets_count_all_pages() {
        let page = Query::read(&of(|p| p.limit = Some(1)))
            .unwrap()
            .page(1, rows(), BTreeSet::new())
            .unwrap();
        assert_eq!(page.facets["namespace"]["shop"], 3);
        assert_eq!(page.facets["kind"]["Kustomization"], 3);
        let mut many: BTreeMap<String, usize> = (0..200).map(|n| (n.to_string(), 1)).collect();
        many.insert("often".to_owned(), 9);
        keep_most_frequent(&mut many);
        assert_eq!((many.len(), many["often"]), (MAX_FACET, 9));
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let told = |parameters| Query::read(&parameters).unwrap_err().to_string();
        assert_eq!(
            told(of(|p| p.kind = "pods".into())),
            "kind: 'pods' is not a kind of Flux or Windlass"
        );
        assert!(told(of(|p| p.status = "Fine".into())).starts_with("status: 'Fine' is not"));
        assert!(told(of(|p| p.after = "x".into())).starts_with("after: "));
        assert!(told(of(|p| p.version = "<<1".into())).starts_with("version: "));
        assert!(told(of(|p| p.filter = "row.name ==".into())).starts_with("filter: "));
        assert!(told(of(|p| p.filter = "object.name == ''".into())).starts_with("filter: "));
        assert!(told(of(|p| p.text = "x".repeat(3000))).starts_with("text: it is longer"));
        assert!(told(of(|p| p.limit = Some(501))).starts_with("limit: "));
        let query = Query::read(&of(|p| p.filter = "row.nothing == 1".into())).unwrap();
        assert!(
            query
                .page(1, rows(), BTreeSet::new())
                .unwrap_err()
                .to_string()
                .contains("/shop/repo")
        );
    }
}
