//! From trees to YAML: four spaces, sequences below their keys indented, strings quoted where YAML 1.1 or 1.2 would
//! take them for something else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use manifest::yaml::number::format_g;
use manifest::yaml::scalar::{Scalar, resolve_plain};
use manifest::yaml::{Comments, Node, NodeId, Nodes, Style, Tag, write_tree_commented};

use crate::store::text::{Problem, key_text};
use crate::tree::{Branch, Comment, Key, Value};

const INDENT: usize = 4;

pub(crate) fn write(branches: &[Branch]) -> Result<Vec<u8>, Problem> {
    let mut documents = Vec::new();
    for branch in branches {
        let mut writer = Writer::default();
        let root = writer.mapping(branch);
        let root = root.map_err(|problem| format!("Error marshaling to YAML: {problem}"))?;
        documents.push(write_tree_commented(
            &writer.nodes,
            root,
            INDENT,
            &writer.comments,
        ));
    }
    Ok(documents.join("---\n").into_bytes())
}

#[derive(Default)]
struct Writer {
    nodes: Nodes,
    comments: Comments,
}

/// Comments of a collection that wait for what follows them.
#[derive(Default)]
struct Waiting {
    head: Vec<String>,
    line: Vec<String>,
}

impl Waiting {
    fn add(&mut self, comment: &Comment) {
        let text = String::from_utf8_lossy(&comment.text).into_owned();
        if comment.inline {
            self.line.push(text);
        } else {
            self.head.push(text);
        }
    }
}

impl Writer {
    fn mapping(&mut self, branch: &Branch) -> Result<NodeId, Problem> {
        let mut content = Vec::new();
        let mut first = Vec::new();
        let mut waiting = Waiting::default();
        for item in branch {
            let key = match &item.key {
                Key::Text(text) => string(text),
                Key::Comment(comment) => {
                    waiting.add(comment);
                    continue;
                }
                Key::Other(_) => return Err(format!("the key {} is no text", key_text(&item.key))),
            };
            let key = self.nodes.add(key);
            let head = std::mem::take(&mut waiting.head);
            // What stands before the first key belongs to the whole.
            if content.is_empty() {
                first = head;
            } else {
                self.head(key, head);
            }
            let value = self.node(&item.value)?;
            self.line(value, &mut waiting);
            content.extend([key, value]);
        }
        let last = content.len().checked_sub(2).map(|at| content[at]);
        let id = self.nodes.add(Node {
            content,
            ..Node::mapping()
        });
        self.head(id, first);
        self.rest(last, id, waiting);
        Ok(id)
    }

    fn sequence(&mut self, list: &[Value]) -> Result<NodeId, Problem> {
        let mut content = Vec::new();
        let mut first = Vec::new();
        let mut waiting = Waiting::default();
        for value in list {
            if let Value::Comment(comment) = value {
                waiting.add(comment);
                continue;
            }
            let element = self.node(value)?;
            let head = std::mem::take(&mut waiting.head);
            if content.is_empty() {
                first = head;
            } else {
                self.head(element, head);
            }
            self.line(element, &mut waiting);
            content.push(element);
        }
        let last = content.last().copied();
        let id = self.nodes.add(Node {
            content,
            ..Node::sequence()
        });
        self.head(id, first);
        self.rest(last, id, waiting);
        Ok(id)
    }

    /// Puts lines before a node, and before those that it has already.
    fn head(&mut self, id: NodeId, mut lines: Vec<String>) {
        if !lines.is_empty() {
            let head = self.comments.head.entry(id).or_default();
            lines.append(head);
            *head = lines;
        }
    }

    fn line(&mut self, id: NodeId, waiting: &mut Waiting) {
        if !waiting.line.is_empty() {
            let line = std::mem::take(&mut waiting.line).join(" #");
            self.comments.line.insert(id, line);
        }
    }

    /// Writes the remaining comments behind the last node, or before an empty document.
    fn rest(&mut self, last: Option<NodeId>, whole: NodeId, mut waiting: Waiting) {
        waiting.head.append(&mut waiting.line);
        match last {
            Some(last) if !waiting.head.is_empty() => {
                self.comments.foot.insert(last, waiting.head);
            }
            Some(_) => {}
            None => self.head(whole, waiting.head),
        }
    }

    fn node(&mut self, value: &Value) -> Result<NodeId, Problem> {
        let scalar = match value {
            Value::Map(branch) => return self.mapping(branch),
            Value::List(list) => return self.sequence(list),
            Value::Null => Node::scalar("null"),
            Value::Bool(flag) => Node::scalar(flag.to_string()),
            Value::Int(integer) => Node::scalar(integer.to_string()),
            Value::Float(float) => Node::scalar(format_g(*float)),
            Value::Time(time) => Node::scalar(time.as_nanoseconds()),
            Value::Text(text) => string(text),
            Value::Bytes(_) | Value::Comment(_) | Value::Other(_) => {
                return Err(format!("unsupported type: {}", value.kind()));
            }
        };
        Ok(self.nodes.add(scalar))
    }
}

/// A string in the style that go-yaml chooses for it.
fn string(text: &[u8]) -> Node {
    let Ok(text) = std::str::from_utf8(text) else {
        return Node {
            tagged: true,
            ..Node::tagged_scalar(STANDARD.encode(text), Tag::Binary)
        };
    };
    if text == "<<" {
        // go-yaml reads its own quotes back, forgets them, and then needs the tag.
        return Node {
            tagged: true,
            ..Node::tagged_scalar(text, Tag::Merge)
        };
    }
    let style = if text.contains('\n') {
        Style::Literal
    } else if resolve_plain(text) != Scalar::Str || is_old_bool(text) || is_base_60(text) {
        Style::DoubleQuoted
    } else {
        Style::Plain
    };
    Node {
        style,
        ..Node::tagged_scalar(text, Tag::Str)
    }
}

/// YAML 1.1's booleans that are strings in 1.2.
fn is_old_bool(text: &str) -> bool {
    matches!(
        text,
        "y" | "Y"
            | "yes"
            | "Yes"
            | "YES"
            | "on"
            | "On"
            | "ON"
            | "n"
            | "N"
            | "no"
            | "No"
            | "NO"
            | "off"
            | "Off"
            | "OFF"
    )
}

/// YAML 1.1's base 60 numbers: `12:30:45`.
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut parts = unsigned.split(':');
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let sixtieth = |text: &str| match text.as_bytes() {
        [digit] => digit.is_ascii_digit(),
        [b'0'..=b'5', digit] => digit.is_ascii_digit(),
        _ => false,
    };
    let first = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else {
        return false;
    };
    let (whole, fraction) = last.split_once('.').unwrap_or((last, ""));
    first.starts_with(|c: char| c.is_ascii_digit())
        && digits(first)
        && middle.iter().all(|part| sixtieth(part))
        && sixtieth(whole)
        && digits(fraction)
}
