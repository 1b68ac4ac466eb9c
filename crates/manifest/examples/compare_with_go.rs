//! Compares the YAML reader and writer with Go's libraries, over generated texts.
//!
//! Usage: `compare_with_go ORACLE QUESTION COUNT SEED FILE…`, where ORACLE is the program of hack/oracle/yaml, QUESTION
//! one of its letters, and the files are what texts are made from. Prints what differs, and how often it agrees.

#![allow(clippy::print_stdout, reason = "a report is what this program makes")]

use std::collections::BTreeMap;
use std::io::{BufReader, BufWriter, Read, Write};
use std::process::{Command, Stdio};

use manifest::yaml::{self, Dialect, Kind, Nodes};
use serde_json::Value;

#[path = "../tests/generator/random_text.rs"]
mod generator;

type Answer = Result<Vec<u8>, String>;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let oracle = arguments.next().expect("ORACLE");
    let question = arguments.next().expect("QUESTION").as_bytes()[0];
    let count: usize = arguments.next().expect("COUNT").parse().expect("a number");
    let seed: u64 = arguments.next().expect("SEED").parse().expect("a number");
    let corpus: Vec<Vec<u8>> = arguments.filter_map(|file| std::fs::read(file).ok()).collect();
    let mut go = Command::new(oracle)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the oracle starts");
    let mut requests = BufWriter::new(go.stdin.take().expect("piped"));
    let mut answers = BufReader::new(go.stdout.take().expect("piped"));
    let texts = move || {
        let mut random = generator::Random::new(seed);
        (0..count).map(move |_| {
            if question == b'y' {
                let value = numbers(generator::json(&mut random));
                // As encoding/json writes it: these two are line breaks in YAML.
                let text = value
                    .to_string()
                    .replace('\u{2028}', "\\u2028")
                    .replace('\u{2029}', "\\u2029");
                (text.into_bytes(), value)
            } else {
                let mut text = generator::text(&mut random, &corpus);
                if question == b'k' {
                    // kyaml does not end on some aliases that refer to what holds them.
                    text.iter_mut()
                        .filter(|byte| **byte == b'*')
                        .for_each(|byte| *byte = b'+');
                }
                (text, Value::Null)
            }
        })
    };
    let all: Vec<(Vec<u8>, Value)> = texts().collect();
    let sent: Vec<Vec<u8>> = all.iter().map(|(text, _)| text.clone()).collect();
    let writer = std::thread::spawn(move || {
        for text in &sent {
            let length = u32::try_from(text.len()).expect("short");
            requests.write_all(&[question]).expect("written");
            requests.write_all(&length.to_be_bytes()).expect("written");
            requests.write_all(text).expect("written");
        }
        requests.flush().expect("written");
    });
    let mut tally: BTreeMap<&str, usize> = BTreeMap::new();
    for (text, value) in &all {
        let expected = read_answer(&mut answers);
        let outcome = compare(question, text, value, &expected);
        let (class, report) = match outcome {
            Ok(class) => (class, None),
            Err((class, report)) => (class, Some(report)),
        };
        let seen = tally.entry(class).or_default();
        *seen += 1;
        if let Some(report) = report
            && *seen <= 12
        {
            println!("== {class}\n{:?}\n{report}\n", String::from_utf8_lossy(text));
        }
    }
    writer.join().expect("written");
    go.wait().expect("the oracle ends with its input");
    println!("{tally:#?}");
}

fn read_answer(from: &mut impl Read) -> Answer {
    let mut head = [0; 5];
    from.read_exact(&mut head).expect("an answer");
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    let mut bytes = vec![0; length as usize];
    from.read_exact(&mut bytes).expect("an answer");
    match head[0] {
        0 => Ok(bytes),
        _ => Err(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

fn compare(
    question: u8,
    text: &[u8],
    value: &Value,
    expected: &Answer,
) -> Result<&'static str, (&'static str, String)> {
    let actual = match question {
        b'j' => sigs(text).map(|value| value.to_string().into_bytes()),
        b'y' => written(value),
        b'k' => match kyaml(text) {
            Some(result) => result.map(|value| value.to_string().into_bytes()),
            None => return Ok("skipped"),
        },
        _ => panic!("unknown question"),
    };
    let show = |answer: &Answer| match answer {
        Ok(bytes) => format!("ok  {}", String::from_utf8_lossy(bytes)),
        Err(message) => format!("err {message}"),
    };
    let report = || format!("go:   {}\nours: {}", show(expected), show(&actual));
    match (expected, &actual) {
        (Ok(go), Ok(ours)) if go == ours => Ok("same value"),
        (Ok(go), Ok(ours)) if question != b'y' => match (parsed(go), parsed(ours)) {
            (Some(a), Some(b)) if a == b => Ok("same value"),
            (None, _) | (_, None) => Ok("skipped, too deep"),
            _ => Err(("DIFFERENT VALUE", report())),
        },
        (Ok(_), Ok(_)) => Err(("DIFFERENT VALUE", report())),
        (Err(go), Err(ours)) if go == ours => Ok("same error"),
        (Err(go), Err(_)) if go.starts_with("panic") => Ok("Go panics"),
        (Err(_), Err(_)) => Err(("DIFFERENT WORDS", report())),
        (Ok(_), Err(_)) => Err(("ONLY GO READS", report())),
        (Err(go), Ok(_)) if go.starts_with("panic") => Ok("Go panics"),
        (Err(_), Ok(_)) => Err(("ONLY WE READ", report())),
    }
}

fn parsed(json: &[u8]) -> Option<Value> {
    serde_json::from_slice(json).ok().map(numbers)
}

fn numbers(value: Value) -> Value {
    match value {
        Value::Number(n) if n.is_f64() => {
            yaml::number::float_to_json(n.as_f64().unwrap_or_default()).unwrap_or(Value::Number(n))
        }
        Value::Array(elements) => elements.into_iter().map(numbers).collect(),
        Value::Object(fields) => fields.into_iter().map(|(k, v)| (k, numbers(v))).collect(),
        other => other,
    }
}

fn sigs(text: &[u8]) -> Result<Value, String> {
    let mut nodes = Nodes::default();
    match yaml::compose_first(text, &mut nodes, Dialect::Sigs) {
        Ok(None) => Ok(Value::Null),
        Ok(Some(root)) => yaml::json::decode(&nodes, root).map_err(|problem| problem.to_string()),
        Err(problem) => Err(problem.to_string()),
    }
}

fn kyaml(text: &[u8]) -> Option<Result<Value, String>> {
    if text.windows(2).any(|pair| pair == b"<<") {
        return None;
    }
    let mut nodes = Nodes::default();
    match yaml::compose_first(text, &mut nodes, Dialect::Kyaml) {
        Ok(None) => None,
        Ok(Some(root)) if matches!(nodes[root].kind, Kind::Scalar | Kind::Alias) => None,
        Ok(Some(root)) => Some(yaml::json::decode_kyaml(&nodes, root).map_err(|problem| problem.to_string())),
        Err(problem) => Some(Err(problem.to_string())),
    }
}

fn written(value: &Value) -> Answer {
    yaml::write(value)
        .map(String::into_bytes)
        .map_err(|error| error.to_string())
}
