//! PEM blocks, as Go's encoding/pem reads and writes them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::encoding::decode64;

/// A block that was read.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) label: Vec<u8>,
    pub(super) contents: Vec<u8>,
}

pub(super) fn encode(label: &str, contents: &[u8]) -> Vec<u8> {
    let encoded = STANDARD.encode(contents);
    let mut pem = format!("-----BEGIN {label}-----\n").into_bytes();
    for line in encoded.as_bytes().chunks(64) {
        pem.extend_from_slice(line);
        pem.push(b'\n');
    }
    pem.extend_from_slice(format!("-----END {label}-----\n").as_bytes());
    pem
}

/// The first whole block; what stands before it is skipped, blocks that are broken too.
pub(super) fn decode(text: &[u8]) -> Option<Block> {
    const BEGIN: &[u8] = b"-----BEGIN ";
    let mut rest = text;
    loop {
        let is_line_start = |at: usize| at == 0 || rest[at - 1] == b'\n';
        let at = (0..rest.len()).find(|&at| rest[at..].starts_with(BEGIN) && is_line_start(at))?;
        rest = &rest[at + BEGIN.len()..];
        if let Some(block) = block(rest) {
            return Some(block);
        }
    }
}

/// Reads a block from behind its BEGIN.
fn block(text: &[u8]) -> Option<Block> {
    let (label, rest) = split_line(text);
    let label = label.strip_suffix(b"-----")?;
    let rest = skip_headers(rest);
    let end = [b"-----END ", label, b"-----"].concat();
    let at = match rest.starts_with(&end) {
        true => 0,
        false => find(rest, &[b"\n", end.as_slice()].concat())? + 1,
    };
    // Nothing but space may follow on the line.
    let (behind, _) = split_line(&rest[at + end.len()..]);
    if !behind.is_empty() {
        return None;
    }
    let is_space = |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | b'\n');
    let encoded: Vec<u8> = rest[..at].iter().copied().filter(|b| !is_space(b)).collect();
    Some(Block {
        label: label.to_vec(),
        contents: decode64(&encoded).ok()?,
    })
}

/// Lines with a colon come before the contents.
fn skip_headers(text: &[u8]) -> &[u8] {
    let mut rest = text;
    loop {
        let (line, after) = split_line(rest);
        if !line.contains(&b':') || rest.is_empty() {
            return rest;
        }
        rest = after;
    }
}

/// A line without white space at its end, and what follows it.
fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    let (line, rest) = match text.iter().position(|&b| b == b'\n') {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &text[text.len()..]),
    };
    (line.trim_ascii_end(), rest)
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, wanted)
}
