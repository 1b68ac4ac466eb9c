//! Reading a file that a flag names.

use std::io::Read;

use json_schema::url::Url;

/// Reads a file from the disk, or standard input for `-`.
///
/// Helm takes the name for a URL first: one that is none is refused, and one of a scheme that Helm fetches is not a
/// file's name. Nothing is fetched here.
pub fn read_local(name: &str) -> Result<Vec<u8>, String> {
    if name.trim() == "-" {
        let mut content = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut content);
        return match read {
            Ok(_) => Ok(content),
            Err(error) => Err(format!("failed to read standard input: {error}")),
        };
    }
    let url = Url::parse(name.split('#').next().unwrap_or_default())?;
    if matches!(url.scheme.as_str(), "http" | "https" | "oci") {
        return Err(format!("failed to fetch {name}: values are read from files only"));
    }
    let failed =
        |operation: &str, error: &std::io::Error| crate::error::go_io(operation, name, error).to_string();
    let mut file = std::fs::File::open(name).map_err(|error| failed("open", &error))?;
    let mut content = Vec::new();
    file.read_to_end(&mut content)
        .map_err(|error| failed("read", &error))?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_told_in_gos_words() {
        let cases = [
            (
                "/nowhere/x.yaml",
                "open /nowhere/x.yaml: no such file or directory",
            ),
            ("", "open : no such file or directory"),
            ("/", "read /: is a directory"),
            ("a%zz", "parse \"a%zz\": invalid URL escape \"%zz\""),
            (":x", "parse \":x\": missing protocol scheme"),
            (
                "https://a/b",
                "failed to fetch https://a/b: values are read from files only",
            ),
        ];
        for (name, expected) in cases {
            assert_eq!(read_local(name), Err(expected.to_owned()));
        }
    }
}
