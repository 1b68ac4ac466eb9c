//! Names that releases may have.

use go_template::{Templates, Value};

use crate::{Error, ErrorKind};
use helm_chart::Helm;

/// Kubernetes' names have 63 characters at most; charts append to that of the release.
const MAX_LENGTH: usize = 53;

const PATTERN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";

/// Refuses what is no name of a release.
pub(super) fn check(name: &str, helm: Helm) -> Result<(), Error> {
    let problem = if name.is_empty() {
        "no name provided".to_owned()
    } else if name.len() > MAX_LENGTH || !name.split('.').all(is_label) {
        format!(
            "invalid release name, must match regex {PATTERN} and the length must not be longer than {MAX_LENGTH}"
        )
    } else {
        return Ok(());
    };
    let text = format!("release name {}: {problem}", go_text::quote::quoted(name));
    Err(Error::new(
        ErrorKind::Release,
        match helm {
            Helm::V3 => text,
            Helm::V4 => format!("release name check failed: {text}"),
        },
    ))
}

fn is_label(label: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !label.is_empty() && !label.starts_with('-') && !label.ends_with('-') && label.bytes().all(is_inner)
}

/// Makes a release's name of a template, as `--name-template` does: with sprig's functions and without data.
pub fn name_from_template(template: &str) -> Result<String, String> {
    const NAME: &str = "name-template";
    let functions = sprig_functions::all();
    let mut templates = Templates::new(NAME);
    templates
        .parse(NAME, template, &functions)
        .and_then(|()| templates.execute(NAME, &Value::Nil, &functions, &go_template::Options::default()))
        .map(|name| String::from_utf8_lossy(&name).into_owned())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_labels_joined_by_dots() {
        for name in ["a", "1num", "a-b.c", &"x".repeat(53)] {
            assert!(check(name, Helm::V4).is_ok(), "{name}");
        }
        for name in ["", "under_score", "-a", "a-", "a..b", "A", &"x".repeat(54)] {
            assert!(check(name, Helm::V4).is_err(), "{name}");
        }
    }

    #[test]
    fn helm_4_says_what_it_was_doing() {
        let error = |helm| check("", helm).expect_err("there is no name").to_string();
        assert_eq!(error(Helm::V3), "release name \"\": no name provided");
        assert_eq!(
            error(Helm::V4),
            "release name check failed: release name \"\": no name provided"
        );
    }
}
