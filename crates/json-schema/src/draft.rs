//! The drafts of JSON Schema, and where each keeps subschemas.

use std::sync::OnceLock;

use super::compile::{Assertions, Graph, compile_metaschema};
use super::node::NodeId;
use super::pointer;
use go_text::json::Json;

/// A draft that schemas may be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Draft {
    D4,
    D6,
    D7,
    D2019,
    D2020,
}

/// Where a keyword holds schemas.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// The keyword's value is a schema.
    One,
    /// Every element of a list.
    List,
    /// Every value of an object.
    Map,
}

/// The keywords that hold schemas, each with the draft that brought it.
const SUBSCHEMAS: [(Draft, &str, Holds); 23] = [
    (Draft::D4, "definitions", Holds::Map),
    (Draft::D4, "not", Holds::One),
    (Draft::D4, "allOf", Holds::List),
    (Draft::D4, "anyOf", Holds::List),
    (Draft::D4, "oneOf", Holds::List),
    (Draft::D4, "properties", Holds::Map),
    (Draft::D4, "additionalProperties", Holds::One),
    (Draft::D4, "patternProperties", Holds::Map),
    (Draft::D4, "items", Holds::One),
    (Draft::D4, "items", Holds::List),
    (Draft::D4, "additionalItems", Holds::One),
    (Draft::D4, "dependencies", Holds::Map),
    (Draft::D6, "propertyNames", Holds::One),
    (Draft::D6, "contains", Holds::One),
    (Draft::D7, "if", Holds::One),
    (Draft::D7, "then", Holds::One),
    (Draft::D7, "else", Holds::One),
    (Draft::D2019, "$defs", Holds::Map),
    (Draft::D2019, "dependentSchemas", Holds::Map),
    (Draft::D2019, "unevaluatedProperties", Holds::One),
    (Draft::D2019, "unevaluatedItems", Holds::One),
    (Draft::D2019, "contentSchema", Holds::One),
    (Draft::D2020, "prefixItems", Holds::List),
];

impl Draft {
    /// The draft of a schema that names none.
    pub(super) const LATEST: Self = Self::D2020;

    /// The draft that `$schema` names, if it is one.
    pub(super) fn of_url(url: &str) -> Option<Self> {
        let (url, "") = pointer::split(url) else {
            return None;
        };
        let bare = url
            .strip_prefix("http://")
            .or_else(|| url.strip_prefix("https://"))
            .unwrap_or(url);
        match bare {
            "json-schema.org/schema" => Some(Self::LATEST),
            "json-schema.org/draft/2020-12/schema" => Some(Self::D2020),
            "json-schema.org/draft/2019-09/schema" => Some(Self::D2019),
            "json-schema.org/draft-07/schema" => Some(Self::D7),
            "json-schema.org/draft-06/schema" => Some(Self::D6),
            "json-schema.org/draft-04/schema" => Some(Self::D4),
            _ => None,
        }
    }

    /// The URL of the draft's metaschema.
    pub(super) fn url(self) -> &'static str {
        match self {
            Self::D4 => "http://json-schema.org/draft-04/schema",
            Self::D6 => "http://json-schema.org/draft-06/schema",
            Self::D7 => "http://json-schema.org/draft-07/schema",
            Self::D2019 => "https://json-schema.org/draft/2019-09/schema",
            Self::D2020 => "https://json-schema.org/draft/2020-12/schema",
        }
    }

    /// The keyword that gives a schema its URL.
    pub(super) fn id_keyword(self) -> &'static str {
        if self == Self::D4 { "id" } else { "$id" }
    }

    /// The URL that a schema gives itself, without its fragment; empty if it gives none.
    pub(super) fn id_of<'a>(self, schema: &'a Json<'_>) -> &'a str {
        if self < Self::D2019 && schema.get("$ref").is_some() {
            // These drafts ignore everything beside a reference.
            return "";
        }
        let id = schema.get(self.id_keyword()).and_then(Json::as_text);
        id.map_or("", |id| pointer::split(id).0)
    }

    /// The keywords that hold schemas in this draft.
    pub(super) fn subschemas(self) -> impl Iterator<Item = (&'static str, Holds)> {
        SUBSCHEMAS
            .iter()
            .filter(move |(since, _, _)| *since <= self)
            .map(|(_, keyword, holds)| (*keyword, *holds))
    }

    /// Returns whether formats are asserted. From 2019-09 on only a metaschema can ask for it, and none can be loaded here.
    pub(super) fn asserts_formats(self, assertions: Assertions) -> bool {
        assertions == Assertions::Formats || self < Self::D2019
    }

    /// The compiled metaschema, made when it is first needed.
    pub(super) fn metaschema(self) -> &'static (Graph, NodeId) {
        static COMPILED: [OnceLock<(Graph, NodeId)>; 5] = [const { OnceLock::new() }; 5];
        let index = match self {
            Self::D4 => 0,
            Self::D6 => 1,
            Self::D7 => 2,
            Self::D2019 => 3,
            Self::D2020 => 4,
        };
        COMPILED[index].get_or_init(|| compile_metaschema(self))
    }
}
