//! Reads the kind that a CustomResourceDefinition defines, if the set that is being applied contains it.
//! Pure.

use kube::core::ApiResource;
use manifest::Object;
use serde_json::Value;

use super::resource::Resource;
use crate::stage::is_crd;

/// The kind that a CRD defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name in URLs.
    pub plural: String,
    /// True if its objects live in a namespace.
    pub namespaced: bool,
    /// Served versions.
    pub versions: Vec<String>,
}

impl Definition {
    /// Returns the kind in one version.
    pub fn resource(&self, version: &str) -> Resource {
        Resource {
            api: ApiResource {
                group: self.group.clone(),
                version: version.to_owned(),
                api_version: format!("{}/{version}", self.group),
                kind: self.kind.clone(),
                plural: self.plural.clone(),
            },
            namespaced: self.namespaced,
            watchable: true,
        }
    }
}

/// Reads the definition; None when the object is no CRD, or one that the server will refuse anyway.
pub fn definition(object: &Object) -> Option<Definition> {
    if !is_crd(&object.gvk()) {
        return None;
    }
    let spec = object.value().get("spec")?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let served = |v: &&Value| v.get("served").and_then(Value::as_bool).unwrap_or_default();
    let versions = spec.get("versions")?.as_array()?.iter().filter(served);
    let versions: Vec<_> = versions.filter_map(|v| text(v.get("name"))).collect();
    let names = spec.get("names")?;
    let found = Definition {
        group: text(spec.get("group"))?,
        kind: text(names.get("kind"))?,
        plural: text(names.get("plural"))?,
        namespaced: spec.get("scope")?.as_str()? == "Namespaced",
        versions,
    };
    // These become part of a URL.
    let parts = [found.group.as_str(), found.plural.as_str()];
    let plain = parts
        .into_iter()
        .chain(found.versions.iter().map(String::as_str))
        .all(is_dns_name);
    (plain && !found.versions.is_empty()).then_some(found)
}

fn is_dns_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    !text.is_empty() && !text.contains("..") && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn crd(plural: &str) -> Object {
        let value = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": plural},
                "versions": [{"name": "v1", "served": true}, {"name": "v1alpha1", "served": false}]}});
        match value {
            Value::Object(map) => Object::new(map, None),
            _ => unreachable!(),
        }
    }

    #[test]
    fn a_definition_names_kind_scope_and_served_versions() {
        let found = definition(&crd("widgets")).unwrap();
        assert_eq!((found.kind.as_str(), found.namespaced), ("Widget", true));
        assert_eq!(found.versions, ["v1"]);
        assert_eq!(found.resource("v1").api.api_version, "example.com/v1");
    }

    #[test]
    fn a_plural_that_would_leave_its_url_is_refused() {
        assert_eq!(definition(&crd("../secrets")), None);
        assert_eq!(definition(&crd("")), None);
    }
}
