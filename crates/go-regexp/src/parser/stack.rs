//! The stack of the parser: finished parts, with open groups and vertical bars between them, and the limits on them.

use super::Flags;
use crate::error::Problem;
use crate::node::{Kind, Node};

/// The most levels of a tree (maxHeight), so that what walks it need not fear for its stack.
const MAX_HEIGHT: u32 = 1000;
/// The most instructions, by Go's estimate, of a pattern (maxSize: 128 MiB of 40 bytes each).
const MAX_SIZE: u64 = (128 << 20) / 40;
/// The most ends of ranges in classes (maxRunes: 128 MiB of 4 bytes each).
const MAX_RUNES: usize = (128 << 20) / 4;

#[derive(Debug)]
enum Entry {
    Node(Node),
    /// An open group, its number if it captures, and the flags to return to.
    Group(Option<u32>, Flags),
    /// The branches of an alternation so far.
    Branches(Vec<Node>),
}

#[derive(Debug, Default)]
pub(super) struct Stack {
    entries: Vec<Entry>,
    runes: usize,
    nodes: u64,
    /// The product of all repetitions seen; 0 before the first.
    repeats: u64,
    tracks_size: bool,
}

impl Stack {
    pub(super) fn push(&mut self, node: Node) -> Result<(), Problem> {
        self.runes += match &node.kind {
            Kind::Literal { characters, .. } => characters.len(),
            Kind::Class(class) => 2 * class.ranges().len(),
            _ => 0,
        };
        self.join_literals();
        self.push_checked(node, 1)
    }

    /// Pushes a repetition in place of what it repeats.
    pub(super) fn push_repeat(&mut self, node: Node, times: u32) -> Result<(), Problem> {
        self.push_checked(node, u64::from(times.max(1)))
    }

    /// Takes what an operator would repeat; None at the start of a branch.
    pub(super) fn pop_node(&mut self) -> Option<Node> {
        match self.entries.pop()? {
            Entry::Node(node) => Some(node),
            other => {
                self.entries.push(other);
                None
            }
        }
    }

    pub(super) fn open(&mut self, capture: Option<u32>, flags: Flags) {
        self.join_literals();
        self.entries.push(Entry::Group(capture, flags));
    }

    /// Ends the branch of an alternation at a vertical bar.
    pub(super) fn end_branch(&mut self) -> Result<(), Problem> {
        let branch = self.take_branch()?;
        if let Some(Entry::Branches(branches)) = self.entries.last_mut() {
            branches.push(branch);
        } else {
            self.entries.push(Entry::Branches(vec![branch]));
        }
        Ok(())
    }

    /// Ends a group. Answers the flags to return to; None when no group is open.
    pub(super) fn close(&mut self) -> Result<Option<Flags>, Problem> {
        let node = self.take_alternation()?;
        let Some(Entry::Group(capture, flags)) = self.entries.pop() else {
            return Ok(None);
        };
        let node = match capture {
            None => node,
            Some(index) => Node::new(Kind::Capture {
                index,
                sub: Box::new(node),
            }),
        };
        self.join_literals();
        self.push_checked(node, 1)?;
        Ok(Some(flags))
    }

    /// The whole; None when a group is still open.
    pub(super) fn finish(&mut self) -> Result<Option<Node>, Problem> {
        let node = self.take_alternation()?;
        Ok(self.entries.is_empty().then_some(node))
    }

    fn take_alternation(&mut self) -> Result<Node, Problem> {
        let branch = self.take_branch()?;
        let Some(Entry::Branches(_)) = self.entries.last() else {
            return Ok(branch);
        };
        let Some(Entry::Branches(mut branches)) = self.entries.pop() else {
            return Ok(branch);
        };
        branches.push(branch);
        let node = Node::new(Kind::Alternate(flattened(branches, |kind| match kind {
            Kind::Alternate(subs) => Ok(subs),
            kind => Err(kind),
        })));
        self.check(&node, 1)?;
        Ok(node)
    }

    /// Takes all parts of the current branch as one.
    fn take_branch(&mut self) -> Result<Node, Problem> {
        self.join_literals();
        let is_node = |entry: &Entry| matches!(entry, Entry::Node(_));
        let start = self
            .entries
            .iter()
            .rposition(|entry| !is_node(entry))
            .map_or(0, |at| at + 1);
        let mut nodes: Vec<Node> = self
            .entries
            .drain(start..)
            .filter_map(|entry| match entry {
                Entry::Node(node) => Some(node),
                _ => None,
            })
            .collect();
        let node = match nodes.len() {
            0 => Node::new(Kind::Empty),
            1 => return Ok(nodes.remove(0)),
            _ => Node::new(Kind::Concat(flattened(nodes, |kind| match kind {
                Kind::Concat(subs) => Ok(subs),
                kind => Err(kind),
            }))),
        };
        self.check(&node, 1)?;
        Ok(node)
    }

    /// Joins the two upper literals, of which the last can no longer be repeated alone.
    fn join_literals(&mut self) {
        let [.., Entry::Node(below), Entry::Node(top)] = self.entries.as_mut_slice() else {
            return;
        };
        let (
            Kind::Literal {
                characters,
                fold_case,
            },
            Kind::Literal {
                characters: more,
                fold_case: fold_more,
            },
        ) = (&mut below.kind, &top.kind)
        else {
            return;
        };
        if fold_case != fold_more {
            return;
        }
        characters.extend_from_slice(more);
        below.size += more.len() as u64;
        self.entries.pop();
        self.nodes = self.nodes.saturating_sub(1);
    }

    fn push_checked(&mut self, node: Node, times: u64) -> Result<(), Problem> {
        self.check(&node, times)?;
        self.entries.push(Entry::Node(node));
        Ok(())
    }

    /// Keeps the limits. Go only begins to estimate sizes when there might be a reason, and so it is done here, since
    /// a long plain text would have to be refused otherwise.
    fn check(&mut self, node: &Node, times: u64) -> Result<(), Problem> {
        self.nodes += 1;
        if self.runes > MAX_RUNES {
            return Err(Problem::Large);
        }
        self.repeats = self.repeats.max(1).saturating_mul(times).min(MAX_SIZE);
        self.tracks_size |= self.nodes >= MAX_SIZE / self.repeats;
        if self.tracks_size && node.size > MAX_SIZE {
            return Err(Problem::Large);
        }
        if node.height > MAX_HEIGHT {
            return Err(Problem::NestingDepth);
        }
        Ok(())
    }
}

/// Puts the parts of nodes of the same kind in their place.
fn flattened(nodes: Vec<Node>, subs_of: fn(Kind) -> Result<Vec<Node>, Kind>) -> Vec<Node> {
    let mut flat = Vec::with_capacity(nodes.len());
    for node in nodes {
        let Node { kind, height, size } = node;
        match subs_of(kind) {
            Ok(subs) => flat.extend(subs),
            Err(kind) => flat.push(Node { kind, height, size }),
        }
    }
    flat
}
