//! Matches as Go finds them.

use super::*;

fn compiled(pattern: &str) -> Regexp {
    Regexp::compile(pattern.as_bytes()).unwrap()
}

#[test]
fn matches_are_those_of_go() {
    for (pattern, text, expected) in [
        ("a|ab", "xab", Some("a")),
        ("(?U)a+", "aaa", Some("a")),
        ("a+?b", "aab", Some("aab")),
        ("^b", "a\nb", None),
        ("(?m)^b$", "a\nb", Some("b")),
        ("a$", "a\n", None),
        ("a.b", "a\nb", None),
        ("(?s)a.b", "a\nb", Some("a\nb")),
        (r"\d+", "٣4", Some("4")),
        (r"\w+", "é_9", Some("_9")),
        (r"\bé", "é", None),
        (r"\s", "\u{b}", None),
        ("[[:space:]]", "\u{b}", Some("\u{b}")),
        (r"[^\d\s]+", "1 é2", Some("é")),
        (r"\Qa.b\E+", "a.bb", Some("a.bb")),
        (r"\x41\x{e9}\101", "AéA", Some("AéA")),
        ("(?i)k", "\u{212a}", Some("\u{212a}")),
        ("(?i:K)k", "kk", Some("kk")),
        (r"\p{Greek}\PL", "aα1", Some("α1")),
        ("a{,2}", "a{,2}", Some("a{,2}")),
        ("a{0,2}", "aaa", Some("aa")),
        ("[]a]+", "]a", Some("]a")),
        ("[a-]+", "-a", Some("-a")),
        (r"[^\x00-\x{10FFFF}]", "a", None),
        ("(a){0}b", "ab", Some("b")),
    ] {
        let found = compiled(pattern).find(text.as_bytes());
        assert_eq!(found, expected.map(str::as_bytes), "{pattern}");
    }
}

#[test]
fn successive_matches_skip_the_empty_ones_behind_others() {
    let all = |pattern, text: &'static str, n| {
        let all = compiled(pattern).find_all(text.as_bytes(), n);
        all.map(|all| {
            all.into_iter()
                .map(|found| str::from_utf8(found).unwrap())
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(all("a*", "baac", -1), Some(vec!["", "aa", ""]));
    assert_eq!(all("[0-9]+", "1 22 333", 2), Some(vec!["1", "22"]));
    assert_eq!(all("", "éa", -1), Some(vec!["", "", ""]));
    assert_eq!(all("x", "a", -1), None);
    assert_eq!(all("a", "a", 0), None);
    assert_eq!(all(r"\B", "éé", -1), Some(vec!["", "", ""]));
}

#[test]
fn replacements_refer_to_groups() {
    for (pattern, text, template, expected) in [
        ("a(x*)b", "-ab-axxb-", "$1", "--xx-"),
        ("a(x*)b", "-ab-axxb-", "${1}W", "-W-xxW-"),
        ("a(x*)b", "-ab-axxb-", "$1W", "---"),
        ("", "abc", "-", "-a-b-c-"),
        ("x*", "abc", "-", "-a-b-c-"),
        ("a*", "baac", "$$", "$b$c$"),
        ("(?P<y>b)|(?P<y>c)", "bc", "<$y>", "<b><c>"),
        (
            "(?P<first>\\w+) (?<second>\\w+)",
            "ab cd",
            "$second $first",
            "cd ab",
        ),
    ] {
        let replaced = compiled(pattern).replace_all(text.as_bytes(), template.as_bytes());
        assert_eq!(str::from_utf8(&replaced), Ok(expected), "{pattern} {template}");
    }
    assert_eq!(compiled("b").replace_all_literal(b"abc", b"$1"), b"a$1c");
}

#[test]
fn texts_are_split_as_go_splits_them() {
    let split = |pattern, text: &'static str, n| compiled(pattern).split(text.as_bytes(), n);
    assert_eq!(
        split("a*", "abaabaccadaaae", 5).unwrap(),
        [&b""[..], b"b", b"b", b"c", b"cadaaae"]
    );
    assert_eq!(split("", "abc", -1).unwrap(), [b"a", b"b", b"c"]);
    assert_eq!(split(",", "", -1).unwrap(), [b""]);
    assert_eq!(split("", "", -1).unwrap(), [&b""[..]; 0]);
    assert_eq!(split(",", "a,b", 0), None);
    assert_eq!(split("b", "abb", -1).unwrap(), [&b"a"[..], b"", b""]);
}

#[test]
fn a_byte_that_is_not_utf_8_is_one_character() {
    let text = b"a\xff\xc3b\xef\xbf\xbd";
    assert_eq!(compiled("a.").find(text), Some(&b"a\xff"[..]));
    assert_eq!(compiled("[^a]b").find(text), Some(&b"\xc3b"[..]));
    assert_eq!(compiled(".$").find_index(text), Some(4..7));
    assert_eq!(
        compiled("(.)").replace_all(text, b"<$1>"),
        b"<a><\xff><\xc3><b><\xef\xbf\xbd>"
    );
}

#[test]
fn groups_that_took_no_part_are_none() {
    let groups = compiled("(a)|(b)(c){0}").find_submatch(b"b").unwrap();
    assert_eq!(groups, [Some(&b"b"[..]), None, Some(b"b"), None]);
}

#[test]
fn a_pattern_of_the_greatest_depth_matches() {
    let pattern = "(".repeat(998) + "a" + &")".repeat(998);
    assert!(compiled(&pattern).is_match(b"ba"));
}

#[test]
fn a_quoted_text_matches_itself() {
    let text = br"a\.+*?()|[]{}^$-#b";
    let quoted = quote_meta(text);
    assert_eq!(quoted, br"a\\\.\+\*\?\(\)\|\[\]\{\}\^\$-#b");
    assert_eq!(Regexp::compile(&quoted).unwrap().find(text), Some(&text[..]));
}

#[test]
fn a_pattern_tells_what_memory_it_takes() {
    let [small, large] = ["a", r"\pL{200}"].map(|pattern| compiled(pattern).memory_usage());
    assert!(small < 10_000 && large > 1_000_000, "{small} {large}");
}
