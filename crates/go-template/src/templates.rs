//! Parsed templates by name, and what it means to define one again.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ast::Tree;
use crate::{Delimiters, Error, Functions, Options, Render, Str, Value, builtins, parser};

/// Templates that know each other: Go's `Template` with all that it is associated with.
///
/// They never change while they are executed, and are shared by renders on many threads.
#[derive(Clone, Debug, Default)]
pub struct Templates {
    name: Str,
    delimiters: Delimiters,
    trees: HashMap<Str, Arc<Tree>>,
}

impl Templates {
    /// Makes an empty set with the name of Go's root template, which error texts show.
    pub fn new(name: impl Into<Str>) -> Self {
        Self {
            name: name.into(),
            delimiters: Delimiters::default(),
            trees: HashMap::new(),
        }
    }

    /// With other delimiters for what is parsed from now on.
    #[must_use]
    pub fn between(mut self, delimiters: Delimiters) -> Self {
        self.delimiters = delimiters;
        self
    }

    /// Returns the name of the root template.
    pub fn name(&self) -> &Str {
        &self.name
    }

    /// Parses a text as the template `name`, and adds it and what it defines: Go's `New(name).Parse(text)`.
    ///
    /// A template replaces an earlier one of its name, unless it is empty.
    pub fn parse(
        &mut self,
        name: impl Into<Str>,
        text: impl Into<Str>,
        functions: &Functions,
    ) -> Result<(), Error> {
        let is_function = is_function(functions);
        for tree in parser::parse_between(self.delimiters, &name.into(), &text.into(), &is_function)? {
            self.add(Arc::new(tree));
        }
        Ok(())
    }

    /// Adds a parsed template: Go's `AddParseTree`.
    pub fn add(&mut self, tree: Arc<Tree>) {
        if tree.is_empty() && self.trees.contains_key(tree.name()) {
            return;
        }
        self.trees.insert(tree.name().clone(), tree);
    }

    /// Finds a template.
    pub fn get(&self, name: impl AsRef<[u8]>) -> Option<&Arc<Tree>> {
        self.trees.get(name.as_ref())
    }

    /// Lists the templates, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Tree>> {
        self.trees.values()
    }

    /// Executes one template in a render of its own.
    pub fn execute(
        &self,
        name: impl AsRef<[u8]>,
        data: &Value,
        functions: &Functions,
        options: &Options,
    ) -> Result<Vec<u8>, Error> {
        Render::new(self, functions, options).execute(name, data)
    }
}

/// Parses a text that may name the functions and Go's own.
pub fn parse_with(name: &Str, text: &Str, functions: &Functions) -> Result<Vec<Tree>, Error> {
    parser::parse(name, text, &is_function(functions))
}

/// Answers for the functions and Go's own.
fn is_function(functions: &Functions) -> impl Fn(&str) -> bool {
    |name| functions.get(name).is_some() || builtins::find(name).is_some()
}

/// Templates on top of others, as `tpl` needs them: what a text defines hides what was there, for that text only.
#[derive(Clone, Copy)]
pub(crate) struct Layers<'a> {
    own: &'a Templates,
    below: Option<&'a Layers<'a>>,
    height: u32,
}

/// How many texts may be executed within each other. Finding a template looks through all of them.
const MAX_LAYERS: u32 = 2000;

impl<'a> Layers<'a> {
    pub(crate) fn new(own: &'a Templates) -> Self {
        Self {
            own,
            below: None,
            height: 0,
        }
    }

    pub(crate) fn with<'b>(&'b self, own: &'b Templates) -> Layers<'b> {
        Layers {
            own,
            below: Some(self),
            height: self.height + 1,
        }
    }

    /// Returns whether nothing may be put on top of these any more.
    pub(crate) fn are_too_many(&self) -> bool {
        self.height >= MAX_LAYERS
    }

    pub(crate) fn name(&self) -> &'a Str {
        self.own.name()
    }

    pub(crate) fn find(&self, name: &[u8]) -> Option<&'a Tree> {
        let mut layers = *self;
        loop {
            if let Some(tree) = layers.own.get(name) {
                return Some(tree);
            }
            layers = *layers.below?;
        }
    }

    /// Tells which of the trees that a text made are to be added on top of these.
    pub(crate) fn takes(&self, tree: &Tree) -> bool {
        !tree.is_empty() || self.find(tree.name()).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_may_stand_between_other_delimiters() {
        let mut templates = Templates::new("root").between(Delimiters {
            left: *b"<<",
            right: *b">>",
        });
        let text = "a {{x}} <<- /* no */ ->> <<.b>><<- if gt 2 1 ->> c <<end>> {<.>}";
        templates.parse("t", text, &Functions::default()).unwrap();
        let data = Value::Map([("b", Value::from("B"))].into_iter().collect());
        let made = templates.execute("t", &data, &Functions::default(), &Options::default());
        assert_eq!(made.unwrap(), b"a {{x}}Bc  {<.>}");
    }
}
