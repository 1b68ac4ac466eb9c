//! What a provider finds, which of it counts, and the inputs that come of it. Pure.
//!
//! Titles, branches and names of users are what strangers write: line breaks and control characters are taken out, so that a value
//! stays in its line of YAML.

use api::flux_operator::{AnyMap, InputFilter, InputSkip};
use go_regexp::Regexp;
use serde_json::{Value, json};

use crate::inputs::checksum;

/// Sets of inputs by default.
const DEFAULT_LIMIT: usize = 100;
/// Bytes of all sets: more does not fit into a status beside the rest.
pub const MAX_BYTES: usize = 900 << 10;
/// Characters of a title.
const LONGEST_TITLE: usize = 256;
/// Characters of other texts.
const LONGEST: usize = 1024;
/// Labels of a pull request.
const MAX_LABELS: usize = 100;

/// Why nothing is exported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A pattern of the filter.
    #[error("spec.filter.{field}: {problem}")]
    Filter {
        /// Its field.
        field: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The service's answer.
    #[error("the service answered what are no inputs: {0}")]
    Service(String),
    /// There is too much.
    #[error("the inputs have {0} bytes; at most {MAX_BYTES} can be exported: use spec.filter")]
    TooLarge(usize),
}

impl Error {
    /// Returns whether another spec is needed.
    #[must_use]
    pub fn is_of_spec(&self) -> bool {
        matches!(self, Self::Filter { .. })
    }
}

/// An open pull request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// The newest commit.
    pub sha: String,
    /// Its branch.
    pub branch: String,
    /// Who opened it.
    pub author: String,
    /// Its title.
    pub title: String,
    /// Its labels.
    pub labels: Vec<String>,
}

/// A branch or tag, with the commit or digest that it points to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Its name.
    pub name: String,
    /// What it points to.
    pub target: String,
}

/// Which of what was found counts.
#[derive(Debug)]
pub struct Filter {
    branch: Pair,
    tag: Pair,
    environment: Pair,
    labels: Vec<String>,
    skipped: Vec<String>,
    range: Option<go_semver::Constraints>,
    limit: usize,
}

#[derive(Debug, Default)]
struct Pair {
    include: Option<Regexp>,
    exclude: Option<Regexp>,
}

impl Pair {
    fn takes(&self, name: &str) -> bool {
        let matches = |pattern: &Regexp| pattern.is_match(name.as_bytes());
        self.include.as_ref().is_none_or(matches) && !self.exclude.as_ref().is_some_and(matches)
    }
}

impl Filter {
    /// Reads a filter.
    ///
    /// # Errors
    /// When a pattern or the range of versions cannot be read.
    pub fn new(filter: Option<&InputFilter>, skip: Option<&InputSkip>) -> Result<Self, Error> {
        let filter = filter.cloned().unwrap_or_default();
        let pattern = |field: &'static str, text: &str| {
            if text.is_empty() {
                return Ok(None);
            }
            let compiled = Regexp::compile(text.as_bytes());
            let compiled = compiled.map_err(|error| Error::Filter {
                field,
                problem: error.to_string(),
            })?;
            Ok(Some(compiled))
        };
        let range = match filter.semver.as_str() {
            "" => None,
            text => {
                let range = go_semver::tags::parse_range(text);
                Some(range.map_err(|error| Error::Filter {
                    field: "semver",
                    problem: error.to_string(),
                })?)
            }
        };
        Ok(Self {
            branch: Pair {
                include: pattern("includeBranch", &filter.include_branch)?,
                exclude: pattern("excludeBranch", &filter.exclude_branch)?,
            },
            tag: Pair {
                include: pattern("includeTag", &filter.include_tag)?,
                exclude: pattern("excludeTag", &filter.exclude_tag)?,
            },
            environment: Pair {
                include: pattern("includeEnvironment", &filter.include_environment)?,
                exclude: pattern("excludeEnvironment", &filter.exclude_environment)?,
            },
            labels: filter.labels,
            skipped: skip.map(|skip| skip.labels.clone()).unwrap_or_default(),
            range,
            limit: filter.limit.map_or(DEFAULT_LIMIT, |limit| limit as usize),
        })
    }

    /// Returns the inputs of the pull requests that count, in their order.
    #[must_use]
    pub fn pull_requests(&self, found: &[PullRequest]) -> Vec<AnyMap> {
        let counting = found.iter().filter(|one| self.takes(one)).take(self.limit);
        counting.map(PullRequest::inputs).collect()
    }

    /// Returns whether a pull request counts.
    #[must_use]
    pub fn takes(&self, one: &PullRequest) -> bool {
        let has = |label: &str| one.labels.iter().any(|own| own == label);
        let is_skipped = self.skipped.iter().any(|label| match label.strip_prefix('!') {
            Some(label) => !has(label),
            None => has(label),
        });
        !is_skipped && self.branch.takes(&one.branch) && self.labels.iter().all(|label| has(label))
    }

    /// Returns the inputs of the branches that count, by name.
    #[must_use]
    pub fn branches(&self, mut found: Vec<Named>) -> Vec<AnyMap> {
        found.retain(|one| self.branch.takes(&one.name));
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found.truncate(self.limit);
        let inputs = found.iter().map(|one| one.inputs("branch", "sha"));
        inputs.collect()
    }

    /// Returns the tags that count: the newest version first with a range, else the last in the alphabet first.
    #[must_use]
    pub fn tags<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
        let mut names: Vec<_> = names.into_iter().filter(|name| self.tag.takes(name)).collect();
        match &self.range {
            None => names.sort_unstable_by(|a, b| b.cmp(a)),
            Some(range) => {
                let parsed = names
                    .into_iter()
                    .filter_map(|name| Some((go_semver::Version::parse(name).ok()?, name)));
                let mut parsed: Vec<_> = parsed.filter(|(version, _)| range.check(version)).collect();
                parsed.sort_by(|(a, _), (b, _)| go_semver::tags::compare(b, a));
                names = parsed.into_iter().map(|(_, name)| name).collect();
            }
        }
        names.truncate(self.limit);
        names
    }

    /// Returns the inputs of the merge requests whose environments count.
    #[must_use]
    pub fn environments(&self, found: &[(PullRequest, String)]) -> Vec<AnyMap> {
        let counting = found
            .iter()
            .filter(|(request, slug)| self.takes(request) && self.environment.takes(slug));
        let inputs = counting.take(self.limit).map(|(request, slug)| {
            let mut inputs = request.inputs();
            inputs.insert("slug".to_owned(), clean(slug, LONGEST).into());
            inputs
        });
        inputs.collect()
    }
}

impl PullRequest {
    fn inputs(&self) -> AnyMap {
        let labels = self.labels.iter().take(MAX_LABELS);
        let labels: Vec<_> = labels.map(|label| clean(label, LONGEST)).collect();
        map(json!({
            "id": self.number.to_string(),
            "sha": clean(&self.sha, LONGEST),
            "branch": clean(&self.branch, LONGEST),
            "author": clean(&self.author, LONGEST),
            "title": clean(&self.title, LONGEST_TITLE),
            "labels": labels,
        }))
    }
}

impl Named {
    /// Returns its inputs: `id`, its name and what it points to under these keys.
    #[must_use]
    pub fn inputs(&self, name: &str, target: &str) -> AnyMap {
        map(json!({
            "id": checksum(&self.name),
            name: clean(&self.name, LONGEST),
            target: clean(&self.target, LONGEST),
        }))
    }
}

/// Reads the answer of a service: `{"inputs": [{"id": "…", …}]}`.
///
/// # Errors
/// When it is something else.
pub fn of_service(answer: &[u8], limit: &InputFilter) -> Result<Vec<AnyMap>, Error> {
    let refused = |problem: String| Error::Service(problem);
    let answer: Value = serde_json::from_slice(answer).map_err(|error| refused(error.to_string()))?;
    let sets = answer["inputs"].as_array();
    let sets = sets.ok_or_else(|| refused("there is no list 'inputs'".to_owned()))?;
    let limit = limit.limit.map_or(DEFAULT_LIMIT, |limit| limit as usize);
    let mut seen = std::collections::HashSet::new();
    let sets = sets.iter().take(limit).enumerate().map(|(index, set)| {
        let set = set
            .as_object()
            .ok_or_else(|| refused(format!("inputs[{index}] is no object")))?;
        let id = set.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| refused(format!("inputs[{index}] has no text 'id'")))?;
        if !seen.insert(id.to_owned()) {
            return Err(refused(format!("the id '{id}' is there twice")));
        }
        Ok(set.clone())
    });
    sets.collect()
}

/// Puts default values under the inputs of each set, and bounds them all together.
///
/// # Errors
/// When they are too large.
pub fn exported(sets: Vec<AnyMap>, defaults: &AnyMap) -> Result<Vec<AnyMap>, Error> {
    let with_defaults = sets.into_iter().map(|set| {
        let mut all = defaults.clone();
        all.extend(set);
        all
    });
    let mut bytes = 0;
    let mut sets = Vec::new();
    for set in with_defaults {
        bytes += serde_json::to_vec(&set).map_or(0, |text| text.len());
        if bytes > MAX_BYTES {
            return Err(Error::TooLarge(bytes));
        }
        sets.push(set);
    }
    Ok(sets)
}

/// A text in one line, without characters that are not seen.
fn clean(text: &str, longest: usize) -> String {
    let is_break =
        |character: char| character.is_control() || matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}');
    let characters = text
        .chars()
        .map(|character| if is_break(character) { ' ' } else { character });
    characters.take(longest).collect()
}

fn map(value: Value) -> AnyMap {
    match value {
        Value::Object(map) => map,
        _ => AnyMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(value: Value, skip: &[&str]) -> Filter {
        let skip = InputSkip {
            labels: skip.iter().map(|&label| label.to_owned()).collect(),
        };
        Filter::new(Some(&serde_json::from_value(value).unwrap()), Some(&skip)).unwrap()
    }

    fn request(number: u64, branch: &str, labels: &[&str]) -> PullRequest {
        PullRequest {
            number,
            branch: branch.to_owned(),
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            ..PullRequest::default()
        }
    }

    fn ids(inputs: &[AnyMap]) -> Vec<&str> {
        inputs.iter().map(|set| set["id"].as_str().unwrap()).collect()
    }

    #[test]
    fn pull_requests_count_by_labels_and_branches() {
        let all = [
            request(1, "feat/a", &["deploy"]),
            request(2, "feat/b", &["deploy", "stop"]),
            request(3, "fix/c", &["deploy"]),
            request(4, "feat/d", &[]),
            request(5, "feat/e", &["deploy"]),
        ];
        let of = |value: Value, skip: &[&str]| filter(value, skip).pull_requests(&all);
        assert_eq!(ids(&of(json!({}), &[])), ["1", "2", "3", "4", "5"]);
        assert_eq!(
            ids(&of(
                json!({"labels": ["deploy"], "includeBranch": "^feat/"}),
                &["stop"]
            )),
            ["1", "5"]
        );
        assert_eq!(ids(&of(json!({"excludeBranch": "^feat/"}), &[])), ["3"]);
        assert_eq!(ids(&of(json!({}), &["!stop"])), ["2"]);
        assert_eq!(ids(&of(json!({"limit": 2}), &[])), ["1", "2"]);
    }

    #[test]
    fn what_strangers_write_stays_in_its_line() {
        let one = PullRequest {
            title: format!("a\nb\r\u{85}c\u{2028}d{}", "x".repeat(300)),
            ..request(7, "feat/a", &["x\ny"])
        };
        let inputs = &filter(json!({}), &[]).pull_requests(&[one])[0];
        let title = inputs["title"].as_str().unwrap();
        assert!(
            title.starts_with("a b  c dxx") && title.chars().count() == LONGEST_TITLE,
            "{title}"
        );
        assert_eq!(inputs["labels"], json!(["x y"]));
    }

    #[test]
    fn tags_are_sorted_by_version_with_a_range() {
        let names = ["1.2.0", "latest", "1.10.0", "2.0.0-rc.1", "1.9.1"];
        assert_eq!(
            filter(json!({"semver": "1.x"}), &[]).tags(names),
            ["1.10.0", "1.9.1", "1.2.0"]
        );
        assert_eq!(
            filter(json!({"excludeTag": "rc", "limit": 2}), &[]).tags(names),
            ["latest", "1.9.1"]
        );
    }

    #[test]
    fn a_bad_filter_is_an_error_of_the_spec() {
        for (field, text) in [("includeBranch", "["), ("semver", "not a range")] {
            let filter = serde_json::from_value(json!({ field: text })).unwrap();
            let error = Filter::new(Some(&filter), None).unwrap_err();
            assert!(
                error.is_of_spec() && error.to_string().starts_with(&format!("spec.filter.{field}: ")),
                "{error}"
            );
        }
    }

    #[test]
    fn answers_of_services_are_checked() {
        let none = InputFilter::default();
        let sets = of_service(br#"{"inputs": [{"id": "a", "x": [1]}, {"id": "b"}]}"#, &none).unwrap();
        assert_eq!(ids(&sets), ["a", "b"]);
        for answer in [
            &b"<html>"[..],
            b"{}",
            br#"{"inputs": [1]}"#,
            br#"{"inputs": [{"id": 1}]}"#,
            br#"{"inputs": [{"id": "a"}, {"id": "a"}]}"#,
        ] {
            assert!(
                of_service(answer, &none).is_err(),
                "{}",
                String::from_utf8_lossy(answer)
            );
        }
    }

    #[test]
    fn defaults_are_below_and_all_are_bounded() {
        let set = |value: Value| map(value);
        let sets = exported(
            vec![set(json!({"id": "1", "a": 2}))],
            &set(json!({"a": 1, "b": 1})),
        )
        .unwrap();
        assert_eq!(sets, [set(json!({"id": "1", "a": 2, "b": 1}))]);
        let large = set(json!({"text": "x".repeat(100_000)}));
        let error = exported(vec![set(json!({})); 10], &large).unwrap_err();
        assert!(matches!(error, Error::TooLarge(_)));
    }
}
