//! From a tree to matchers, which are glued together where a simpler one seems to do the same.

use super::matcher::{Branch, Matcher};
use super::minimize::minimize;
use super::parse::Node;

/// Compiles a tree.
pub(super) fn compile(node: &Node) -> Matcher {
    let matcher = match node {
        Node::AnyOf(alternatives) => match minimize(alternatives) {
            Some(node) => return compile(&node),
            None => return Matcher::AnyOf(compile_all(alternatives)),
        },
        Node::Pattern(parts) if parts.is_empty() => return Matcher::Nothing,
        Node::Pattern(parts) => join(minimized(compile_all(parts))),
        Node::Any => Matcher::Any,
        Node::Super => Matcher::Super,
        Node::Single => Matcher::Single,
        Node::Nothing => Matcher::Nothing,
        Node::List { characters, not } => Matcher::List {
            characters: characters.clone(),
            not: *not,
        },
        Node::Range { low, high, not } => Matcher::Range {
            low: *low,
            high: *high,
            not: *not,
        },
        Node::Text(text) => Matcher::Text(text.clone()),
    };
    optimized(matcher)
}

fn compile_all(nodes: &[Node]) -> Vec<Matcher> {
    nodes.iter().map(|node| optimized(compile(node))).collect()
}

/// Replaces a matcher by a simpler one.
fn optimized(matcher: Matcher) -> Matcher {
    match matcher {
        Matcher::AnyOf(mut matchers) if matchers.len() == 1 => matchers.swap_remove(0),
        Matcher::List {
            characters,
            not: false,
        } if characters.len() == 1 => Matcher::Text(characters.into_iter().collect::<String>().into_bytes()),
        Matcher::Branch(branch) => optimized_branch(*branch),
        other => other,
    }
}

fn optimized_branch(mut branch: Branch) -> Matcher {
    branch.left = branch.left.map(optimized);
    branch.right = branch.right.map(optimized);
    let Matcher::Text(text) = &branch.value else {
        return Matcher::Branch(Box::new(branch));
    };
    let text = text.clone();
    match (&branch.left, &branch.right) {
        (None, None) => Matcher::Text(text),
        (Some(Matcher::Super), Some(Matcher::Super)) => Matcher::Contains(text),
        (Some(Matcher::Super), None) => Matcher::Suffix(text),
        (None, Some(Matcher::Super)) => Matcher::Prefix(text),
        (None, Some(Matcher::Suffix(suffix))) => Matcher::PrefixSuffix(text, suffix.clone()),
        (Some(Matcher::Prefix(prefix)), None) => Matcher::PrefixSuffix(prefix.clone(), text),
        (Some(Matcher::Any), None) => Matcher::SuffixAny(text),
        (None, Some(Matcher::Any)) => Matcher::PrefixAny(text),
        _ => Matcher::Branch(Box::new(branch)),
    }
}

/// Makes one matcher of several: the longest of a known length is looked for first, the others to its left and right.
fn join(mut matchers: Vec<Matcher>) -> Matcher {
    if matchers.len() == 1 {
        return matchers.swap_remove(0);
    }
    if let Some(glued) = glued(&matchers) {
        return glued;
    }
    let longest = (0..matchers.len())
        .filter_map(|place| Some((matchers[place].length()?, place)))
        .max();
    let Some((_, place)) = longest else {
        let right = matchers.split_off(1);
        return Branch::matcher(matchers.swap_remove(0), None, Some(join(right)));
    };
    let right = matchers.split_off(place + 1);
    let value = matchers.pop().expect("the place is within the list");
    let side = |matchers: Vec<Matcher>| (!matchers.is_empty()).then(|| join(matchers));
    Branch::matcher(value, side(matchers), side(right))
}

/// Glues the best run of matchers, as long as there is one.
fn minimized(mut matchers: Vec<Matcher>) -> Vec<Matcher> {
    loop {
        let mut best: Option<(Matcher, usize, usize)> = None;
        for left in 0..matchers.len() {
            for right in (left + 1..=matchers.len()).rev() {
                let Some(glued) = glued(&matchers[left..right]) else {
                    continue;
                };
                let better = match &best {
                    None => true,
                    Some((done, from, to)) => {
                        let longer = matches!((done.length(), glued.length()), (Some(a), Some(b)) if b > a);
                        longer || to - from < right - left
                    }
                };
                if better {
                    best = Some((glued, left, right));
                }
            }
        }
        let Some((glued, left, right)) = best else {
            return matchers;
        };
        matchers.splice(left..right, [glued]);
    }
}

fn glued(matchers: &[Matcher]) -> Option<Matcher> {
    if matchers.len() < 2 {
        return None;
    }
    glued_as_every(matchers).or_else(|| glued_as_row(matchers))
}

fn glued_as_row(matchers: &[Matcher]) -> Option<Matcher> {
    let length = matchers.iter().map(Matcher::length).sum::<Option<usize>>()?;
    Some(Matcher::Row(matchers.to_vec(), length))
}

/// Wildcards that all stop at the same characters: only how many there are matters.
fn glued_as_every(matchers: &[Matcher]) -> Option<Matcher> {
    let (mut any, mut all, mut singles) = (false, false, 0);
    let mut shared: Option<&[char]> = None;
    for matcher in matchers {
        let separators: &[char] = match matcher {
            Matcher::Super => {
                all = true;
                &[]
            }
            Matcher::Any => {
                any = true;
                &['/']
            }
            Matcher::Single => {
                singles += 1;
                &['/']
            }
            Matcher::List {
                characters,
                not: true,
            } => {
                singles += 1;
                characters
            }
            _ => return None,
        };
        if **shared.get_or_insert(separators) != *separators {
            return None;
        }
    }
    if singles == 0 {
        return Some(if all { Matcher::Super } else { Matcher::Any });
    }
    let separators = shared.unwrap_or_default().iter().collect::<String>();
    let mut every = vec![Matcher::Min(singles)];
    if !any {
        every.push(Matcher::Max(singles));
    }
    every.push(Matcher::ContainsNot(separators.into_bytes()));
    Some(Matcher::EveryOf(every))
}
