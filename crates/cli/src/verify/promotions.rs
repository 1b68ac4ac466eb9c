//! Whether the promotions of a pipeline are attested, and by whom.

use api::delivery::{EnvironmentStatus, Pipeline, PromotionRecord};
use promotion::statement::{self, PREDICATE_TYPE};
use serde_json::{Value, json};
use signature::cosign::{self, PublicKey};

use crate::cluster::output::{self, Cell, Colours, Tone};
use crate::cluster::{Cluster, Failure, Output, pipeline, print};

/// What is found of an environment.
struct Found<'a> {
    environment: &'a str,
    record: &'a PromotionRecord,
    /// The predicate of the statement, or why it does not count.
    verdict: Result<Value, String>,
}

/// Verifies the newest promotion of each environment of a pipeline.
pub(super) async fn run(
    cluster: &Cluster,
    name: &str,
    keys: &[PublicKey],
    is_json: bool,
    report_line: impl Fn(&str),
) -> Result<(), Failure> {
    let (id, pipeline) = pipeline::read(cluster, name).await?;
    let environments = pipeline.status.iter().flat_map(|status| &status.environments);
    let found = environments.filter_map(|environment| one(&pipeline, environment, keys));
    let found: Vec<_> = found.collect();
    if found.is_empty() {
        report_line(&format!("{id} has not promoted anything yet"));
        return Ok(());
    }
    let text = match is_json {
        true => output::document(&found.iter().map(document).collect(), Output::Json)?,
        false => {
            let header = [
                "ENVIRONMENT",
                "RELEASE",
                "COMMIT",
                "OUTCOME",
                "APPROVED BY",
                "ATTESTATION",
            ];
            let rows: Vec<_> = found.iter().map(row).collect();
            output::table(&header, &rows, Colours::of_terminal())
        }
    };
    print(&text)?;
    let bad = found.iter().filter(|one| one.verdict.is_err()).count();
    match bad {
        0 => Ok(()),
        _ => Err(Failure::NotReady(format!(
            "{bad} of {} environments have a promotion without a good attestation",
            found.len()
        ))),
    }
}

fn one<'a>(pipeline: &Pipeline, environment: &'a EnvironmentStatus, keys: &[PublicKey]) -> Option<Found<'a>> {
    let record = environment.history.first()?;
    Some(Found {
        environment: &environment.name,
        record,
        verdict: verify(pipeline, &environment.name, record, keys),
    })
}

fn verify(
    pipeline: &Pipeline,
    environment: &str,
    record: &PromotionRecord,
    keys: &[PublicKey],
) -> Result<Value, String> {
    let envelope = record.attestation.as_ref().ok_or("none")?;
    let mut releases = pipeline.status.iter().flat_map(|status| &status.releases);
    let release = releases.find(|one| one.number == record.release);
    let digest = &release.ok_or("the release is not known any more")?.digest;
    let mut problem = String::new();
    for key in keys {
        match cosign::attested(envelope.as_bytes(), digest, PREDICATE_TYPE, key) {
            Ok(predicate) => {
                let metadata = &pipeline.metadata;
                let text = |text: &Option<String>| text.clone().unwrap_or_default();
                let (namespace, name) = (text(&metadata.namespace), text(&metadata.name));
                statement::check_place(&predicate, (&namespace, &name), environment)?;
                statement::check_record(&predicate, record)?;
                return Ok(predicate);
            }
            Err(error) => problem = error.to_string(),
        }
    }
    Err(problem)
}

fn row(found: &Found<'_>) -> Vec<Cell> {
    let record = found.record;
    let approvals = found
        .verdict
        .as_ref()
        .ok()
        .and_then(|predicate| predicate["approvals"].as_array());
    let people = approvals.into_iter().flatten().filter_map(|one| {
        let by = one["by"].as_str()?;
        Some(match one["group"].as_str() {
            Some(group) => format!("{by} ({group})"),
            None => by.to_owned(),
        })
    });
    let (verdict, tone) = match &found.verdict {
        Ok(_) => ("good".to_owned(), Tone::Good),
        Err(why) => (why.clone(), Tone::Bad),
    };
    vec![
        found.environment.to_owned().into(),
        record.release.to_string().into(),
        record.commit.get(..7).unwrap_or(&record.commit).to_owned().into(),
        json!(record.outcome)
            .as_str()
            .unwrap_or_default()
            .to_owned()
            .into(),
        people.collect::<Vec<_>>().join(", ").into(),
        Cell::toned(verdict, tone),
    ]
}

fn document(found: &Found<'_>) -> Value {
    let (predicate, problem) = match &found.verdict {
        Ok(predicate) => (predicate.clone(), Value::Null),
        Err(why) => (Value::Null, json!(why)),
    };
    json!({
        "environment": found.environment,
        "release": found.record.release,
        "verified": found.verdict.is_ok(),
        "problem": problem,
        "predicate": predicate,
    })
}
