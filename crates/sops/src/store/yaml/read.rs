//! From YAML to trees. Aliases become what they stand for; styles and anchors are not kept.
//!
//! A comment becomes an entry of the collection that it stands in, before what follows it there: all that SOPS writes
//! of go-yaml's head, line and foot comments. Which collection that is, its column tells.

use std::collections::{HashSet, VecDeque};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use manifest::yaml::number::Integer;
use manifest::yaml::scalar::{Scalar, resolve_plain};
use manifest::yaml::{
    self, Dialect, Input, Kind, MAX_NODES, Node, NodeId, Nodes, Style, Tag, compose_all_with_comments,
};

use crate::store::text::Problem;
use crate::time::Time;
use crate::tree::{Branch, Comment, Item, Key, Value};

/// Collections may be nested this deep when aliases are followed.
const MAX_DEPTH: usize = 256;

pub(crate) fn read(data: &[u8]) -> Result<Vec<Branch>, Problem> {
    let mut nodes = Nodes::default();
    let read = compose_all_with_comments(Input::from(data), &mut nodes, Dialect::Kyaml);
    let (roots, comments) = read.map_err(|problem| format!("Error unmarshaling input YAML: {problem}"))?;
    if let Some(first) = roots.first() {
        keys_are_unique(&nodes, *first)?;
    }
    let text = if comments.is_empty() {
        ""
    } else {
        std::str::from_utf8(data).unwrap_or_default()
    };
    let mut reader = Reader {
        nodes: &nodes,
        budget: MAX_NODES,
        depth: 0,
        lines: text.split('\n').collect(),
        comments: comments.into(),
    };
    let ends = document_ends(&reader.lines, roots.len());
    let documents = roots.into_iter().zip(ends);
    documents.map(|(root, end)| reader.document(root, end)).collect()
}

/// The line in which each document ends: that of the next marker behind it.
fn document_ends(lines: &[&str], documents: usize) -> Vec<u32> {
    let is_marker = |line: &str| {
        line.strip_prefix("---")
            .is_some_and(|rest| rest.trim_start() != rest || rest.is_empty())
    };
    let markers = lines.iter().zip(1..).filter(|(line, _)| is_marker(line));
    let mut markers: VecDeque<u32> = markers.map(|(_, number)| number).collect();
    // The first document may begin without a marker: then there are as many markers as further documents.
    if markers.len() >= documents {
        markers.pop_front();
    }
    let further = markers.into_iter().take(documents.saturating_sub(1));
    further
        .chain(std::iter::repeat(u32::MAX))
        .take(documents)
        .collect()
}

/// SOPS looks at the first document only.
fn keys_are_unique(nodes: &Nodes, root: NodeId) -> Result<(), Problem> {
    let node = &nodes[root];
    if node.kind == Kind::Mapping {
        let mut seen = HashSet::new();
        for (key, _) in nodes.pairs(root) {
            let key = &nodes[key];
            if key.kind == Kind::Scalar && !seen.insert(key.value.as_str()) {
                return Err(format!(
                    "yaml: unmarshal errors:\n  line {}: mapping key {:?} already defined",
                    key.line, key.value
                ));
            }
        }
    }
    node.content
        .iter()
        .try_for_each(|child| keys_are_unique(nodes, *child))
}

struct Reader<'a> {
    nodes: &'a Nodes,
    /// How many values may still come, counting those behind aliases each time.
    budget: usize,
    depth: usize,
    /// Those of the text; none when there are no comments.
    lines: Vec<&'a str>,
    /// The comments that are to come.
    comments: VecDeque<yaml::Comment>,
}

impl Reader<'_> {
    fn document(&mut self, root: NodeId, end: u32) -> Result<Branch, Problem> {
        let mut branch = self.root(root, end)?;
        let rest = self.before(end, 0);
        branch.extend(rest.into_iter().map(entry));
        Ok(branch)
    }

    fn root(&mut self, root: NodeId, end: u32) -> Result<Branch, Problem> {
        let node = &self.nodes[root];
        let only = |what: &str| {
            Err(format!(
                "Error unmarshaling input YAML: YAML documents that are {what} are not supported"
            ))
        };
        match node.kind {
            Kind::Mapping => self.mapping(root, end),
            Kind::Sequence => only("sequences"),
            Kind::Scalar if node.tag == Tag::Null => Ok(Branch::new()),
            Kind::Scalar | Kind::Alias => only("values"),
        }
    }

    /// Reads a mapping; what follows it begins in the line `end`.
    fn mapping(&mut self, id: NodeId, end: u32) -> Result<Branch, Problem> {
        let mut branch = Branch::new();
        let nodes = self.nodes;
        let pairs: Vec<(NodeId, NodeId)> = nodes.pairs(id).collect();
        if pairs.is_empty() {
            self.drop_within_empty(nodes[id].line);
        }
        for (number, (key, value)) in pairs.iter().enumerate() {
            let line = nodes[*key].line;
            branch.extend(self.before(line, 0).into_iter().map(entry));
            let is_scalar = matches!(nodes[*value].kind, Kind::Scalar | Kind::Alias);
            branch.extend(self.behind(line, is_scalar).map(entry));
            let next = pairs.get(number + 1).map_or(end, |(key, _)| nodes[*key].line);
            branch.push(Item {
                key: self.key(*key),
                value: self.value(*value, next)?,
            });
        }
        if let (Some((key, _)), false) = (pairs.first(), nodes[id].flow) {
            let column = self.column(nodes[*key].line, true);
            branch.extend(self.before(end, column).into_iter().map(entry));
        }
        Ok(branch)
    }

    fn sequence(&mut self, id: NodeId, end: u32) -> Result<Vec<Value>, Problem> {
        let mut list = Vec::new();
        let nodes = self.nodes;
        let elements = &nodes[id].content;
        for (number, element) in elements.iter().enumerate() {
            let line = nodes[*element].line;
            list.extend(self.before(line, 0).into_iter().map(Value::Comment));
            let is_scalar = matches!(nodes[*element].kind, Kind::Scalar | Kind::Alias);
            if is_scalar {
                list.extend(self.behind(line, true).map(Value::Comment));
            }
            let next = elements
                .get(number + 1)
                .map_or(end, |element| nodes[*element].line);
            list.push(self.value(*element, next)?);
        }
        if let (Some(element), false) = (elements.first(), nodes[id].flow) {
            let column = self.column(nodes[*element].line, false);
            list.extend(self.before(end, column).into_iter().map(Value::Comment));
        }
        Ok(list)
    }

    /// Takes the comments with lines of their own before this one, from this column on.
    fn before(&mut self, line: u32, column: usize) -> Vec<Comment> {
        let mut taken = Vec::new();
        while let Some(next) = self.comments.front() {
            if next.line >= line || next.column < column {
                break;
            }
            taken.extend(self.comments.pop_front().map(|comment| plain(comment, false)));
        }
        taken
    }

    /// Drops the comments between the braces of an empty mapping, as go-yaml does; SOPS writes them.
    fn drop_within_empty(&mut self, line: u32) {
        let opens = |text: &&str| text.trim_end().ends_with('{');
        let from = line as usize;
        if from
            .checked_sub(1)
            .and_then(|at| self.lines.get(at))
            .is_none_or(|text| !opens(text))
        {
            return;
        }
        let closes = |text: &&str| text.trim_start().starts_with('}');
        let within = self.lines.iter().skip(from).position(closes);
        let end = within.and_then(|lines| u32::try_from(from + lines + 1).ok());
        self.before(end.unwrap_or(line), 0);
    }

    /// Takes the comment behind what stands in this line.
    fn behind(&mut self, line: u32, inline: bool) -> Option<Comment> {
        let is_here = self.comments.front().is_some_and(|next| next.line == line);
        let comment = is_here.then(|| self.comments.pop_front())?;
        comment.map(|comment| plain(comment, inline))
    }

    /// The column in which a line's first key stands, or its first dash.
    fn column(&self, line: u32, of_key: bool) -> usize {
        let text = (line as usize).checked_sub(1).and_then(|at| self.lines.get(at));
        let text = text.copied().unwrap_or_default();
        let mut rest = text.trim_start_matches(' ');
        while let Some(behind) = rest.strip_prefix("- ").filter(|_| of_key) {
            rest = behind.trim_start_matches(' ');
        }
        text.chars().count() - rest.chars().count()
    }

    fn key(&self, id: NodeId) -> Key {
        let node = &self.nodes[id];
        match node.kind {
            Kind::Scalar => match scalar(node) {
                Value::Text(text) => Key::Text(text),
                other => Key::Other(other.kind()),
            },
            Kind::Mapping => Key::Other("map[string]interface {}"),
            Kind::Sequence => Key::Other("[]interface {}"),
            Kind::Alias => match node.alias {
                Some(target) if self.nodes[target].kind == Kind::Scalar => self.key(target),
                _ => Key::Other("alias"),
            },
        }
    }

    fn value(&mut self, id: NodeId, end: u32) -> Result<Value, Problem> {
        let problem = |text: &str| Err(format!("Error unmarshaling input YAML: {text}"));
        let Some(budget) = self.budget.checked_sub(1) else {
            return problem("document contains excessive aliasing");
        };
        self.budget = budget;
        if self.depth >= MAX_DEPTH {
            return problem("exceeded max depth");
        }
        self.depth += 1;
        let node = &self.nodes[id];
        let value = match node.kind {
            Kind::Scalar => scalar(node),
            Kind::Mapping => Value::Map(self.mapping(id, end)?),
            Kind::Sequence => Value::List(self.sequence(id, end)?),
            Kind::Alias => match node.alias {
                // What an alias stands for has no comments a second time.
                Some(target) => self.value(target, 0)?,
                None => Value::Null,
            },
        };
        self.depth -= 1;
        Ok(value)
    }
}

fn plain(comment: yaml::Comment, inline: bool) -> Comment {
    Comment {
        text: comment.text.into_bytes(),
        inline,
    }
}

fn entry(comment: Comment) -> Item {
    Item {
        key: Key::Comment(comment),
        value: Value::Null,
    }
}

/// The value of a scalar; null for one that its tag does not fit, as in SOPS.
fn scalar(node: &Node) -> Value {
    let text = || Value::Text(node.value.clone().into_bytes());
    if !node.tagged {
        return if node.style == Style::Plain {
            resolved(node, &resolve_plain(&node.value))
        } else {
            text()
        };
    }
    match &node.tag {
        Tag::Str | Tag::Merge => text(),
        Tag::Binary => binary(&node.value),
        Tag::Empty => text(),
        tag => match (tag, resolve_plain(&node.value)) {
            (Tag::Float, Scalar::Int(integer)) => Value::Float(integer.as_f64()),
            (tag, scalar) if scalar.tag() == *tag => resolved(node, &scalar),
            _ => Value::Null,
        },
    }
}

fn resolved(node: &Node, scalar: &Scalar) -> Value {
    match scalar {
        Scalar::Null => Value::Null,
        Scalar::Bool(flag) => Value::Bool(*flag),
        Scalar::Int(Integer::Signed(integer)) => Value::Int(*integer),
        Scalar::Int(Integer::Unsigned(_)) => Value::Other("uint64"),
        Scalar::Float(float) => Value::Float(*float),
        Scalar::Timestamp => match manifest::yaml::scalar::to_json(node) {
            Ok(serde_json::Value::String(time)) => Value::Time(Time::of_normal_text(time)),
            _ => Value::Text(node.value.clone().into_bytes()),
        },
        Scalar::Str => Value::Text(node.value.clone().into_bytes()),
    }
}

fn binary(text: &str) -> Value {
    let digits: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    STANDARD.decode(digits).map_or(Value::Null, Value::Text)
}
