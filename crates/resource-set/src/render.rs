//! Which objects the templates of a ResourceSet make.
//!
//! An entry of `resources` makes one object, or none if its templates print nothing: what someone else may write into inputs (the
//! title of a pull request) must not add objects. `resourcesTemplate` makes as many as its author wants.

use std::collections::HashMap;

use api::flux_operator::{AnyMap, RECONCILE, ResourceSetSpec};
use api::meta::DISABLED_VALUE;
use manifest::{Object, ObjectId, read_objects, yaml};
use serde_json::Value;

use crate::template::{Bounds, Text, render_all};

/// Objects of one step, or of the whole set if it has no steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Objects {
    /// Name of the step; empty if there are none.
    pub step: String,
    /// The objects, each once, in the order in which templates made them.
    pub objects: Vec<Object>,
    /// Which set of inputs made which object, by their places. Several may have made the same.
    pub makers: Vec<(usize, ObjectId)>,
}

/// More objects are refused.
const MAX_OBJECTS: usize = 20_000;

/// Why there are no objects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A template cannot be read or carried out.
    #[error("{0}")]
    Template(String),
    /// What it makes is no object.
    #[error("{name} with the inputs {id} makes no object: {problem}")]
    Object {
        /// Which template.
        name: String,
        /// The set of inputs.
        id: String,
        /// Why not.
        problem: String,
    },
    /// An entry of `resources` makes several objects.
    #[error(
        "{name} with the inputs {id} makes {count} objects: an entry of resources makes one; use resourcesTemplate for more"
    )]
    Several {
        /// Which template.
        name: String,
        /// The set of inputs.
        id: String,
        /// How many.
        count: usize,
    },
    /// Two are the same object with different contents.
    #[error("{id} is made twice, with different contents: by {first} and by {second}")]
    Twice {
        /// The object.
        id: String,
        /// Which template made the first.
        first: String,
        /// Which made the other.
        second: String,
    },
    /// There are too many.
    #[error("the templates make more than {MAX_OBJECTS} objects")]
    TooMany,
}

/// Makes the objects of each step. Those without a namespace get `namespace`, which is ignored where their kind has none.
///
/// # Errors
/// When a template fails, or makes what is no object. Errors name the template, with the line in what it made.
pub fn render(spec: &ResourceSetSpec, sets: &[AnyMap], namespace: &str) -> Result<Vec<Objects>, Error> {
    let mut made = Made {
        namespace,
        known: HashMap::new(),
        count: 0,
    };
    if spec.steps.is_empty() {
        let texts = texts("", &spec.resources, &spec.resources_template)?;
        return Ok(vec![made.objects("", &texts, sets)?]);
    }
    let steps = spec.steps.iter().map(|step| {
        let within = format!("steps.{}.", step.name);
        let texts = texts(&within, &step.resources, &step.resources_template)?;
        made.objects(&step.name, &texts, sets)
    });
    steps.collect()
}

fn texts(within: &str, resources: &[AnyMap], template: &str) -> Result<Vec<(Text, bool)>, Error> {
    let mut texts = Vec::new();
    for (index, resource) in resources.iter().enumerate() {
        let name = format!("{within}resources[{index}]");
        let text = yaml::write(&Value::Object(resource.clone()));
        let text = text.map_err(|error| Error::Template(format!("{name}: {error}")))?;
        texts.push((Text { name, text }, true));
    }
    if !template.is_empty() {
        let name = format!("{within}resourcesTemplate");
        let text = template.to_owned();
        texts.push((Text { name, text }, false));
    }
    Ok(texts)
}

/// What was made before.
struct Made<'a> {
    namespace: &'a str,
    known: HashMap<ObjectId, (Value, String)>,
    count: usize,
}

impl Made<'_> {
    fn objects(&mut self, step: &str, texts: &[(Text, bool)], sets: &[AnyMap]) -> Result<Objects, Error> {
        let (plain, singles): (Vec<_>, Vec<_>) = texts
            .iter()
            .map(|(text, is_single)| (text.clone(), is_single.then(|| text.name.clone())))
            .unzip();
        let singles: Vec<String> = singles.into_iter().flatten().collect();
        let mut objects = Objects {
            step: step.to_owned(),
            objects: Vec::new(),
            makers: Vec::new(),
        };
        let mut problem = None;
        let rendered = render_all(&plain, sets, Bounds::OBJECTS, |text, set, made| {
            let is_single = singles.contains(&text.name);
            let taken = self.take(text, (set, &sets[set]), made, is_single, &mut objects);
            taken.map_err(|error| {
                problem = Some(error);
                String::new()
            })
        });
        match (problem, rendered) {
            (Some(problem), _) => Err(problem),
            (None, Err(error)) => Err(Error::Template(error)),
            (None, Ok(())) => Ok(objects),
        }
    }

    fn take(
        &mut self,
        text: &Text,
        (place, set): (usize, &AnyMap),
        made: &str,
        is_single: bool,
        objects: &mut Objects,
    ) -> Result<(), Error> {
        let id = || set.get("id").map(ToString::to_string).unwrap_or_default();
        let read = read_objects(made, &text.name).map_err(|error| Error::Object {
            name: text.name.clone(),
            id: id(),
            problem: match std::error::Error::source(&error) {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            },
        })?;
        if is_single && read.len() > 1 {
            return Err(Error::Several {
                name: text.name.clone(),
                id: id(),
                count: read.len(),
            });
        }
        for mut object in read {
            if object
                .annotation(RECONCILE)
                .is_some_and(|value| value.eq_ignore_ascii_case(DISABLED_VALUE))
            {
                continue;
            }
            if object.namespace().is_empty() {
                object.set_namespace(self.namespace);
            }
            let value = Value::Object(object.value().clone());
            let maker = (place, object.id());
            match self.known.get(&object.id()) {
                Some((known, _)) if *known == value => {
                    objects.makers.push(maker);
                    continue;
                }
                Some((_, first)) => {
                    return Err(Error::Twice {
                        id: object.id().to_string(),
                        first: first.clone(),
                        second: text.name.clone(),
                    });
                }
                None => {}
            }
            self.count += 1;
            if self.count > MAX_OBJECTS {
                return Err(Error::TooMany);
            }
            self.known.insert(object.id(), (value, text.name.clone()));
            objects.makers.push(maker);
            objects.objects.push(object);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(value: Value) -> ResourceSetSpec {
        serde_json::from_value(value).unwrap()
    }

    fn sets(values: Value) -> Vec<AnyMap> {
        serde_json::from_value(values).unwrap()
    }

    fn made(spec_: Value, values: Value) -> Result<Vec<Value>, String> {
        let steps = render(&spec(spec_), &sets(values), "apps").map_err(|error| error.to_string())?;
        let objects = steps.into_iter().flat_map(|step| step.objects);
        Ok(objects
            .map(|object| Value::Object(object.value().clone()))
            .collect())
    }

    fn config_map(name: &str, data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
    }

    #[test]
    fn texts_of_objects_are_templates_and_their_results_are_yaml() {
        let objects = made(
            json!({"resources": [{
                "apiVersion": "v1", "kind": "Thing",
                "metadata": {"name": "app-<< inputs.id >>", "namespace": "<< inputs.ns >>"},
                "spec": {
                    "replicas": "<< inputs.replicas >>",
                    "version": "<< inputs.version | quote >>",
                    "large": "<< inputs.large >>",
                    "more": "<< inputs.more | toYaml | nindent 6 >>",
                    "first": "<< get inputs.more \"a\" >>",
                },
            }]}),
            json!([{
                "id": "1", "ns": "x", "replicas": 3, "version": "1.0", "large": 12_345_678,
                "more": {"a": "b", "c": ["d"]},
            }]),
        )
        .unwrap();
        assert_eq!(
            objects,
            [json!({
                "apiVersion": "v1", "kind": "Thing",
                "metadata": {"name": "app-1", "namespace": "x"},
                "spec": {
                    "replicas": 3, "version": "1.0", "large": 12_345_678,
                    "more": {"a": "b", "c": ["d"]}, "first": "b",
                },
            })]
        );
    }

    #[test]
    fn a_template_makes_documents_for_each_set() {
        let text = "<<- range $i := untilStep 0 (int inputs.count) 1 >>\n---\napiVersion: v1\nkind: ConfigMap\n\
            metadata:\n  name: << inputs.id >>-<< $i >>\n  namespace: << inputs.provider.namespace >>\n<<- end >>\n";
        let objects = made(
            json!({"resourcesTemplate": text}),
            json!([
                {"id": "a", "count": 2, "provider": {"namespace": "n"}},
                {"id": "b", "count": 1, "provider": {"namespace": "n"}},
            ]),
        )
        .unwrap();
        let names: Vec<_> = objects
            .iter()
            .map(|object| object["metadata"]["name"].clone())
            .collect();
        assert_eq!(names, [json!("a-0"), json!("a-1"), json!("b-0")]);
    }

    #[test]
    fn equal_objects_are_one_and_unequal_ones_an_error() {
        let both = json!([{"id": "1"}, {"id": "2"}]);
        let objects = made(
            json!({"resources": [config_map("a", json!({"x": "y"}))]}),
            both.clone(),
        )
        .unwrap();
        assert_eq!(objects.len(), 1);
        assert_eq!(objects[0]["metadata"]["namespace"], "apps");
        let spec_ = spec(json!({"resources": [config_map("a", json!({}))]}));
        let steps = render(&spec_, &sets(both.clone()), "apps").unwrap();
        let places: Vec<_> = steps[0].makers.iter().map(|(place, _)| *place).collect();
        assert_eq!(places, [0, 1]);
        let error = made(
            json!({"resources": [config_map("a", json!({"x": "<< inputs.id | quote >>"}))]}),
            both,
        );
        assert_eq!(
            error.unwrap_err(),
            "ConfigMap/apps/a is made twice, with different contents: by resources[0] and by resources[0]"
        );
    }

    #[test]
    fn disabled_objects_and_empty_ones_are_left_out() {
        let mut disabled = config_map("a", json!({}));
        disabled["metadata"]["annotations"] = json!({"fluxcd.controlplane.io/reconcile": "Disabled"});
        assert_eq!(
            made(json!({"resources": [disabled]}), json!([{"id": "1"}]))
                .unwrap()
                .len(),
            0
        );
        let none = json!({"resourcesTemplate": "<< if false >>x<< end >>"});
        assert_eq!(made(none, json!([{}])).unwrap().len(), 0);
    }

    #[test]
    fn an_input_adds_no_object_to_an_entry_of_resources() {
        let mut entry = config_map("a", json!({}));
        entry["metadata"]["z"] = "<< inputs.title >>".into();
        let title = "x\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b}";
        let error = made(
            json!({"resources": [entry]}),
            json!([{"id": "7", "title": title}]),
        )
        .unwrap_err();
        assert!(
            error.starts_with(
                "resources[0] with the inputs \"7\" makes 2 objects: an entry of resources makes one"
            ),
            "{error}"
        );
    }

    #[test]
    fn errors_name_the_template_and_what_is_missing() {
        let error = |text: &str| made(json!({"resourcesTemplate": text}), json!([{"id": "1"}])).unwrap_err();
        assert!(error("<< inputs.nam >>").contains("map has no entry for key \"nam\""));
        assert!(error("<< inputs.id").contains("unclosed action"));
        assert!(error("<< now >>").contains("function \"now\" not defined"));
        assert!(error("a: b: c").starts_with("resourcesTemplate with the inputs \"1\" makes no object: "));
        assert!(error("kind: X").contains("apiVersion"), "{}", error("kind: X"));
    }

    #[test]
    fn steps_keep_their_order_and_names() {
        let spec = spec(json!({"steps": [
            {"name": "one", "resources": [config_map("a", json!({}))]},
            {"name": "two", "resourcesTemplate": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"},
        ]}));
        let steps = render(&spec, &sets(json!([{"id": "1"}])), "apps").unwrap();
        let seen: Vec<_> = steps
            .iter()
            .map(|step| (&*step.step, step.objects[0].name()))
            .collect();
        assert_eq!(seen, [("one", "a"), ("two", "b")]);
    }

    #[test]
    fn endless_templates_end() {
        let error = made(
            json!({"resourcesTemplate": "<< range until 10000 >><< range until 10000 >>x<< end >><< end >>"}),
            json!([{"id": "1"}]),
        );
        assert!(
            error
                .unwrap_err()
                .starts_with("the templates make too much, or take too long")
        );
    }

    #[test]
    fn the_guides_environment_is_what_it_says() {
        let guide = include_str!("../../../docs/resource-sets.md");
        let blocks = guide.split("```yaml\n").skip(1);
        let text = blocks
            .map(|block| block.split("```").next().unwrap())
            .collect::<Vec<_>>();
        let set = read_objects(text[1], "guide").unwrap();
        let spec = spec(set[0].value()["spec"].clone());
        let inputs = json!([{"id": "7", "sha": "0123456789012345678901234567890123456789", "domain": "preview.example.com"}]);
        let steps = render(&spec, &sets(inputs), "shop").unwrap();
        let names: Vec<_> = steps[0]
            .objects
            .iter()
            .map(|object| object.id().to_string())
            .collect();
        assert_eq!(
            names,
            [
                "Namespace/shop/shop-pr-7",
                "ResourceQuota/shop-pr-7/limits",
                "GitRepository/shop/pr-7",
                "Kustomization/shop/pr-7",
            ]
        );
        let deploy = &steps[0].objects[3].value()["spec"];
        assert_eq!(
            deploy["postBuild"]["substitute"]["HOST"],
            "pr-7.preview.example.com"
        );
        assert_eq!(
            steps[0].objects[2].value()["spec"]["ref"]["commit"]
                .as_str()
                .map(str::len),
            Some(40)
        );
    }
}
