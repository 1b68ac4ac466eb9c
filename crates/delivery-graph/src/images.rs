//! Images: why a policy chose a tag, and which policy and automation chose the images that an object runs.
//!
//! In: objects as they are. A registry is not asked: of the tags that are passed over, those are judged which the status of
//! the ImageRepository lists.

use std::collections::BTreeMap;

use api::image::ImagePolicySpec;
use image_policy::Policy;
use image_policy::hold::{self, Holds};
use manifest::ObjectId;
use serde::Serialize;
use serde_json::Value;

use crate::object::{self, list, text};
use crate::walk::Finding;
use crate::{Objects, kind, one_line};

/// What a policy says about a tag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// The tag.
    pub tag: String,
    /// Why it was chosen, or not.
    pub verdict: String,
}

/// An image of an object, and who chose it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChosenImage {
    /// The image, as its container has it.
    pub image: String,
    /// The ImagePolicy that chose its tag.
    pub policy: String,
    /// The ImageUpdateAutomation that writes the choice into the source.
    pub automation: String,
    /// The commit that the automation pushed last.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub commit: String,
    /// The tag that the policy has chosen, if the object does not run it yet.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub newer: String,
}

/// Judges the newest tags of a repository by a policy. Empty if one of the two cannot be read.
pub fn judge(policy: &Value, repository: &Value) -> Vec<Judged> {
    let spec = policy.get("spec").cloned().unwrap_or_default();
    let Ok(spec) = serde_json::from_value::<ImagePolicySpec>(spec) else {
        return Vec::new();
    };
    let Ok(rules) = Policy::try_from(&spec) else {
        return Vec::new();
    };
    let chosen = text(policy, "/status/latestRef/tag");
    let tags = list(repository, "/status/lastScanResult/latestTags");
    let mut tags: Vec<&str> = tags.iter().filter_map(Value::as_str).collect();
    if !chosen.is_empty() && !tags.contains(&chosen) {
        tags.push(chosen);
    }
    let annotations = policy.pointer("/metadata/annotations");
    let annotation = annotations.and_then(|all| all.get(hold::ANNOTATION)?.as_str());
    let holds = Holds::parse(annotation).unwrap_or_default();
    let ineligible = ineligible(policy);
    let judged = tags.into_iter().map(|tag| Judged {
        tag: one_line(tag),
        verdict: match (holds.get(tag), ineligible.get(tag)) {
            (Some(hold), _) => one_line(&hold.to_string()),
            (None, Some(reason)) => one_line(reason),
            (None, None) => rules.verdict(tag, chosen).to_string(),
        },
    });
    judged.collect()
}

/// Why tags do not meet what the policy demands, by tag, in the words of its status.
fn ineligible(policy: &Value) -> BTreeMap<&str, &str> {
    let conditions = list(policy, "/status/conditions").iter();
    let told = conditions.filter(|condition| {
        text(condition, "/type") == "TagsIneligible" || text(condition, "/reason") == "NoEligibleTag"
    });
    let lines = told.flat_map(|condition| text(condition, "/message").lines());
    lines.filter_map(|line| line.split_once(": ")).collect()
}

/// Finds who chose the images of an object: the automations that write to the sources on the way to it.
pub async fn chosen(objects: &dyn Objects, object: &Value, way: &Finding) -> Vec<ChosenImage> {
    let images = images_of(object);
    let sources = sources_of(way);
    if images.is_empty() || sources.is_empty() {
        return Vec::new();
    }
    let Some(automations) = kind::exact("ImageUpdateAutomation") else {
        return Vec::new();
    };
    let automations = objects.list(automations).await;
    let mut found = Vec::new();
    for automation in automations.iter().filter(|one| writes_to(one, &sources)) {
        for image in &images {
            found.extend(choices(automation, image));
        }
    }
    found
}

fn writes_to(automation: &Value, sources: &[ObjectId]) -> bool {
    let links = object::links(automation);
    links
        .iter()
        .any(|link| link.word == "source" && sources.contains(&link.id))
}

/// The policies of an automation that chose a tag of an image.
fn choices(automation: &Value, image: &str) -> Vec<ChosenImage> {
    let observed = automation
        .pointer("/status/observedPolicies")
        .and_then(Value::as_object);
    let (repository, tag) = parts(image);
    let observed = observed.into_iter().flatten();
    let same = observed.filter(|(_, choice)| canonical(text(choice, "/name")) == repository);
    let chosen = same.map(|(policy, choice)| ChosenImage {
        image: one_line(image),
        policy: object::observed_policy(automation, &one_line(policy))
            .map(|id| id.to_string())
            .unwrap_or_default(),
        automation: object::id(automation).to_string(),
        commit: one_line(text(automation, "/status/lastPushCommit")),
        newer: match text(choice, "/tag") {
            newest if Some(newest) != tag && tag.is_some() => one_line(newest),
            _ => String::new(),
        },
    });
    chosen.collect()
}

/// The images of the containers of a Pod, or of the template that an object has for Pods, each once.
fn images_of(object: &Value) -> Vec<String> {
    const SPECS: [&str; 3] = [
        "/spec",
        "/spec/template/spec",
        "/spec/jobTemplate/spec/template/spec",
    ];
    let mut images = Vec::new();
    for spec in SPECS {
        for containers in ["initContainers", "containers"] {
            let containers = list(object, &format!("{spec}/{containers}"));
            images.extend(containers.iter().map(|one| text(one, "/image").to_owned()));
        }
    }
    images.retain(|image| !image.is_empty());
    images.sort_unstable();
    images.dedup();
    images
}

/// The sources that something on the way was made of.
fn sources_of(way: &Finding) -> Vec<ObjectId> {
    let mut found: Vec<ObjectId> = kind::parse_id(&way.object)
        .into_iter()
        .filter(|id| id.kind == "GitRepository")
        .collect();
    found.extend(way.because.iter().flat_map(sources_of));
    found
}

/// The repository of an image, and its tag if it has one.
fn parts(image: &str) -> (String, Option<&str>) {
    let name = image.split('@').next().unwrap_or_default();
    match name.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (canonical(repository), Some(tag)),
        _ => (canonical(name), None),
    }
}

/// Docker Hub's names in their one form.
fn canonical(repository: &str) -> String {
    let bare = ["docker.io/", "index.docker.io/"]
        .into_iter()
        .find_map(|host| repository.strip_prefix(host))
        .unwrap_or(repository);
    bare.strip_prefix("library/").unwrap_or(bare).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::walk::{State, finding};

    #[test]
    fn newest_tags_are_judged_beside_the_chosen_one() {
        let policy = json!({"spec": {"imageRepositoryRef": {"name": "app"}, "policy": {"semver": {"range": "1.x"}}},
            "status": {"latestRef": {"name": "r.example/app", "tag": "1.2.0"}}});
        let repository =
            json!({"status": {"lastScanResult": {"latestTags": ["latest", "2.0.0", "1.3.0-rc.1"]}}});
        let judged = judge(&policy, &repository);
        let lines: Vec<String> = judged
            .iter()
            .map(|one| format!("{}: {}", one.tag, one.verdict))
            .collect();
        assert_eq!(
            lines,
            [
                "latest: not a semantic version with three parts",
                "2.0.0: outside of the range",
                "1.3.0-rc.1: a pre-release, and the range names none",
                "1.2.0: chosen",
            ]
        );
        assert_eq!(judge(&json!({"spec": {"policy": 1}}), &repository), []);
    }

    #[test]
    fn a_tag_that_does_not_meet_the_demands_says_which() {
        let spec = json!({"imageRepositoryRef": {"name": "app"}, "policy": {"semver": {"range": "*"}}});
        let repository = json!({"status": {"lastScanResult": {"latestTags": ["1.3.0", "1.2.0"]}}});
        let verdicts = |condition: Value, chosen: &str| {
            let latest = json!({"name": "r.example/app", "tag": chosen});
            let policy = json!({"spec": spec, "status": {"latestRef": latest, "conditions": [condition]}});
            let judged = judge(&policy, &repository);
            judged.into_iter().map(|one| one.verdict).collect::<Vec<_>>()
        };
        let some = json!({"type": "TagsIneligible", "message": "1.3.0: no signatures found\nand 2 more"});
        assert_eq!(verdicts(some, "1.2.0"), ["no signatures found", "chosen"]);
        let all = json!({"type": "Ready", "reason": "NoEligibleTag",
            "message": "no tag is eligible yet:\n1.3.0: is too young\n1.2.0: is too old: really"});
        assert_eq!(verdicts(all, ""), ["is too young", "is too old: really"]);
    }

    #[test]
    fn an_image_is_led_back_to_the_policy_of_an_automation_that_writes_to_its_source() {
        let pod = json!({"kind": "Pod", "spec": {"initContainers": [{"image": "other:1"}],
            "containers": [{"image": "docker.io/library/app:1.0@sha256:aa"}]}});
        let git = finding("GitRepository/shop/fleet".to_owned(), "made of", State::Ready);
        let way = Finding {
            because: vec![git],
            ..finding("Pod/shop/app".to_owned(), "object", State::Ready)
        };
        let automation = |source: &str| {
            json!({"apiVersion": "image.toolkit.fluxcd.io/v1", "kind": "ImageUpdateAutomation",
                "metadata": {"name": "all", "namespace": "shop"},
                "spec": {"sourceRef": {"kind": "GitRepository", "name": source}},
                "status": {"lastPushCommit": "abc", "observedPolicies": {"app": {"name": "app", "tag": "1.1"}}}})
        };
        let sources = sources_of(&way);
        assert!(!writes_to(&automation("elsewhere"), &sources));
        assert!(writes_to(&automation("fleet"), &sources));
        let images = images_of(&pod);
        assert_eq!(images.len(), 2);
        let found: Vec<ChosenImage> = images
            .iter()
            .flat_map(|image| choices(&automation("fleet"), image))
            .collect();
        assert_eq!(
            found,
            [ChosenImage {
                image: "docker.io/library/app:1.0@sha256:aa".to_owned(),
                policy: "ImagePolicy/shop/app".to_owned(),
                automation: "ImageUpdateAutomation/shop/all".to_owned(),
                commit: "abc".to_owned(),
                newer: "1.1".to_owned(),
            }]
        );
    }
}
