//! From a tree of nodes to YAML text, as go-yaml v3 writes it.
//!
//! Unlike [`super::write`] this keeps the styles that nodes have. kustomize shows nodes so in its messages, and writes
//! YAML that stands in a field back with it; Helm's toYamlPretty does, too. Two spaces, lines of any length; sequences
//! are indented below their key or, for kyaml, not.

mod analysis;
mod scalar;

use std::collections::HashMap;

use super::node::{Kind, Node, NodeId, Nodes, Tag};
use super::scalar::resolve_plain;

/// Writes a tree as a YAML document, ending in a newline, as kyaml has it: sequences are not indented.
pub fn write_tree(nodes: &Nodes, root: NodeId) -> String {
    write(nodes, root, true, INDENT, None)
}

/// Writes a tree as a YAML document, ending in a newline, as go-yaml v3 does with two spaces: sequences are indented.
pub fn write_tree_indented(nodes: &Nodes, root: NodeId) -> String {
    write(nodes, root, false, INDENT, None)
}

/// Comments of the nodes that are written, without their `#`.
#[derive(Clone, Debug, Default)]
pub struct Comments {
    /// Lines before a key or an element; of a mapping's or a sequence's own, lines before its first.
    pub head: HashMap<NodeId, Vec<String>>,
    /// Comments behind scalars, in their lines.
    pub line: HashMap<NodeId, String>,
    /// Lines behind what a key or an element holds.
    pub foot: HashMap<NodeId, Vec<String>>,
}

/// Writes a tree as [`write_tree_indented`] does, with so many spaces (2 to 9) and with comments.
pub fn write_tree_commented(nodes: &Nodes, root: NodeId, spaces: usize, comments: &Comments) -> String {
    let spaces = i32::try_from(spaces.clamp(2, 9)).unwrap_or(INDENT);
    write(nodes, root, false, spaces, Some(comments))
}

fn write(
    nodes: &Nodes,
    root: NodeId,
    compact_sequences: bool,
    best_indent: i32,
    comments: Option<&Comments>,
) -> String {
    let mut writer = Writer {
        nodes,
        compact_sequences,
        best_indent,
        comments,
        line_comment: None,
        out: String::new(),
        column: 0,
        indent: -1,
        flow_level: 0,
        whitespace: true,
        indention: true,
    };
    writer.node(root, Place::Root);
    writer.indent = -1;
    writer.write_indent();
    writer.out
}

/// Where a node stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    BlockElement,
    FlowElement,
    /// A mapping's key that stands before its colon on one line.
    SimpleKey,
    /// A mapping's value, or a key with a question mark.
    InMapping,
}

const INDENT: i32 = 2;
/// A key up to this length is written without `?`.
const SIMPLE_KEY_LENGTH: usize = 128;

struct Writer<'a> {
    nodes: &'a Nodes,
    compact_sequences: bool,
    best_indent: i32,
    comments: Option<&'a Comments>,
    /// Comment to write behind the current scalar.
    line_comment: Option<&'a str>,
    out: String,
    column: usize,
    indent: i32,
    flow_level: usize,
    whitespace: bool,
    indention: bool,
}

impl<'a> Writer<'a> {
    fn node(&mut self, id: NodeId, place: Place) {
        let nodes: &'a Nodes = self.nodes;
        let node = &nodes[id];
        match node.kind {
            Kind::Alias => {
                self.indicator("*", true, false, false);
                self.text(&node.value);
            }
            Kind::Scalar => {
                self.line_comment = self
                    .comments
                    .and_then(|comments| comments.line.get(&id))
                    .map(String::as_str);
                self.scalar(node, place);
                self.write_line_comment();
            }
            Kind::Sequence => {
                self.properties(node, tag_of_collection(node, &Tag::Seq));
                if self.flow_level > 0 || node.flow || node.content.is_empty() {
                    self.flow_sequence(node, place);
                } else {
                    self.block_sequence(id, node, place);
                }
            }
            Kind::Mapping => {
                self.properties(node, tag_of_collection(node, &Tag::Map));
                if self.flow_level > 0 || node.flow || node.content.is_empty() {
                    self.flow_mapping(node, place);
                } else {
                    self.block_mapping(id, node, place);
                }
            }
        }
    }

    fn block_sequence(&mut self, id: NodeId, node: &'a Node, place: Place) {
        let outer = self.indent;
        let is_value = matches!(place, Place::InMapping | Place::SimpleKey);
        let compact = self.compact_sequences && is_value && (self.column == 0 || !self.indention);
        self.increase_indent(place, false, compact);
        if place != Place::BlockElement {
            self.write_comment_lines(id, |comments| &comments.head);
        }
        for element in &node.content {
            self.write_comment_lines(*element, |comments| &comments.head);
            self.write_indent();
            self.indicator("-", true, false, true);
            self.node(*element, Place::BlockElement);
            self.write_comment_lines(*element, |comments| &comments.foot);
        }
        self.indent = outer;
    }

    fn block_mapping(&mut self, id: NodeId, node: &'a Node, place: Place) {
        let outer = self.indent;
        self.increase_indent(place, false, false);
        if place != Place::BlockElement {
            self.write_comment_lines(id, |comments| &comments.head);
        }
        for pair in node.content.chunks_exact(2) {
            self.write_comment_lines(pair[0], |comments| &comments.head);
            self.write_indent();
            if self.is_simple_key(pair[0]) {
                self.node(pair[0], Place::SimpleKey);
                self.indicator(":", false, false, false);
            } else {
                self.indicator("?", true, false, true);
                self.node(pair[0], Place::InMapping);
                self.write_indent();
                self.indicator(":", true, false, true);
            }
            self.node(pair[1], Place::InMapping);
            self.write_comment_lines(pair[0], |comments| &comments.foot);
        }
        self.indent = outer;
    }

    /// Writes comments that have lines of their own.
    fn write_comment_lines(
        &mut self,
        id: NodeId,
        choose: impl Fn(&'a Comments) -> &'a HashMap<NodeId, Vec<String>>,
    ) {
        let lines = self.comments.and_then(|comments| choose(comments).get(&id));
        for line in lines.into_iter().flatten() {
            self.write_indent();
            self.put('#');
            self.text(line);
        }
    }

    fn write_line_comment(&mut self) {
        if let Some(comment) = self.line_comment.take() {
            self.put(' ');
            self.put('#');
            self.text(comment);
        }
    }

    fn flow_sequence(&mut self, node: &'a Node, place: Place) {
        self.indicator("[", true, true, false);
        let outer = self.indent;
        self.increase_indent(place, true, false);
        self.flow_level += 1;
        for (index, element) in node.content.iter().enumerate() {
            if index > 0 {
                self.indicator(",", false, false, false);
            }
            self.node(*element, Place::FlowElement);
        }
        self.flow_level -= 1;
        self.indent = outer;
        self.indicator("]", false, false, false);
    }

    fn flow_mapping(&mut self, node: &'a Node, place: Place) {
        self.indicator("{", true, true, false);
        let outer = self.indent;
        self.increase_indent(place, true, false);
        self.flow_level += 1;
        for (index, pair) in node.content.chunks_exact(2).enumerate() {
            if index > 0 {
                self.indicator(",", false, false, false);
            }
            if self.is_simple_key(pair[0]) {
                self.node(pair[0], Place::SimpleKey);
                self.indicator(":", false, false, false);
            } else {
                self.indicator("?", true, false, false);
                self.node(pair[0], Place::InMapping);
                self.indicator(":", true, false, false);
            }
            self.node(pair[1], Place::InMapping);
        }
        self.flow_level -= 1;
        self.indent = outer;
        self.indicator("}", false, false, false);
    }

    fn is_simple_key(&self, key: NodeId) -> bool {
        let key = &self.nodes[key];
        let anchor = key.anchor.as_ref().map_or(0, |anchor| anchor.len());
        let length = match key.kind {
            Kind::Scalar if key.value.contains(analysis::is_break) => return false,
            Kind::Scalar => anchor + tag_of_scalar(key).map_or(0, Tag::len) + key.value.len(),
            Kind::Alias => key.value.len(),
            Kind::Mapping | Kind::Sequence if !key.content.is_empty() => return false,
            Kind::Mapping | Kind::Sequence => anchor,
        };
        length <= SIMPLE_KEY_LENGTH
    }

    /// Writes anchor and tag.
    fn properties(&mut self, node: &Node, tag: Option<&Tag>) {
        if let Some(anchor) = &node.anchor {
            self.indicator("&", true, false, false);
            self.text(anchor);
        }
        if let Some(tag) = tag {
            let tag = tag.as_str();
            let tag = if tag.starts_with('!') {
                tag.to_owned()
            } else {
                format!("!<{tag}>")
            };
            self.indicator(&tag, true, false, false);
        }
    }

    fn increase_indent(&mut self, place: Place, flow: bool, compact: bool) {
        if self.indent < 0 {
            self.indent = if flow { self.best_indent } else { 0 };
        } else if place == Place::BlockElement {
            self.indent += 2;
        } else {
            let best = self.best_indent;
            self.indent = best * ((self.indent + best) / best);
            if compact {
                self.indent -= 2;
            }
        }
    }

    fn write_indent(&mut self) {
        let indent = usize::try_from(self.indent).unwrap_or(0);
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.put_break();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
    }

    fn indicator(&mut self, text: &str, need_whitespace: bool, is_whitespace: bool, is_indention: bool) {
        if need_whitespace && !self.whitespace {
            self.put(' ');
        }
        self.out.push_str(text);
        self.column += text.chars().count();
        self.whitespace = is_whitespace;
        self.indention = self.indention && is_indention;
    }

    fn text(&mut self, text: &str) {
        for c in text.chars() {
            self.put(c);
        }
        self.whitespace = false;
        self.indention = false;
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn put_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
        self.indention = true;
    }

    fn write_break(&mut self, c: char) {
        if c == '\n' {
            self.put_break();
        } else {
            self.out.push(c);
            self.column = 0;
            self.indention = true;
        }
    }
}

impl Tag {
    fn len(&self) -> usize {
        self.as_str().len()
    }
}

/// A collection's tag, unless it goes without saying.
fn tag_of_collection<'a>(node: &'a Node, implicit: &Tag) -> Option<&'a Tag> {
    let goes_without_saying = node.tag == Tag::Empty || (!node.tagged && node.tag == *implicit);
    (!goes_without_saying).then_some(&node.tag)
}

/// A scalar's tag, unless it goes without saying.
fn tag_of_scalar(node: &Node) -> Option<&Tag> {
    if node.tag == Tag::Empty {
        return None;
    }
    let goes_without_saying = !node.tagged && (node.tag == Tag::Str || implicit_tag(&node.value) == node.tag);
    (!goes_without_saying).then_some(&node.tag)
}

/// The tag that a plain scalar of this text has.
fn implicit_tag(text: &str) -> Tag {
    if text == "<<" {
        return Tag::Merge;
    }
    resolve_plain(text).tag()
}

#[cfg(test)]
mod tests {
    use super::super::{Dialect, compose_first};
    use super::*;

    fn check(text: &str, written: &str) {
        let mut nodes = Nodes::default();
        let root = compose_first(text, &mut nodes, Dialect::Kyaml).unwrap().unwrap();
        assert_eq!(write_tree(&nodes, root), written, "{text}");
    }

    #[test]
    fn styles_stay_and_indentation_is_kyamls() {
        for text in [
            "a:\n- 1\n- b: []\n  c: {d: [e, 'f'], \"g\": h}\n- - x\n  - y\n",
            "on\n",
            "'a b'\n",
            "a: |\n  x\n  y\nb: >-\n  folded\nc: \"q\\n\"\n",
            "a: &x\n  b: 1\nc: *x\n",
            "a: !!str 5\nb: !foo bar\n",
            "- |-\n  x\n- y\n",
            "- a: 1\n  b:\n  - 2\n",
            "a:\nb: ~\n",
            "? |-\n  a\n  b\n: c\n",
        ] {
            check(text, text);
        }
        check("a:\n    - b:\n          c", "a:\n- b: c\n");
        check("{a: }", "{a: ''}\n");
        check("- - - a", "- - - a\n");
    }

    #[test]
    fn new_strings_are_quoted_where_they_would_read_as_something_else() {
        let mut nodes = Nodes::default();
        for (node, written) in [
            (Node::tagged_scalar("5", Tag::Str), "\"5\"\n"),
            (Node::scalar("5"), "5\n"),
            (Node::scalar("a: b"), "'a: b'\n"),
            (Node::scalar("a\tb"), "\"a\\tb\"\n"),
            (Node::scalar("a\nb"), "|-\n  a\n  b\n"),
            (Node::tagged_scalar("x", Tag::Int), "!!int x\n"),
            (Node::scalar("x: 😀"), "\"x: \\U0001F600\"\n"),
        ] {
            let root = nodes.add(node);
            assert_eq!(write_tree(&nodes, root), written);
        }
    }
}
