//! Comma-separated values as Go's encoding/csv reads one line of them.

/// Reads the fields of the first line. Nothing has no fields.
pub(super) fn read(text: &str) -> Result<Vec<String>, String> {
    let mut fields = Vec::new();
    if text.is_empty() {
        return Ok(fields);
    }
    let line = text.trim_start_matches(['\r', '\n']);
    let line = line.split('\n').next().unwrap_or_default();
    let mut rest = line.strip_suffix('\r').unwrap_or(line);
    if rest.is_empty() {
        return Err("EOF".to_owned());
    }
    loop {
        let column = line.len() - rest.len() + 1;
        let (field, behind) = match rest.strip_prefix('"') {
            Some(quoted) => self::quoted(quoted, line)?,
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                if let Some(quote) = rest[..end].find('"') {
                    let column = column + quote;
                    return Err(format!(
                        "parse error on line 1, column {column}: bare \" in non-quoted-field"
                    ));
                }
                (rest[..end].to_owned(), &rest[end..])
            }
        };
        fields.push(field);
        match behind.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Ok(fields),
        }
    }
}

/// Reads what follows an opening quote: the field, and what stands behind it.
fn quoted<'a>(mut rest: &'a str, line: &str) -> Result<(String, &'a str), String> {
    let mut field = String::new();
    let extraneous = |rest: &str| {
        let column = line.len() - rest.len();
        format!("parse error on line 1, column {column}: extraneous or missing \" in quoted-field")
    };
    loop {
        let Some(quote) = rest.find('"') else {
            return Err(extraneous(""));
        };
        field.push_str(&rest[..quote]);
        let behind = &rest[quote + 1..];
        if let Some(more) = behind.strip_prefix('"') {
            field.push('"');
            rest = more;
        } else if behind.is_empty() || behind.starts_with(',') {
            return Ok((field, behind));
        } else {
            return Err(extraneous(behind));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_separate_unless_they_are_quoted() {
        let check = |text: &str, fields: &[&str]| {
            assert_eq!(read(text).expect("it is right"), fields, "{text}");
        };
        check("", &[]);
        check("a", &["a"]);
        check("a,b,", &["a", "b", ""]);
        check("\"a,b\",c", &["a,b", "c"]);
        check("\"a\"\"b\"", &["a\"b"]);
        assert!(read("a\"b").is_err());
        assert!(read("\"a").is_err());
    }
}
