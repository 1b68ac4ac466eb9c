//! Namespace and name of an object: the key of queues and maps.

use std::fmt;

use kube::core::NamespaceResourceScope;
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt as _};

/// Namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Namespace of the object; empty only for an object that the API server has not seen.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

/// Refuses what no object is called, in client-go's words. kube puts names into paths as they are: one that a user
/// wrote could lead elsewhere.
pub fn check_name(name: &str) -> Result<(), String> {
    let problem = match name {
        "." | ".." => format!("may not be '{name}'"),
        _ => match name
            .chars()
            .find(|c| matches!(c, '/' | '%' | '?' | '#') || c.is_control() || c.is_whitespace())
        {
            Some(character) => format!("may not contain {character:?}"),
            None => return Ok(()),
        },
    };
    Err(format!("invalid resource name {name:?}: [{problem}]"))
}

impl ObjectKey {
    /// Puts a key together.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The key of an object.
    pub fn from_object<K: Resource>(object: &K) -> Self {
        Self::new(object.namespace().unwrap_or_default(), object.name_any())
    }

    /// The same for kube's stores.
    pub fn object_ref<K>(&self) -> ObjectRef<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        ObjectRef::new(&self.name).within(&self.namespace)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

impl<K: Resource<DynamicType = ()>> From<ObjectRef<K>> for ObjectKey {
    fn from(reference: ObjectRef<K>) -> Self {
        Self::new(reference.namespace.unwrap_or_default(), reference.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["app", "a.b-c", "UPPER", "system:node", "..."] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in [
            ".",
            "..",
            "a/b",
            "../../kube-system/secrets/a",
            "%2e%2e",
            "a?b",
            "a#b",
            "a b",
            "a\nb",
        ] {
            let error = check_name(name).unwrap_err();
            assert!(error.starts_with("invalid resource name "), "{error}");
        }
    }
}
