//! The tree that YAML text becomes: nodes in an arena, referred to by ids.
//!
//! Ids may be shared: kustomize's transformers put one node in several places of an object and change all of them
//! together later, and its users' output depends on it. An arena gives exactly that.

use std::ops::{Index, IndexMut};

/// Type of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A scalar: [`Node::value`] holds its text.
    Scalar,
    /// A mapping: keys and values alternate in [`Node::content`].
    Mapping,
    /// A sequence.
    Sequence,
    /// A reference to an anchored node, [`Node::alias`].
    Alias,
}

/// How a scalar was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Without quotes.
    #[default]
    Plain,
    /// In double quotes.
    DoubleQuoted,
    /// In single quotes.
    SingleQuoted,
    /// As a literal block.
    Literal,
    /// As a folded block.
    Folded,
}

/// A node's tag, in its short form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tag {
    /// None: the type follows from the text when it is needed.
    #[default]
    Empty,
    /// `!!null`
    Null,
    /// `!!bool`
    Bool,
    /// `!!str`
    Str,
    /// `!!int`
    Int,
    /// `!!float`
    Float,
    /// `!!timestamp`
    Timestamp,
    /// `!!binary`
    Binary,
    /// `!!map`
    Map,
    /// `!!seq`
    Seq,
    /// `!!merge`
    Merge,
    /// Any other, as written.
    Other(Box<str>),
}

const CORE_PREFIX: &str = "tag:yaml.org,2002:";

impl Tag {
    /// Reads a tag in its long (`tag:yaml.org,2002:int`) or short (`!!int`) form.
    pub fn parse(tag: &str) -> Self {
        let Some(core) = tag.strip_prefix(CORE_PREFIX).or_else(|| tag.strip_prefix("!!")) else {
            return if tag.is_empty() {
                Self::Empty
            } else {
                Self::Other(tag.into())
            };
        };
        match core {
            "null" => Self::Null,
            "bool" => Self::Bool,
            "str" => Self::Str,
            "int" => Self::Int,
            "float" => Self::Float,
            "timestamp" => Self::Timestamp,
            "binary" => Self::Binary,
            "map" => Self::Map,
            "seq" => Self::Seq,
            "merge" => Self::Merge,
            other => Self::Other(format!("!!{other}").into()),
        }
    }

    /// Returns the short form; empty for [`Tag::Empty`].
    pub fn as_str(&self) -> &str {
        match self {
            Self::Empty => "",
            Self::Null => "!!null",
            Self::Bool => "!!bool",
            Self::Str => "!!str",
            Self::Int => "!!int",
            Self::Float => "!!float",
            Self::Timestamp => "!!timestamp",
            Self::Binary => "!!binary",
            Self::Map => "!!map",
            Self::Seq => "!!seq",
            Self::Merge => "!!merge",
            Self::Other(tag) => tag,
        }
    }
}

/// A comment, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The line, counted from 1.
    pub line: u32,
    /// Characters that stand before it in its line.
    pub column: usize,
    /// Text after the `#`.
    pub text: String,
}

/// One node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its type.
    pub kind: Kind,
    /// How a scalar was written.
    pub style: Style,
    /// True if a collection was written in flow style (`{…}`, `[…]`).
    pub flow: bool,
    /// True if the text named the tag.
    pub tagged: bool,
    /// The tag.
    pub tag: Tag,
    /// A scalar's text; an alias's name.
    pub value: String,
    /// Children: elements, or keys and values in turn.
    pub content: Vec<NodeId>,
    /// The name under which aliases refer to the node.
    pub anchor: Option<Box<str>>,
    /// Target of an alias.
    pub alias: Option<NodeId>,
    /// The line it starts in, counted from 1; 0 for nodes that no text holds.
    pub line: u32,
}

impl Node {
    #[inline]
    fn empty(kind: Kind, tag: Tag) -> Self {
        Self {
            kind,
            style: Style::Plain,
            flow: false,
            tagged: false,
            tag,
            value: String::new(),
            content: Vec::new(),
            anchor: None,
            alias: None,
            line: 0,
        }
    }

    /// Makes a plain scalar without a tag: its type follows from its text.
    pub fn scalar(value: impl Into<String>) -> Self {
        Self {
            value: value.into(),
            ..Self::empty(Kind::Scalar, Tag::Empty)
        }
    }

    /// Makes a scalar with a tag.
    pub fn tagged_scalar(value: impl Into<String>, tag: Tag) -> Self {
        Self {
            value: value.into(),
            ..Self::empty(Kind::Scalar, tag)
        }
    }

    /// Makes a string, as a block when it has several lines.
    pub fn string(value: impl Into<String>) -> Self {
        let value = value.into();
        let style = if value.contains('\n') {
            Style::Literal
        } else {
            Style::Plain
        };
        Self {
            value,
            style,
            ..Self::empty(Kind::Scalar, Tag::Str)
        }
    }

    /// Makes an empty mapping.
    pub fn mapping() -> Self {
        Self::empty(Kind::Mapping, Tag::Map)
    }

    /// Makes an empty sequence.
    pub fn sequence() -> Self {
        Self::empty(Kind::Sequence, Tag::Seq)
    }

    pub(super) fn alias_to(target: NodeId, name: String) -> Self {
        Self {
            value: name,
            alias: Some(target),
            ..Self::empty(Kind::Alias, Tag::Empty)
        }
    }

    /// Returns whether the node is null.
    pub fn is_null(&self) -> bool {
        self.tag == Tag::Null
    }

    /// Returns whether the node is null or an empty collection.
    pub fn is_null_or_empty(&self) -> bool {
        self.is_null() || (matches!(self.kind, Kind::Mapping | Kind::Sequence) && self.content.is_empty())
    }
}

/// Refers to a node of an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

/// An arena of nodes. Nodes are never freed one by one; an arena lives as long as one build.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    nodes: Vec<Node>,
    per_text: Option<usize>,
    bytes: usize,
    budget: Option<Budget>,
}

/// Memory limit of an arena.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Maximum number of bytes. Exceeding it unwinds the stack with [`Exhausted`], which the caller that set the budget must
    /// catch. A build adds nodes in many places, none of which could handle an error.
    pub bytes: usize,
    /// Number of bytes above which the arena is large, and a function that is called once when it becomes large. The function
    /// may block, to limit the number of large arenas.
    pub large: Option<(usize, fn())>,
}

/// Payload of the unwinding when an arena exceeds its [`Budget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted {
    /// The exceeded limit.
    pub bytes: usize,
}

impl Index<NodeId> for Nodes {
    type Output = Node;

    fn index(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }
}

impl IndexMut<NodeId> for Nodes {
    fn index_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }
}

impl Budget {
    #[inline]
    fn check(self, before: usize, bytes: usize) {
        if bytes > self.bytes {
            // Unlike a panic, this does not call the panic hook.
            std::panic::resume_unwind(Box::new(Exhausted { bytes: self.bytes }))
        }
        if let Some((large, wait)) = self.large
            && before <= large
            && bytes > large
        {
            wait();
        }
    }
}

impl Nodes {
    /// Creates an arena with a lower limit of nodes per text than [`super::MAX_NODES`].
    pub fn with_limit(nodes: usize) -> Self {
        Self {
            per_text: Some(nodes),
            ..Self::default()
        }
    }

    /// Creates an arena with a memory limit.
    pub fn with_budget(budget: Budget) -> Self {
        Self {
            budget: Some(budget),
            ..Self::default()
        }
    }

    /// Charges the budget for memory other than nodes.
    #[inline]
    pub fn charge(&mut self, bytes: usize) {
        let before = self.bytes;
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some(budget) = self.budget {
            budget.check(before, self.bytes);
        }
    }

    /// Maximum number of nodes per text.
    pub(super) fn limit(&self) -> usize {
        self.per_text.unwrap_or(super::MAX_NODES).min(super::MAX_NODES)
    }

    /// Puts a node into the arena.
    ///
    /// # Panics
    /// When the arena would hold more than 2^32 nodes; readers stop long before ([`super::MAX_NODES`] per text).
    #[inline]
    pub fn add(&mut self, node: Node) -> NodeId {
        let id = NodeId(
            u32::try_from(self.nodes.len()).expect("readers bound the number of nodes far below 2^32"),
        );
        self.charge(size_of::<Node>() + node.value.len());
        self.nodes.push(node);
        id
    }

    /// Makes room for the nodes of a text of `length` bytes: about one for twelve.
    pub(super) fn reserve_for(&mut self, length: usize) {
        const BYTES_PER_NODE: usize = 12;
        self.nodes.reserve(length / BYTES_PER_NODE);
    }

    /// All nodes, in the order in which they were added.
    pub fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        self.ids_from(0)
    }

    /// The nodes that were added since the arena held `first` of them.
    pub(super) fn ids_from(&self, first: usize) -> impl Iterator<Item = NodeId> + use<> {
        let range = first..self.nodes.len();
        range.filter_map(|at| u32::try_from(at).ok().map(NodeId))
    }

    /// Returns how many nodes the arena holds.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns whether the arena holds no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Copies a node with everything below it.
    pub fn deep_copy(&mut self, id: NodeId) -> NodeId {
        let mut copy = self[id].clone();
        for child in &mut copy.content {
            *child = self.deep_copy(*child);
        }
        self.add(copy)
    }

    /// Iterates over keys and values of a mapping; over nothing for other nodes.
    pub fn pairs(&self, mapping: NodeId) -> impl Iterator<Item = (NodeId, NodeId)> + '_ {
        let content: &[NodeId] = match self[mapping].kind {
            Kind::Mapping => &self[mapping].content,
            _ => &[],
        };
        content.chunks_exact(2).map(|pair| (pair[0], pair[1]))
    }

    /// Finds the value of a mapping's field: the first of that name.
    pub fn field(&self, mapping: NodeId, name: &str) -> Option<NodeId> {
        self.pairs(mapping)
            .find(|(key, _)| self[*key].value == name)
            .map(|(_, value)| value)
    }

    /// Appends a field to a mapping without looking whether it is there.
    pub fn push_field(&mut self, mapping: NodeId, name: &str, value: NodeId) {
        let key = self.add(Node::scalar(name));
        self[mapping].content.extend([key, value]);
    }

    /// Takes a field out of a mapping, and returns its value.
    pub fn remove_field(&mut self, mapping: NodeId, name: &str) -> Option<NodeId> {
        let position = self.pairs(mapping).position(|(key, _)| self[key].value == name)?;
        self[mapping].content.drain(position * 2..position * 2 + 2).nth(1)
    }
}
