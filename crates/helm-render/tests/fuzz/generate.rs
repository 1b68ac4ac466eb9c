//! Generated templates, as trees.

use std::fmt;

use crate::expression::{Expression, expression};
use crate::functions::Sort;
use crate::random::Random;

/// A template, or the body of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body(pub Vec<Node>);

/// Text or an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    Text(&'static str),
    /// An action with marks that trim.
    Print(Expression, &'static str, &'static str),
    /// `:=` or `=`.
    Assign(String, &'static str, Expression),
    /// `if`, `with` or `range`, with variables before the expression.
    Block(&'static str, String, Expression, Body, Option<Body>),
    Define(&'static str, Body),
    /// `template` or `include`.
    Use(&'static str, &'static str, Expression),
    /// `break` or `continue`, in an `if`.
    Leave(&'static str, Expression),
}

/// Makes a template.
pub fn template(random: &mut Random) -> Body {
    let mut maker = Maker {
        has_own: false,
        variables: Vec::new(),
        loops: 0,
    };
    let mut body = Body::default();
    if random.chance(30) {
        let inner = maker.body(random, 1);
        body.0.push(Node::Define("own", inner));
        maker.variables.clear();
        maker.has_own = true;
    }
    body.0.extend(maker.body(random, 3).0);
    body
}

struct Maker {
    has_own: bool,
    variables: Vec<String>,
    loops: usize,
}

const SORTS: [Sort; 6] = [
    Sort::Any,
    Sort::Text,
    Sort::Whole,
    Sort::List,
    Sort::Map,
    Sort::Bool,
];

impl Maker {
    fn body(&mut self, random: &mut Random, depth: usize) -> Body {
        let known = self.variables.len();
        let count = 1 + random.below(if depth == 3 { 5 } else { 3 });
        let nodes = (0..count).map(|_| self.node(random, depth)).collect();
        self.variables.truncate(known);
        Body(nodes)
    }

    fn node(&mut self, random: &mut Random, depth: usize) -> Node {
        let sort = SORTS[random.below(SORTS.len())];
        let depth_of_value = random.below(3);
        let value = expression(random, sort, depth_of_value, &self.variables);
        match random.below(if depth == 0 { 60 } else { 100 }) {
            0..12 => Node::Text([" x ", "\n", "a: b\n", "  \n\t", "é"][random.below(5)]),
            12..45 => Node::Print(value, ["", "- "][random.below(2)], ["", " -"][random.below(2)]),
            45..52 => {
                let is_known = !self.variables.is_empty() && random.chance(40);
                if is_known {
                    let name = self.variables[random.below(self.variables.len())].clone();
                    return Node::Assign(name, "=", value);
                }
                let name = format!("$v{}", random.below(3));
                self.variables.push(name.clone());
                Node::Assign(name, ":=", value)
            }
            52..56 if self.has_own => Node::Use(["template", "include"][random.below(2)], "own", value),
            56..60 if self.loops > 0 => Node::Leave(["break", "continue"][random.below(2)], value),
            _ if depth == 0 => Node::Print(value, "", ""),
            _ => self.block(random, depth),
        }
    }

    fn block(&mut self, random: &mut Random, depth: usize) -> Node {
        let word = ["if", "with", "range"][random.below(3)];
        let sort = match word {
            "range" => [Sort::List, Sort::Map, Sort::Whole][random.below(3)],
            _ => SORTS[random.below(SORTS.len())],
        };
        let value = expression(random, sort, 1, &self.variables);
        let known = self.variables.len();
        let names = match (word, random.below(4)) {
            (_, 0) => vec!["$x"],
            ("range", 1) => vec!["$i", "$x"],
            _ => vec![],
        };
        self.variables.extend(names.iter().map(|name| (*name).to_owned()));
        self.loops += usize::from(word == "range");
        let body = self.body(random, depth - 1);
        self.loops -= usize::from(word == "range");
        let other = random.chance(40).then(|| self.body(random, depth - 1));
        self.variables.truncate(known);
        let names = if names.is_empty() {
            String::new()
        } else {
            format!("{} := ", names.join(", "))
        };
        Node::Block(word, names, value, body, other)
    }
}

impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|node| write!(f, "{node}"))
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Print(value, left, right) => write!(f, "{{{{{left}{value}{right}}}}}").map(drop),
            Self::Assign(name, sign, value) => write!(f, "{{{{ {name} {sign} {value} }}}}"),
            Self::Block(word, names, value, body, other) => {
                write!(f, "{{{{ {word} {names}{value} }}}}{body}")?;
                if let Some(other) = other {
                    write!(f, "{{{{ else }}}}{other}")?;
                }
                f.write_str("{{ end }}")
            }
            Self::Define(name, body) => write!(f, "{{{{ define \"{name}\" }}}}{body}{{{{ end }}}}"),
            Self::Use(word, name, value) => write!(f, "{{{{ {word} \"{name}\" ({value}) }}}}"),
            Self::Leave(word, value) => write!(f, "{{{{ if {value} }}}}{{{{ {word} }}}}{{{{ end }}}}"),
        }
    }
}
