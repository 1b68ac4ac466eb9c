//! Recordings as files: a line for each object that is other than after the step before, and for the events of an object.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::life::{Recording, Step};
use crate::snapshot::Left;

#[derive(Serialize, Deserialize)]
struct Line {
    step: Step,
    case: String,
    /// The object, or what the events are about.
    of: String,
    #[serde(flatten)]
    what: What,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum What {
    /// Null for an object that is gone.
    Object(Value),
    Events(Vec<String>),
}

/// The recording as lines of JSON.
pub fn to_lines(recording: &Recording) -> Result<String> {
    let nothing = Left::default();
    let mut before: BTreeMap<&str, &Left> = BTreeMap::new();
    let mut text = String::new();
    for (step, cases) in &recording.steps {
        for (case, left) in cases {
            let last = before.insert(case, left).unwrap_or(&nothing);
            let mut add = |of: &str, what: What| -> Result<()> {
                let (case, of) = (case.clone(), of.to_owned());
                text += &serde_json::to_string(&Line {
                    step: *step,
                    case,
                    of,
                    what,
                })?;
                text.push('\n');
                Ok(())
            };
            for (name, value) in &left.objects {
                if last.objects.get(name) != Some(value) {
                    add(name, What::Object(value.clone()))?;
                }
            }
            for name in last
                .objects
                .keys()
                .filter(|name| !left.objects.contains_key(*name))
            {
                add(name, What::Object(Value::Null))?;
            }
            for (about, events) in &left.events {
                add(about, What::Events(events.clone()))?;
            }
        }
    }
    Ok(text)
}

/// The recording that [`to_lines`] wrote.
pub fn from_lines(text: &str) -> Result<Recording> {
    let mut lines = text
        .lines()
        .map(serde_json::from_str::<Line>)
        .collect::<Result<Vec<_>, _>>()?;
    let mut known: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
    let mut recording = Recording::default();
    for step in Step::ALL {
        let mut events: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
        for line in lines.extract_if(.., |line| line.step == step) {
            let objects = known.entry(line.case.clone()).or_default();
            match line.what {
                What::Object(Value::Null) => drop(objects.remove(&line.of)),
                What::Object(value) => drop(objects.insert(line.of, value)),
                What::Events(told) => drop(events.entry(line.case).or_default().insert(line.of, told)),
            }
        }
        let left = known.iter().map(|(case, objects)| {
            let events = events.remove(case).unwrap_or_default();
            let objects = objects.clone();
            (case.clone(), Left { objects, events })
        });
        recording.steps.push((step, left.collect()));
    }
    Ok(recording)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_recording_comes_back_as_it_was() {
        let objects = |step: Step| match step {
            Step::Created => json!({"a": 1, "b": 1}),
            Step::Deleted => json!({"c": 1}),
            _ => json!({"a": 1, "b": 2, "c": 1}),
        };
        let steps = Step::ALL.map(|step| {
            let objects = serde_json::from_value(objects(step)).unwrap();
            let events = BTreeMap::from([("app".to_owned(), vec![step.name().to_owned()])]);
            (
                step,
                BTreeMap::from([("case".to_owned(), Left { objects, events })]),
            )
        });
        let recording = Recording { steps: steps.into() };
        let text = to_lines(&recording).unwrap();
        assert_eq!(from_lines(&text).unwrap(), recording);
        // Of objects only what each step changed: a and b, b and c, and that both are gone.
        assert_eq!(text.matches("\"object\":").count(), 6);
    }
}
