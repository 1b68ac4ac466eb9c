//! The rules in `.sops.yaml`: for whom the files of a folder are encrypted.

use go_regexp::Regexp;
use manifest::yaml::read_documents;
use serde_json::Value;

use crate::age::Recipient;

/// The name of the file with the rules.
pub const FILE_NAME: &str = ".sops.yaml";

/// The rules of a file.
#[derive(Debug)]
pub struct Rules(Vec<(Option<Regexp>, Keys)>);

/// For whom a rule says that a file is encrypted.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// Recipients of age.
    pub recipients: Vec<Recipient>,
    /// Names of the other keys: fingerprints of OpenPGP, ARNs, addresses.
    pub others: Vec<String>,
    /// True if the data key is divided among groups of keys.
    pub has_groups: bool,
}

/// Fields of a rule with keys of other kinds.
const OTHERS: [&str; 6] = [
    "kms",
    "gcp_kms",
    "azure_keyvault",
    "hc_vault_transit_uri",
    "pgp",
    "hckms",
];

impl Rules {
    /// Reads the text of a `.sops.yaml`.
    ///
    /// # Errors
    /// When it is no YAML, or a rule is none that SOPS would take.
    pub fn parse(text: &str) -> Result<Self, String> {
        let documents = read_documents(text, FILE_NAME).map_err(|error| error.to_string())?;
        let document = documents.into_iter().next().map(|document| document.value);
        let rules = document.as_ref().map(|value| &value["creation_rules"]);
        let rules = match rules {
            None | Some(Value::Null) => return Ok(Self(Vec::new())),
            Some(rules) => rules.as_array().ok_or("creation_rules is no list")?,
        };
        let rules = rules.iter().enumerate().map(|(number, rule)| {
            let failed = |problem: String| format!("creation_rules[{number}]: {problem}");
            let pattern = match rule["path_regex"].as_str().unwrap_or_default() {
                "" => None,
                pattern => {
                    let compiled = Regexp::compile(pattern.as_bytes());
                    Some(compiled.map_err(|error| failed(format!("path_regex: {error}")))?)
                }
            };
            Ok((pattern, keys(rule).map_err(failed)?))
        });
        rules.collect::<Result<_, String>>().map(Self)
    }

    /// The keys of the first rule for a file. The path is relative to the folder with the rules.
    #[must_use]
    pub fn keys_for(&self, path: &str) -> Option<&Keys> {
        let mut rules = self.0.iter();
        let found = rules.find(|(pattern, _)| {
            pattern
                .as_ref()
                .is_none_or(|pattern| pattern.is_match(path.as_bytes()))
        });
        found.map(|(_, keys)| keys)
    }
}

fn keys(rule: &Value) -> Result<Keys, String> {
    let mut found = Keys::default();
    let groups = rule["key_groups"].as_array().map_or(&[][..], Vec::as_slice);
    // One group in a list is the same as none.
    let group = match groups {
        [] => rule,
        [one] => one,
        _ => {
            found.has_groups = true;
            return Ok(found);
        }
    };
    for text in texts(&group["age"]).ok_or("age is neither a text nor a list of texts")? {
        let recipient = Recipient::parse(&text).map_err(|error| error.to_string())?;
        if found.recipients.iter().all(|known| known.to_string() != text) {
            found.recipients.push(recipient);
        }
    }
    for field in OTHERS {
        // In groups they are objects, whose first text names the key.
        let named = texts(&group[field]).unwrap_or_else(|| vec![field.to_owned()]);
        found.others.extend(named);
    }
    Ok(found)
}

/// A list of texts, or a text with commas.
fn texts(value: &Value) -> Option<Vec<String>> {
    let words = |text: &str| {
        let words = text.split(',').map(str::trim);
        let words = words.filter(|word| !word.is_empty()).map(str::to_owned);
        words.collect::<Vec<_>>()
    };
    match value {
        Value::Null => Some(Vec::new()),
        Value::String(text) => Some(words(text)),
        Value::Array(list) => {
            let texts = list.iter().map(|one| one.as_str().map(words));
            texts.collect::<Option<Vec<_>>>().map(|lists| lists.concat())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "age14q8xuq8kmfg55mcngay6cfruj8ajapq6za990d9pmmce665e25sqywpguv";
    const TWO: &str = "age1aj0sdldlrrnsxtk6aq4hspnhr6kt20grjfs2n3gckq4muasc25usqmdrj7";

    #[test]
    fn the_first_rule_for_a_path_counts() {
        let text = format!(
            "creation_rules:\n- path_regex: ^prod/.*\\.yaml$\n  age: {ONE},{TWO},{ONE}\n  pgp: ABCD, EF01\n- path_regex: ^dev/\n  \
             age:\n  - {TWO}\n- key_groups:\n  - age: [{ONE}]\n  - age: [{TWO}]\n"
        );
        let rules = Rules::parse(&text).unwrap();
        let named = |path: &str| {
            let keys = rules.keys_for(path).unwrap();
            let recipients = keys.recipients.iter().map(ToString::to_string);
            (
                recipients.collect::<Vec<_>>(),
                keys.others.clone(),
                keys.has_groups,
            )
        };
        let others = vec!["ABCD".to_owned(), "EF01".to_owned()];
        assert_eq!(
            named("prod/a.yaml"),
            (vec![ONE.to_owned(), TWO.to_owned()], others, false)
        );
        assert_eq!(named("dev/prod/a.yaml"), (vec![TWO.to_owned()], vec![], false));
        assert_eq!(named("prod/a.json"), (vec![], vec![], true));
        let rules = Rules::parse(&format!("creation_rules:\n- path_regex: x\n  age: {ONE}\n")).unwrap();
        assert!(rules.keys_for("y").is_none());
        assert!(Rules::parse("").unwrap().keys_for("y").is_none());
    }

    #[test]
    fn wrong_rules_are_named() {
        for (text, problem) in [
            ("creation_rules: x", "creation_rules is no list"),
            (
                "creation_rules:\n- age: invalid",
                "creation_rules[0]: \"invalid\" is no recipient of age",
            ),
            (
                "creation_rules:\n- age: {}",
                "creation_rules[0]: age is neither a text",
            ),
            (
                "creation_rules:\n- {}\n- path_regex: '('",
                "creation_rules[1]: path_regex: ",
            ),
            ("a: [", ".sops.yaml"),
        ] {
            let error = Rules::parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
