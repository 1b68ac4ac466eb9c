//! Texts of messages by a Go template, bounded: the template is a tenant's.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use go_template::{Functions, Limits, Options, Templates, json, on_stack};
use serde_json::Value;

/// Longer templates are refused.
const MOST_BYTES: usize = 16 << 10;
/// Longer texts are cut.
const MOST_TEXT_BYTES: usize = 32 << 10;
/// Limit on the cost of a text.
const MOST_STEPS: u64 = 200_000;
const MOST_MADE_BYTES: usize = 4 << 20;
const STACK: usize = 2 << 20;

const NAME: &str = "message";

/// Functions that reach the network, or cost much beside what is counted.
const REFUSED: [&str; 12] = [
    "bcrypt",
    "buildCustomCert",
    "decryptAES",
    "derivePassword",
    "encryptAES",
    "genCA",
    "genCAWithKey",
    "genPrivateKey",
    "genSelfSignedCert",
    "genSelfSignedCertWithKey",
    "genSignedCert",
    "genSignedCertWithKey",
];
const REFUSED_TOO: [&str; 2] = ["getHostByName", "htpasswd"];

/// A template that was understood.
#[derive(Clone)]
pub struct Template(Arc<str>);

impl Template {
    /// Reads a template.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MOST_BYTES {
            return Err(format!("it is longer than {MOST_BYTES} bytes"));
        }
        on_stack(STACK, || parse(text, &functions()).map(drop)).map_err(|error| error.to_string())??;
        Ok(Self(text.into()))
    }

    /// Makes the text with the fields of `data`, a JSON object. Set `cancelled` to end it early. It blocks.
    pub fn render(&self, data: &Value, cancelled: Arc<AtomicBool>) -> Result<String, String> {
        let data = data.to_string();
        let render = || {
            let functions = functions();
            let templates = parse(&self.0, &functions)?;
            let data = json::decode(&data)
                .map_err(|error| format!("failed to read the data of the message: {error:?}"))?;
            let options = Options {
                limits: Limits {
                    stack: STACK - (512 << 10),
                    bytes: MOST_MADE_BYTES,
                    steps: MOST_STEPS,
                    cancelled: Some(cancelled),
                    ..Limits::default()
                },
                ..Options::default()
            };
            let text = templates.execute(NAME, &data, &functions, &options);
            let text = text.map_err(|error| error.to_string())?;
            Ok(cut(String::from_utf8_lossy(&text).into_owned(), MOST_TEXT_BYTES))
        };
        on_stack(STACK, render).map_err(|error| error.to_string())?
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Template").field(&self.0.len()).finish()
    }
}

fn parse(text: &str, functions: &Functions) -> Result<Templates, String> {
    let mut templates = Templates::new(NAME);
    templates
        .parse(NAME, text, functions)
        .map_err(|error| error.to_string())?;
    Ok(templates)
}

fn functions() -> Functions {
    let mut functions = sprig_functions::all();
    for name in REFUSED.iter().chain(&REFUSED_TOO) {
        functions.remove(name);
    }
    functions
}

/// Cuts a text at a character.
fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn render(template: &str, data: Value) -> Result<String, String> {
        Template::parse(template)?.render(&data, Arc::default())
    }

    #[test]
    fn templates_see_event_alert_provider_and_all_events() {
        let data = json!({
            "event": {"message": "failed", "involvedObject": {"name": "web"}, "metadata": {"cluster": "prod"}},
            "alert": {"name": "a"}, "provider": {"name": "p"},
            "events": [{"message": "failed"}, {"message": "again"}],
        });
        let template = "{{ .alert.name }}/{{ .provider.name }}: {{ .event.involvedObject.name | upper }} \
                        {{ with .event.metadata.cluster }}in {{ . }}{{ end }}:{{ range .events }} {{ .message }};{{ end }}";
        assert_eq!(
            render(template, data).unwrap(),
            "a/p: WEB in prod: failed; again;"
        );
    }

    #[test]
    fn templates_are_bounded() {
        for endless in [
            "{{ range until 100000 }}{{ range until 100000 }}x{{ end }}{{ end }}",
            "{{ define \"a\" }}{{ template \"a\" }}{{ end }}{{ template \"a\" }}",
            "{{ $x := repeat 1000 \"x\" }}{{ range until 100000 }}{{ $x }}{{ end }}",
        ] {
            assert!(render(endless, json!({})).is_err(), "{endless}");
        }
        let long = render("{{ repeat 100000 \"ä\" }}", json!({})).unwrap();
        assert!(long.len() <= MOST_TEXT_BYTES + '…'.len_utf8() && long.ends_with('…'));
        assert!(render(&"x".repeat(MOST_BYTES + 1), json!({})).is_err());
        assert!(render("{{ genPrivateKey \"rsa\" }}", json!({})).is_err());
    }
}
