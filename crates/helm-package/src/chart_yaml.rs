//! Chart.yaml and Chart.lock as they stand in a package: marshalled anew from what was read, with Go's fields and omissions.

use helm_chart::{Dependency, Lock, Maintainer, Metadata};
use manifest::yaml::{self, WriteError};
use serde_json::{Map, Value, json};

use crate::values::printable;

/// Go's zero time, which stands in a lock file that had none.
const NO_TIME: &str = "0001-01-01T00:00:00Z";

/// Chart.yaml of a chart. Charts of the first version have their dependencies in requirements.yaml.
pub(crate) fn chart_yaml(metadata: &Metadata) -> Result<String, WriteError> {
    let mut fields = Fields::default();
    fields.text("name", &metadata.name);
    fields.text("home", &metadata.home);
    fields.list("sources", texts(&metadata.sources));
    fields.text("version", &metadata.version);
    fields.text("description", &metadata.description);
    fields.list("keywords", texts(&metadata.keywords));
    fields.list(
        "maintainers",
        metadata.maintainers.iter().map(maintainer).collect(),
    );
    fields.text("icon", &metadata.icon);
    fields.text("apiVersion", &metadata.api_version);
    fields.text("condition", &metadata.condition);
    fields.text("tags", &metadata.tags);
    fields.text("appVersion", &metadata.app_version);
    if metadata.deprecated {
        fields.put("deprecated", true);
    }
    if let Some(annotations) = metadata.annotations.as_ref().filter(|map| !map.is_empty()) {
        fields.put("annotations", json!(annotations));
    }
    fields.text("kubeVersion", &metadata.kube_version);
    if metadata.api_version != "v1" {
        let dependencies = metadata.dependencies.as_deref().unwrap_or_default();
        fields.list("dependencies", dependencies.iter().map(dependency).collect());
    }
    fields.text("type", &metadata.kind);
    yaml::write_mapping(&fields.0)
}

/// Chart.lock of a chart.
pub(crate) fn chart_lock(lock: &Lock) -> Result<String, WriteError> {
    let generated = match lock.generated.as_str() {
        "" => NO_TIME,
        time => time,
    };
    let dependencies: Vec<Value> = lock.dependencies.iter().map(dependency).collect();
    yaml::write(&json!({"generated": generated, "digest": lock.digest, "dependencies": dependencies}))
}

fn maintainer(maintainer: &Maintainer) -> Value {
    let mut fields = Fields::default();
    fields.text("name", &maintainer.name);
    fields.text("email", &maintainer.email);
    fields.text("url", &maintainer.url);
    Value::Object(fields.0)
}

fn dependency(dependency: &Dependency) -> Value {
    let mut fields = Fields::default();
    fields.put("name", dependency.name.as_str());
    fields.text("version", &dependency.version);
    fields.put("repository", dependency.repository.as_str());
    fields.text("condition", &dependency.condition);
    fields.list("tags", texts(&dependency.tags));
    if dependency.enabled {
        fields.put("enabled", true);
    }
    fields.list(
        "import-values",
        dependency.import_values.iter().map(printable).collect(),
    );
    fields.text("alias", &dependency.alias);
    Value::Object(fields.0)
}

/// The fields of a Go struct of which empty ones are left out.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    fn text(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.put(name, text);
        }
    }

    fn list(&mut self, name: &str, items: Vec<Value>) {
        if !items.is_empty() {
            self.put(name, items);
        }
    }
}

fn texts(list: &[String]) -> Vec<Value> {
    list.iter().map(|text| Value::from(text.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use helm_chart::read_metadata;

    use super::*;

    #[test]
    fn chart_yaml_is_what_helm_writes() {
        let text = "version: 1.2\nname: app\ntype: application\nappVersion: 1.0\nannotations: {b: 'yes', a: x}\n\
                    maintainers: [{name: Ann, email: e}]\nkeywords: [k]\ndeprecated: true\nunknown: gone\n\
                    apiVersion: v2\ndependencies: [{name: d, version: ~1, import-values: [data, {child: a, parent: b}]}]\n";
        let metadata = read_metadata(text.as_bytes(), None).unwrap();
        let expected = "annotations:\n  a: x\n  b: \"yes\"\napiVersion: v2\nappVersion: \"1\"\ndependencies:\n- import-values:\n  \
                        - data\n  - child: a\n    parent: b\n  name: d\n  repository: \"\"\n  version: ~1\ndeprecated: true\n\
                        keywords:\n- k\nmaintainers:\n- email: e\n  name: Ann\nname: app\ntype: application\nversion: \"1.2\"\n";
        assert_eq!(chart_yaml(&metadata).unwrap(), expected);
    }

    #[test]
    fn charts_of_the_first_version_keep_their_dependencies_elsewhere() {
        let requirements = b"dependencies: [{name: d, version: '1', repository: x}]";
        let metadata = read_metadata(b"{name: app, version: 1.0.0}", Some(requirements)).unwrap();
        assert_eq!(metadata.dependencies.as_ref().map(Vec::len), Some(1));
        assert_eq!(
            chart_yaml(&metadata).unwrap(),
            "apiVersion: v1\nname: app\nversion: 1.0.0\n"
        );
    }

    #[test]
    fn a_lock_without_a_time_has_the_first_one() {
        let text = chart_lock(&Lock::default()).unwrap();
        assert_eq!(
            text,
            "dependencies: []\ndigest: \"\"\ngenerated: \"0001-01-01T00:00:00Z\"\n"
        );
    }
}
