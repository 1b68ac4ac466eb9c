//! What a policy says, in its spec and its annotations. Pure.

use api::image::{ImagePolicy, ImageRef, ImageRepository, ReflectionPolicy};
use image_policy::demand::{self, Demands};
use image_policy::hold::{self, Holds};
use image_policy::{Newest, Policy, Verdict};
use kube::ResourceExt as _;
use oci_verify::Statement;

use super::{Error, eligible};
use crate::tags::TagList;

/// Annotation of a policy that must not go back to a tag which its order places before the chosen one.
pub(crate) const DOWNGRADES: &str = "windlass.dev/downgrades";
/// Its only value.
const FORBIDDEN: &str = "forbidden";

/// What a policy says.
pub(super) struct Rules {
    policy: Policy,
    /// Tags that people hold back.
    pub(super) holds: Holds,
    pub(super) demands: Demands,
    /// Of the demanded attestations.
    pub(super) statements: Vec<Statement>,
    may_go_back: bool,
}

impl Rules {
    /// Reads the object. A rule that is misunderstood must not count as met.
    pub(super) fn read(object: &ImagePolicy) -> Result<Self, Error> {
        let annotation = |name: &str| object.annotations().get(name).map(String::as_str);
        let invalid = |problem: &dyn std::error::Error| Error::Invalid(problem.to_string());
        let policy = Policy::try_from(&object.spec).map_err(|error| invalid(&error))?;
        let may_go_back = match annotation(DOWNGRADES) {
            None => true,
            Some(FORBIDDEN) => false,
            Some(_) => {
                return Err(Error::Invalid(format!(
                    "the annotation {DOWNGRADES} has no value but '{FORBIDDEN}'"
                )));
            }
        };
        let holds = Holds::parse(annotation(hold::ANNOTATION)).map_err(|error| invalid(&error))?;
        let demands = Demands::parse(annotation).map_err(|error| invalid(&error))?;
        let statements = demands.attestations.iter();
        let statements = statements.map(|wanted| Statement::read(wanted.expression.as_deref()));
        let statements = statements.collect::<Result<_, _>>();
        let statements = statements.map_err(|error| {
            Error::Invalid(format!("the annotation {}: {error}", demand::VERIFY_ATTESTATIONS))
        })?;
        if demands.are_about_content() && object.reflection() == ReflectionPolicy::Never {
            return Err(Error::Invalid(format!(
                "the annotation {} needs spec.digestReflectionPolicy IfNotPresent or Always: without a digest, a tag may be \
                 moved after it was checked",
                demands.about_content()
            )));
        }
        Ok(Self {
            policy,
            holds,
            demands,
            statements,
            may_go_back,
        })
    }

    /// Returns whether more than the order of tags decides.
    pub(super) fn must_inspect(&self) -> bool {
        !self.demands.is_empty() || self.holds.has_digests()
    }

    /// The tags that may be chosen, the newest first.
    pub(super) fn newest(&self, tags: &TagList) -> Result<Newest, image_policy::Error> {
        let limit = match self.must_inspect() {
            true => eligible::MAX_CANDIDATES,
            false => 1,
        };
        let free = tags.iter().filter(|tag| self.holds.get(tag).is_none());
        self.policy.newest(free, limit)
    }

    /// The chosen image, if the tag would be a downgrade from it which is forbidden.
    pub(super) fn keeps<'o>(
        &self,
        object: &'o ImagePolicy,
        repository: &ImageRepository,
        tag: &str,
    ) -> Option<&'o ImageRef> {
        let current = current(object, repository)?;
        // Who holds a tag wants another one.
        let is_kept = !self.may_go_back && self.holds.get(&current.tag).is_none();
        (is_kept && self.policy.verdict(tag, &current.tag) == Verdict::Behind).then_some(current)
    }
}

/// The image that was chosen by the same spec. Who changes the spec may want to go back.
fn current<'o>(object: &'o ImagePolicy, repository: &ImageRepository) -> Option<&'o ImageRef> {
    let status = object.status.as_ref()?;
    let is_same_spec = status.observed_generation == object.metadata.generation;
    let current = status.latest_ref.as_ref()?;
    (is_same_spec && current.name == repository.spec.image).then_some(current)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn policy(annotations: &Value, reflection: &str) -> ImagePolicy {
        let interval = (reflection == "Always").then_some("1m");
        serde_json::from_value(json!({
            "apiVersion": "image.toolkit.fluxcd.io/v1", "kind": "ImagePolicy",
            "metadata": {"name": "app", "namespace": "shop", "generation": 1, "annotations": annotations},
            "spec": {
                "imageRepositoryRef": {"name": "app"}, "policy": {"semver": {"range": "*"}},
                "digestReflectionPolicy": reflection, "interval": interval,
            },
            "status": {"observedGeneration": 1, "latestRef": {"name": "h.io/app", "tag": "1.5.0"}},
        }))
        .unwrap()
    }

    fn repository() -> ImageRepository {
        serde_json::from_value(json!({
            "apiVersion": "image.toolkit.fluxcd.io/v1", "kind": "ImageRepository",
            "metadata": {"name": "app", "namespace": "shop"},
            "spec": {"image": "h.io/app", "interval": "1h"},
        }))
        .unwrap()
    }

    #[test]
    fn what_is_checked_must_be_what_is_written() {
        let refused = |annotations: Value, reflection| {
            let read = Rules::read(&policy(&annotations, reflection));
            read.err().map(|error| error.to_string()).unwrap_or_default()
        };
        let platforms = json!({"windlass.dev/platforms": "linux/arm64"});
        let verify =
            json!({"windlass.dev/verify": r#"{"provider": "cosign", "secretRef": {"name": "keys"}}"#});
        let words = " needs spec.digestReflectionPolicy IfNotPresent or Always";
        for annotations in [&platforms, &verify] {
            let error = refused(annotations.clone(), "Never");
            assert!(error.contains(words), "{error}");
            assert_eq!(refused(annotations.clone(), "IfNotPresent"), "");
            assert_eq!(refused(annotations.clone(), "Always"), "");
        }
        assert_eq!(refused(json!({"windlass.dev/minimum-age": "24h"}), "Never"), "");
        let error = refused(json!({"windlass.dev/downgrades": "no"}), "Never");
        assert!(error.contains("has no value but 'forbidden'"), "{error}");
    }

    #[test]
    fn only_a_policy_that_demands_something_has_more_than_one_candidate() {
        let tags: TagList = ["1.0.0", "1.1.0", "1.2.0"].into_iter().collect();
        let newest = |annotations: Value| {
            let newest = Rules::read(&policy(&annotations, "Never")).unwrap().newest(&tags);
            newest.unwrap().iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(newest(json!({})), ["1.2.0"]);
        assert_eq!(
            newest(json!({"windlass.dev/minimum-age": "1h"})),
            ["1.2.0", "1.1.0", "1.0.0"]
        );
        assert_eq!(
            newest(json!({
                "windlass.dev/minimum-age": "1h", "windlass.dev/held-tags": r#"[{"tag": "1.2.0"}]"#,
            })),
            ["1.1.0", "1.0.0"]
        );
    }

    #[test]
    fn a_downgrade_is_kept_from_only_where_it_is_forbidden() {
        let kept = |annotations: Value, tag: &str| {
            let object = policy(&annotations, "Never");
            let rules = Rules::read(&object).unwrap();
            rules.keeps(&object, &repository(), tag).is_some()
        };
        let forbidden = json!({"windlass.dev/downgrades": "forbidden"});
        assert!(!kept(json!({}), "1.0.0"));
        assert!(kept(forbidden.clone(), "1.0.0"));
        assert!(!kept(forbidden, "1.6.0"));
        let held = json!({
            "windlass.dev/downgrades": "forbidden", "windlass.dev/held-tags": r#"[{"tag": "1.5.0"}]"#,
        });
        assert!(!kept(held, "1.0.0"));
    }
}
