//! Validates keys and values of labels as Kubernetes does, with its messages.

const LABEL_LENGTH: usize = 63;
const SUBDOMAIN_LENGTH: usize = 253;

const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";

/// Refuses what is no key of a label.
pub(super) fn key(key: &str) -> Result<(), String> {
    let problems = problems_of_key(key);
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!("invalid label key {key:?}: {}", problems.join("; ")))
}

/// Refuses what is no value of a label.
pub(super) fn value(key: &str, value: &str) -> Result<(), String> {
    let mut problems = Vec::new();
    if value.len() > LABEL_LENGTH {
        problems.push(too_long(LABEL_LENGTH));
    }
    if !value.is_empty() && !is_qualified(value) {
        problems.push(format!(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
             for validation is '({QUALIFIED})?')"
        ));
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!(
        "invalid label value: {value:?}: at key: {key:?}: {}",
        problems.join("; ")
    ))
}

fn problems_of_key(key: &str) -> Vec<String> {
    let malformed = |what: &str| {
        format!(
            "{what} must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
             alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
             '{QUALIFIED}')"
        )
    };
    let mut problems = Vec::new();
    let parts: Vec<&str> = key.split('/').collect();
    let name = match parts[..] {
        [name] => name,
        [prefix, name] => {
            problems.extend(problems_of_prefix(prefix));
            name
        }
        _ => {
            let what = malformed("a qualified name");
            return vec![format!(
                "{what} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LENGTH {
        problems.push(format!("name part {}", too_long(LABEL_LENGTH)));
    }
    if !is_qualified(name) {
        problems.push(malformed("name part"));
    }
    problems
}

fn problems_of_prefix(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty".to_owned()];
    }
    let mut problems = Vec::new();
    if prefix.len() > SUBDOMAIN_LENGTH {
        problems.push(format!("prefix part {}", too_long(SUBDOMAIN_LENGTH)));
    }
    if !prefix.split('.').all(is_domain_label) {
        problems.push(format!(
            "prefix part a DNS-1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
             must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '{SUBDOMAIN}')"
        ));
    }
    problems
}

fn too_long(length: usize) -> String {
    format!("must be no more than {length} characters")
}

fn is_qualified(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let bytes = text.as_bytes();
    let ends = bytes.first().zip(bytes.last());
    ends.is_some_and(|(first, last)| first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric())
        && text.bytes().all(inner)
}

fn is_domain_label(text: &str) -> bool {
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    let ends = bytes.first().zip(bytes.last());
    ends.is_some_and(|(first, last)| alphanumeric(*first) && alphanumeric(*last))
        && text.bytes().all(|b| alphanumeric(b) || b == b'-')
}
