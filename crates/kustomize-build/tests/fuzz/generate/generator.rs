//! configMapGenerator, secretGenerator, and the files that they read.

use serde_json::{Value, json};

use super::{Draft, Known, word};
use crate::tree::File;

pub fn config_maps(draft: &mut Draft) -> Value {
    let count = 1 + draft.random.below(2);
    Value::Array((0..count).map(|_| arguments(draft, "ConfigMap")).collect())
}

pub fn secrets(draft: &mut Draft) -> Value {
    let mut arguments = arguments(draft, "Secret");
    if draft.random.chance(40) {
        arguments["type"] = json!(draft.random.pick(&["Opaque", "kubernetes.io/tls", "x", ""]));
    }
    json!([arguments])
}

/// Makes the arguments of one generated object.
pub fn arguments(draft: &mut Draft, kind: &str) -> Value {
    let (name, namespace, behavior) = target(draft, kind);
    let mut arguments = json!({"name": name});
    if let Some(namespace) = &namespace {
        arguments["namespace"] = json!(namespace);
    }
    if let Some(behavior) = behavior {
        arguments["behavior"] = json!(behavior);
    }
    if draft.random.chance(70) {
        arguments["literals"] = literals(draft);
    }
    if draft.random.chance(30) {
        arguments["files"] = files(draft);
    }
    if draft.random.chance(20) {
        let name = env_file(draft);
        let field = draft.random.pick(&["envs", "envs", "env"]);
        arguments[field] = match field {
            "env" => json!(name),
            _ => json!([name]),
        };
    }
    if draft.random.chance(30) {
        arguments["options"] = options(draft);
    }
    draft.known.push(Known {
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        name,
        namespace,
    });
    arguments
}

/// Chooses what to generate: something new, or a change of an object that is there.
fn target(draft: &mut Draft, kind: &str) -> (String, Option<String>, Option<&'static str>) {
    let there: Vec<Known> = draft
        .known
        .iter()
        .filter(|known| known.kind == kind)
        .cloned()
        .collect();
    if !there.is_empty() && draft.random.chance(40) {
        let known = &there[draft.random.below(there.len())];
        let behavior = draft.random.pick(&[
            "merge", "merge", "merge", "replace", "replace", "replace", "create",
        ]);
        return (known.name.clone(), known.namespace.clone(), Some(behavior));
    }
    let namespace = draft
        .random
        .chance(10)
        .then(|| word::namespace(&mut draft.random).to_owned());
    let behavior = draft
        .random
        .chance(4)
        .then(|| draft.random.pick(&["create", "merge", "replace", "", "other"]));
    let mut name = word::name(&mut draft.random).to_owned();
    if there.iter().any(|known| known.name == name) && draft.random.chance(95) {
        name = format!("{name}-{}", draft.known.len());
    }
    (name, namespace, behavior)
}

fn literals(draft: &mut Draft) -> Value {
    let random = &mut draft.random;
    let count = random.below(4);
    let literals = (0..count).map(|position| match random.below(60) {
        0 => json!(random.pick(&["nothing", "=value", "a b=c", "", "app=again"])),
        1..4 => json!(random.pick(&["key=", "'q'='v'", "k=\"quoted\"", "k='single'", "k=\"half", "k='"])),
        // The position keeps keys apart.
        _ => json!(format!("{}{position}={}", word::key(random), word::text(random))),
    });
    literals.collect()
}

fn files(draft: &mut Draft) -> Value {
    let content = match draft.random.below(8) {
        0 => String::new(),
        1 => "\u{feff}bom\n".to_owned(),
        2 => "a\r\nb\r\n".to_owned(),
        3 => "trailing  \n\ttab\n".to_owned(),
        4 => "\u{0}\u{1}binary".to_owned(),
        _ => format!("{}\n", word::text(&mut draft.random)),
    };
    let name = draft.random.pick(&["key.txt", "other.conf", "sub/file"]);
    let path = draft.file(name, File::Text(content));
    let source = match draft.random.below(60) {
        0..10 => format!("{}={path}", word::key(&mut draft.random)),
        10 => "missing.txt".to_owned(),
        11 => format!("={path}"),
        12 => format!("a=b={path}"),
        13 => format!("{path}="),
        _ => path,
    };
    json!([source])
}

fn env_file(draft: &mut Draft) -> String {
    let random = &mut draft.random;
    let count = random.below(5);
    let lines: Vec<String> = (0..count)
        .map(|position| match random.below(40) {
            0..3 => "# comment".to_owned(),
            3..6 => String::new(),
            6 => "  LEADING=x".to_owned(),
            7 => "NOVALUE".to_owned(),
            8 => "=x".to_owned(),
            9 => "A B=c".to_owned(),
            10 => "\u{feff}BOM=1".to_owned(),
            11 => "CR=x\r".to_owned(),
            12..15 => format!("QUOTED{position}=\"a b\""),
            _ => format!("{}E{position}={}", word::key(random), word::text(random)),
        })
        .collect();
    draft.file("values.env", File::Text(lines.join("\n")))
}

/// Makes generatorOptions.
pub fn options(draft: &mut Draft) -> Value {
    let random = &mut draft.random;
    let mut options = json!({});
    for option in ["disableNameSuffixHash", "immutable"] {
        if random.chance(35) {
            options[option] = json!(random.chance(80));
        }
    }
    if random.chance(35) {
        options["labels"] = word::labels(random);
    }
    if random.chance(35) {
        options["annotations"] = word::pairs(random, 1, 2);
    }
    options
}
