//! Rules that leave fields of live objects to others (`spec.ignore`), and what is applied under them. Pure.
//!
//! A rule names fields by JSON pointers, and objects by a selector. An object that exists is compared with its manifest
//! without these fields; when it is applied for another reason, each of them that differs is left out of what is sent if
//! another server-side applier owns it, and sent as it is live if no one else does, as in Flux. What does not exist yet
//! is created as the manifest has it.

mod compare;
mod field;
mod owned;
mod resolve;
mod rule;
mod selector;

pub(crate) use compare::{reduced, same_but};
pub(crate) use field::{Pointer, Step, remove_with_parents as remove};
pub(crate) use owned::FieldSets;
pub use owned::Ignored;
pub(crate) use resolve::{Spot, keep, resolve, spots};

use manifest::{Object, ObjectSelector};
use serde_json::{Map, Value, json};

use crate::fingerprint::Digest;
use selector::CompiledSelector;

pub use rule::{IgnoreError, IgnoreRule};

/// Rules that were understood.
#[derive(Clone, Debug, Default)]
pub struct IgnoreRules {
    rules: Vec<CompiledRule>,
}

#[derive(Clone, Debug)]
struct CompiledRule {
    pointers: Vec<Pointer>,
    selector: Option<CompiledSelector>,
    digest: Digest,
}

impl IgnoreRules {
    /// Compiles rules.
    pub fn compile(rules: &[IgnoreRule]) -> Result<Self, IgnoreError> {
        let rules = rules.iter().map(CompiledRule::new);
        Ok(Self {
            rules: rules.collect::<Result<_, _>>()?,
        })
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns whether a rule is for an object with the labels and annotations of its manifest.
    pub fn select(&self, object: &Object) -> bool {
        let is_for = |rule: &CompiledRule| rule.selector.as_ref().is_none_or(|s| s.selects(object));
        self.rules.iter().any(is_for)
    }

    /// Finds the rules that may be for an object, as far as that can be told without its live labels and annotations;
    /// None when there are none.
    pub(crate) fn candidates(&self, object: &Object) -> Option<Candidates> {
        let is_for = |rule: &&CompiledRule| rule.selector.as_ref().is_none_or(|s| s.names(object));
        let rules: Vec<_> = self.rules.iter().filter(is_for).cloned().collect();
        (!rules.is_empty()).then_some(Candidates { rules })
    }
}

impl CompiledRule {
    fn new(rule: &IgnoreRule) -> Result<Self, IgnoreError> {
        let pointers = rule.paths.iter().map(|path| Pointer::parse(path));
        let target = rule.target.as_ref();
        let selectors = target.map(|t| [t.label_selector.as_str(), t.annotation_selector.as_str()]);
        Ok(Self {
            pointers: pointers.collect::<Result<_, _>>()?,
            selector: target.map(CompiledSelector::new).transpose()?,
            digest: Digest::from_value(&json!([rule.paths, selectors])),
        })
    }
}

/// The rules that may be for one object.
#[derive(Clone, Debug)]
pub(crate) struct Candidates {
    rules: Vec<CompiledRule>,
}

impl Candidates {
    /// Lists the fields to ignore of an object with these labels and annotations, each once.
    pub(crate) fn pointers(
        &self,
        labels: &Map<String, Value>,
        annotations: &Map<String, Value>,
    ) -> Vec<&Pointer> {
        let is_for = |rule: &&CompiledRule| {
            rule.selector
                .as_ref()
                .is_none_or(|s| s.labels_match(labels, annotations))
        };
        let mut pointers: Vec<_> = self
            .rules
            .iter()
            .filter(is_for)
            .flat_map(|r| &r.pointers)
            .collect();
        pointers.sort();
        pointers.dedup();
        pointers
    }

    /// Changes with the rules, so that what was applied under others is looked at again.
    pub(crate) fn digest(&self, manifest: Digest) -> Digest {
        self.rules
            .iter()
            .fold(manifest, |digest, rule| digest.and(rule.digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(labels: Value) -> Object {
        match json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "prod", "labels": labels}})
        {
            Value::Object(map) => Object::new(map, None),
            _ => unreachable!(),
        }
    }

    fn rule(path: &str, target: Option<ObjectSelector>) -> IgnoreRule {
        IgnoreRule {
            paths: vec![path.to_owned()],
            target,
        }
    }

    fn ignored(rules: &[IgnoreRule], labels: Value) -> Vec<String> {
        let object = object(labels.clone());
        let rules = IgnoreRules::compile(rules).unwrap();
        let Some(candidates) = rules.candidates(&object) else {
            return Vec::new();
        };
        let labels = labels.as_object().cloned().unwrap_or_default();
        let pointers = candidates.pointers(&labels, &Map::new());
        pointers.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_select_by_whole_names_patterns_and_labels() {
        let by = |change: fn(&mut ObjectSelector)| {
            let mut target = ObjectSelector::default();
            change(&mut target);
            rule("/spec/replicas", Some(target))
        };
        for (rule, selected) in [
            (rule("/spec/replicas", None), true),
            (by(|_| {}), true),
            (by(|t| t.kind = "Deployment".into()), true),
            (by(|t| t.kind = "Deploy".into()), false),
            (by(|t| t.kind = "(Stateful|Dae.*)Set|Deploy.*".into()), true),
            (by(|t| t.group = "app".into()), false),
            (by(|t| t.group = "ap+s".into()), true),
            (by(|t| t.version = "v[12]".into()), true),
            (by(|t| t.namespace = "pro.".into()), true),
            (by(|t| t.name = "webs?".into()), true),
            (by(|t| t.name = "eb".into()), false),
            (by(|t| t.label_selector = "tier in (front, back)".into()), true),
            (by(|t| t.label_selector = "!tier".into()), false),
            (by(|t| t.annotation_selector = "a".into()), false),
        ] {
            let found = ignored(std::slice::from_ref(&rule), json!({"tier": "front"}));
            assert_eq!(!found.is_empty(), selected, "{rule:?}");
        }
    }

    #[test]
    fn rules_without_target_add_up() {
        let rules = [
            rule("/spec/b", None),
            rule("/spec/a", None),
            rule("/spec/b", None),
        ];
        assert_eq!(ignored(&rules, json!({})), ["/spec/a", "/spec/b"]);
    }

    #[test]
    fn wrong_rules_are_refused_in_fluxs_words() {
        let with = |change: fn(&mut ObjectSelector)| {
            let mut target = ObjectSelector::default();
            change(&mut target);
            IgnoreRules::compile(&[rule("/a", Some(target))])
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            with(|t| t.kind = "[".into()),
            "failed to create ignore rule selector: invalid kind regex: error parsing regexp: missing closing ]: `[)$`"
        );
        let labels = with(|t| t.label_selector = "a in b".into());
        assert!(
            labels.starts_with(
                "failed to create ignore rule selector: invalid label selector: unable to parse requirement: "
            ),
            "{labels}"
        );
        let path = IgnoreRules::compile(&[rule("spec/replicas", None)])
            .unwrap_err()
            .to_string();
        assert!(
            path.contains("'spec/replicas': JSON pointer must be empty or start with"),
            "{path}"
        );
        assert_eq!(
            IgnoreRules::compile(&[rule("", None)]).unwrap_err(),
            IgnoreError::Root
        );
    }

    #[test]
    fn the_digest_tells_one_set_of_rules_from_another() {
        let digest = |rules: &[IgnoreRule]| {
            let rules = IgnoreRules::compile(rules).unwrap();
            let candidates = rules.candidates(&object(json!({})));
            candidates.map_or(Digest::NOTHING, |found| found.digest(Digest::NOTHING))
        };
        assert_ne!(digest(&[]), digest(&[rule("/spec/a", None)]));
        assert_ne!(digest(&[rule("/spec/a", None)]), digest(&[rule("/spec/b", None)]));
        let elsewhere = ObjectSelector {
            kind: "Service".into(),
            ..ObjectSelector::default()
        };
        assert_eq!(digest(&[rule("/spec/a", Some(elsewhere))]), digest(&[]));
    }
}
