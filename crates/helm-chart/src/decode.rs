//! YAML into the structs of a chart, as sigs.k8s.io/yaml and encoding/json fill them.
//!
//! Field names match in any case, a number or boolean becomes text where text is wanted, null changes nothing, and what
//! has the wrong type is passed over: the first such error is reported when everything else has been read. Reading a
//! second document into the same struct (requirements.yaml) merges, list element by list element.

use std::collections::BTreeMap;

use go_time::Time;
use manifest::yaml::number::format_g;
use manifest::yaml::{Dialect, Nodes, compose_first, json};
use serde_json::{Map, Value};

use super::metadata::{Dependency, Lock, Maintainer, Metadata};

/// How times are written in JSON, in Go's way to say it.
const RFC_3339: &[u8] = b"2006-01-02T15:04:05Z07:00";

/// Chart.yaml before it is validated: lists may hold nulls.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) metadata: Metadata,
    pub(super) maintainers: Vec<Option<Maintainer>>,
    pub(super) dependencies: Option<Vec<Option<Dependency>>>,
}

/// Reads the first document of a text, with floats that stay floats; errors are those of sigs.k8s.io/yaml.
pub(crate) fn read_yaml(data: &[u8]) -> Result<Value, String> {
    let mut nodes = Nodes::default();
    let read = || match compose_first(data, &mut nodes, Dialect::Sigs)? {
        Some(root) => json::decode_with_floats(&nodes, root),
        None => Ok(Value::Null),
    };
    let mut read = read;
    read().map_err(|problem| format!("error converting YAML to JSON: {problem}"))
}

/// Words an error of encoding/json as sigs.k8s.io/yaml wraps it.
pub(crate) fn json_error(text: &str) -> String {
    format!("error unmarshaling JSON: while decoding JSON: {text}")
}

/// Reads Chart.yaml, or requirements.yaml over it; `package` is the Go package of the structs, for errors.
pub(super) fn read_metadata(data: &[u8], draft: &mut Draft, package: &str) -> Result<(), String> {
    let value = read_yaml(data)?;
    let mut decoder = Decoder::new(package);
    decoder.metadata(&value, draft);
    decoder.finish()
}

/// Reads Chart.lock; None for an empty text.
pub(super) fn read_lock(data: &[u8], package: &str) -> Result<Option<Lock>, String> {
    let value = read_yaml(data)?;
    let mut decoder = Decoder::new(package);
    let lock = decoder.lock(&value);
    decoder.finish()?;
    Ok(lock)
}

/// Reads nothing but `apiVersion`, as Helm 4 does to choose a loader; empty when there is none.
pub(super) fn read_api_version(data: &[u8]) -> Result<String, String> {
    let value = read_yaml(data)?;
    let mut decoder = Decoder::new("loader");
    let mut version = String::new();
    decoder.object(&value, "chartBase", |decoder, key, value| {
        if is_field(key, "apiVersion") {
            decoder.text(value, "apiVersion", &mut version);
        }
    });
    decoder.finish()?;
    Ok(version)
}

struct Decoder<'a> {
    package: &'a str,
    /// The structs that are being read and the fields that led there.
    structs: Vec<&'static str>,
    fields: Vec<&'static str>,
    first_error: Option<String>,
}

impl<'a> Decoder<'a> {
    fn new(package: &'a str) -> Self {
        Self {
            package,
            structs: Vec::new(),
            fields: Vec::new(),
            first_error: None,
        }
    }

    fn finish(self) -> Result<(), String> {
        match self.first_error {
            None => Ok(()),
            Some(text) => Err(json_error(&text)),
        }
    }

    fn metadata(&mut self, value: &Value, draft: &mut Draft) {
        let Draft {
            metadata,
            maintainers,
            dependencies,
        } = draft;
        self.object(value, "Metadata", |decoder, key, value| {
            match field(key, METADATA) {
                Some("name") => decoder.text(value, "name", &mut metadata.name),
                Some("home") => decoder.text(value, "home", &mut metadata.home),
                Some("sources") => decoder.texts(value, "sources", &mut metadata.sources),
                Some("version") => decoder.text(value, "version", &mut metadata.version),
                Some("description") => decoder.text(value, "description", &mut metadata.description),
                Some("keywords") => decoder.texts(value, "keywords", &mut metadata.keywords),
                Some("maintainers") => decoder.maintainers(value, maintainers),
                Some("icon") => decoder.text(value, "icon", &mut metadata.icon),
                Some("apiVersion") => decoder.text(value, "apiVersion", &mut metadata.api_version),
                Some("condition") => decoder.text(value, "condition", &mut metadata.condition),
                Some("tags") => decoder.text(value, "tags", &mut metadata.tags),
                Some("appVersion") => decoder.text(value, "appVersion", &mut metadata.app_version),
                Some("deprecated") => decoder.truth(value, "deprecated", &mut metadata.deprecated),
                Some("annotations") => decoder.annotations(value, &mut metadata.annotations),
                Some("kubeVersion") => decoder.text(value, "kubeVersion", &mut metadata.kube_version),
                Some("dependencies") => decoder.dependencies(value, dependencies),
                Some("type") => decoder.text(value, "type", &mut metadata.kind),
                _ => {}
            }
        });
    }

    fn lock(&mut self, value: &Value) -> Option<Lock> {
        if value.is_null() {
            return None;
        }
        let mut lock = Lock::default();
        let mut dependencies = None;
        self.object(value, "Lock", |decoder, key, value| match field(key, LOCK) {
            Some("generated") => decoder.time(value, &mut lock.generated),
            Some("digest") => decoder.text(value, "digest", &mut lock.digest),
            Some("dependencies") => decoder.dependencies(value, &mut dependencies),
            _ => {}
        });
        lock.dependencies = dependencies.into_iter().flatten().flatten().collect();
        Some(lock)
    }

    fn maintainers(&mut self, value: &Value, target: &mut Vec<Option<Maintainer>>) {
        let kind = format!("[]*{}.Maintainer", self.package);
        let read = |decoder: &mut Self, value: &Value, target: &mut Option<Maintainer>| {
            decoder.pointer(value, target, Self::maintainer);
        };
        if let Some(list) = self.list(value, "maintainers", kind, std::mem::take(target), read) {
            *target = list;
        }
    }

    fn maintainer(&mut self, value: &Value, target: &mut Maintainer) {
        self.object(value, "Maintainer", |decoder, key, value| {
            match field(key, MAINTAINER) {
                Some("name") => decoder.text(value, "name", &mut target.name),
                Some("email") => decoder.text(value, "email", &mut target.email),
                Some("url") => decoder.text(value, "url", &mut target.url),
                _ => {}
            }
        });
    }

    fn dependencies(&mut self, value: &Value, target: &mut Option<Vec<Option<Dependency>>>) {
        if value.is_null() {
            *target = None;
            return;
        }
        let kind = format!("[]*{}.Dependency", self.package);
        let read = |decoder: &mut Self, value: &Value, target: &mut Option<Dependency>| {
            decoder.pointer(value, target, Self::dependency);
        };
        let before = target.clone().unwrap_or_default();
        if let Some(list) = self.list(value, "dependencies", kind, before, read) {
            *target = Some(list);
        }
    }

    fn dependency(&mut self, value: &Value, target: &mut Dependency) {
        self.object(value, "Dependency", |decoder, key, value| {
            match field(key, DEPENDENCY) {
                Some("name") => decoder.text(value, "name", &mut target.name),
                Some("version") => decoder.text(value, "version", &mut target.version),
                Some("repository") => decoder.text(value, "repository", &mut target.repository),
                Some("condition") => decoder.text(value, "condition", &mut target.condition),
                Some("tags") => decoder.texts(value, "tags", &mut target.tags),
                Some("enabled") => decoder.truth(value, "enabled", &mut target.enabled),
                Some("import-values") => decoder.import_values(value, &mut target.import_values),
                Some("alias") => decoder.text(value, "alias", &mut target.alias),
                _ => {}
            }
        });
    }

    fn import_values(&mut self, value: &Value, target: &mut Vec<Value>) {
        let kind = "[]interface {}".to_owned();
        let read = |_: &mut Self, value: &Value, target: &mut Value| *target = with_floats(value.clone());
        if let Some(list) = self.list(value, "import-values", kind, Vec::new(), read) {
            *target = list;
        }
    }

    /// Reads an element that Go holds by a pointer: null makes it nil, a struct that is there is filled further.
    fn pointer<T: Default>(
        &mut self,
        value: &Value,
        target: &mut Option<T>,
        read: fn(&mut Self, &Value, &mut T),
    ) {
        if value.is_null() {
            *target = None;
        } else {
            read(self, value, target.get_or_insert_default());
        }
    }

    fn object(&mut self, value: &Value, name: &'static str, mut read: impl FnMut(&mut Self, &str, &Value)) {
        match value {
            Value::Null => {}
            Value::Object(fields) => {
                self.structs.push(name);
                for (key, value) in fields {
                    read(self, key, value);
                }
                self.structs.pop();
            }
            other => self.refuse(other, &format!("{}.{name}", self.package)),
        }
    }

    /// Reads a list over the elements that were there before; None when the value is none.
    fn list<T: Default>(
        &mut self,
        value: &Value,
        name: &'static str,
        kind: String,
        before: Vec<T>,
        read: impl Fn(&mut Self, &Value, &mut T),
    ) -> Option<Vec<T>> {
        self.within(name, |decoder| match value {
            Value::Null => Some(Vec::new()),
            Value::Array(elements) => {
                let mut before = before.into_iter();
                let mut list = Vec::with_capacity(elements.len());
                for element in elements {
                    let mut target = before.next().unwrap_or_default();
                    read(decoder, element, &mut target);
                    list.push(target);
                }
                Some(list)
            }
            other => {
                decoder.refuse(other, &kind);
                None
            }
        })
    }

    fn texts(&mut self, value: &Value, name: &'static str, target: &mut Vec<String>) {
        let read = |decoder: &mut Self, value: &Value, target: &mut String| decoder.bare_text(value, target);
        if let Some(list) = self.list(value, name, "[]string".to_owned(), target.clone(), read) {
            *target = list;
        }
    }

    fn annotations(&mut self, value: &Value, target: &mut Option<BTreeMap<String, String>>) {
        self.within("annotations", |decoder| match value {
            Value::Null => *target = None,
            Value::Object(fields) => {
                let annotations = target.get_or_insert_default();
                for (key, value) in fields {
                    let mut text = String::new();
                    decoder.bare_text(value, &mut text);
                    annotations.insert(key.clone(), text);
                }
            }
            other => decoder.refuse(other, "map[string]string"),
        });
    }

    fn text(&mut self, value: &Value, name: &'static str, target: &mut String) {
        self.within(name, |decoder| decoder.bare_text(value, target));
    }

    fn bare_text(&mut self, value: &Value, target: &mut String) {
        match value {
            Value::Null => {}
            Value::Bool(truth) => *target = truth.to_string(),
            Value::Number(number) if number.is_f64() => {
                *target = format_g(number.as_f64().unwrap_or_default());
            }
            Value::Number(number) => *target = number.to_string(),
            Value::String(text) => target.clone_from(text),
            other => self.refuse(other, "string"),
        }
    }

    fn truth(&mut self, value: &Value, name: &'static str, target: &mut bool) {
        self.within(name, |decoder| match value {
            Value::Null => {}
            Value::Bool(truth) => *target = *truth,
            other => decoder.refuse(other, "bool"),
        });
    }

    /// Keeps a time as it was written, if Go can read it.
    fn time(&mut self, value: &Value, target: &mut String) {
        match value {
            Value::Null => {}
            Value::String(text) => match Time::parse(RFC_3339, text.as_bytes()) {
                Ok(_) => target.clone_from(text),
                Err(error) => self.fail(error.to_string()),
            },
            _ => self.fail("Time.UnmarshalJSON: input is not a JSON string".to_owned()),
        }
    }

    fn within<T>(&mut self, field: &'static str, read: impl FnOnce(&mut Self) -> T) -> T {
        self.fields.push(field);
        let result = read(self);
        self.fields.pop();
        result
    }

    fn refuse(&mut self, value: &Value, kind: &str) {
        let found = json_kind(value);
        let text = match self.structs.last() {
            None => format!("json: cannot unmarshal {found} into Go value of type {kind}"),
            Some(name) => {
                let fields = self.fields.join(".");
                format!("json: cannot unmarshal {found} into Go struct field {name}.{fields} of type {kind}")
            }
        };
        self.fail(text);
    }

    fn fail(&mut self, text: String) {
        self.first_error.get_or_insert(text);
    }
}

/// Returns the name that encoding/json has for what it found.
pub fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Makes floats of all numbers, as encoding/json does where no type is wanted.
pub(crate) fn with_floats(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::from(number.as_f64().unwrap_or_default()),
        Value::Array(elements) => Value::Array(elements.into_iter().map(with_floats).collect()),
        Value::Object(fields) => Value::Object(map_with_floats(fields)),
        other => other,
    }
}

/// Makes floats of all numbers below a map.
pub(crate) fn map_with_floats(mut fields: Map<String, Value>) -> Map<String, Value> {
    for value in fields.values_mut() {
        *value = with_floats(value.take());
    }
    fields
}

const METADATA: &[&str] = &[
    "name",
    "home",
    "sources",
    "version",
    "description",
    "keywords",
    "maintainers",
    "icon",
    "apiVersion",
    "condition",
    "tags",
    "appVersion",
    "deprecated",
    "annotations",
    "kubeVersion",
    "dependencies",
    "type",
];
const MAINTAINER: &[&str] = &["name", "email", "url"];
const DEPENDENCY: &[&str] = &[
    "name",
    "version",
    "repository",
    "condition",
    "tags",
    "enabled",
    "import-values",
    "alias",
];
const LOCK: &[&str] = &["generated", "digest", "dependencies"];

fn field(key: &str, fields: &[&'static str]) -> Option<&'static str> {
    fields.iter().copied().find(|field| is_field(key, field))
}

fn is_field(key: &str, field: &str) -> bool {
    key.eq_ignore_ascii_case(field)
}
