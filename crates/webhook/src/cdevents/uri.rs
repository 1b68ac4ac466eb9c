//! References as Go's net/url takes them, and package URLs.

/// Refuses what is no URI reference.
pub(super) fn check(text: &str) -> Result<(), String> {
    let invalid = || Err("a source is no URI reference".to_owned());
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return invalid();
    }
    let text = text.split('#').next().unwrap_or_default();
    let (scheme, rest) = scheme(text);
    if scheme.is_none() && is_colon_in_first_segment(rest) {
        return invalid();
    }
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find(['/', '?']).unwrap_or(rest.len());
            if !is_host(&rest[..end]) {
                return invalid();
            }
            &rest[end..]
        }
        None => rest,
    };
    if is_escaped_well(path) { Ok(()) } else { invalid() }
}

/// Refuses what is no package URL, `pkg:type/namespace/name@version?qualifiers#subpath`.
pub(super) fn check_package(text: &str) -> Result<(), String> {
    let body = text.split(['#', '?']).next().unwrap_or_default();
    let named = body
        .strip_prefix("pkg:")
        .and_then(|rest| rest.trim_start_matches('/').split_once('/'));
    let is_named = named.is_some_and(|(type_, name)| {
        !type_.is_empty() && !name.split('@').next().unwrap_or_default().is_empty()
    });
    if is_named && is_escaped_well(text) {
        Ok(())
    } else {
        Err("its artifactId is no package URL".to_owned())
    }
}

fn scheme(text: &str) -> (Option<&str>, &str) {
    match text.split_once(':') {
        Some((scheme, rest))
            if scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) =>
        {
            (Some(scheme), rest)
        }
        _ => (None, text),
    }
}

/// It would be taken for a scheme.
fn is_colon_in_first_segment(text: &str) -> bool {
    text.split(['/', '?'])
        .next()
        .is_some_and(|segment| segment.contains(':'))
}

fn is_host(authority: &str) -> bool {
    let host = authority.rsplit('@').next().unwrap_or_default();
    let (name, port) = match host.strip_prefix('[') {
        Some(address) => match address.split_once(']') {
            Some((address, rest)) => (address, rest),
            None => return false,
        },
        None => host.find(':').map_or((host, ""), |at| host.split_at(at)),
    };
    let is_port = port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    is_port && !name.contains([' ', '\\', '^', '`', '{', '|', '}']) && is_escaped_well(name)
}

fn is_escaped_well(text: &str) -> bool {
    text.split('%').skip(1).all(|after| {
        let digits = after.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}
