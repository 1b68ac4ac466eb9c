//! Regular expressions: `regexMatch` and its family, each once refusing with an error and once as a panic of Go.

use std::collections::HashMap;

use go_regexp::{Regexp, quote_meta};
use go_template::{Context, Error, Functions, List, Str, Type, Value};
use go_text::quote::quote;

use crate::arguments::{add, charge, int, made, string, text};

const PATTERN_TEXT: &[Type] = &[Type::STRING, Type::STRING];
const PATTERN_TEXT_COUNT: &[Type] = &[Type::STRING, Type::STRING, Type::INT];
const PATTERN_TEXT_REPLACEMENT: &[Type] = &[Type::STRING, Type::STRING, Type::STRING];

pub(crate) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("regexMatch", PATTERN_TEXT, |context, arguments| {
                let compiled = compiled(context, arguments)?;
                Ok(compiled
                    .is_ok_and(|regexp| regexp.is_match(text(arguments, 1)))
                    .into())
            }),
            ("mustRegexMatch", PATTERN_TEXT, |context, arguments| {
                Ok(compile(context, arguments)?.is_match(text(arguments, 1)).into())
            }),
            ("regexFind", PATTERN_TEXT, |context, arguments| {
                find(&must_compile(context, arguments)?, arguments)
            }),
            ("mustRegexFind", PATTERN_TEXT, |context, arguments| {
                find(&compile(context, arguments)?, arguments)
            }),
            ("regexFindAll", PATTERN_TEXT_COUNT, |context, arguments| {
                let regexp = must_compile(context, arguments)?;
                find_all(context, &regexp, arguments)
            }),
            ("mustRegexFindAll", PATTERN_TEXT_COUNT, |context, arguments| {
                let regexp = compile(context, arguments)?;
                find_all(context, &regexp, arguments)
            }),
            ("regexSplit", PATTERN_TEXT_COUNT, |context, arguments| {
                let regexp = must_compile(context, arguments)?;
                split(context, &regexp, arguments)
            }),
            ("mustRegexSplit", PATTERN_TEXT_COUNT, |context, arguments| {
                let regexp = compile(context, arguments)?;
                split(context, &regexp, arguments)
            }),
            (
                "regexReplaceAll",
                PATTERN_TEXT_REPLACEMENT,
                |context, arguments| {
                    let regexp = must_compile(context, arguments)?;
                    replace(context, &regexp, arguments, Regexp::replace_all)
                },
            ),
            (
                "mustRegexReplaceAll",
                PATTERN_TEXT_REPLACEMENT,
                |context, arguments| {
                    let regexp = compile(context, arguments)?;
                    replace(context, &regexp, arguments, Regexp::replace_all)
                },
            ),
            (
                "regexReplaceAllLiteral",
                PATTERN_TEXT_REPLACEMENT,
                |context, arguments| {
                    let regexp = must_compile(context, arguments)?;
                    replace(context, &regexp, arguments, Regexp::replace_all_literal)
                },
            ),
            (
                "mustRegexReplaceAllLiteral",
                PATTERN_TEXT_REPLACEMENT,
                |context, arguments| {
                    let regexp = compile(context, arguments)?;
                    replace(context, &regexp, arguments, Regexp::replace_all_literal)
                },
            ),
            ("regexQuoteMeta", &[Type::STRING], |_, arguments| {
                made(quote_meta(text(arguments, 0)))
            }),
        ],
    );
}

/// The patterns of a render, since charts use the same few over and over.
#[derive(Default)]
struct Compiled(HashMap<Str, Regexp>);

/// More patterns than any chart has; a chart that makes them up does not fill the memory.
const MOST_COMPILED: usize = 256;

/// More than any pattern of a chart takes; larger ones are not kept, and count for the render's bound.
const MOST_KEPT: usize = 1 << 18;

fn compile(context: &mut Context<'_>, arguments: &[Value]) -> Result<Regexp, Error> {
    compiled(context, arguments)?.map_err(|error| Error::new(error.to_string()))
}

/// Compiles a pattern, or fails with the panic of Go's MustCompile.
fn must_compile(context: &mut Context<'_>, arguments: &[Value]) -> Result<Regexp, Error> {
    compiled(context, arguments)?.map_err(|error| {
        let pattern = quoted(text(arguments, 0));
        Error::new(format!("regexp: Compile({pattern}): {error}"))
    })
}

/// The outer error is that of a bound.
fn compiled(
    context: &mut Context<'_>,
    arguments: &[Value],
) -> Result<Result<Regexp, go_regexp::Error>, Error> {
    let pattern = string(arguments, 0);
    let compiled = &mut context.state::<Compiled>().0;
    if let Some(regexp) = compiled.get(&pattern) {
        return Ok(Ok(regexp.clone()));
    }
    let regexp = match Regexp::compile(&pattern) {
        Ok(regexp) => regexp,
        Err(error) => return Ok(Err(error)),
    };
    let size = regexp.memory_usage();
    if size > MOST_KEPT {
        charge(context, size, 1)?;
    } else if compiled.len() < MOST_COMPILED {
        compiled.insert(pattern, regexp.clone());
    }
    Ok(Ok(regexp))
}

/// Between backquotes where they can hold it (strconv.CanBackquote), else between double ones.
fn quoted(pattern: &[u8]) -> String {
    let unfit = |c: char| matches!(c, '\0'..='\x08' | '\x0a'..='\x1f' | '`' | '\x7f' | '\u{feff}');
    if let Ok(text) = str::from_utf8(pattern)
        && !text.contains(unfit)
    {
        return format!("`{text}`");
    }
    let mut quoted = Vec::new();
    quote(pattern, &mut quoted);
    String::from_utf8_lossy(&quoted).into_owned()
}

fn find(regexp: &Regexp, arguments: &[Value]) -> Result<Value, Error> {
    made(regexp.find(text(arguments, 1)).unwrap_or_default().to_vec())
}

fn find_all(context: &mut Context<'_>, regexp: &Regexp, arguments: &[Value]) -> Result<Value, Error> {
    list(context, regexp.find_all(text(arguments, 1), int(arguments, 2)))
}

fn split(context: &mut Context<'_>, regexp: &Regexp, arguments: &[Value]) -> Result<Value, Error> {
    list(context, regexp.split(text(arguments, 1), int(arguments, 2)))
}

fn list(context: &mut Context<'_>, parts: Option<Vec<&[u8]>>) -> Result<Value, Error> {
    let Some(parts) = parts else {
        return Ok(List::nil(Type::LIST_STRING).into());
    };
    charge(context, parts.len(), size_of::<Value>())?;
    charge(context, parts.iter().map(|part| part.len()).sum(), 1)?;
    Ok(List::of_strings(parts).into())
}

type Replace = fn(&Regexp, &[u8], &[u8]) -> Vec<u8>;

/// Above this many bytes it is counted what a replacement would make, before it is made.
const LARGE: usize = 1 << 20;

fn replace(
    context: &mut Context<'_>,
    regexp: &Regexp,
    arguments: &[Value],
    replace: Replace,
) -> Result<Value, Error> {
    let (text, replacement) = (text(arguments, 1), text(arguments, 2));
    // Each match gives the replacement, and each reference in it at most what was matched.
    let references = replacement.iter().filter(|&&b| b == b'$').count();
    let most = |matches: usize| {
        let copied = references.saturating_add(1).saturating_mul(text.len());
        matches.saturating_mul(replacement.len()).saturating_add(copied)
    };
    let mut size = most(text.len() + 1);
    if size > LARGE {
        size = most(regexp.find_all_index(text, -1).map_or(0, |all| all.len()));
    }
    if size > LARGE {
        charge(context, size, 1)?;
    }
    made(replace(regexp, text, replacement))
}

#[cfg(test)]
mod tests {
    use go_template::Value;

    fn check(template: &str, expected: &str) {
        crate::testing::check(template, &Value::Nil, expected);
    }

    #[test]
    fn patterns_match_find_split_and_replace() {
        check(
            r#"{{ regexMatch "^a+$" "aa" }} {{ regexMatch "(?=x)" "x" }}"#,
            "true false",
        );
        check(
            r#"{{ regexFind "b+" "abbc" }}-{{ mustRegexFind "x" "abc" }}-"#,
            "bb--",
        );
        check(
            r#"{{ regexFindAll "[0-9]+" "1 22 333" 2 }} {{ regexFindAll "x" "a" -1 }}"#,
            "[1 22] []",
        );
        check(
            r#"{{ regexSplit "," "a,b,c" 2 }} {{ len (regexSplit "," "a,b" 0) }}"#,
            "[a b,c] 0",
        );
        check(r#"{{ regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W" }}"#, "-W-xxW-");
        check(r#"{{ regexReplaceAllLiteral "a(x*)b" "-ab-" "${1}" }}"#, "-${1}-");
        check(r#"{{ regexQuoteMeta "1.2" }}"#, r"1\.2");
        check(
            r#"{{ kindOf (regexFindAll "a" "a" 1) }} {{ typeOf (regexSplit "a" "a" 1) }}"#,
            "slice []string",
        );
    }

    #[test]
    fn a_wrong_pattern_is_an_error_or_a_panic() {
        check(
            r#"{{ mustRegexMatch "(" "x" }}"#,
            "error calling mustRegexMatch: error parsing regexp: missing closing ): `(`",
        );
        check(
            r#"{{ regexFind "(" "x" }}"#,
            "error calling regexFind: regexp: Compile(`(`): error parsing regexp: missing closing ): `(`",
        );
        check(
            r#"{{ regexReplaceAll "(`" "x" "y" }}"#,
            "error calling regexReplaceAll: regexp: Compile(\"(`\"): error parsing regexp: missing closing ): `(``",
        );
    }

    #[test]
    fn a_replacement_that_would_fill_the_memory_is_refused() {
        check(
            r#"{{ $x := repeat 60000 "x" }}{{ regexReplaceAll "" $x $x | len }}"#,
            "error calling regexReplaceAll: a function would make more than 2147483648 bytes",
        );
    }
}
