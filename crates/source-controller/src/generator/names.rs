//! Validates names, labels and their values as Kubernetes does, with messages.

const LABEL: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start \
                     and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
                     validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const KEY: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                   alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                   '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
                         start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
                         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Why this cannot be the value of a label.
pub(super) fn label_value_problem(value: &str) -> Option<&'static str> {
    if value.len() > 63 {
        return Some("must be no more than 63 bytes");
    }
    (!value.is_empty() && !is_qualified(value)).then_some(LABEL)
}

/// Why this cannot be a label's name without a prefix.
pub(super) fn label_key_problem(key: &str) -> Option<&'static str> {
    if key.len() > 63 {
        return Some("name part must be no more than 63 bytes");
    }
    (!is_qualified(key)).then_some(KEY)
}

/// Why this cannot be the name of an object.
pub(super) fn object_name_problem(name: &str) -> Option<&'static str> {
    if name.len() > 253 {
        return Some("must be no more than 253 bytes");
    }
    let is_part = |part: &str| {
        let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let (first, last) = (part.bytes().next(), part.bytes().last());
        first.is_some_and(inner)
            && last.is_some_and(inner)
            && part.bytes().all(|byte| inner(byte) || byte == b'-')
    };
    (!name.split('.').all(is_part)).then_some(SUBDOMAIN)
}

fn is_qualified(text: &str) -> bool {
    let (first, last) = (text.bytes().next(), text.bytes().last());
    first.is_some_and(|byte| byte.is_ascii_alphanumeric())
        && last.is_some_and(|byte| byte.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_kubernetes() {
        for name in ["a", "a-b", "a.b-c.0"] {
            assert_eq!(object_name_problem(name), None, "{name}");
        }
        for name in ["", "-a", "a-", "a..b", "A", "a_b", ".a", "a/b"] {
            assert!(object_name_problem(name).is_some(), "{name}");
        }
        assert_eq!(label_value_problem(""), None);
        assert_eq!(label_value_problem("a_B.c"), None);
        for value in [".hidden", "a b", "a-", "ä"] {
            assert!(label_value_problem(value).is_some(), "{value}");
        }
        assert!(label_value_problem(&"a".repeat(64)).is_some());
        assert!(label_key_problem("_a").is_some() && label_key_problem("app").is_none());
    }
}
