//! Addresses; requests against real servers are in `answers`.

mod answers;

use super::*;

#[test]
fn shown_urls_hold_no_secrets() {
    let cases = [
        (
            "https://user:pass@example.com/a?token=x#y",
            "https://example.com/a",
        ),
        ("http://example.com:8080/a.git", "http://example.com:8080/a.git"),
    ];
    for (url, shown) in cases {
        assert_eq!(public(&Url::parse(url).unwrap()), shown);
    }
}

#[test]
fn an_origin_is_scheme_host_and_port() {
    let same = |a: &str, b: &str| same_origin(&Url::parse(a).unwrap(), &Url::parse(b).unwrap());
    assert!(same("https://a/x", "https://a:443/y"));
    assert!(!same("https://a/", "http://a/"));
    assert!(!same("https://a/", "https://b/"));
    assert!(!same("https://a/", "https://a:444/"));
    assert!(!same("https://a/", "https://a.evil/"));
}
