//! The list of files in a kustomization.yaml.

use manifest::yaml::read_documents;
use serde_json::{Value, json};

/// Names of the file, in the order in which kustomize looks for them.
pub const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Adds a file to the resources, by its path relative to the folder. None if it is there already. Nothing else of the text changes,
/// comments and order included.
///
/// # Errors
/// When the file cannot be read, or its resources are written in a way that is not understood.
pub fn add(file: &str, text: &str, resource: &str) -> Result<Option<String>, String> {
    let before = read(file, text)?;
    let list = before.get("resources");
    let known = list.and_then(Value::as_array);
    let is_it = |known: &Value| {
        known
            .as_str()
            .is_some_and(|known| known.trim_start_matches("./") == resource)
    };
    if known.is_some_and(|known| known.iter().any(is_it)) {
        return Ok(None);
    }
    let mut wanted = before.clone();
    match known {
        Some(known) => wanted["resources"] = known.iter().cloned().chain([json!(resource)]).collect(),
        None if list.is_none_or(Value::is_null) => wanted["resources"] = json!([resource]),
        None => return Err(format!("{file}: resources is no list")),
    }
    // What a plain scalar would be read as another value is quoted.
    let item = match resource
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
    {
        true => resource.to_owned(),
        false => json!(resource).to_string(),
    };
    let candidates = [
        in_block(text, &item),
        in_brackets(text, &item),
        at_the_end(text, &item),
    ];
    let fits = |text: &String| read(file, text).is_ok_and(|after| after == wanted);
    let found = candidates.into_iter().flatten().find(fits);
    let problem = || {
        format!(
            "{file}: the resources are written in a way that is not understood: add {resource} to them by hand"
        )
    };
    found.map(Some).ok_or_else(problem)
}

fn read(file: &str, text: &str) -> Result<Value, String> {
    let read = read_documents(text, file).map_err(|error| error.to_string())?;
    let mut values = read
        .into_iter()
        .map(|one| one.value)
        .filter(|value| !value.is_null());
    match (values.next(), values.next()) {
        (Some(value @ Value::Object(_)), None) => Ok(value),
        (None, None) => Ok(json!({})),
        _ => Err(format!("{file}: it must be one mapping")),
    }
}

/// Behind the last item of a list that has a line for each.
fn in_block(text: &str, item: &str) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let key = lines.iter().position(|line| is_key(line))?;
    let is_item = |line: &&str| line.trim_start_matches(' ').starts_with("- ");
    let is_rest = |line: &&str| {
        line.starts_with(' ') || is_item(line) || line.trim().is_empty() || line.starts_with('#')
    };
    let rest = lines[key + 1..].iter().take_while(|line| is_rest(line)).count();
    let last = lines[key + 1..key + 1 + rest].iter().rposition(is_item)? + key + 1;
    let indent = lines[last].len() - lines[last].trim_start_matches(' ').len();
    Some(inserted(&lines, last, &format!("{}- {item}", " ".repeat(indent))))
}

/// Before the bracket of a list in one line.
fn in_brackets(text: &str, item: &str) -> Option<String> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("resources:") {
            let close = line.rfind(']')?;
            let is_empty = line[..close].trim_end().ends_with('[');
            let separator = if is_empty { "" } else { ", " };
            let place = at + line[..close].trim_end().len();
            return Some(format!("{}{separator}{item}{}", &text[..place], &text[place..]));
        }
        at += line.len();
    }
    None
}

/// As a new list.
fn at_the_end(text: &str, item: &str) -> Option<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    if let Some(key) = lines.iter().position(|line| is_key(line)) {
        return Some(inserted(&lines, key, &format!("- {item}")));
    }
    let border = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    Some(format!("{text}{border}resources:\n- {item}\n"))
}

/// Whether a line is the key of a list that follows it.
fn is_key(line: &str) -> bool {
    let rest = line.strip_prefix("resources:").map(str::trim);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
}

/// The text with a line behind another one, with the end that lines have there.
fn inserted(lines: &[&str], behind: usize, line: &str) -> String {
    let end = if lines[behind].ends_with("\r\n") {
        "\r\n"
    } else {
        "\n"
    };
    let border = if lines[behind].ends_with('\n') { "" } else { end };
    let (before, after) = lines.split_at(behind + 1);
    format!("{}{border}{line}{end}{}", before.concat(), after.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(text: &str) -> String {
        add("kustomization.yaml", text, "web.yaml").unwrap().unwrap()
    }

    #[test]
    fn a_file_is_added_and_nothing_else_changes() {
        for (before, after) in [
            (
                "resources:\n- a.yaml # the first\n\n# images\nimages: []\n",
                "resources:\n- a.yaml # the first\n- web.yaml\n\n# images\nimages: []\n",
            ),
            (
                "resources:\n  - a.yaml\n  # - old.yaml\nnamePrefix: x\n",
                "resources:\n  - a.yaml\n  - web.yaml\n  # - old.yaml\nnamePrefix: x\n",
            ),
            ("namespace: shop\n", "namespace: shop\nresources:\n- web.yaml\n"),
            ("namespace: shop", "namespace: shop\nresources:\n- web.yaml\n"),
            ("", "resources:\n- web.yaml\n"),
            ("resources: []\n", "resources: [web.yaml]\n"),
            (
                "resources: [a.yaml, b.yaml] # two\nx: 1\n",
                "resources: [a.yaml, b.yaml, web.yaml] # two\nx: 1\n",
            ),
            (
                "resources:\nnamespace: shop\n",
                "resources:\n- web.yaml\nnamespace: shop\n",
            ),
            (
                "resources:\r\n- a.yaml\r\n",
                "resources:\r\n- a.yaml\r\n- web.yaml\r\n",
            ),
            ("resources:\n- a.yaml", "resources:\n- a.yaml\n- web.yaml\n"),
        ] {
            assert_eq!(added(before), after, "{before:?}");
        }
    }

    #[test]
    fn what_is_there_is_left_alone() {
        let known = "resources:\n- ./web.yaml\n";
        assert_eq!(add("kustomization.yaml", known, "web.yaml"), Ok(None));
    }

    #[test]
    fn what_is_not_understood_is_not_changed() {
        for text in [
            "resources: &a\n- a.yaml\nx: *a\n",
            "resources: text\n",
            "- a\n",
            "{resources: [a.yaml]}\n",
        ] {
            assert!(add("kustomization.yaml", text, "web.yaml").is_err(), "{text:?}");
        }
    }

    #[test]
    fn names_are_quoted_where_they_must_be() {
        let added = add("kustomization.yaml", "resources: []\n", "a, b: #c.yaml").unwrap();
        assert_eq!(added.unwrap(), "resources: [\"a, b: #c.yaml\"]\n");
    }
}
