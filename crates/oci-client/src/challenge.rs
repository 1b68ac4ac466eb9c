//! `WWW-Authenticate`: what a registry asks for. Pure.

/// The challenge's scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Challenge {
    /// User name and password.
    Basic,
    /// A token of a service.
    Bearer {
        /// URL of the service.
        realm: String,
        /// Name of the registry at the service.
        service: Option<String>,
    },
}

/// The first challenge that can be met; a token is preferred to a password, as it reaches less far.
pub fn choose<'a>(headers: impl Iterator<Item = &'a str>) -> Option<Challenge> {
    let challenges: Vec<_> = headers.filter_map(parse).collect();
    let bearer = challenges
        .iter()
        .position(|challenge| *challenge != Challenge::Basic);
    challenges.into_iter().nth(bearer.unwrap_or(0))
}

fn parse(header: &str) -> Option<Challenge> {
    let (scheme, parameters) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
    if scheme.eq_ignore_ascii_case("basic") {
        return Some(Challenge::Basic);
    }
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (mut realm, mut service) = (None, None);
    let mut rest = parameters;
    while let Some((key, value, after)) = parameter(rest) {
        match key.to_ascii_lowercase().as_str() {
            "realm" => realm = Some(value),
            "service" => service = Some(value),
            _ => {}
        }
        rest = after;
    }
    Some(Challenge::Bearer {
        realm: realm?,
        service,
    })
}

/// One `key="value"` or `key=value` from the front, and what follows.
fn parameter(text: &str) -> Option<(&str, String, &str)> {
    let text = text.trim_start_matches([' ', ',', '\t']);
    let (key, rest) = text.split_once('=')?;
    let Some(quoted) = rest.strip_prefix('"') else {
        let end = rest.find([',', ' ']).unwrap_or(rest.len());
        return Some((key.trim(), rest[..end].to_owned(), &rest[end..]));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((position, character)) = characters.next() {
        match character {
            '"' => return Some((key.trim(), value, &quoted[position + 1..])),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            _ => value.push(character),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read_as_registries_write_them() {
        let bearer = |realm: &str, service: Option<&str>| {
            Some(Challenge::Bearer {
                realm: realm.to_owned(),
                service: service.map(str::to_owned),
            })
        };
        let cases: [(&[&str], Option<Challenge>); 8] = [
            (
                &[
                    r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a:pull""#,
                ],
                bearer("https://auth.docker.io/token", Some("registry.docker.io")),
            ),
            (
                &[r#"bearer scope="a,b", realm="https://x/""#],
                bearer("https://x/", None),
            ),
            (
                &[r"Bearer realm=https://x/y,service=z"],
                bearer("https://x/y", Some("z")),
            ),
            (&[r#"Basic realm="Registry""#], Some(Challenge::Basic)),
            (&["Basic"], Some(Challenge::Basic)),
            (
                &["Basic", r#"Bearer realm="https://x/""#],
                bearer("https://x/", None),
            ),
            (&[r#"Bearer realm="unfinished"#], None),
            (&["Negotiate"], None),
        ];
        for (headers, challenge) in cases {
            assert_eq!(choose(headers.iter().copied()), challenge, "{headers:?}");
        }
    }
}
