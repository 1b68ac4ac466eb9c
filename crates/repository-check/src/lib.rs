//! Checks a repository without a cluster.
//!
//! In: a tree of files. Out: findings, each with a rule, and with file and line where there are any. All that builds is built: the
//! folders of Kustomizations, and kustomizations that no other one uses. Nothing is fetched, and nothing is decrypted.
//!
//! | module | what it is |
//! |---|---|
//! | `scan` | the manifests and kustomizations of a tree |
//! | `builds` | what is built, and by which Kustomization |
//! | `schema` | objects against the schemas of their kinds |
//! | `removed` | APIs that a version of Kubernetes no longer serves |
//! | `rules` | rules in CEL: of ValidatingAdmissionPolicies in the repository, and one's own |
//! | `report` | the findings, and how programs read them: JSON, SARIF, JUnit |

mod builds;
mod removed;
mod report;
mod rules;
mod scan;
mod schema;

use std::collections::BTreeMap;

use kustomize_build::FileSystem;
use manifest::{Object, ObjectId};

pub use report::{Finding, Level, Report};
pub use rules::Rule;

/// What is checked besides.
#[derive(Debug, Default)]
pub struct Settings {
    /// Minor version of Kubernetes 1.x for which the manifests are.
    pub kubernetes: Option<u32>,
    /// Rules of one's own.
    pub rules: Vec<Rule>,
}

/// Checks a tree.
pub fn check(tree: &dyn FileSystem, settings: &Settings) -> Report {
    check_until(tree, settings, &|| false)
}

/// Checks a tree, and ends as soon as `is_given_up` says so, with some of the findings. It is asked between builds and objects.
pub fn check_until(tree: &dyn FileSystem, settings: &Settings, is_given_up: &dyn Fn() -> bool) -> Report {
    let mut report = Report::default();
    let scanned = scan::scan(tree, &mut report);
    let built = builds::build_all(tree, &scanned, is_given_up, &mut report);
    let mut objects: Vec<&Object> = built.iter().flat_map(|build| &build.objects).collect();
    report.objects = objects.len();
    report.builds = built.len();
    objects.extend(builds::loose(&scanned, &built).flat_map(|(_, objects)| objects));
    let schemas = schema::Schemas::new(&objects);
    let rules = rules::of_policies(&objects, &mut report);
    for object in unique(&objects) {
        if is_given_up() {
            return report;
        }
        schemas.check(object, &mut report);
        removed::check(object, settings.kubernetes, &mut report);
        for rule in rules.iter().chain(&settings.rules) {
            rule.check(object, &mut report);
        }
    }
    builds::twice(&built, &mut report);
    report.sort();
    report
}

/// What several builds make of the same line is looked at once.
fn unique<'a>(objects: &[&'a Object]) -> Vec<&'a Object> {
    let mut seen: BTreeMap<(ObjectId, Option<String>), Vec<&Object>> = BTreeMap::new();
    let mut found = Vec::new();
    for object in objects {
        let key = (object.id(), object.origin().map(ToString::to_string));
        let same = seen.entry(key).or_default();
        if same.iter().all(|known| known.value() != object.value()) {
            same.push(object);
            found.push(*object);
        }
    }
    found
}

#[cfg(test)]
mod tests;
