//! Changes of bytes, for files that are no YAML any more.

use crate::random::Random;

/// Changes a few places of a file: bytes flipped, left out, doubled, or replaced by what YAML has a meaning for.
pub fn mutate(random: &mut Random, content: &mut Vec<u8>) {
    const TOKENS: &[&[u8]] = &[
        b"&a",
        b"*a",
        b"<<: *a",
        b"- ",
        b"\n  ",
        b"\t",
        b"{",
        b"}",
        b"[",
        b"]",
        b"|\n",
        b">-\n",
        b"---\n",
        b"!!binary ",
        b"\"",
        b"'",
        b": ",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\0",
        b"\r\n",
        b"%YAML 9.9\n",
        b"? ",
        b"$patch: delete\n",
        b"\xc2\x85",
        b"99999999999999999999",
    ];
    for _ in 0..=random.below(4) {
        let position = random.below(content.len() + 1);
        match random.below(5) {
            0 if position < content.len() => content[position] ^= 1 << random.below(8),
            1 => {
                let end = (position + random.below(20)).min(content.len());
                content.drain(position..end);
            }
            2 => {
                let end = (position + random.below(200)).min(content.len());
                let part = content[position..end].to_vec();
                content.splice(position..position, part);
            }
            3 => content.truncate(position),
            _ => {
                let token = TOKENS[random.below(TOKENS.len())];
                content.splice(position..position, token.iter().copied());
            }
        }
    }
}
