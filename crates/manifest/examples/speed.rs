//! Measures how fast YAML is read and written: `cargo run --release -p manifest --example speed`.

#![allow(clippy::print_stdout, reason = "a report is what this program makes")]

use std::fmt::Write;
use std::hint::black_box;
use std::time::{Duration, Instant};

use manifest::yaml::{self, Dialect, Node, Nodes, json};
use serde_json::Value;

const ROUNDS: usize = 5;
const BYTES: usize = 5_000_000;

fn main() {
    let text = documents();
    let size = text.len();
    println!("{size} bytes; a node takes {} bytes", size_of::<Node>());
    for dialect in [Dialect::Kyaml, Dialect::Sigs] {
        report(&format!("compose {dialect:?}"), size, || {
            let mut nodes = Nodes::default();
            let roots = yaml::compose_all(&text, &mut nodes, dialect).expect("valid");
            black_box((roots, nodes.len()));
        });
    }
    let mut nodes = Nodes::default();
    let roots = yaml::compose_all(&text, &mut nodes, Dialect::Kyaml).expect("valid");
    println!("{} nodes", nodes.len());
    report("decode kyaml", size, || {
        for root in &roots {
            black_box(json::decode_kyaml(&nodes, *root).expect("valid"));
        }
    });
    report("decode sigs", size, || {
        for root in &roots {
            black_box(json::decode(&nodes, *root).expect("valid"));
        }
    });
    let values: Vec<Value> = roots
        .iter()
        .map(|root| json::decode_kyaml(&nodes, *root).expect("valid"))
        .collect();
    report("write", size, || {
        for value in &values {
            black_box(yaml::write(value).expect("writable"));
        }
    });
}

fn report(what: &str, bytes: usize, mut run: impl FnMut()) {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let (start, start_on_cpu) = (Instant::now(), time_on_cpu());
        run();
        best = best.min(match (start_on_cpu, time_on_cpu()) {
            (Some(before), Some(after)) => after.saturating_sub(before),
            _ => start.elapsed(),
        });
    }
    #[expect(clippy::cast_precision_loss, reason = "a report")]
    let rate = bytes as f64 / best.as_secs_f64() / 1e6;
    println!("{what}: {:.1} ms, {rate:.0} MB/s", best.as_secs_f64() * 1e3);
}

/// How long the program ran on a CPU, where the kernel tells: other work on the machine does not count.
fn time_on_cpu() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

fn documents() -> String {
    let mut text = String::new();
    let mut index = 0;
    while text.len() < BYTES {
        write!(
            text,
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web-{index}\n  namespace: default\n  labels:\n    \
             app.kubernetes.io/name: web-{index}\n    tier: \"frontend\"\n  annotations:\n    example.com/note: 'it''s \
             number {index}, and this is a longer line of text'\nspec:\n  replicas: {}\n  selector:\n    matchLabels: {{app: \
             web-{index}}}\n  template:\n    spec:\n      # the only one\n      containers:\n      - name: main\n        \
             image: registry.example.com/web:1.{index}.0\n        args: [\"--port\", \"8080\"]\n        ports:\n        - \
             containerPort: 8080\n        resources:\n          limits:\n            cpu: 500m\n            memory: \
             128Mi\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config-{index}\ndata:\n  enabled: \"true\"\n  \
             config.ini: |\n    [server]\n    port = 8080\n    name = web-{index}\n\n    [log]\n    level = info\n---\n",
            index % 7
        )
        .expect("written to memory");
        index += 1;
    }
    text
}
