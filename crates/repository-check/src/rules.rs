//! Rules in CEL: of ValidatingAdmissionPolicies in the repository, and one's own.

use std::collections::BTreeMap;

use cel_expression::Expression;
use manifest::Object;
use serde_json::{Value, json};

use crate::report::{Level, Report};

/// A rule that objects must fulfil.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its name in findings.
    pub name: String,
    expression: Expression,
    message: String,
    /// What it is about; everything if empty.
    resources: Vec<Resources>,
}

/// Kinds that a rule is about.
#[derive(Debug, Clone)]
struct Resources {
    groups: Vec<String>,
    resources: Vec<String>,
}

impl Rule {
    /// Reads rules of one's own: the data of a ConfigMap, each entry an expression over `object` that is true for what is accepted.
    ///
    /// # Errors
    /// When it is no ConfigMap, or an expression cannot be read.
    pub fn of_config_map(text: &str, file: &str) -> Result<Vec<Self>, String> {
        let documents =
            manifest::yaml::read_documents(text, file).map_err(|error| error_chain::chain(&error))?;
        let data = documents
            .first()
            .and_then(|document| document.value.get("data")?.as_object().cloned());
        let data = data.ok_or_else(|| format!("{file}: it is no ConfigMap with data"))?;
        let mut rules = Vec::new();
        for (name, text) in data {
            let text = text
                .as_str()
                .ok_or_else(|| format!("{file}: {name} is no text"))?;
            rules.push(Self::new(name, text).map_err(|problem| format!("{file}: {problem}"))?);
        }
        Ok(rules)
    }

    /// A rule of one's own: an expression over `object` that is true for what is accepted.
    ///
    /// # Errors
    /// When the expression cannot be read, with the name.
    pub fn new(name: String, text: &str) -> Result<Self, String> {
        Ok(Self {
            expression: parsed(text).map_err(|problem| format!("{name}: {problem}"))?,
            message: format!("it does not fulfil {}", text.trim()),
            resources: Vec::new(),
            name,
        })
    }

    /// Checks one object.
    pub(crate) fn check(&self, object: &Object, report: &mut Report) {
        let gvk = object.gvk();
        let is_about = |one: &Resources| {
            let plural = plural(&gvk.kind);
            let has = |all: &[String], name: &str| all.iter().any(|one| one == "*" || one == name);
            has(&one.groups, &gvk.group) && has(&one.resources, &plural)
        };
        if !self.resources.is_empty() && !self.resources.iter().any(is_about) {
            return;
        }
        let value = Value::Object(object.value().clone());
        let variables = json!({"object": value, "oldObject": null, "params": null});
        match self.expression.evaluate_boolean(&variables) {
            Ok(true) => {}
            Ok(false) => {
                report
                    .add(&self.name, Level::Error, self.message.clone())
                    .of(object);
            }
            Err(error) => {
                let message = format!("the rule cannot be evaluated: {}", error_chain::chain(&error));
                report.add(&self.name, Level::Warning, message).of(object);
            }
        }
    }
}

fn parsed(text: &str) -> Result<Expression, String> {
    let parsed = Expression::parse_with_variables(text, &["object", "oldObject", "params"]);
    parsed.map_err(|error| error_chain::chain(&error))
}

/// The rules of policies that are bound and deny. Those that need more than the object are named, and left out.
pub(crate) fn of_policies(objects: &[&Object], report: &mut Report) -> Vec<Rule> {
    let is = |object: &Object, kind: &str| {
        let gvk = object.gvk();
        gvk.group == "admissionregistration.k8s.io" && gvk.kind == kind
    };
    let mut denies: BTreeMap<String, bool> = BTreeMap::new();
    for binding in objects
        .iter()
        .filter(|object| is(object, "ValidatingAdmissionPolicyBinding"))
    {
        let value = Value::Object(binding.value().clone());
        let policy = value
            .pointer("/spec/policyName")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let actions = value.pointer("/spec/validationActions").and_then(Value::as_array);
        let is_denied = actions.is_some_and(|actions| actions.iter().any(|action| action == "Deny"));
        // What it selects by labels of namespaces is not known here.
        let selects = value.pointer("/spec/matchResources").is_some();
        *denies.entry(policy.to_owned()).or_default() |= is_denied && !selects;
    }
    let mut rules = Vec::new();
    let mut seen = Vec::new();
    for policy in objects
        .iter()
        .filter(|object| is(object, "ValidatingAdmissionPolicy"))
    {
        if !denies.get(policy.name()).copied().unwrap_or_default() || seen.contains(&policy.name()) {
            continue;
        }
        seen.push(policy.name());
        of_policy(policy, &mut rules, report);
    }
    rules
}

fn of_policy(policy: &Object, rules: &mut Vec<Rule>, report: &mut Report) {
    let value = Value::Object(policy.value().clone());
    let needs_more = [
        "/spec/paramKind",
        "/spec/variables",
        "/spec/matchConditions",
        "/spec/matchConstraints/namespaceSelector",
    ];
    if needs_more.iter().any(|pointer| {
        value
            .pointer(pointer)
            .is_some_and(|value| !value.is_null() && *value != json!([]))
    }) {
        let message = "it is not checked: parameters, variables, conditions and selectors of policies are known to the API server only";
        report.add("policy", Level::Note, message.to_owned()).of(policy);
        return;
    }
    let texts = |value: &Value, field: &str| -> Vec<String> {
        let all = value.get(field).and_then(Value::as_array).into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let about = value
        .pointer("/spec/matchConstraints/resourceRules")
        .and_then(Value::as_array);
    let resources: Vec<_> = about
        .into_iter()
        .flatten()
        .map(|rule| Resources {
            groups: texts(rule, "apiGroups"),
            resources: texts(rule, "resources"),
        })
        .collect();
    let validations = value.pointer("/spec/validations").and_then(Value::as_array);
    for validation in validations.into_iter().flatten() {
        let text = validation
            .get("expression")
            .and_then(Value::as_str)
            .unwrap_or_default();
        // Who asks, and in which namespace, is known when it is applied.
        match parsed(text) {
            Ok(expression) => {
                let message = validation.get("message").and_then(Value::as_str);
                rules.push(Rule {
                    name: policy.name().to_owned(),
                    expression,
                    message: message.map_or_else(|| format!("it does not fulfil {text}"), str::to_owned),
                    resources: resources.clone(),
                });
            }
            Err(problem) => {
                let message = format!("{text} is not checked: {problem}");
                report.add("policy", Level::Note, message).of(policy);
            }
        }
    }
}

/// The plural of a kind, as nearly all of them have it.
fn plural(kind: &str) -> String {
    let lower = kind.to_lowercase();
    if let Some(stem) = lower.strip_suffix('y')
        && !stem.ends_with(['a', 'e', 'o'])
    {
        return format!("{stem}ies");
    }
    match lower.ends_with('s') {
        true if lower == "endpoints" => lower,
        true => format!("{lower}es"),
        false => format!("{lower}s"),
    }
}
