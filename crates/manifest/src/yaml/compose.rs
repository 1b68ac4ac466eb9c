//! From text to a tree of nodes, with bounds on depth and size.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::dialect::Dialect;
use super::error::Problem;
use super::input::Input;
use super::node::{Comment, Kind, Node, NodeId, Nodes, Style, Tag};
use super::parse::{Event, Parser, Properties};
use super::scalar;
use super::scan::Notes;

/// How deep collections may be nested. serde_json stops at 128 and Kubernetes' deepest schemas stay below 100; what
/// walks the tree recurses, so the bound keeps it far from the end of a thread's stack.
pub const MAX_DEPTH: usize = 256;

/// How many nodes one text may have, and how many more its aliases may make: a text of 3 MiB has fewer.
pub const MAX_NODES: usize = 2_000_000;

/// A composed document: the root of its tree.
pub type Composed = NodeId;

/// Reads all documents of a stream. Documents without content are null nodes.
pub fn compose_all<'a>(
    input: impl Into<Input<'a>>,
    nodes: &mut Nodes,
    dialect: Dialect,
) -> Result<Vec<Composed>, Problem> {
    compose(input.into(), nodes, dialect, usize::MAX, &mut None)
}

/// Reads the first document of a stream, and nothing behind it; None when there is none.
pub fn compose_first<'a>(
    input: impl Into<Input<'a>>,
    nodes: &mut Nodes,
    dialect: Dialect,
) -> Result<Option<Composed>, Problem> {
    Ok(compose(input.into(), nodes, dialect, 1, &mut None)?.pop())
}

/// Reads all documents of a stream as [`compose_all`] does, and the comments in the order of the text.
pub fn compose_all_with_comments<'a>(
    input: impl Into<Input<'a>>,
    nodes: &mut Nodes,
    dialect: Dialect,
) -> Result<(Vec<Composed>, Vec<Comment>), Problem> {
    let mut notes = Some(Notes::default());
    let roots = compose(input.into(), nodes, dialect, usize::MAX, &mut notes)?;
    Ok((roots, notes.unwrap_or_default().comments))
}

/// A text with what is needed to edit it: its comments, and where its scalars stand.
#[derive(Debug)]
pub struct Annotated {
    /// The documents.
    pub roots: Vec<Composed>,
    /// All comments, in the order of the text.
    pub comments: Vec<Comment>,
    /// Where each scalar stands in the text, in bytes, as written with its quotes. Not there: what the text leaves out.
    pub places: HashMap<NodeId, Range<usize>>,
}

/// Reads all documents of a text, with its comments and the places of its scalars.
///
/// ```
/// use manifest::yaml::{Dialect, Nodes, compose_all_annotated};
///
/// let text = "a: 'b' # c\n";
/// let mut nodes = Nodes::default();
/// let read = compose_all_annotated(text, &mut nodes, Dialect::Kyaml).unwrap();
/// let value = nodes.field(read.roots[0], "a").unwrap();
/// assert_eq!(&text[read.places[&value].clone()], "'b'");
/// ```
pub fn compose_all_annotated(text: &str, nodes: &mut Nodes, dialect: Dialect) -> Result<Annotated, Problem> {
    let first = nodes.len();
    let mark = if text.starts_with(MARK) {
        MARK.len_utf8()
    } else {
        0
    };
    let mut notes = Some(Notes::default());
    let roots = compose(text.into(), nodes, dialect, usize::MAX, &mut notes)?;
    let Notes { comments, scalars } = notes.unwrap_or_default();
    // Nodes are in the order of the text, and only a plain scalar that is not written is empty.
    let written = nodes.ids_from(first).filter(|id| {
        let node = &nodes[*id];
        node.kind == Kind::Scalar && !(node.style == Style::Plain && node.value.is_empty())
    });
    let shifted = scalars
        .into_iter()
        .map(|place| place.start + mark..place.end + mark);
    Ok(Annotated {
        roots,
        comments,
        places: written.zip(shifted).collect(),
    })
}

/// Byte order mark, which may stand before the text.
const MARK: char = '\u{feff}';

fn compose(
    input: Input<'_>,
    nodes: &mut Nodes,
    dialect: Dialect,
    documents: usize,
    notes: &mut Option<Notes>,
) -> Result<Vec<Composed>, Problem> {
    nodes.reserve_for(input.text.len());
    let mut parser = Parser::new(&input.text, input.failure, dialect);
    if notes.is_some() {
        parser.keep_notes();
    }
    let mut composer = Composer {
        dialect,
        most: nodes.limit(),
        limit: nodes.len() + nodes.limit(),
        nodes,
        open: Vec::new(),
        anchors: HashMap::new(),
        root: None,
    };
    let mut roots = Vec::new();
    while roots.len() < documents {
        let (event, line) = parser.next()?;
        match event {
            Event::StreamEnd => break,
            Event::DocumentEnd => roots.extend(composer.root.take()),
            event => composer.take(event, line.saturating_add(1))?,
        }
    }
    if let Some(notes) = notes {
        *notes = parser.take_notes();
    }
    Ok(roots)
}

struct Composer<'n, 'a> {
    /// How many nodes the text may have, and up to how many in the arena that is.
    most: usize,
    dialect: Dialect,
    nodes: &'n mut Nodes,
    limit: usize,
    open: Vec<NodeId>,
    anchors: HashMap<&'a str, NodeId>,
    root: Option<NodeId>,
}

impl<'a> Composer<'_, 'a> {
    fn take(&mut self, event: Event<'a>, line: u32) -> Result<(), Problem> {
        match event {
            // go-yaml v3 goes on with the anchors of the documents before.
            Event::DocumentStart if self.dialect == Dialect::Sigs => self.anchors.clear(),
            Event::DocumentStart | Event::DocumentEnd | Event::StreamEnd => {}
            Event::Alias(name) => {
                let target = self.anchors.get(name).copied();
                let target = target
                    .ok_or_else(|| Problem::in_node(line, format!("unknown anchor '{name}' referenced")))?;
                self.place(Node::alias_to(target, name.to_owned()), None, line)?;
            }
            Event::Scalar(properties, value, style) => {
                let node = self.scalar(&properties, value, style);
                self.place(node, properties.anchor, line)?;
            }
            Event::SequenceStart { properties, flow } => {
                self.open(Node::sequence(), &properties, flow, line)?;
            }
            Event::MappingStart { properties, flow } => {
                self.open(Node::mapping(), &properties, flow, line)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.open.pop();
            }
        }
        Ok(())
    }

    fn open(
        &mut self,
        mut node: Node,
        properties: &Properties<'a>,
        flow: bool,
        line: u32,
    ) -> Result<(), Problem> {
        if self.open.len() >= MAX_DEPTH {
            return Err(Problem::in_node(
                line,
                format!("exceeded max depth of {MAX_DEPTH}"),
            ));
        }
        if let Some(tag) = properties.tag.as_deref().filter(|tag| *tag != "!") {
            node.tagged = true;
            node.tag = Tag::parse(tag);
        }
        node.flow = flow;
        let id = self.place(node, properties.anchor, line)?;
        self.open.push(id);
        Ok(())
    }

    /// Puts a node below the collection that is open, or at the root.
    #[inline]
    fn place(&mut self, mut node: Node, anchor: Option<&'a str>, line: u32) -> Result<NodeId, Problem> {
        if self.nodes.len() >= self.limit {
            let text = format!("document has more than {} nodes", self.most);
            return Err(Problem::in_node(line, text));
        }
        node.line = line;
        node.anchor = anchor.map(Into::into);
        let id = self.nodes.add(node);
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, id);
        }
        match self.open.last() {
            Some(parent) => self.nodes[*parent].content.push(id),
            None => self.root = Some(id),
        }
        Ok(id)
    }

    /// Tags a scalar as go-yaml v3's `parser.scalar` does: by its tag, else a string when quoted, else by its text.
    ///
    /// Version 2 resolves only when it decodes, and knows a tag of `!`.
    #[inline]
    fn scalar(&self, properties: &Properties<'a>, value: Cow<'a, str>, style: Style) -> Node {
        let mut node = Node {
            style,
            ..Node::scalar(value)
        };
        match properties.tag.as_deref() {
            Some(tag) if tag != "!" || self.dialect == Dialect::Sigs => {
                node.tagged = true;
                node.tag = Tag::parse(tag);
            }
            _ if style != Style::Plain => node.tag = Tag::Str,
            _ if self.dialect == Dialect::Sigs => {}
            _ if node.value == "<<" => node.tag = Tag::Merge,
            _ => node.tag = scalar::resolve_plain(&node.value).tag(),
        }
        node
    }
}
