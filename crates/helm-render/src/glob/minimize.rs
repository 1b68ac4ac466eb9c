//! Factors common prefixes and suffixes out of alternatives.

use super::parse::Node;

/// The alternatives as a pattern around what differs; `None` if they have nothing in common.
pub(super) fn minimize(alternatives: &[Node]) -> Option<Node> {
    let patterns: Vec<&[Node]> = alternatives
        .iter()
        .map(|alternative| match alternative {
            Node::Pattern(parts) => Some(parts.as_slice()),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let (left, right) = common(&patterns);
    if left.is_empty() && right.is_empty() {
        return None;
    }
    let mut differing: Vec<Node> = Vec::new();
    for parts in &patterns {
        let inner = &parts[left.len()..parts.len() - right.len()];
        let node = if inner.is_empty() {
            Node::Nothing
        } else {
            Node::Pattern(inner.to_vec())
        };
        if !differing.contains(&node) {
            differing.push(node);
        }
    }
    let mut parts = Vec::new();
    if !left.is_empty() {
        parts.push(Node::Pattern(left.to_vec()));
    }
    match differing.as_slice() {
        [Node::Nothing] => {}
        [_] => parts.append(&mut differing),
        _ => parts.push(Node::AnyOf(differing)),
    }
    if !right.is_empty() {
        parts.push(Node::Pattern(right.to_vec()));
    }
    Some(Node::Pattern(parts))
}

/// Splits off the common prefix and suffix of all patterns.
fn common<'a>(patterns: &[&'a [Node]]) -> (&'a [Node], &'a [Node]) {
    let shortest = patterns.iter().min_by_key(|parts| parts.len());
    let Some(shortest) = shortest.filter(|_| patterns.len() > 1) else {
        return (&[], &[]);
    };
    let length = shortest.len();
    let (mut left_ended, mut right_ended) = (false, false);
    let (mut left, mut right) = (0, 0);
    for step in 0..length {
        if left + right >= length || (left_ended && right_ended) {
            break;
        }
        let from_end = length - 1 - step;
        for parts in patterns {
            left_ended |= shortest[step] != parts[step];
            // A common start leaves nothing for a common end once they meet.
            right_ended |= !left_ended && from_end <= step;
            right_ended |= shortest[from_end] != parts[parts.len() - 1 - step];
        }
        left += usize::from(!left_ended);
        right += usize::from(!right_ended);
    }
    (&shortest[..left], &shortest[length - right..])
}
