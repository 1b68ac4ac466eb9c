//! What an object is called within its kind: the key of queues and maps.

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

impl ObjectKey {
    /// Puts a key together.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The key of an object.
    pub fn of<K: Resource>(object: &K) -> Self {
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
