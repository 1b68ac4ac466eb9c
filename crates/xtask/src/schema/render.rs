//! The table as Rust source.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use anyhow::{Result, ensure};

use super::{
    graph::{Node, Target},
    inputs::{Scopes, Type},
    reduce::{Definition, Reduced},
};

/// Known types.
pub(super) struct Types {
    pub(super) kustomize: BTreeMap<Type, Node>,
    pub(super) kubernetes: BTreeMap<Type, Node>,
    pub(super) kustomize_scopes: Scopes,
    pub(super) kubernetes_scopes: Scopes,
}

impl Types {
    /// The mappings that types are.
    pub(super) fn roots(&self) -> impl Iterator<Item = Node> {
        self.kustomize.values().chain(self.kubernetes.values()).copied()
    }

    fn names(&self) -> BTreeSet<&Type> {
        let schemas = self.kustomize.keys().chain(self.kubernetes.keys());
        let scopes = self.kustomize_scopes.keys().chain(self.kubernetes_scopes.keys());
        schemas.chain(scopes).collect()
    }
}

/// Writes the whole file.
pub(super) fn render(reduced: &Reduced<'_>, types: &Types, origins: &[String]) -> Result<String> {
    ensure!(
        reduced.definitions.len() < usize::from(u16::MAX),
        "too many definitions"
    );
    let mut text = String::from(
        "//! Fields, merge keys and scopes of the built-in types. Made by `make generate-schema`; do not edit.\n//!\n//! From:\n",
    );
    for origin in origins {
        let (file, digest) = origin.split_once('\n').unwrap_or((origin, ""));
        writeln!(text, "//! - `{file}`\n//!   {digest}")?;
    }
    text.push_str(HEAD);
    definitions(&mut text, reduced)?;
    text.push_str(TYPES);
    for name in types.names() {
        row(&mut text, name, reduced, types)?;
    }
    text.push_str("];\n");
    Ok(text)
}

const HEAD: &str = "
use super::built_in::Scope::{Cluster, Namespaced, Unknown};
use super::built_in::{Definition, NONE, Type, fields, list, mapping, of};

/// Every mapping that the types have, with the fields in which a merge goes on. Comments name one that is like this.
#[rustfmt::skip]
pub(super) static DEFINITIONS: &[Definition] = &[
";

const TYPES: &str = "];

/// The types, in order: definition and scope that kustomize knows, definition and scope in Kubernetes.
#[rustfmt::skip]
pub(super) static TYPES: &[Type] = &[
";

fn definitions(text: &mut String, reduced: &Reduced<'_>) -> Result<()> {
    for (index, definition) in reduced.definitions.iter().enumerate() {
        let name = definition.name.strip_prefix("io.k8s.").unwrap_or(definition.name);
        write!(text, "    // {index}: {name}")?;
        match definition.count {
            1 => text.push('\n'),
            count => writeln!(text, ", and {} more", count - 1)?,
        }
        writeln!(text, "    {},", rendered(definition)?)?;
    }
    Ok(())
}

fn rendered(definition: &Definition<'_>) -> Result<String> {
    let mut text = String::from("fields(&[");
    for (at, (name, target)) in definition.fields.iter().enumerate() {
        text.push_str(if at == 0 { "" } else { ", " });
        field(&mut text, name, target)?;
    }
    text.push(']');
    if let Some(target) = &definition.others {
        text.push_str(").others(");
        field(&mut text, "", target)?;
    }
    text.push(')');
    Ok(text)
}

fn field(text: &mut String, name: &str, target: &Target) -> Result<()> {
    match target {
        Target::Mapping(index) => write!(text, "mapping({name:?}, {index})")?,
        Target::List { elements, keys } => write!(text, "list({name:?}, {elements:?}, &{keys:?})")?,
    }
    Ok(())
}

fn row(text: &mut String, name: &Type, reduced: &Reduced<'_>, types: &Types) -> Result<()> {
    let definition = |nodes: &BTreeMap<Type, Node>| match nodes.get(name) {
        Some(node) => reduced.of_node[node].to_string(),
        None => "NONE".to_owned(),
    };
    let scope = |scopes: &Scopes| match scopes.get(name) {
        Some(true) => "Namespaced",
        Some(false) => "Cluster",
        None => "Unknown",
    };
    writeln!(
        text,
        "    of({:?}, {:?}, ({}, {}), ({}, {})),",
        name.0,
        name.1,
        definition(&types.kustomize),
        scope(&types.kustomize_scopes),
        definition(&types.kubernetes),
        scope(&types.kubernetes_scopes),
    )?;
    Ok(())
}
