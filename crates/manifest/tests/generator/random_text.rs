//! Random YAML texts and JSON values, the same for the same seed.

#![allow(
    dead_code,
    reason = "each of the programs that include this file uses a part of it"
)]

use serde_json::{Map, Value, json};

/// A small generator of random numbers (splitmix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % (limit.max(1) as u64)).expect("small")
    }

    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

#[rustfmt::skip]
const PIECES: [&str; 118] = [
    "\t", "- ", ": ", ":", "\n", "\n\n", "#", " # c\n", "'", "\"", "{", "}", "[", "]", ",", "&a ", "*a", "&b ",
    "*b ", "!!str ", "!!int ", "!!float ", "!!binary ", "!!null ", "!!bool ", "!!map ", "!x ", "! ", "|", ">",
    "|-\n", ">-\n", "|+\n", ">2\n", "|1-\n", "%", "%YAML 1.1\n---\n", "%TAG ! tag:x,\n", "---\n", "--- ",
    "...\n", "\r\n", "\r", "\u{85}", "\u{2028}", "\u{2029}", "\u{feff}", "? ", "?", "<<: ", "<<: *a\n", "<<",
    "@", "`", "é", "😀", "\u{1}", "\u{7f}", "\u{80}", "\u{fffe}", "0x1f", "0o17", "017", "0b11", "1e3", "1_000",
    ".5", "-.inf", ".nan", "~", "null", "yes", "no", "on", "y", "n", "true", "False", "2001-01-01",
    "2001-12-14t21:59:43.10-05:00", "12:30:45", "=", " ", "  ", "    ", "-", "--", "---", "\\", "\\n", "\\x41",
    "\\u00e9", "\\/", "\\q", "''", "\"\"", "a: 1\n", "b:\n", "- x\n", "{a: 1}", "[1, 2]", "{a: 1, d:}",
    "[!a, b]", "\"a\\\n b\"", "'a\n b'", "\"k\": v\n", "key with spaces: v\n", "{{ .Values.x }}", "$(x)",
    "${x}", "|\n  a\n  b\n", ">\n  a\n   b\n  c\n", "9223372036854775808", "-0", "1.0",
    "12345678901234567890123", "+1", "0.1e-7",
];

/// A text: a changed piece of the corpus, or one made by the grammar.
pub fn text(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut text = if corpus.is_empty() || random.one_in(2) {
        let mut out = String::new();
        if random.one_in(8) {
            out.push_str("---\n");
        }
        block(random, 0, 0, &mut out);
        out.into_bytes()
    } else {
        let from = random.below(corpus.len());
        excerpt(random, &corpus[from])
    };
    let changes = match random.below(4) {
        0 => 0,
        1 => 1,
        _ => 1 + random.below(4),
    };
    for _ in 0..changes {
        change(random, &mut text);
    }
    text
}

/// Takes some lines in a row.
fn excerpt(random: &mut Random, from: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = from.split_inclusive(|byte| *byte == b'\n').collect();
    if lines.len() <= 40 {
        return from.to_vec();
    }
    let start = if random.one_in(2) {
        0
    } else {
        random.below(lines.len())
    };
    let count = 1 + random.below(60);
    lines[start..]
        .iter()
        .take(count)
        .copied()
        .collect::<Vec<_>>()
        .concat()
}

fn change(random: &mut Random, text: &mut Vec<u8>) {
    let at = random.below(text.len() + 1);
    match random.below(10) {
        0..=3 => {
            let piece = random.pick(&PIECES);
            text.splice(at..at, piece.bytes());
        }
        4 => {
            let end = (at + 1 + random.below(3)).min(text.len());
            text.drain(at..end);
        }
        5 => text.truncate(at),
        6 => {
            let other = random.below(text.len() + 1);
            let (from, to) = (at.min(other), at.max(other).min(at.min(other) + 40));
            let copy = text[from..to].to_vec();
            let place = random.below(text.len() + 1);
            text.splice(place..place, copy);
        }
        7 => {
            // More or less indentation for a line.
            let start = text[..at]
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |found| found + 1);
            if random.one_in(2) || text.get(start) != Some(&b' ') {
                text.splice(start..start, std::iter::repeat_n(b' ', 1 + random.below(3)));
            } else {
                text.remove(start);
            }
        }
        8 => {
            let end = text[at..]
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(text.len(), |found| at + found);
            let start = text[..at]
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |found| found + 1);
            text.drain(start..end);
        }
        _ => {
            if random.one_in(20) {
                text.splice(at..at, [0x80 | u8::try_from(random.below(128)).expect("small")]);
            } else {
                let piece = random.pick(&PIECES);
                text.splice(at..at, piece.bytes());
            }
        }
    }
}

fn spaces(count: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', count));
}

/// A node in block context, whose lines are indented by `indent`; starts at the end of a line or at the start of one.
fn block(random: &mut Random, indent: usize, depth: usize, out: &mut String) {
    match random.below(if depth > 3 { 4 } else { 10 }) {
        0..=3 => scalar_line(random, indent, out),
        4..=6 => {
            let keys = 1 + random.below(4);
            for index in 0..keys {
                if index > 0 || !out.ends_with("- ") {
                    spaces(indent, out);
                }
                key(random, index, out);
                out.push(':');
                property(random, out);
                value(random, indent, depth, out);
            }
        }
        7 | 8 => {
            for index in 0..1 + random.below(3) {
                if index > 0 || !out.ends_with("- ") {
                    spaces(indent, out);
                }
                out.push_str("- ");
                if random.one_in(3) {
                    block(random, indent + 2, depth + 1, out);
                } else {
                    scalar_line(random, indent, out);
                }
            }
        }
        _ => {
            flow(random, depth, out);
            out.push('\n');
        }
    }
}

fn value(random: &mut Random, indent: usize, depth: usize, out: &mut String) {
    match random.below(6) {
        0 => out.push('\n'),
        1 | 2 => {
            out.push('\n');
            let deeper = if random.one_in(5) { 0 } else { 1 + random.below(3) };
            block(random, indent + deeper, depth + 1, out);
        }
        3 => {
            out.push(' ');
            flow(random, depth, out);
            comment(random, out);
        }
        _ => {
            out.push(' ');
            scalar_line(random, indent, out);
        }
    }
}

fn property(random: &mut Random, out: &mut String) {
    if random.one_in(12) {
        out.push(' ');
        out.push_str(random.pick(&["&a", "&b", "!!str", "!!int", "!x", "!", "!!float &a", "&a !!map"]));
    }
}

fn comment(random: &mut Random, out: &mut String) {
    if random.one_in(6) {
        out.push_str(random.pick(&[" # c", " #", "\t# c", " # c: d\n# e"]));
    }
    out.push_str(if random.one_in(30) { "\r\n" } else { "\n" });
}

fn key(random: &mut Random, index: usize, out: &mut String) {
    if random.one_in(20) {
        out.push_str(random.pick(&[
            "? k", "<<", "1", "1.5", "yes", "~", "null", "\"q\"", "'s'", "{a: b}", "[a]", "&a k",
        ]));
    } else if random.one_in(12) {
        word(random, out);
    } else {
        out.push_str(["a", "b", "name", "spec", "kind"][(index + random.below(2)) % 5]);
    }
}

fn word(random: &mut Random, out: &mut String) {
    out.push_str(random.pick(&WORDS));
}

#[rustfmt::skip]
const WORDS: [&str; 42] = [
    "a", "x y", "on", "no", "1", "0x1F", "1.50", "1e3", "null", "~", "2001-01-01", "-1", "a#b", "http://x:80/y",
    "a:b", "é", "😀", "a  b", "it's", "1:30", ".5", "0777", "0o7", "1_0", "=", "x,y", "a]b", "-x", "?x", "*a",
    "<<", "{{x}}", "+.inf", ".NaN", "0b1", "99999999999999999999", "-9223372036854775809", "1e400", "0x1p-2",
    "+12", "0.0", "-0.0",
];

fn scalar_line(random: &mut Random, indent: usize, out: &mut String) {
    match random.below(12) {
        0..=5 => word(random, out),
        6 => {
            out.push('\'');
            word(random, out);
            if random.one_in(3) {
                out.push_str("''\n\n");
                spaces(indent + 1, out);
                word(random, out);
            }
            out.push('\'');
        }
        7 => {
            out.push('"');
            for _ in 0..random.below(3) {
                word(random, out);
                out.push_str(random.pick(&[
                    "\\n", "\\t", "\\\"", " ", "\n  ", "\\\n   ", "  \n\n ", "\\x41", "\\u00e9", "\\ ", "\\N",
                ]));
            }
            out.push('"');
        }
        8 => {
            word(random, out);
            out.push('\n');
            spaces(indent + 1, out);
            word(random, out);
        }
        _ => return block_scalar(random, indent, out),
    }
    comment(random, out);
}

fn block_scalar(random: &mut Random, indent: usize, out: &mut String) {
    out.push_str(random.pick(&[
        "|", ">", "|-", ">-", "|+", ">+", "|2", ">1", "|2-", "|-1", "| # c", ">\t",
    ]));
    out.push('\n');
    let indent = indent + 1 + random.below(3);
    for _ in 0..random.below(5) {
        if random.one_in(4) {
            spaces(random.below(indent + 2), out);
        } else {
            spaces(indent, out);
            if random.one_in(5) {
                out.push_str(random.pick(&[" ", "\t", "  "]));
            }
            word(random, out);
            if random.one_in(8) {
                out.push_str(random.pick(&[" ", "\t", "\r", "\u{85}"]));
            }
        }
        out.push('\n');
    }
}

fn flow(random: &mut Random, depth: usize, out: &mut String) {
    let nested = depth < 4 && random.one_in(3);
    let count = random.below(4);
    let sequence = random.one_in(2);
    out.push(if sequence { '[' } else { '{' });
    for index in 0..count {
        if index > 0 {
            out.push_str(random.pick(&[", ", ",", " , ", ",\n "]));
        }
        if !sequence || random.one_in(8) {
            key(random, index, out);
            out.push_str(random.pick(&[": ", ": ", ":", " : ", ""]));
        }
        if nested {
            flow(random, depth + 1, out);
        } else if !random.one_in(8) {
            match random.below(4) {
                0 => {
                    out.push('"');
                    word(random, out);
                    out.push('"');
                }
                1 => out.push_str(random.pick(&["'x'", "!!str 1", "&a v", "*a", "!t"])),
                _ => word(random, out),
            }
        }
    }
    if random.one_in(10) {
        out.push(',');
    }
    out.push(if sequence { ']' } else { '}' });
}

/// A JSON value with strings that are hard to write.
pub fn json(random: &mut Random) -> Value {
    json_node(random, 0)
}

fn json_node(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth > 3 { 8 } else { 14 }) {
        0 => json!(random.one_in(2)),
        1 => json_number(random),
        2 if random.one_in(3) => Value::Null,
        2..=7 => Value::from(string(random)),
        8..=10 => {
            let mut map = Map::new();
            for _ in 0..random.below(5) {
                let key = if random.one_in(4) {
                    string(random)
                } else {
                    short_key(random)
                };
                map.insert(key, json_node(random, depth + 1));
            }
            Value::Object(map)
        }
        _ => (0..random.below(4))
            .map(|_| json_node(random, depth + 1))
            .collect(),
    }
}

fn short_key(random: &mut Random) -> String {
    let mut key = random
        .pick(&[
            "a", "b", "A", "a1", "a01", "a10", "_", "-", "z.y/x", "on", "1", "é", "aé", "a-b", "ab",
        ])
        .to_owned();
    if random.one_in(3) {
        key.push_str(&random.below(200).to_string());
    }
    key
}

fn json_number(random: &mut Random) -> Value {
    match random.below(6) {
        0 => json!(random.next()),
        1 => json!(random.next() as i64),
        2 => json!(random.below(1000)),
        3 => {
            let floats = [
                1e21,
                1e-7,
                -0.0,
                1e20,
                1e19,
                0.1,
                1.5,
                1e6,
                123456.0,
                1234567.0,
                12345678.9,
                1e100,
                -1e-300,
                1e15,
                1e16,
                9007199254740993.0,
                1e18,
                9.3e18,
                1.9e19,
                100000.5,
                1e-5,
                0.0001,
                5e-324,
                1.7976931348623157e308,
            ];
            json!(floats[random.below(floats.len())])
        }
        4 => json!(f64::from_bits(random.next() & 0x7fef_ffff_ffff_ffff)),
        _ => json!(random.next() as i64 as f64 / 1024.0),
    }
}

fn string(random: &mut Random) -> String {
    if random.one_in(4) {
        return random.pick(&PIECES).to_owned();
    }
    let mut text = String::new();
    let length = match random.below(12) {
        0 => 0,
        1 => 60 + random.below(40),
        _ => 1 + random.below(6),
    };
    for _ in 0..length {
        match random.below(12) {
            0 => text.push_str(random.pick(&PIECES)),
            1 => text.push(' '),
            2 => text.push('\n'),
            3 => text.push_str(random.pick(&[
                "\t",
                "  ",
                "\n\n",
                "\u{0}",
                "\u{1b}",
                "\u{a0}",
                "\u{ad}",
                "\u{200b}",
                "\u{e000}",
                "\u{ffff}",
                "\u{10ffff}",
                "\u{3000}",
            ])),
            4 => text.push_str(random.pick(&[
                "word",
                "Some text",
                "key: value",
                "- item",
                "# no comment",
                "a",
                "0",
                ".",
            ])),
            5 => word(random, &mut text),
            _ => text.push_str(random.pick(&["a", "b c", "lorem", "ipsum ", "dolor", " sit", "amet,"])),
        }
    }
    text
}
