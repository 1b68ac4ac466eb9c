//! The plain names of an entry: `host,*.example.com,![not.example.com]:2222`.

/// Names and patterns; a negated one that fits rules the entry out.
#[derive(Debug, Clone)]
pub(super) struct Patterns(Vec<Pattern>);

#[derive(Debug, Clone)]
struct Pattern {
    negated: bool,
    host: String,
    port: u16,
}

impl Patterns {
    pub(super) fn read(text: &str) -> Result<Self, &'static str> {
        let patterns = text.split(',').filter(|pattern| !pattern.is_empty());
        Ok(Self(patterns.map(Pattern::read).collect::<Result<_, _>>()?))
    }

    /// The host in lower case.
    pub(super) fn contain(&self, host: &str, port: u16) -> bool {
        let fits = |pattern: &&Pattern| pattern.port == port && matches(&pattern.host, host);
        let mut fitting = self.0.iter().filter(fits).peekable();
        fitting.peek().is_some() && fitting.all(|pattern| !pattern.negated)
    }
}

impl Pattern {
    fn read(text: &str) -> Result<Self, &'static str> {
        let (negated, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        if text.is_empty() {
            return Err("it negates no name");
        }
        let (host, port) = host_and_port(text)?;
        Ok(Self {
            negated,
            host: host.to_ascii_lowercase(),
            port,
        })
    }
}

/// `host`, `host:port`, `[host]:port`; an address of IPv6 has a port only in brackets.
fn host_and_port(text: &str) -> Result<(&str, u16), &'static str> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or("a bracket is not closed")?;
        return match rest.strip_prefix(':') {
            Some(port) => Ok((host, port.parse().map_err(|_| "a port is not a number")?)),
            None if rest.is_empty() => Ok((host, super::port::DEFAULT_PORT)),
            None => Err("there is something after a bracket"),
        };
    }
    match text.split_once(':') {
        Some((host, port)) if !port.contains(':') => {
            Ok((host, port.parse().map_err(|_| "a port is not a number")?))
        }
        _ => Ok((text, super::port::DEFAULT_PORT)),
    }
}

/// `*` fits any number of characters, dots too; `?` fits one. Steps back to the last `*` only, so that no pattern takes
/// longer than its length times that of the text.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while let Some(character) = text.get(t) {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(wanted) if *wanted == b'?' || wanted == character => {
                p += 1;
                t += 1;
            }
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                p = at + 1;
                t = taken + 1;
            }
        }
    }
    pattern[p..].iter().all(|left| *left == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_fit_as_in_openssh() {
        let fitting = [
            ("*", ""),
            ("*.example.com", "a.b.example.com"),
            ("h?st", "host"),
            ("a*b*c", "aXbYbZc"),
            ("**", "x"),
        ];
        for (pattern, text) in fitting {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("*.example.com", "example.com"),
            ("h?st", "hst"),
            ("a*b", "abc"),
            ("", "x"),
            ("?", ""),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn a_hostile_pattern_takes_no_time() {
        let pattern = "*a".repeat(5000);
        assert!(!matches(&pattern, &"a".repeat(255)));
        assert!(!matches(&format!("{}b", "*a".repeat(100)), &"a".repeat(10_000)));
    }

    #[test]
    fn ports_are_read_where_they_can_stand() {
        let cases = [
            ("host", Ok(("host", 22))),
            ("host:2222", Ok(("host", 2222))),
            ("[host]:2222", Ok(("host", 2222))),
            ("[::1]:2222", Ok(("::1", 2222))),
            ("[::1]", Ok(("::1", 22))),
            ("::1", Ok(("::1", 22))),
            ("[host", Err("a bracket is not closed")),
            ("[host]x", Err("there is something after a bracket")),
            ("[host]:x", Err("a port is not a number")),
            ("host:70000", Err("a port is not a number")),
        ];
        for (text, expected) in cases {
            assert_eq!(host_and_port(text), expected, "{text}");
        }
    }
}
