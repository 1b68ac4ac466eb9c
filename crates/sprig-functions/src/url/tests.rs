//! URLs as sprig takes them apart and puts them together.

use go_template::Value;

fn check(template: &str, expected: &str) {
    crate::testing::check(template, &Value::Nil, expected);
}

fn check_parsed(url: &str, expected: &str) {
    let template = format!(
        r#"{{{{ $u := urlParse "{url}" }}}}{{{{ range list "scheme" "userinfo" "host" "hostname" "path" "query" "opaque" "fragment" }}}}{{{{ get $u . }}}}|{{{{ end }}}}"#
    );
    check(&template, expected);
}

#[test]
fn urls_are_taken_apart() {
    check_parsed(
        "HTTPS://us%20er:p%40ss@example.com:8443/a%20b/c?q=1&r=%20#f%21",
        "https|us%20er:p%40ss|example.com:8443|example.com|/a b/c|q=1&r=%20||f!|",
    );
    check_parsed("mailto:joe@x", "mailto||||||joe@x||");
    check_parsed("//h/p", "||h|h|/p||||");
    check_parsed("///p", "||||///p||||");
    check_parsed("a/b:c", "||||a/b:c||||");
    check_parsed(
        "http://[fe80::1%25en0]:80/",
        "http||[fe80::1%en0]:80|fe80::1%en0|/||||",
    );
    check_parsed("postgres://a:1,b:2/db", "postgres||a:1,b:2|a:1,b|/db||||");
    check_parsed("*", "||||*||||");
    check_parsed("", "||||||||");
}

#[test]
fn what_is_no_url_is_told_in_go_words() {
    for (url, expected) in [
        (":x", r#"parse ":x": missing protocol scheme"#),
        (
            "a:b:c\\n",
            r#"parse "a:b:c\n": net/url: invalid control character in URL"#,
        ),
        (
            "1:b",
            r#"parse "1:b": first path segment in URL cannot contain colon"#,
        ),
        (
            "http://a b/",
            r#"parse "http://a b/": invalid character " " in host name"#,
        ),
        (
            "http://a:x/",
            r#"parse "http://a:x/": invalid port ":x" after host"#,
        ),
        (
            "http://a/%zz",
            r#"parse "http://a/%zz": invalid URL escape "%zz""#,
        ),
        ("http://a/%2", r#"parse "http://a/%2": invalid URL escape "%2""#),
        ("http://a/#%2", r#"parse "http://a/#%2": invalid URL escape "%2""#),
        ("http://%41/", r#"parse "http://%41/": invalid URL escape "%41""#),
        ("http://[::1/", r#"parse "http://[::1/": missing ']' in host"#),
        (
            "http://[1.2.3.4]/",
            r#"parse "http://[1.2.3.4]/": invalid IP-literal"#,
        ),
        (
            "http://u^@h/",
            r#"parse "http://u^@h/": net/url: invalid userinfo"#,
        ),
    ] {
        let expected = format!("error calling urlParse: unable to parse url: {expected}");
        check(&format!(r#"{{{{ urlParse "{url}" }}}}"#), &expected);
    }
}

#[test]
fn urls_are_put_together() {
    for (parts, expected) in [
        (
            r#""scheme" "https" "host" "h:1" "path" "/a b" "query" "q=1" "fragment" "é'""#,
            "https://h:1/a%20b?q=1#%C3%A9%27",
        ),
        (r#""host" "h" "path" "p" "userinfo" "u:p@""#, "//u:p%40@h/p"),
        (r#""scheme" "mailto" "opaque" "joe@x""#, "mailto:joe@x"),
        (r#""scheme" "file" "path" "/x""#, "file:///x"),
        (r#""scheme" "x""#, "x:"),
        (r#""path" "a:b""#, "./a:b"),
        ("", ""),
    ] {
        check(&format!("{{{{ urlJoin (dict {parts}) }}}}"), expected);
    }
    check(
        r#"{{ urlJoin (dict "host" 1) }}"#,
        "error calling urlJoin: unable to parse host key, must be of type string, but int found",
    );
    check(
        r#"{{ urlJoin (dict "userinfo" "a b") }}"#,
        r#"error calling urlJoin: unable to parse userinfo in dict: parse "proto://a b@host": net/url: invalid userinfo"#,
    );
}
