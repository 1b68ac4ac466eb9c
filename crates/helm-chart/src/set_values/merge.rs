//! All values that a command line gives, in the order in which Helm puts them together.
//!
//! Files come first, whatever the order on the command line, then each kind of flag; a later one wins. Files are read
//! by the caller's function; [`super::read_local`] does it as Helm does without a network.

use go_text::json;
use serde_json::{Map, Value};

use super::error::Error;
use crate::chart::Helm;
use crate::values;

/// Values of the flags, each in the order given.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `-f`, `--values`: names of files.
    pub files: Vec<String>,
    /// `--set-json`.
    pub json: Vec<String>,
    /// `--set`.
    pub typed: Vec<String>,
    /// `--set-string`.
    pub text: Vec<String>,
    /// `--set-file`.
    pub file: Vec<String>,
    /// `--set-literal`.
    pub literal: Vec<String>,
}

/// Gives the content of a file, or what is wrong in Helm's words (`open NAME: no such file or directory`).
pub type ReadFile<'a> = dyn FnMut(&str) -> Result<Vec<u8>, String> + 'a;

/// Puts all values together.
pub fn merge(flags: &Flags, read_file: &mut ReadFile<'_>, helm: Helm) -> Result<Map<String, Value>, Error> {
    let mut merged = Map::new();
    for name in &flags.files {
        let content = read_file(name).map_err(Error)?;
        let more = values::read(&content, helm)
            .map_err(|problem| Error(format!("failed to parse {name}: {problem}")))?;
        values::merge(&mut merged, more);
    }
    for text in &flags.json {
        set_json(&mut merged, text, helm)?;
    }
    for text in &flags.typed {
        super::parse_into(&mut merged, text, helm).map_err(named("--set"))?;
    }
    for text in &flags.text {
        super::string(&mut merged, text, helm).map_err(named("--set-string"))?;
    }
    for text in &flags.file {
        let mut read = |name: &str| {
            let content = read_file(name)?;
            Ok(String::from_utf8_lossy(&content).into_owned())
        };
        super::file(&mut merged, text, helm, &mut read).map_err(named("--set-file"))?;
    }
    for text in &flags.literal {
        super::literal(&mut merged, text, helm).map_err(named("--set-literal"))?;
    }
    Ok(merged)
}

fn named(flag: &'static str) -> impl Fn(Error) -> Error {
    move |Error(problem)| Error(format!("failed parsing {flag} data: {problem}"))
}

/// Helm does not say what is wrong with JSON. Since Helm 4 a flag may hold a whole object.
fn set_json(values: &mut Map<String, Value>, text: &str, helm: Helm) -> Result<(), Error> {
    let trimmed = text.trim();
    if helm == Helm::V3 || !trimmed.starts_with('{') {
        return super::json(values, text, helm)
            .map_err(|_| Error(format!("failed parsing --set-json data {text}")));
    }
    match json::unmarshal(trimmed.as_bytes()).and_then(json::Json::into_value) {
        Ok(Value::Object(more)) => {
            crate::values::merge(values, more);
            Ok(())
        }
        _ => Err(Error(format!("failed parsing --set-json data JSON: {text}"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_file(name: &str) -> Result<Vec<u8>, String> {
        match name {
            "one" => Ok(br#"{"a":1,"m":{"x":1,"y":[1]}}"#.to_vec()),
            "two" => Ok(b"a: null\nm:\n  \"y\": []\n  z: 3\n".to_vec()),
            "bad" => Ok(b"[]".to_vec()),
            _ => Err(format!("open {name}: no such file or directory")),
        }
    }

    fn flags(pairs: &[(&str, &str)]) -> Flags {
        let mut flags = Flags::default();
        for (flag, text) in pairs {
            let place = match *flag {
                "-f" => &mut flags.files,
                "--set-json" => &mut flags.json,
                "--set" => &mut flags.typed,
                "--set-string" => &mut flags.text,
                "--set-file" => &mut flags.file,
                _ => &mut flags.literal,
            };
            place.push((*text).to_owned());
        }
        flags
    }

    fn merged(pairs: &[(&str, &str)], helm: Helm) -> Result<Value, String> {
        match merge(&flags(pairs), &mut read_file, helm) {
            Ok(values) => Ok(Value::Object(values)),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn later_files_win_and_maps_are_merged() {
        let values = merged(&[("-f", "one"), ("-f", "two")], Helm::V4);
        assert_eq!(values, Ok(json!({"a": null, "m": {"x": 1.0, "y": [], "z": 3.0}})));
    }

    #[test]
    fn kinds_of_flags_win_in_a_fixed_order() {
        let all = [
            ("--set-literal", "e=5"),
            ("--set-file", "d=one"),
            ("--set-file", "e=one"),
            ("--set-string", "c=3,d=3,e=3"),
            ("--set", "b=2,c=2,d=2,e=2"),
            ("--set-json", "a=1,b=1,c=1,d=1,e=1"),
            ("-f", "one"),
        ];
        let content = r#"{"a":1,"m":{"x":1,"y":[1]}}"#;
        let expected =
            json!({"a": 1.0, "b": 2, "c": "3", "d": content, "e": "5", "m": {"x": 1.0, "y": [1.0]}});
        assert_eq!(merged(&all, Helm::V4), Ok(expected));
    }

    #[test]
    fn helm_4_takes_a_whole_object_as_json() {
        let set = [("-f", "one"), ("--set-json", " {\"m\":{\"x\":2}}")];
        let expected = json!({"a": 1.0, "m": {"x": 2.0, "y": [1.0]}});
        assert_eq!(merged(&set, Helm::V4), Ok(expected));
        let message = "failed parsing --set-json data  {\"m\":{\"x\":2}}";
        assert_eq!(merged(&set, Helm::V3), Err(message.to_owned()));
    }

    #[test]
    fn errors_name_the_flag_or_the_file() {
        let cases = [
            (("-f", "none"), "open none: no such file or directory"),
            (
                ("-f", "bad"),
                "failed to parse bad: cannot unmarshal yaml document: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value of type map[string]interface {}",
            ),
            (
                ("--set", "a"),
                "failed parsing --set data: key \"a\" has no value",
            ),
            (
                ("--set-string", "a"),
                "failed parsing --set-string data: key \"a\" has no value",
            ),
            (
                ("--set-file", "a=none"),
                "failed parsing --set-file data: open none: no such file or directory",
            ),
            (
                ("--set-literal", "a"),
                "failed parsing --set-literal data: key \"a\" has no value",
            ),
            (("--set-json", "n={bad"), "failed parsing --set-json data n={bad"),
            (
                ("--set-json", "{bad"),
                "failed parsing --set-json data JSON: {bad",
            ),
        ];
        for (flag, expected) in cases {
            assert_eq!(merged(&[flag], Helm::V4), Err(expected.to_owned()));
        }
    }
}
