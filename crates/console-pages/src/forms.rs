//! Forms for new objects, and the manifests that are made of what is typed. Pure.
//!
//! A field is named by its place in the manifest, which people look up and search for; what it means is said by the definition of the
//! kind. So a form is a list of places, and what is not in it can be written into the manifest that it makes.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::chart_values;

/// A form for objects of one kind.
pub struct Form {
    /// The kind, as in the address of the form.
    pub kind: &'static str,
    /// API version of the manifest.
    api_version: &'static str,
    /// Fields of the spec.
    pub fields: &'static [Field],
}

/// A field of a form.
pub struct Field {
    /// Where it is in the manifest.
    pub path: &'static str,
    /// How it is typed.
    pub input: Input,
    /// What stands in it at first.
    pub value: &'static str,
    /// Whether it must be filled in.
    pub is_required: bool,
}

/// How a field is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A line of text.
    Text,
    /// A box to tick.
    Check,
    /// One of these; the first may be empty.
    Choice(&'static [&'static str]),
    /// YAML of several lines.
    Yaml,
    /// A line for each environment: its name, and the namespaces of its targets.
    Environments,
}

const fn text(path: &'static str, value: &'static str) -> Field {
    Field {
        path,
        input: Input::Text,
        value,
        is_required: false,
    }
}

const fn needed(path: &'static str, value: &'static str) -> Field {
    Field {
        path,
        input: Input::Text,
        value,
        is_required: true,
    }
}

const fn choice(path: &'static str, of: &'static [&'static str]) -> Field {
    Field {
        path,
        input: Input::Choice(of),
        value: of[0],
        is_required: false,
    }
}

const fn check(path: &'static str, value: &'static str) -> Field {
    Field {
        path,
        input: Input::Check,
        value,
        is_required: false,
    }
}

const INTERVAL: Field = needed("spec.interval", "5m");
const SECRET: Field = text("spec.secretRef.name", "");
/// Kinds that are applied or applied from, for Alerts.
const EVENT_KINDS: &[&str] = &[
    "Kustomization",
    "HelmRelease",
    "GitRepository",
    "OCIRepository",
    "HelmRepository",
    "HelmChart",
    "Bucket",
    "ImageRepository",
    "ImagePolicy",
    "ImageUpdateAutomation",
    "Pipeline",
    "ChangeRequest",
];

/// All forms, in the order in which they are offered.
pub static FORMS: [Form; 10] = [
    Form {
        kind: "GitRepository",
        api_version: "source.toolkit.fluxcd.io/v1",
        fields: &[
            needed("spec.url", ""),
            text("spec.ref.branch", "main"),
            INTERVAL,
            SECRET,
        ],
    },
    Form {
        kind: "OCIRepository",
        api_version: "source.toolkit.fluxcd.io/v1",
        fields: &[
            needed("spec.url", ""),
            text("spec.ref.tag", ""),
            text("spec.ref.semver", ""),
            INTERVAL,
            SECRET,
        ],
    },
    Form {
        kind: "HelmRepository",
        api_version: "source.toolkit.fluxcd.io/v1",
        fields: &[
            needed("spec.url", ""),
            choice("spec.type", &["default", "oci"]),
            INTERVAL,
            SECRET,
        ],
    },
    Form {
        kind: "Bucket",
        api_version: "source.toolkit.fluxcd.io/v1",
        fields: &[
            choice("spec.provider", &["generic", "aws", "gcp", "azure"]),
            needed("spec.bucketName", ""),
            needed("spec.endpoint", ""),
            INTERVAL,
            SECRET,
        ],
    },
    Form {
        kind: "Kustomization",
        api_version: "kustomize.toolkit.fluxcd.io/v1",
        fields: &[
            choice(
                "spec.sourceRef.kind",
                &["GitRepository", "OCIRepository", "Bucket", "ExternalArtifact"],
            ),
            needed("spec.sourceRef.name", ""),
            text("spec.path", "./"),
            INTERVAL,
            check("spec.prune", "true"),
            check("spec.wait", "true"),
            text("spec.targetNamespace", ""),
            text("spec.serviceAccountName", ""),
        ],
    },
    Form {
        kind: "HelmRelease",
        api_version: "helm.toolkit.fluxcd.io/v2",
        fields: &[
            choice("spec.chartRef.kind", &["", "OCIRepository", "HelmChart"]),
            text("spec.chartRef.name", ""),
            text("spec.chartRef.namespace", ""),
            text("spec.chart.spec.chart", ""),
            text("spec.chart.spec.version", ""),
            choice(
                "spec.chart.spec.sourceRef.kind",
                &["", "HelmRepository", "GitRepository", "Bucket"],
            ),
            text("spec.chart.spec.sourceRef.name", ""),
            INTERVAL,
            text("spec.targetNamespace", ""),
            text("spec.serviceAccountName", ""),
            Field {
                path: "spec.values",
                input: Input::Yaml,
                value: "",
                is_required: false,
            },
        ],
    },
    Form {
        kind: "Alert",
        api_version: "notification.toolkit.fluxcd.io/v1beta3",
        fields: &[
            needed("spec.providerRef.name", ""),
            choice("spec.eventSeverity", &["error", "info"]),
            choice("spec.eventSources.0.kind", EVENT_KINDS),
            needed("spec.eventSources.0.name", "*"),
        ],
    },
    Form {
        kind: "Receiver",
        api_version: "notification.toolkit.fluxcd.io/v1",
        fields: &[
            choice(
                "spec.type",
                &[
                    "generic",
                    "generic-hmac",
                    "github",
                    "gitlab",
                    "bitbucket",
                    "harbor",
                    "dockerhub",
                    "quay",
                    "gcr",
                    "nexus",
                    "acr",
                    "cdevents",
                ],
            ),
            needed("spec.secretRef.name", ""),
            choice(
                "spec.resources.0.kind",
                &[
                    "GitRepository",
                    "OCIRepository",
                    "HelmRepository",
                    "Bucket",
                    "ImageRepository",
                ],
            ),
            needed("spec.resources.0.name", ""),
        ],
    },
    Form {
        kind: "Pipeline",
        api_version: "delivery.windlass.dev/v1alpha1",
        fields: &[
            choice("spec.apps.0.kind", &["HelmRelease", "Kustomization"]),
            needed("spec.apps.0.name", ""),
            Field {
                path: "spec.environments",
                input: Input::Environments,
                value: "",
                is_required: true,
            },
            text("spec.changePolicyRef.name", ""),
            text("spec.serviceAccountName", ""),
        ],
    },
    Form {
        kind: TENANT,
        api_version: "v1",
        fields: &[choice("clusterRole", &["edit", "admin", "cluster-admin"])],
    },
];

/// A tenant is a namespace with an account that may write there.
const TENANT: &str = "Tenant";

impl Form {
    /// Finds the form of a kind.
    pub fn of(kind: &str) -> Option<&'static Self> {
        FORMS.iter().find(|form| form.kind == kind)
    }

    /// Whether the object is in a namespace that is typed.
    pub fn has_namespace(&self) -> bool {
        self.kind != TENANT
    }

    /// What a field means: the first sentence of its description.
    pub fn hint(&self, field: &Field) -> &'static str {
        let schema = SCHEMAS.get(self.kind);
        let mut at = schema;
        for part in field.path.split('.') {
            at = at.and_then(|at| match part.parse::<usize>() {
                Ok(_) => at.get("items"),
                Err(_) => at.pointer(&format!("/properties/{part}")),
            });
        }
        let text = at
            .and_then(|at| at.get("description")?.as_str())
            .unwrap_or_default();
        match text.split_once(". ") {
            Some((first, _)) => first,
            None => text.trim_end_matches('.'),
        }
    }

    /// The manifests, as YAML.
    ///
    /// # Errors
    /// When a field that is needed is empty, or one cannot be read.
    pub fn manifests(&self, given: &BTreeMap<String, String>) -> Result<String, String> {
        let of = |name: &str| given.get(name).map(|text| text.trim()).unwrap_or_default();
        let name = of("name");
        if name.is_empty() {
            return Err("name: it is empty".to_owned());
        }
        if self.kind == TENANT {
            return written(&tenant(name, of("clusterRole")));
        }
        let mut metadata = json!({"name": name});
        if !of("namespace").is_empty() {
            metadata["namespace"] = json!(of("namespace"));
        }
        let mut object = json!({
            "apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, "spec": {},
        });
        for field in self.fields {
            let typed = of(field.path);
            let value = match (field.input, typed) {
                (Input::Check, typed) => Some(json!(typed == "true")).filter(|ticked| *ticked == json!(true)),
                (_, "") if field.is_required => return Err(format!("{}: it is empty", field.path)),
                (_, "") => None,
                (Input::Text | Input::Choice(_), typed) => Some(json!(typed)),
                (Input::Yaml, typed) => Some(yaml(field.path, typed)?),
                (Input::Environments, typed) => Some(environments(typed)?),
            };
            if let Some(value) = value {
                set(&mut object, field.path, value);
            }
        }
        if self.kind == "HelmRelease" {
            self.put_values(&mut object, given)?;
        }
        // A choice of a kind alone refers to nothing.
        drop_empty(&mut object, "/spec/chartRef");
        drop_empty(&mut object, "/spec/chart");
        written(&[object])
    }
}

impl Form {
    /// Fields of a chart's schema go into the values, after what is written as YAML.
    fn put_values(&self, object: &mut Value, given: &BTreeMap<String, String>) -> Result<(), String> {
        let mut values = object["spec"].get("values").cloned().unwrap_or_else(|| json!({}));
        for (name, typed) in given {
            chart_values::put(&mut values, name, typed.trim())?;
        }
        if values.as_object().is_some_and(|values| !values.is_empty()) {
            object["spec"]["values"] = values;
        }
        Ok(())
    }
}

fn yaml(path: &str, text: &str) -> Result<Value, String> {
    let read = manifest::yaml::read_documents(text, path).map_err(|error| error.to_string())?;
    match <[_; 1]>::try_from(read) {
        Ok([one]) if one.value.is_object() => Ok(one.value),
        _ => Err(format!("{path}: it must be one mapping")),
    }
}

/// `production: shop-eu shop-us` is an environment with two targets; without a namespace its only target is in that of the pipeline.
fn environments(text: &str) -> Result<Value, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let environments = lines.map(|line| {
        let (name, namespaces) = line.split_once(':').unwrap_or((line, ""));
        let mut targets: Vec<Value> = namespaces
            .split([' ', ','])
            .filter(|namespace| !namespace.is_empty())
            .map(|namespace| json!({"namespace": namespace}))
            .collect();
        if targets.is_empty() {
            targets.push(json!({}));
        }
        match name.trim() {
            "" => Err(format!("spec.environments: '{line}' names none")),
            name => Ok(json!({"name": name, "targets": targets})),
        }
    });
    environments.collect()
}

/// Puts a value at a place; a number in the path is that of an item.
fn set(object: &mut Value, path: &str, value: Value) {
    let mut at = object;
    for part in path.split('.') {
        at = match part.parse::<usize>() {
            Ok(index) => {
                if !at.is_array() {
                    *at = json!([]);
                }
                let Value::Array(items) = at else {
                    return;
                };
                while items.len() <= index {
                    items.push(json!({}));
                }
                &mut items[index]
            }
            Err(_) => {
                if !at.is_object() {
                    *at = json!({});
                }
                let Value::Object(fields) = at else {
                    return;
                };
                fields.entry(part).or_insert(Value::Null)
            }
        };
    }
    *at = value;
}

/// Takes out a reference that names nothing.
fn drop_empty(object: &mut Value, pointer: &str) {
    let has_name = |at: &Value| at.get("name").is_some() || at.pointer("/spec/chart").is_some();
    let Some((parent, key)) = pointer.rsplit_once('/') else {
        return;
    };
    if object.pointer(pointer).is_some_and(|at| !has_name(at))
        && let Some(Value::Object(fields)) = object.pointer_mut(parent)
    {
        fields.remove(key);
    }
}

/// What `flux create tenant` makes: a namespace, the account of what delivers into it, and its rights there.
fn tenant(name: &str, role: &str) -> Vec<Value> {
    let labels = json!({"toolkit.fluxcd.io/tenant": name});
    let rbac = "rbac.authorization.k8s.io";
    let role = if role.is_empty() { "edit" } else { role };
    vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}),
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": name, "labels": labels},
        }),
        json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding",
            "metadata": {"name": format!("{name}-reconciler"), "namespace": name, "labels": labels},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": name}],
        }),
    ]
}

fn written(objects: &[Value]) -> Result<String, String> {
    let texts = objects.iter().map(manifest::yaml::write);
    let texts: Result<Vec<_>, _> = texts.collect();
    texts
        .map(|texts| texts.join("---\n"))
        .map_err(|error| error.to_string())
}

/// Schemas of the kinds, by their names.
static SCHEMAS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let all = api::crd::all().into_iter().map(|crd| crd.spec);
    let formed = all.filter(|spec| Form::of(&spec.names.kind).is_some());
    let schemas = formed.filter_map(|spec| {
        let version = spec.versions.iter().find(|version| version.storage)?;
        let schema = version.schema.as_ref()?.open_api_v3_schema.as_ref()?;
        Some((spec.names.kind.clone(), serde_json::to_value(schema).ok()?))
    });
    schemas.collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    fn made(kind: &str, given: &[(&str, &str)]) -> Result<String, String> {
        let given = given
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Form::of(kind).unwrap().manifests(&given.collect())
    }

    #[test]
    fn manifests_are_made_of_what_is_typed() {
        let text = made(
            "HelmRelease",
            &[
                ("name", "web"),
                ("namespace", "shop"),
                ("spec.chartRef.kind", "OCIRepository"),
                ("spec.chart.spec.chart", " app "),
                ("spec.chart.spec.sourceRef.kind", "HelmRepository"),
                ("spec.chart.spec.sourceRef.name", "charts"),
                ("spec.interval", "1h"),
                ("spec.values", "replicas: 2\r\n"),
                ("values:boolean:/ingress/enabled", "true"),
            ],
        );
        assert_eq!(
            text.unwrap(),
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata:\n  name: web\n  namespace: shop\nspec:\n  chart:\n    \
             spec:\n      chart: app\n      sourceRef:\n        kind: HelmRepository\n        name: charts\n  interval: 1h\n  \
             values:\n    ingress:\n      enabled: true\n    replicas: 2\n"
        );
        let text = made(
            "Pipeline",
            &[
                ("name", "shop"),
                ("spec.apps.0.kind", "HelmRelease"),
                ("spec.apps.0.name", "web"),
                (
                    "spec.environments",
                    "dev: shop-dev\n\nproduction: shop-eu, shop-us\nlast\n",
                ),
            ],
        );
        assert_eq!(
            text.unwrap(),
            "apiVersion: delivery.windlass.dev/v1alpha1\nkind: Pipeline\nmetadata:\n  name: shop\nspec:\n  apps:\n  - kind: HelmRelease\n    \
             name: web\n  environments:\n  - name: dev\n    targets:\n    - namespace: shop-dev\n  - name: production\n    targets:\n    \
             - namespace: shop-eu\n    - namespace: shop-us\n  - name: last\n    targets:\n    - {}\n"
        );
        let tenant = made("Tenant", &[("name", "shop")]).unwrap();
        assert_eq!(tenant.matches("---\n").count(), 2);
        assert!(
            tenant.contains("name: shop-reconciler") && tenant.contains("name: edit"),
            "{tenant}"
        );
    }

    #[test]
    fn what_is_typed_stays_a_value() {
        let text = made(
            "GitRepository",
            &[
                ("name", "a\nkind: Secret"),
                ("spec.url", "x: [y"),
                ("spec.interval", "no"),
            ],
        );
        let read = manifest::yaml::read_documents(&text.unwrap(), "f").unwrap();
        assert_eq!(read[0].value["kind"], "GitRepository");
        assert_eq!(read[0].value["metadata"]["name"], "a\nkind: Secret");
        assert_eq!(read[0].value["spec"]["url"], "x: [y");
        assert_eq!(read[0].value["spec"]["interval"], "no");
    }

    #[test]
    fn errors_name_the_field() {
        assert_eq!(
            made("GitRepository", &[("spec.url", "x")]),
            Err("name: it is empty".to_owned())
        );
        assert_eq!(
            made("GitRepository", &[("name", "x")]),
            Err("spec.url: it is empty".to_owned())
        );
        let values = made(
            "HelmRelease",
            &[("name", "x"), ("spec.interval", "1m"), ("spec.values", "- a")],
        );
        assert_eq!(values, Err("spec.values: it must be one mapping".to_owned()));
    }

    #[test]
    fn every_field_is_one_of_its_kind() {
        for form in FORMS.iter().filter(|form| form.kind != TENANT) {
            for field in form.fields {
                let hint = form.hint(field);
                let is_of_metadata = field.path.ends_with(".name") || field.path.ends_with(".kind");
                assert!(
                    !hint.is_empty() || is_of_metadata,
                    "{}: {}",
                    form.kind,
                    field.path
                );
                let schema = &SCHEMAS[form.kind];
                let mut at = schema;
                for part in field.path.split('.') {
                    at = match part.parse::<usize>() {
                        Ok(_) => &at["items"],
                        Err(_) => &at["properties"][part],
                    };
                }
                assert!(!at.is_null(), "{} has no {}", form.kind, field.path);
                if let Input::Choice(of) = field.input {
                    for word in of.iter().filter(|word| !word.is_empty()) {
                        let allowed = at["enum"].as_array();
                        assert!(
                            allowed.is_none_or(|all| all.iter().any(|one| one == word)),
                            "{}: {} may not be {word}",
                            form.kind,
                            field.path
                        );
                    }
                }
            }
        }
    }
}
