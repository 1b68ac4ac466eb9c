//! The nodes of a build, with the schemas that its types have.
//!
//! Whoever looks at an object may have to ask what its type is, and a kustomization may bring schemas of its own
//! (`openapi`). kustomize keeps them in a global variable; here they go where the nodes go.

use std::ops::{Deref, DerefMut};

use manifest::yaml;

use crate::schema::Schemas;

/// The arena of a build's trees.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    nodes: yaml::Nodes,
    pub(crate) schemas: Schemas,
}

impl Nodes {
    /// Creates the arena of a build.
    pub(crate) fn new(schemas: Schemas, budget: Option<yaml::Budget>) -> Self {
        let nodes = budget.map_or_else(yaml::Nodes::default, yaml::Nodes::with_budget);
        Self { nodes, schemas }
    }
}

impl Deref for Nodes {
    type Target = yaml::Nodes;

    fn deref(&self) -> &yaml::Nodes {
        &self.nodes
    }
}

impl DerefMut for Nodes {
    fn deref_mut(&mut self) -> &mut yaml::Nodes {
        &mut self.nodes
    }
}
