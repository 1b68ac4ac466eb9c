//! What is said, and signed, of a promotion that ended (ADR 23): an in-toto statement, and what others read of it. Pure: signatures are
//! the caller's matter.

use api::delivery::{Pipeline, PromotionOutcome, PromotionRecord, Release};
use serde_json::{Value, json};

use crate::decisions::Decisions;
use crate::values::tag_and_digest;

/// Type of the statements.
pub const PREDICATE_TYPE: &str = "https://windlass.dev/promotion/v1";
/// Bytes of the values of a release up to which a statement has them; its digest is about all.
const MAX_VALUES: usize = 2048;

/// The statement about a promotion.
pub fn statement(
    pipeline: &Pipeline,
    environment: &str,
    record: &PromotionRecord,
    release: &Release,
    decisions: &Decisions,
) -> Value {
    let metadata = &pipeline.metadata;
    let approvals = decisions.approvals.iter();
    let approvals = approvals.filter(|one| one.environment == environment && one.digest == release.digest);
    let mut told = json!({"number": release.number, "digest": release.digest, "revision": release.revision});
    let values = json!(release.values);
    if values.to_string().len() <= MAX_VALUES {
        told["values"] = values;
    }
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects(record, release),
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "pipeline": {"namespace": metadata.namespace, "name": metadata.name, "uid": metadata.uid},
            "environment": environment,
            "targets": record.targets,
            "release": told,
            "commit": record.commit,
            "outcome": record.outcome,
            "asked": record.asked,
            "message": record.message,
            "approvals": approvals.collect::<Vec<_>>(),
            "began": record.began,
            "ended": record.ended,
        },
    })
}

/// The release, its images as far as they have digests, and the commit.
fn subjects(record: &PromotionRecord, release: &Release) -> Vec<Value> {
    let hex = release.digest.strip_prefix("sha256:").unwrap_or_default();
    let mut subjects = vec![json!({"name": "release", "digest": {"sha256": hex}})];
    for (field, value) in &release.values {
        let image = field.split_once(": image ").map(|(_, image)| image);
        let digest = tag_and_digest(value).1.strip_prefix("sha256:");
        if let (Some(image), Some(hex)) = (image, digest) {
            subjects.push(json!({"name": image, "digest": {"sha256": hex}}));
        }
    }
    if !record.commit.is_empty() {
        subjects.push(json!({"name": "commit", "digest": {"gitCommit": record.commit}}));
    }
    subjects
}

/// Returns why the predicate of a verified statement about a release does not say that the release is healthy in an environment of a
/// pipeline.
///
/// # Errors
/// When it says something else.
pub fn check(predicate: &Value, pipeline: (&str, &str), environment: &str) -> Result<(), String> {
    check_place(predicate, pipeline, environment)?;
    match text(predicate, "/outcome") == json!(PromotionOutcome::Succeeded) {
        true => Ok(()),
        false => Err("it says that the promotion failed".to_owned()),
    }
}

/// Returns what in a record the predicate of a verified statement does not say.
///
/// # Errors
/// When it says something else.
pub fn check_record(predicate: &Value, record: &PromotionRecord) -> Result<(), String> {
    let told = json!(record);
    // Which of the promotions of a release it is, the rest says.
    for (field, name) in [
        ("commit", "the commit"),
        ("outcome", "the outcome"),
        ("ended", "the end"),
    ] {
        if predicate[field] != told[field] {
            return Err(format!("it says something else about {name} than the status"));
        }
    }
    Ok(())
}

/// Returns about which other pipeline or environment the predicate of a verified statement is.
///
/// # Errors
/// When it is about another one.
pub fn check_place(
    predicate: &Value,
    (namespace, name): (&str, &str),
    environment: &str,
) -> Result<(), String> {
    let text = |pointer: &str| text(predicate, pointer);
    let of = (text("/pipeline/namespace"), text("/pipeline/name"));
    if of != (namespace, name) {
        return Err(format!(
            "it is about the pipeline {}/{}",
            shown(of.0),
            shown(of.1)
        ));
    }
    if text("/environment") != environment {
        return Err(format!(
            "it is about the environment {}",
            shown(text("/environment"))
        ));
    }
    Ok(())
}

fn text<'a>(predicate: &'a Value, pointer: &str) -> &'a str {
    predicate
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// A text of who signed it.
fn shown(text: &str) -> String {
    crate::decisions::shown(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decisions::APPROVALS;

    fn pipeline() -> Pipeline {
        serde_json::from_value(json!({
            "apiVersion": "delivery.windlass.dev/v1alpha1", "kind": "Pipeline",
            "metadata": {"name": "shop", "namespace": "team", "uid": "u"}, "spec": {"apps": [], "environments": []},
        }))
        .unwrap()
    }

    fn record() -> PromotionRecord {
        serde_json::from_value(json!({
            "release": 2, "targets": ["eu"], "outcome": "Succeeded", "commit": "abc", "ended": "2026-11-27T10:00:00Z",
        }))
        .unwrap()
    }

    fn release(values: Value) -> Release {
        serde_json::from_value(json!({"number": 2, "digest": "sha256:d2", "values": values})).unwrap()
    }

    #[test]
    fn a_statement_names_what_moved_by_its_digests_and_who_agreed() {
        let list = json!([
            {"environment": "production", "digest": "sha256:d2", "by": "ana", "group": "leads"},
            {"environment": "production", "digest": "sha256:d1", "by": "ben"},
            {"environment": "staging", "digest": "sha256:d2", "by": "eve"},
        ])
        .to_string();
        let decisions = Decisions::parse(|name| (name == APPROVALS).then_some(list.as_str())).unwrap();
        let values = json!({
            "HelmRelease/shop: chart": "1.0.0",
            "HelmRelease/shop: image h.io/web": "v2@sha256:aa",
            "HelmRelease/shop: image h.io/old": "v1",
        });
        let said = statement(
            &pipeline(),
            "production",
            &record(),
            &release(values.clone()),
            &decisions,
        );
        assert_eq!(
            said["subject"],
            json!([
                {"name": "release", "digest": {"sha256": "d2"}},
                {"name": "h.io/web", "digest": {"sha256": "aa"}},
                {"name": "commit", "digest": {"gitCommit": "abc"}},
            ])
        );
        let predicate = &said["predicate"];
        assert_eq!(
            predicate["approvals"],
            json!([{"environment": "production", "digest": "sha256:d2", "by": "ana", "group": "leads"}])
        );
        assert_eq!(predicate["release"]["values"], values);
        let many: serde_json::Map<String, Value> = (0..50)
            .map(|at| {
                (
                    format!("HelmRelease/a{at}: image {}", "x".repeat(50)),
                    json!("v1"),
                )
            })
            .collect();
        let said = statement(
            &pipeline(),
            "production",
            &record(),
            &release(json!(many)),
            &decisions,
        );
        assert_eq!(said["predicate"]["release"].get("values"), None);
    }

    #[test]
    fn a_statement_about_something_else_does_not_count() {
        let said = |record: &PromotionRecord| {
            statement(
                &pipeline(),
                "production",
                record,
                &release(json!({})),
                &Decisions::default(),
            )["predicate"]
                .clone()
        };
        let good = said(&record());
        let failed = said(&PromotionRecord {
            outcome: PromotionOutcome::Failed,
            ..record()
        });
        for (predicate, pipeline, environment, expected) in [
            (&good, ("team", "shop"), "production", Ok(())),
            (
                &good,
                ("team", "other"),
                "production",
                Err("it is about the pipeline team/shop"),
            ),
            (
                &good,
                ("other", "shop"),
                "production",
                Err("it is about the pipeline team/shop"),
            ),
            (
                &good,
                ("team", "shop"),
                "staging",
                Err("it is about the environment production"),
            ),
            (
                &failed,
                ("team", "shop"),
                "production",
                Err("it says that the promotion failed"),
            ),
            (
                &json!({}),
                ("team", "shop"),
                "production",
                Err("it is about the pipeline /"),
            ),
        ] {
            let found = check(predicate, pipeline, environment);
            assert_eq!(
                found,
                expected.map_err(str::to_owned),
                "{pipeline:?} {environment}"
            );
        }
    }
}
