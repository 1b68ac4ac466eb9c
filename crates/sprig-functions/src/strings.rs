//! Strings: as Go has them, so that lengths and cuts count bytes.

mod case;
mod layout;
mod parts;
mod quoting;
mod replacing;
mod trimming;
mod words;

use go_template::Functions;

pub(crate) fn register(functions: &mut Functions) {
    case::register(functions);
    layout::register(functions);
    parts::register(functions);
    quoting::register(functions);
    replacing::register(functions);
    trimming::register(functions);
    words::register(functions);
}

#[cfg(test)]
mod tests {
    use go_template::Value;

    fn check(template: &str, expected: &str) {
        crate::testing::check(template, &Value::Nil, expected);
    }

    #[test]
    fn case_is_changed_character_by_character() {
        check(
            r#"{{ upper "straße ǆ" }} {{ lower "ÀÉ" }} {{ title "a-b çd_e" }}"#,
            "STRAßE Ǆ àé A-B Çd_e",
        );
        check(
            r#"{{ untitle "Foo BAR" }} {{ swapcase "This Is a.Test" }}"#,
            "foo bAR tHIS iS A.tEST",
        );
    }

    #[test]
    fn words_are_joined_and_shortened() {
        check(
            r#"{{ camelcase "http_server-x" }} {{ camelcase "_" }}"#,
            "HttpServerX __",
        );
        check(
            r#"{{ snakecase "HTTP20xOK" }} {{ kebabcase "Bld4Floor3rd" }}"#,
            "http_20x_ok bld4-floor-3rd",
        );
        check(r#"{{ initials "First Try" }} {{ nospace "é x" }}"#, "FT Ã©x");
        check(
            r#"{{ abbrev 5 "hello world" }} {{ abbrevboth 5 10 "1234 5678 9123" }}"#,
            "he... ...5678...",
        );
    }

    #[test]
    fn lines_are_laid_out() {
        check(
            r#"{{ indent 2 "a\n\nb" }}|{{ nindent 1 "" }}"#,
            "  a\n  \n  b|\n ",
        );
        check(r#"{{ wrap 5 "one two verylongword" }}"#, "one\ntwo\nverylongword");
        check(r#"{{ wrapWith 3 "/" "abcdef gh" }}"#, "abc/def/gh");
        check(
            r#"{{ indent -1 "a" }}"#,
            "error calling indent: strings: negative Repeat count",
        );
    }

    #[test]
    fn parts_count_bytes() {
        check(
            r#"{{ trunc 2 "abc" }} {{ trunc -2 "abc" }} {{ trunc 9 "abc" }}"#,
            "ab bc abc",
        );
        check(
            r#"{{ substr 1 3 "abcd" }} {{ substr -1 2 "abcd" }} {{ substr 1 -1 "abcd" }}"#,
            "bc ab bcd",
        );
        check(
            r#"{{ substr -1 9 "abcd" }}"#,
            "error calling substr: runtime error: slice bounds out of range [:9] with length 4",
        );
        check(
            r#"{{ substr 3 1 "abcd" }}"#,
            "error calling substr: runtime error: slice bounds out of range [3:1]",
        );
        check(
            r#"{{ split "," "a,b" }} {{ splitn "," 2 "a,b,c" }}"#,
            "map[_0:a _1:b] map[_0:a _1:b,c]",
        );
        check(
            r#"{{ splitList "" "éa" | join "-" }} {{ join "," (list 1 nil "b") }}"#,
            "é-a 1,b",
        );
    }

    #[test]
    fn text_is_quoted_replaced_and_trimmed() {
        check(
            r#"{{ quote "a\"b" nil 1 }} {{ squote "it's" 2 }} {{ cat 1 nil "b" }}"#,
            r#""a\"b" "1" 'it's' '2' 1 b"#,
        );
        check(
            r#"{{ replace "a" "xy" "banana" }} {{ replace "" "-" "éa" }}"#,
            "bxynxynxy -é-a-",
        );
        check(
            r#"{{ repeat 3 "ab" }}{{ repeat 0 "x" }} {{ plural "one" "many" 2 }}"#,
            "ababab many",
        );
        check(
            r#"{{ repeat -1 "a" }}"#,
            "error calling repeat: strings: negative Repeat count",
        );
        check(
            r#"{{ repeat 9223372036854775807 "ab" }}"#,
            "error calling repeat: strings: Repeat output length overflow",
        );
        check(
            r#"{{ trim "\u00a0 x\u2003" }}{{ trimAll "$é" "é$5$" }}{{ trimSuffix "-" "a-" }}{{ trimPrefix "-" "a-" }}"#,
            "x5aa-",
        );
    }
}
