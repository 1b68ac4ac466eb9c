//! The words that trees are made of: few, so that they meet again.

use serde_json::{Map, Value, json};

use crate::random::Random;
use crate::tree::RAW;

pub fn name(random: &mut Random) -> &'static str {
    random.pick(&["app", "web", "db", "config", "a", "app-web"])
}

pub fn namespace(random: &mut Random) -> &'static str {
    random.pick(&["default", "prod", "shop", "kube-system"])
}

pub fn key(random: &mut Random) -> &'static str {
    random.pick(&["app", "tier", "app.kubernetes.io/name", "key.txt", "A_B", "x"])
}

pub fn image(random: &mut Random) -> &'static str {
    random.pick(&[
        "nginx",
        "nginx:1.25",
        "busybox:latest",
        "registry.example:5000/team/web",
        "team/web:v1",
        "registry.example/web@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "nginx:1.25@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "nginx2:1",
        "web",
    ])
}

/// Gives a string that YAML readers and writers trip over, or a plain one.
pub fn text(random: &mut Random) -> &'static str {
    if random.chance(50) {
        return random.pick(&["x", "value", "app", "some words", "v1.2.3", "app/path"]);
    }
    random.pick(&[
        "", " ", "true", "yes", "No", "1", "007", "0x1F", "1e3", ".5", "1_000", "-", "~", "null", "2020-01-01",
        "2001-12-14t21:59:43.10-05:00", "a: b", "a #b", "#c", "two\nlines", "two\nlines\n", "\n", "\ttab", " lead",
        "trail ", "{a: b}", "[a]", "*a", "&a", "!x", "|", ">", "%a", "@a", "`a", "'q'", "\"dq\"", "back\\slash", "é",
        "日本", "😀", "$(APP)", "$$(APP)", "$(A)$(APP)", "a=b", "key=value=x", "<<", "=", "?", "? a", ":", "a:", "- a", "...",
        "---", ".inf", "NaN", "0o17", "1:30", "+1", "12e03", "a,b", "\r\n", "a\r\nb", "\u{85}", "\u{feff}x",
        "a very long value that goes on and on, with many words, so that a writer may want to fold it somewhere before its end",
    ])
}

/// Gives a scalar as it can stand in a file: often a string, sometimes a number, a boolean or null.
pub fn scalar(random: &mut Random) -> Value {
    match random.below(10) {
        0 => json!(random.below(100)),
        1 => json!(random.chance(50)),
        2 => {
            let raw = random.pick(&[
                "~",
                "null",
                "",
                "yes",
                "off",
                "0o17",
                "017",
                "0x1F",
                "1e3",
                "1.0",
                "1.50",
                "-0",
                "+1",
                ".5",
                "1_000",
                "1:30",
                "2020-01-01",
                "12345678901234567890",
                "'quoted'",
                "!!str 5",
                "y",
                "True",
                ".inf",
                "\"\\u00e9\"",
            ]);
            json!(format!("{RAW}{raw}"))
        }
        _ => json!(text(random)),
    }
}

/// Gives a map of a few strings, as for labels.
pub fn pairs(random: &mut Random, from: usize, to: usize) -> Value {
    let pairs = random.several(from, to, |random| (key(random).to_owned(), json!(text(random))));
    Value::Object(pairs.into_iter().collect::<Map<_, _>>())
}

/// Gives labels: of the few that selectors use too.
pub fn labels(random: &mut Random) -> Value {
    let pairs = random.several(1, 2, |random| {
        let value = match random.chance(98) {
            true => json!(random.pick(&["app", "web", "db", "v1"])),
            false => scalar(random),
        };
        (
            random.pick(&["app", "tier", "app.kubernetes.io/name"]).to_owned(),
            value,
        )
    });
    Value::Object(pairs.into_iter().collect::<Map<_, _>>())
}
