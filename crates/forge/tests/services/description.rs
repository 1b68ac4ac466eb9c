//! The description that a service publishes of its API, which requests and answers are held against.

use std::collections::BTreeMap;

use json_schema::Compiled;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Operations of a repository, as `hack/oracle/github` takes them from the description.
pub struct Description(BTreeMap<String, Operation>);

#[derive(Deserialize)]
struct Operation {
    /// Schemas of the parameters, by name.
    query: BTreeMap<String, Value>,
    body: Option<Value>,
    /// Schemas by status. Nothing in them is required: answers here are parts of real ones.
    answers: BTreeMap<String, Value>,
}

impl Description {
    pub fn of_github() -> Self {
        Self(serde_json::from_str(include_str!("../../testdata/github.json")).unwrap())
    }

    /// Checks a request and what the test answers to it.
    pub fn check(&self, method: &str, path: &str, body: &Value, (status, answer): (u16, &Value)) {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let what = format!("{method} {path}");
        let operation = self.find(method, path);
        let operation = operation.unwrap_or_else(|| panic!("{what}: there is no such operation"));
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let schema = operation.query.get(name);
            let schema = schema.unwrap_or_else(|| panic!("{what}: there is no parameter {name}"));
            let value = match schema["type"] == "integer" {
                true => json!(value.parse::<u64>().unwrap()),
                false => json!(value),
            };
            holds(&what, schema, value);
        }
        match &operation.body {
            Some(schema) => holds(&what, schema, body.clone()),
            None => assert!(body.is_null(), "{what}: it takes no body"),
        }
        if (200..300).contains(&status) {
            let schema = operation.answers.get(&status.to_string());
            let schema = schema.unwrap_or_else(|| panic!("{what}: {status} is no answer of it"));
            holds(&format!("the answer to {what}"), schema, answer.clone());
        }
    }

    fn find(&self, method: &str, path: &str) -> Option<&Operation> {
        let is_same = |template: &str| {
            let (template, path) = (template.split('/'), path.split('/'));
            let mut parts = template.clone().zip(path.clone());
            template.count() == path.count()
                && parts.all(|(template, part)| template.starts_with('{') || template == part)
        };
        self.0.iter().find_map(|(name, operation)| {
            let template = name.strip_prefix(method)?.strip_prefix(" /")?;
            is_same(template).then_some(operation)
        })
    }
}

fn holds(what: &str, schema: &Value, value: Value) {
    let schema = json!({"properties": {"it": schema}}).to_string();
    let compiled = Compiled::new(schema.as_bytes()).unwrap();
    let mut object = Map::new();
    object.insert("it".to_owned(), value);
    if let Err(error) = compiled.check(&object) {
        panic!("{what}: {error}");
    }
}

#[test]
#[should_panic(expected = "merge_method")]
fn what_is_not_described_is_refused() {
    let body = json!({"sha": "1", "merge_method": "theirs"});
    Description::of_github().check("PUT", "pulls/7/merge", &body, (200, &json!({"merged": true})));
}
