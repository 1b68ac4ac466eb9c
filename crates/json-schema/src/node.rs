//! A compiled schema: its keywords, sorted by the kind of value that they speak about.

use std::sync::Arc;

use super::draft::Draft;
use super::format::Format;
use super::number::Decimal;
use super::pattern::Pattern;
use go_text::json::Json;

/// The place of a schema in its graph.
pub(super) type NodeId = usize;

/// One schema. Groups of keywords that are absent cost nothing.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) draft: Draft,
    /// The document that it stands in, and where; together its location.
    pub(super) url: Arc<str>,
    pub(super) pointer: Arc<str>,
    /// The nearest schema around it with a URL of its own.
    pub(super) resource: NodeId,
    /// `true`, `false` or `{}` instead of keywords.
    pub(super) boolean: Option<bool>,
    pub(super) all_properties_evaluated: bool,
    pub(super) all_items_evaluated: bool,
    pub(super) items_evaluated: usize,

    pub(super) types: Types,
    pub(super) constant: Option<Json<'static>>,
    pub(super) choices: Option<Vec<Json<'static>>>,
    pub(super) format: Option<Format>,
    pub(super) references: References,
    pub(super) objects: Option<Box<ObjectRules>>,
    pub(super) arrays: Option<Box<ArrayRules>>,
    pub(super) texts: Option<Box<TextRules>>,
    pub(super) numbers: Option<Box<NumberRules>>,
    pub(super) conditions: Option<Box<Conditions>>,
    pub(super) unevaluated_properties: Option<NodeId>,
    pub(super) unevaluated_items: Option<NodeId>,
}

/// References and the anchors that dynamic ones look for.
#[derive(Debug, Default)]
pub(super) struct References {
    pub(super) plain: Option<NodeId>,
    pub(super) recursive: Option<NodeId>,
    pub(super) recursive_anchor: bool,
    /// The first target, and the anchor that may lead elsewhere.
    pub(super) dynamic: Option<(NodeId, String)>,
    pub(super) dynamic_anchor: String,
    /// Of a resource: the schemas that its dynamic anchors name.
    pub(super) dynamic_anchors: Vec<(String, NodeId)>,
}

/// A keyword whose value is a boolean or a schema.
#[derive(Debug)]
pub(super) enum Additional {
    Allowed(bool),
    Schema(NodeId),
}

/// Requirement of a property for the object that has it.
#[derive(Debug)]
pub(super) enum Dependency {
    Properties(Vec<String>),
    Schema(NodeId),
}

/// Keywords about objects; lists of pairs are sorted.
#[derive(Debug, Default)]
pub(super) struct ObjectRules {
    pub(super) max_properties: Option<i64>,
    pub(super) min_properties: Option<i64>,
    pub(super) required: Vec<String>,
    pub(super) property_names: Option<NodeId>,
    pub(super) properties: Vec<(String, NodeId)>,
    pub(super) pattern_properties: Vec<(Pattern, NodeId)>,
    pub(super) additional_properties: Option<Additional>,
    pub(super) dependencies: Vec<(String, Dependency)>,
    pub(super) dependent_schemas: Vec<(String, NodeId)>,
    pub(super) dependent_required: Vec<(String, Vec<String>)>,
}

/// Form of `items` before draft 2020-12.
#[derive(Debug)]
pub(super) enum Items {
    Each(NodeId),
    Tuple(Vec<NodeId>),
}

/// Keywords about arrays.
#[derive(Debug, Default)]
pub(super) struct ArrayRules {
    pub(super) min_items: Option<i64>,
    pub(super) max_items: Option<i64>,
    pub(super) unique_items: bool,
    pub(super) contains: Option<NodeId>,
    pub(super) min_contains: Option<i64>,
    pub(super) max_contains: Option<i64>,
    pub(super) items: Option<Items>,
    pub(super) additional_items: Option<Additional>,
    pub(super) prefix_items: Vec<NodeId>,
    pub(super) rest_items: Option<NodeId>,
}

/// Keywords about strings.
#[derive(Debug, Default)]
pub(super) struct TextRules {
    pub(super) min_length: Option<i64>,
    pub(super) max_length: Option<i64>,
    pub(super) pattern: Option<Pattern>,
}

/// Keywords about numbers.
#[derive(Debug, Default)]
pub(super) struct NumberRules {
    pub(super) maximum: Option<Decimal>,
    pub(super) minimum: Option<Decimal>,
    pub(super) exclusive_maximum: Option<Decimal>,
    pub(super) exclusive_minimum: Option<Decimal>,
    pub(super) multiple_of: Option<Decimal>,
}

/// Keywords that put schemas together.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    pub(super) not: Option<NodeId>,
    pub(super) all_of: Vec<NodeId>,
    pub(super) any_of: Vec<NodeId>,
    pub(super) one_of: Vec<NodeId>,
    pub(super) condition: Option<NodeId>,
    pub(super) then: Option<NodeId>,
    pub(super) otherwise: Option<NodeId>,
}

/// A set of JSON's types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Types(u8);

const TYPE_NAMES: [&str; 7] = [
    "null", "boolean", "number", "integer", "string", "array", "object",
];
const NUMBER: u8 = 1 << 2;
const INTEGER: u8 = 1 << 3;

impl Types {
    /// The types that the `type` keyword names; what is no type is passed over.
    pub(super) fn named(value: &Json<'_>) -> Self {
        let one = |value: &Json<'_>| {
            let place = TYPE_NAMES.iter().position(|name| value.as_text() == Some(name));
            place.map_or(0, |place| 1 << place)
        };
        Self(match value {
            Json::Array(items) => items.iter().fold(0, |types, item| types | one(item)),
            other => one(other),
        })
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether a value is of one of the types; a number without fraction is an integer.
    pub(super) fn match_value(self, value: &Json<'_>) -> bool {
        let kind = Self::from_value(value).0;
        if self.0 & kind != 0 {
            return true;
        }
        let Json::Number(number) = value else { return false };
        self.0 & INTEGER != 0 && is_integer(number)
    }

    /// The type of a value.
    pub(super) fn from_value(value: &Json<'_>) -> Self {
        Self(match value {
            Json::Null => 1,
            Json::Bool(_) => 1 << 1,
            Json::Number(_) => NUMBER,
            Json::Text(_) => 1 << 4,
            Json::Array(_) => 1 << 5,
            Json::Object(_) => 1 << 6,
        })
    }

    /// The names, as messages list them.
    pub(super) fn names(self) -> String {
        let names = TYPE_NAMES.iter().enumerate();
        let names = names.filter(|(place, _)| self.0 & (1 << place) != 0);
        names.map(|(_, name)| *name).collect::<Vec<_>>().join(" or ")
    }
}

fn is_integer(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    digits.bytes().all(|c| c.is_ascii_digit())
        || Decimal::read(number).is_some_and(|number| number.is_integer())
}
