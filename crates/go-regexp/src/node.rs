//! Meaning of a pattern: the tree between parser and engine.

use regex_syntax::hir::{ClassUnicode, Look};

/// A part of a pattern, with the measures that Go limits.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    /// Levels of nodes, this one counted.
    pub(crate) height: u32,
    /// How many instructions Go would compile it to, by its own estimate.
    pub(crate) size: u64,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Empty,
    /// Characters in a row; surrogates are characters too, which no text has.
    Literal {
        characters: Vec<u32>,
        fold_case: bool,
    },
    Class(ClassUnicode),
    Look(Look),
    Capture {
        index: u32,
        sub: Box<Node>,
    },
    Repeat(Repeat),
    Concat(Vec<Node>),
    Alternate(Vec<Node>),
}

#[derive(Debug)]
pub(crate) struct Repeat {
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
    pub(crate) greedy: bool,
    /// Written with braces: only these count for the limit on repetitions.
    pub(crate) counted: bool,
    pub(crate) sub: Box<Node>,
}

impl Node {
    pub(crate) fn new(kind: Kind) -> Self {
        let subs = kind.subs();
        let height = 1 + subs.iter().map(|sub| sub.height).max().unwrap_or(0);
        let size = kind.size().max(1);
        Self { kind, height, size }
    }

    /// Returns whether no innermost part is repeated more than `limit` times by counted repetitions within each other.
    pub(crate) fn repeats_at_most(&self, limit: u32) -> bool {
        let limit = match &self.kind {
            Kind::Repeat(repeat) if repeat.counted => match repeat.max.unwrap_or(repeat.min) {
                // `x{0}` repeats nothing, while `x{0,}` is as often as what surrounds it.
                0 if repeat.max.is_some() => return true,
                0 => limit,
                times if times > limit => return false,
                times => limit / times,
            },
            _ => limit,
        };
        self.kind.subs().iter().all(|sub| sub.repeats_at_most(limit))
    }
}

impl Kind {
    fn subs(&self) -> &[Node] {
        match self {
            Self::Empty | Self::Literal { .. } | Self::Class(_) | Self::Look(_) => &[],
            Self::Capture { sub, .. } | Self::Repeat(Repeat { sub, .. }) => std::slice::from_ref(sub),
            Self::Concat(subs) | Self::Alternate(subs) => subs,
        }
    }

    fn size(&self) -> u64 {
        let total = self
            .subs()
            .iter()
            .fold(0, |sum: u64, sub| sum.saturating_add(sub.size));
        match self {
            Self::Empty | Self::Class(_) | Self::Look(_) => 1,
            Self::Literal { characters, .. } => characters.len() as u64,
            Self::Capture { .. } => total.saturating_add(2),
            Self::Repeat(repeat) => repeat.size(total),
            Self::Concat(_) => total,
            Self::Alternate(subs) => total.saturating_add(subs.len() as u64 - 1),
        }
    }
}

impl Repeat {
    fn size(&self, sub: u64) -> u64 {
        let min = u64::from(self.min);
        match self.max.map(u64::from) {
            None if min == 0 => sub.saturating_add(2),
            None => sub.saturating_mul(min).saturating_add(1),
            Some(max) => sub.saturating_mul(max).saturating_add(max.saturating_sub(min)),
        }
    }
}
