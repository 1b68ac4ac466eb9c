//! Patterns that Go refuses, with its words.

use super::*;

fn check(pattern: &str, expected: &str) {
    let error = parse(pattern.as_bytes()).map(|parsed| parsed.node).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("error parsing regexp: {expected}"),
        "{pattern}"
    );
}

#[test]
fn what_is_no_pattern_is_told_in_go_words() {
    for (pattern, expected) in [
        ("[a", "missing closing ]: `[a`"),
        ("[]", "missing closing ]: `[]`"),
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("(|a))b", "unexpected ): `(|a))b`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("(+?", "missing argument to repetition operator: `+?`"),
        ("a|{2}", "missing argument to repetition operator: `{2}`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a*{2}?", "invalid nested repetition operator: `*{2}?`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{3,2}", "invalid repeat count: `{3,2}`"),
        ("a{99999999999}", "invalid repeat count: `{99999999999}`"),
        ("((a{10}){10}){11}", "invalid repeat count: `{11}`"),
        ("\\", "trailing backslash at end of expression: ``"),
        ("[\\", "trailing backslash at end of expression: ``"),
        ("\\8", "invalid escape sequence: `\\8`"),
        ("\\1", "invalid escape sequence: `\\1`"),
        ("\\Cx", "invalid escape sequence: `\\C`"),
        ("\\xq1", "invalid escape sequence: `\\xq1`"),
        ("\\x{110000}", "invalid escape sequence: `\\x{110000`"),
        ("\\x{}", "invalid escape sequence: `\\x{}`"),
        ("\\yx", "invalid escape sequence: `\\y`"),
        ("[\\b]", "invalid escape sequence: `\\b`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        ("\\p{Foo}", "invalid character class range: `\\p{Foo}`"),
        ("\\pX", "invalid character class range: `\\pX`"),
        ("\\p", "invalid character class range: `\\p`"),
        ("\\p{L", "invalid character class range: `\\p{L`"),
        ("(?=x)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<!x)", "invalid named capture: `(?<!x)`"),
        ("(?<=x", "invalid named capture: `(?<=x`"),
        ("(?P<a-b>x)", "invalid named capture: `(?P<a-b>`"),
        ("(?P=a)", "invalid or unsupported Perl syntax: `(?P`"),
        ("(?i-)", "invalid or unsupported Perl syntax: `(?i-)`"),
        ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
    ] {
        check(pattern, expected);
    }
}

#[test]
fn what_is_not_utf_8_is_told_with_its_bytes() {
    let error = parse(b"a\xffb").map(|parsed| parsed.node).unwrap_err();
    assert_eq!(error.message(), b"error parsing regexp: invalid UTF-8: `\xffb`");
}

#[test]
fn patterns_without_measure_are_refused() {
    let nested = |depth: usize| "(".repeat(depth) + &")".repeat(depth);
    assert!(parse(nested(999).as_bytes()).is_ok());
    let deep = nested(1000);
    check(&deep, &format!("expression nests too deeply: `{deep}`"));
    let large = "((a{100}){10}){1}".repeat(3360);
    check(&large, &format!("expression too large: `{large}`"));
    let classes = r"\pL".repeat(60_000);
    check(&classes, &format!("expression too large: `{classes}`"));
}
