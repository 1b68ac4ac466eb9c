//! Tokens that the scanner hands to the parser.

use std::borrow::Cow;

use super::super::node::Style;

/// A token, and the line that it starts in, counted from 0.
#[derive(Clone, Debug)]
pub(in super::super) struct Token<'a> {
    pub(in super::super) kind: TokenKind<'a>,
    pub(in super::super) line: u32,
}

/// The kinds of tokens.
#[derive(Clone, Debug)]
pub(in super::super) enum TokenKind<'a> {
    StreamEnd,
    VersionDirective { major: u8, minor: u8 },
    TagDirective(Box<TagDirective<'a>>),
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(&'a str),
    Anchor(&'a str),
    Tag(Box<TagToken<'a>>),
    Scalar(Cow<'a, str>, Style),
}

/// `%TAG handle prefix`
#[derive(Clone, Debug)]
pub(in super::super) struct TagDirective<'a> {
    pub(in super::super) handle: &'a str,
    pub(in super::super) prefix: Cow<'a, str>,
}

/// A tag as written: the handle (`!`, `!!`, `!name!`; empty for `!<…>` and for `!` alone) and what follows it.
#[derive(Clone, Debug)]
pub(in super::super) struct TagToken<'a> {
    pub(in super::super) handle: &'a str,
    pub(in super::super) suffix: Cow<'a, str>,
}
