//! The schemas on the way to the one that is checked, and what of a value no schema has looked at yet.

use std::collections::BTreeSet;

use super::Target;
use crate::node::Node;
use crate::pointer;
use go_text::json::Json;
use go_text::quote::quoted;

/// A schema that is being checked, and the one that asked for it.
pub(super) struct Scope<'s, 'p> {
    pub(super) target: Target<'s>,
    /// The keyword of a reference that led here, else empty.
    keyword: &'static str,
    /// The same for scopes that check the same value.
    pub(super) value_id: usize,
    parent: Option<&'p Scope<'s, 'p>>,
}

impl<'s, 'p> Scope<'s, 'p> {
    pub(super) fn root(target: Target<'s>) -> Self {
        Self {
            target,
            keyword: "",
            value_id: 0,
            parent: None,
        }
    }

    pub(super) fn child<'c>(
        &'c self,
        target: Target<'s>,
        keyword: &'static str,
        value_id: usize,
    ) -> Scope<'s, 'c>
    where
        'p: 'c,
    {
        Scope {
            target,
            keyword,
            value_id,
            parent: Some(self),
        }
    }

    /// The scopes around this one, from the nearest on.
    pub(super) fn around(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(self.parent, |scope| scope.parent)
    }

    /// A scope around this one that checks the same value against the same schema: it would go on forever.
    pub(super) fn cycle(&self) -> Option<&Self> {
        self.around()
            .take_while(|scope| scope.value_id == self.value_id)
            .find(|scope| scope.target.is(self.target))
    }

    /// The message about a cycle that starts here.
    pub(super) fn message(&self, end: &Self, node: &Node) -> String {
        let url = quoted(&pointer::location(&node.url, &node.pointer));
        let (one, two) = (end.keyword_location(), self.keyword_location());
        format!("both {one} and {two} resolve to {url} causing reference cycle")
    }

    fn keyword_location(&self) -> String {
        let mut location = String::new();
        let mut scope = self;
        while let Some(parent) = scope.parent {
            let step = if scope.keyword.is_empty() {
                let (here, above) = (scope.target.location(), parent.target.location());
                here.get(above.len()..).unwrap_or_default().to_owned()
            } else {
                format!("/{}", scope.keyword)
            };
            location.insert_str(0, &step);
            scope = parent;
        }
        location
    }
}

/// The properties or items of a value that no schema has looked at. Noted only where someone asks.
#[derive(Debug, Default)]
pub(super) struct Unevaluated<'v> {
    pub(super) properties: BTreeSet<&'v str>,
    pub(super) items: BTreeSet<usize>,
}

impl<'v> Unevaluated<'v> {
    pub(super) fn new(value: &'v Json<'v>, node: &Node, asked: bool) -> Self {
        let mut unevaluated = Self::default();
        let properties = !node.all_properties_evaluated && (asked || node.unevaluated_properties.is_some());
        let items_too = !node.all_items_evaluated && (asked || node.unevaluated_items.is_some());
        match value {
            Json::Object(fields) if properties => {
                unevaluated.properties = fields.iter().map(|(name, _)| name.as_ref()).collect();
            }
            Json::Array(items) if items_too => {
                unevaluated.items = (node.items_evaluated..items.len()).collect();
            }
            _ => {}
        }
        unevaluated
    }

    /// Keeps what another schema has not looked at either.
    pub(super) fn merge(&mut self, other: &Self) {
        if self.is_empty() {
            return;
        }
        self.properties.retain(|name| other.properties.contains(name));
        self.items.retain(|index| other.items.contains(index));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.properties.is_empty() && self.items.is_empty()
    }
}
