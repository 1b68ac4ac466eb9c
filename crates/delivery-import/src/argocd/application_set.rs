//! The Applications that an ApplicationSet makes. Generators that ask other services for what there is are not imported: ResourceSets
//! do that.

use serde_json::Value;

use super::checkouts::Checkouts;
use super::generators::{MOST, World};
use super::parameters::Parameters;
use super::templates::Filling;
use crate::{Note, list, text};

/// What came of a set.
#[derive(Debug, Default)]
pub struct Made {
    /// The Applications.
    pub applications: Vec<Value>,
    /// What is not made, and why.
    pub notes: Vec<Note>,
}

/// Makes them. Among `objects` are the Secrets of clusters.
pub fn applications(set: &Value, objects: &[Value], checkouts: &dyn Checkouts) -> Made {
    let name = format!("ApplicationSet {}", text(set, "/metadata/name"));
    let mut made = Made::default();
    let mut notes = Vec::new();
    let mut note = |field: &str, text: String| {
        notes.push(Note {
            application: name.clone(),
            field: field.to_owned(),
            text,
        });
    };
    let filling = Filling::of(set);
    let world = World {
        objects,
        checkouts,
        filling: &filling,
    };
    let mut parameters = Vec::new();
    for generator in list(set, "/spec/generators") {
        let mut contents = generator
            .as_object()
            .into_iter()
            .flat_map(|fields| fields.values());
        if contents.any(|content| crate::is_set(&content["template"])) {
            note(
                "generators",
                "the template of a generator is left out: that of the set is used".to_owned(),
            );
        }
        match world.expanded(generator, &Parameters::new()) {
            Ok(found) => parameters.extend(found),
            Err(text) => note("generators", text),
        }
    }
    if parameters.len() > MOST {
        note(
            "generators",
            format!(
                "it makes {} Applications; the first {MOST} are imported",
                parameters.len()
            ),
        );
        parameters.truncate(MOST);
    }
    let patch = text(set, "/spec/templatePatch");
    if !patch.is_empty() && matches!(filling, Filling::Plain) {
        note("templatePatch", "it is left out: it needs goTemplate".to_owned());
    }
    let mut left = 0;
    for one in parameters {
        match application(set, patch, &filling, &one) {
            Ok((application, in_braces)) => {
                left += in_braces;
                made.applications.push(application);
            }
            Err(problem) => note("template", format!("an Application is left out: {problem}")),
        }
    }
    if left > 0 {
        note(
            "template",
            "some parameters are not known: look for what is still in braces".to_owned(),
        );
    }
    made.notes = notes;
    made
}

/// One Application, and how many parameters are still in braces in it.
fn application(
    set: &Value,
    patch: &str,
    filling: &Filling,
    parameters: &Parameters,
) -> Result<(Value, usize), String> {
    let mut application = set["spec"]["template"].clone();
    let left = filling.fill(&mut application, parameters)?;
    application["apiVersion"] = "argoproj.io/v1alpha1".into();
    application["kind"] = "Application".into();
    if !patch.is_empty() && matches!(filling, Filling::Go(_)) {
        let mut text = Value::String(patch.to_owned());
        filling.fill(&mut text, parameters)?;
        let text = text.as_str().unwrap_or_default();
        let documents = manifest::yaml::read_documents(text, "templatePatch");
        let documents = documents.map_err(|error| error.to_string())?;
        for document in documents {
            merge_patch(&mut application, &document.value);
        }
    }
    Ok((application, left))
}

/// What a JSON merge patch does: an Application has no lists that are merged by keys.
fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Parameters::new());
    }
    let Some(fields) = target.as_object_mut() else {
        return;
    };
    for (key, value) in patch {
        match value {
            Value::Null => _ = fields.remove(key),
            value => merge_patch(fields.entry(key.clone()).or_insert(Value::Null), value),
        }
    }
}
