//! Patterns of `.Files.Glob`, matched as github.com/gobwas/glob 0.2.3 matches them with `/` as separator.
//!
//! That library turns a pattern into a tree of matchers and simplifies it, and neither step keeps the meaning exactly:
//! `ab**b` matches `ab`, and some alternatives match less than each of them alone. Charts are written against what it
//! does, so the same steps are taken here.

mod compile;
mod matcher;
mod minimize;
mod parse;

use matcher::Matcher;

/// A compiled pattern.
#[derive(Debug)]
pub struct Glob {
    /// None where the pattern could not be compiled: Helm then takes all files.
    matcher: Option<Matcher>,
}

impl Glob {
    /// Compiles a pattern; one that is wrong matches everything.
    pub fn new(pattern: &[u8]) -> Self {
        let tree = parse::parse(pattern);
        Self {
            matcher: tree.map(|tree| compile::compile(&tree)),
        }
    }

    /// Returns whether the name of a file fits.
    pub fn matches(&self, name: &[u8]) -> bool {
        match &self.matcher {
            None => true,
            Some(matcher) => matcher.matches(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from the Go library.
    #[test]
    fn names_fit_as_in_go() {
        let cases = [
            ("*", "a", true),
            ("*", "a/b", false),
            ("**", "a/b", true),
            ("a/*.y?ml", "a/b.yaml", true),
            ("a/*.y?ml", "a/b.y/ml", false),
            ("config/**.toml", "config/a/b.toml", true),
            ("{a,b}/*", "b/c", true),
            ("{a,b}/*", "c/c", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[ab]x", "bx", true),
            (r"\*", "*", true),
            (r"\*", "a", false),
            ("ab**b", "ab", true),
            ("[", "anything", true),
            ("[]a]", "anything", true),
            ("{a,b", "b", true),
            ("a,b}", "a,b}", true),
            ("", "", true),
            ("", "a", false),
            ("é?", "éü", false),
            ("é*", "éü", true),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(
                Glob::new(pattern.as_bytes()).matches(name.as_bytes()),
                expected,
                "{pattern} {name}"
            );
        }
    }

    #[test]
    fn hostile_patterns_end() {
        let name = "a".repeat(200);
        for pattern in [
            "*a".repeat(100) + "b",
            "{".repeat(100_000),
            "?*".repeat(10_000),
            "{a,".repeat(200),
        ] {
            Glob::new(pattern.as_bytes()).matches(name.as_bytes());
        }
    }
}
