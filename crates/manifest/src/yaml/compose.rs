//! From text to a tree of nodes, over libyaml's events, with bounds on depth and size.

use std::borrow::Cow;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use libyaml_safer::{Event, EventData, MappingStyle, Parser, ScalarStyle, SequenceStyle};

use super::error::Problem;
use super::node::{Kind, Node, NodeId, Nodes, Style, Tag};
use super::scalar;

/// How deep collections may be nested. serde_json stops at 128 and Kubernetes' deepest schemas stay below 100; what
/// walks the tree recurses, so the bound keeps it far from the end of a thread's stack.
pub const MAX_DEPTH: usize = 256;

/// How many nodes one text may have, and how many more its aliases may make: a text of 3 MiB has fewer.
pub const MAX_NODES: usize = 2_000_000;

/// A composed document: the root of its tree.
pub type Composed = NodeId;

/// Reads all documents of a stream. Documents without content are null nodes.
pub fn compose_all(text: &str, nodes: &mut Nodes) -> Result<Vec<Composed>, Problem> {
    compose(text, nodes, usize::MAX)
}

/// Reads the first document of a stream, and nothing behind it; None when there is none.
pub fn compose_first(text: &str, nodes: &mut Nodes) -> Result<Option<Composed>, Problem> {
    Ok(compose(text, nodes, 1)?.pop())
}

fn compose(text: &str, nodes: &mut Nodes, documents: usize) -> Result<Vec<Composed>, Problem> {
    let terminated = terminated(text);
    let mut input = terminated.as_bytes();
    let mut parser = Parser::new();
    parser.set_input_string(&mut input);
    let mut composer = Composer {
        limit: nodes.len() + MAX_NODES,
        nodes,
        open: Vec::new(),
        anchors: HashMap::new(),
    };
    let unterminated = matches!(terminated, Cow::Owned(_)).then(|| LastLine::of(text));
    let mut roots = Vec::new();
    while roots.len() < documents {
        let mut event = next_event(&mut parser)?;
        if event.data == EventData::StreamEnd {
            break;
        }
        if let Some(last_line) = &unterminated {
            last_line.unread_from(&mut event);
        }
        if let Some(root) = composer.take(event)? {
            roots.push(root);
        }
    }
    Ok(roots)
}

/// libyaml-safer fails hard on some texts that C's libyaml refuses or reads (a tag before a comma, a block scalar at
/// the end of the text); a user's text must not end the process.
fn next_event(parser: &mut Parser<&mut &[u8]>) -> Result<Event, Problem> {
    match catch_unwind(AssertUnwindSafe(|| parser.parse())) {
        Ok(event) => event.map_err(|error| Problem::of_syntax(&error)),
        Err(_) => Err(Problem::in_node(0, "the scanner cannot read the text")),
    }
}

/// Ends the last line with a break, without which libyaml-safer does not read block scalars.
fn terminated(text: &str) -> Cow<'_, str> {
    if text.is_empty() || text.ends_with('\n') {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{text}\n"))
    }
}

/// The last line of a text that does not end in a break.
struct LastLine {
    number: u64,
    is_blank: bool,
}

impl LastLine {
    fn of(text: &str) -> Self {
        let last = text.rsplit('\n').next().unwrap_or_default();
        Self {
            number: text.matches('\n').count() as u64,
            is_blank: last.bytes().all(|b| b == b' '),
        }
    }

    /// Takes the break that was put behind the text out of the block scalar that reaches so far.
    fn unread_from(&self, event: &mut Event) {
        let reaches_end = event.end_mark.line > self.number;
        let EventData::Scalar {
            value,
            style: ScalarStyle::Literal | ScalarStyle::Folded,
            ..
        } = &mut event.data
        else {
            return;
        };
        let added = if self.is_blank { "\n\n" } else { "\n" };
        if reaches_end && value.ends_with(added) {
            value.pop();
        }
    }
}

struct Composer<'a> {
    nodes: &'a mut Nodes,
    limit: usize,
    open: Vec<NodeId>,
    anchors: HashMap<String, NodeId>,
}

impl Composer<'_> {
    /// Takes one event; returns the document's root when the event completed it.
    fn take(&mut self, event: Event) -> Result<Option<NodeId>, Problem> {
        let line = u32::try_from(event.start_mark.line)
            .unwrap_or(u32::MAX)
            .saturating_add(1);
        match event.data {
            EventData::StreamStart { .. } | EventData::StreamEnd | EventData::DocumentEnd { .. } => Ok(None),
            EventData::DocumentStart { .. } => {
                self.anchors.clear();
                Ok(None)
            }
            EventData::Alias { anchor } => {
                let target = self.anchors.get(&anchor).copied();
                let target = target
                    .ok_or_else(|| Problem::in_node(line, format!("unknown anchor '{anchor}' referenced")))?;
                self.place(Node {
                    line,
                    ..Node::alias_to(target, anchor)
                })
            }
            EventData::Scalar {
                anchor,
                tag,
                value,
                style,
                ..
            } => {
                let node = Node {
                    line,
                    ..scalar_node(tag.as_deref(), value, style)
                };
                self.anchored(node, anchor)
            }
            EventData::SequenceStart {
                anchor, tag, style, ..
            } => {
                let flow = style == SequenceStyle::Flow;
                self.open(
                    Node {
                        line,
                        flow,
                        ..collection(Node::sequence(), tag.as_deref())
                    },
                    anchor,
                )
            }
            EventData::MappingStart {
                anchor, tag, style, ..
            } => {
                let flow = style == MappingStyle::Flow;
                self.open(
                    Node {
                        line,
                        flow,
                        ..collection(Node::mapping(), tag.as_deref())
                    },
                    anchor,
                )
            }
            EventData::SequenceEnd | EventData::MappingEnd => Ok(self.close()),
        }
    }

    fn anchored(&mut self, mut node: Node, anchor: Option<String>) -> Result<Option<NodeId>, Problem> {
        node.anchor = anchor.as_deref().map(Into::into);
        let id = self.add(node)?;
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, id);
        }
        Ok(self.attach(id))
    }

    fn place(&mut self, node: Node) -> Result<Option<NodeId>, Problem> {
        let id = self.add(node)?;
        Ok(self.attach(id))
    }

    fn open(&mut self, mut node: Node, anchor: Option<String>) -> Result<Option<NodeId>, Problem> {
        if self.open.len() >= MAX_DEPTH {
            return Err(Problem::in_node(
                node.line,
                format!("exceeded max depth of {MAX_DEPTH}"),
            ));
        }
        node.anchor = anchor.as_deref().map(Into::into);
        let id = self.add(node)?;
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, id);
        }
        if let Some(parent) = self.open.last() {
            self.nodes[*parent].content.push(id);
        }
        self.open.push(id);
        Ok(None)
    }

    fn close(&mut self) -> Option<NodeId> {
        let id = self.open.pop()?;
        self.open.is_empty().then_some(id)
    }

    fn attach(&mut self, id: NodeId) -> Option<NodeId> {
        match self.open.last() {
            Some(parent) => {
                self.nodes[*parent].content.push(id);
                None
            }
            None => Some(id),
        }
    }

    fn add(&mut self, node: Node) -> Result<NodeId, Problem> {
        if self.nodes.len() >= self.limit {
            return Err(Problem::in_node(
                node.line,
                format!("document has more than {MAX_NODES} nodes"),
            ));
        }
        Ok(self.nodes.add(node))
    }
}

fn collection(mut node: Node, tag: Option<&str>) -> Node {
    if let Some(tag) = tag.filter(|tag| !tag.is_empty() && *tag != "!") {
        node.tagged = true;
        node.tag = Tag::parse(tag);
    }
    node
}

/// Tags a scalar as go-yaml v3's `parser.scalar` does: by its tag, else a string when quoted, else by its text.
fn scalar_node(tag: Option<&str>, value: String, style: ScalarStyle) -> Node {
    let style = match style {
        ScalarStyle::DoubleQuoted => Style::DoubleQuoted,
        ScalarStyle::SingleQuoted => Style::SingleQuoted,
        ScalarStyle::Literal => Style::Literal,
        ScalarStyle::Folded => Style::Folded,
        _ => Style::Plain,
    };
    let mut node = Node {
        style,
        ..Node::scalar(value)
    };
    match tag {
        Some(tag) if !tag.is_empty() && tag != "!" => {
            node.tagged = true;
            node.tag = Tag::parse(tag);
        }
        _ if style != Style::Plain || tag == Some("!") => node.tag = Tag::Str,
        _ if node.value == "<<" => node.tag = Tag::Merge,
        _ => node.tag = scalar::resolve_plain(&node.value).tag(),
    }
    debug_assert_eq!(node.kind, Kind::Scalar);
    node
}
