//! Smaller templates that may fail as a larger one does.

use crate::expression::Expression;
use crate::generate::{Body, Node};

/// How many templates are tried.
const TRIES: usize = 400;

/// Makes a template smaller as long as it fails in the same way.
pub fn shrink(mut body: Body, mut fails: impl FnMut(&Body) -> bool) -> Body {
    let mut tries = 0;
    'smaller: loop {
        for candidate in smaller(&body) {
            tries += 1;
            if tries > TRIES {
                return body;
            }
            if fails(&candidate) {
                body = candidate;
                continue 'smaller;
            }
        }
        return body;
    }
}

fn smaller(body: &Body) -> Vec<Body> {
    let mut candidates = Vec::new();
    for (index, node) in body.0.iter().enumerate() {
        let with = |nodes: Vec<Node>| {
            let mut body = body.clone();
            body.0.splice(index..=index, nodes);
            body
        };
        candidates.push(with(Vec::new()));
        candidates.extend(replacements(node).into_iter().map(with));
    }
    candidates
}

fn replacements(node: &Node) -> Vec<Vec<Node>> {
    let each = |value: &Expression, make: &dyn Fn(Expression) -> Node| -> Vec<Vec<Node>> {
        value
            .smaller()
            .into_iter()
            .map(|value| vec![make(value)])
            .collect()
    };
    match node {
        Node::Text(_) => Vec::new(),
        Node::Print(value, left, right) => {
            let mut all = each(value, &|value| Node::Print(value, left, right));
            if !(left.is_empty() && right.is_empty()) {
                all.push(vec![Node::Print(value.clone(), "", "")]);
            }
            all
        }
        Node::Assign(name, sign, value) => each(value, &|value| Node::Assign(name.clone(), sign, value)),
        Node::Block(word, names, value, body, other) => {
            let block = |value: Expression, body: Body, other: Option<Body>| {
                Node::Block(word, names.clone(), value, body, other)
            };
            let mut all = vec![
                body.0.clone(),
                other.clone().unwrap_or_default().0,
                vec![Node::Print(value.clone(), "", "")],
            ];
            if other.is_some() {
                all.push(vec![block(value.clone(), body.clone(), None)]);
            }
            all.extend(
                smaller(body)
                    .into_iter()
                    .map(|body| vec![block(value.clone(), body, other.clone())]),
            );
            all.extend(each(value, &|value| block(value, body.clone(), other.clone())));
            all
        }
        Node::Define(name, body) => smaller(body)
            .into_iter()
            .map(|body| vec![Node::Define(name, body)])
            .collect(),
        Node::Use(word, name, value) => each(value, &|value| Node::Use(word, name, value)),
        Node::Leave(word, value) => each(value, &|value| Node::Leave(word, value)),
    }
}
