//! Functions of templates: sprig's that are the same each time, and a few of ResourceSets.

use go_template::json::{Style, encode};
use go_template::{Error, Function, Functions, List, Map, Type, Value};
use manifest::yaml;
use serde_json::Value as Plain;

/// Functions of sprig that differ from run to run, make keys, or cost much: objects would change without a reason.
const REMOVED: [&str; 26] = [
    "now",
    "date",
    "dateInZone",
    "date_in_zone",
    "dateModify",
    "date_modify",
    "mustDateModify",
    "must_date_modify",
    "ago",
    "htmlDate",
    "htmlDateInZone",
    "randAlpha",
    "randAlphaNum",
    "randAscii",
    "randBytes",
    "randInt",
    "randNumeric",
    "shuffle",
    "uuidv4",
    "genPrivateKey",
    "genCA",
    "genCAWithKey",
    "genSelfSignedCert",
    "genSelfSignedCertWithKey",
    "genSignedCert",
    "genSignedCertWithKey",
];
/// The same for passwords and names of hosts.
const REMOVED_SECRETS: [&str; 7] = [
    "bcrypt",
    "htpasswd",
    "derivePassword",
    "decryptAES",
    "encryptAES",
    "getHostByName",
    "buildCustomCert",
];
/// As long as a label may be.
const LONGEST_SLUG: usize = 63;

/// The set of inputs that a render is about.
#[derive(Default)]
pub(crate) struct Current(pub(crate) Value);

/// Returns the functions that templates may use.
pub(crate) fn all() -> Functions {
    let mut functions = sprig_functions::all();
    for name in REMOVED.iter().chain(&REMOVED_SECRETS) {
        functions.remove(name);
    }
    functions.add(
        "inputs",
        Function::new(&[], |context, _| Ok(context.state::<Current>().0.clone())),
    );
    functions.add(
        "slugify",
        Function::new(&[Type::STRING], |_, arguments| {
            let text = arguments[0].as_string().map(|text| text.to_text().into_owned());
            Ok(slug(&text.unwrap_or_default(), LONGEST_SLUG).into())
        }),
    );
    functions.add("toYaml", to_yaml());
    functions
}

/// The function `toYaml`, without a line break at the end.
pub fn to_yaml() -> Function {
    Function::new(&[Type::ANY], |context, arguments| {
        let json = encode(&arguments[0], Style::MARSHAL)?;
        context.charge(json.len())?;
        let plain: Plain = serde_json::from_str(&json).map_err(|error| Error::new(error.to_string()))?;
        let mut text = yaml::write(&plain).map_err(|error| Error::new(error.to_string()))?;
        // Deep values are indented: many times their JSON.
        context.charge(text.len())?;
        text.truncate(text.trim_end_matches('\n').len());
        Ok(text.into())
    })
}

/// A name that labels and objects may have: small letters, digits and single dashes, at most `longest`.
#[must_use]
pub fn slug(text: &str, longest: usize) -> String {
    let mut slug = String::new();
    for character in text.to_lowercase().chars() {
        if character.is_ascii_alphanumeric() {
            slug.push(character);
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
        if slug.len() == longest {
            break;
        }
    }
    slug.trim_end_matches('-').to_owned()
}

/// Makes a value of templates. Whole numbers stay whole, however large: `1000000` is not printed as `1e+06`.
pub(crate) fn value(plain: &Plain) -> Value {
    match plain {
        Plain::Null => Value::Nil,
        Plain::Bool(truth) => Value::Bool(*truth),
        Plain::Number(number) => match number.as_i64() {
            Some(whole) => Value::int64(whole),
            None => Value::Float(number.as_f64().unwrap_or_default()),
        },
        Plain::String(text) => text.as_str().into(),
        Plain::Array(items) => items.iter().map(value).collect::<List>().into(),
        Plain::Object(fields) => {
            let fields = fields.iter().map(|(key, field)| (key.as_str(), value(field)));
            fields.collect::<Map>().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_names_that_kubernetes_takes() {
        for (text, expected) in [
            ("feature/Add Login!", "feature-add-login"),
            ("--a__b--", "a-b"),
            ("Ünïcode", "n-code"),
            ("", ""),
            ("///", ""),
        ] {
            assert_eq!(slug(text, LONGEST_SLUG), expected, "{text:?}");
        }
        assert_eq!(slug(&"a".repeat(80), LONGEST_SLUG).len(), 63);
        assert_eq!(slug(&format!("{}/b", "a".repeat(62)), LONGEST_SLUG).len(), 62);
    }

    #[test]
    fn nothing_that_differs_from_run_to_run_is_left() {
        let functions = all();
        for name in functions.names() {
            assert!(!name.starts_with("rand") && !name.starts_with("gen"), "{name}");
        }
        assert!(functions.get("env").is_none() && functions.get("now").is_none());
        assert!(functions.get("quote").is_some() && functions.get("get").is_some());
    }
}
