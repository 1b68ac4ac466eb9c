//! Rows as CSV.

use serde_json::Value;

/// Rows as CSV, with these fields of them as columns. `labels/KEY` is one entry of a field that is an object.
pub fn csv<S: AsRef<str>>(fields: &[S], rows: &[Value]) -> String {
    let line = |cells: Vec<String>| cells.join(",") + "\r\n";
    let mut text = line(fields.iter().map(|name| quoted(name.as_ref())).collect());
    for row in rows {
        let cells = fields.iter().map(|name| match field(row, name.as_ref()) {
            Value::Null => String::new(),
            Value::String(text) => quoted(text),
            other => quoted(&other.to_string()),
        });
        text.push_str(&line(cells.collect()));
    }
    text
}

/// A field of a row; what follows a slash names an entry of it.
pub fn field<'a>(row: &'a Value, name: &str) -> &'a Value {
    match name.split_once('/') {
        Some((outer, inner)) => &row[outer][inner],
        None => &row[name],
    }
}

/// A field as RFC 4180 has it. What a spreadsheet would take for a formula is made text: messages are anyone's.
fn quoted(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t']) {
        "'"
    } else {
        ""
    };
    if guard.is_empty() && !text.contains(['"', ',', '\n', '\r']) {
        return text.to_owned();
    }
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_of_a_table_stays_a_field() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"", "\"say \"\"hi\"\"\""),
            ("=HYPERLINK(1)", "\"'=HYPERLINK(1)\""),
            ("", ""),
        ] {
            assert_eq!(quoted(text), expected);
        }
        let row = json!({"name": "a", "attempts": 3, "message": "x, y"});
        let text = csv(&["name", "since", "attempts", "message"], &[row]);
        assert_eq!(text, "name,since,attempts,message\r\na,,3,\"x, y\"\r\n");
        let row = json!({"labels": {"app.kubernetes.io/name": "web"}, "name": "a"});
        let text = csv(&["labels/app.kubernetes.io/name", "name/x", "b/c"], &[row]);
        assert_eq!(text, "labels/app.kubernetes.io/name,name/x,b/c\r\nweb,,\r\n");
    }
}
