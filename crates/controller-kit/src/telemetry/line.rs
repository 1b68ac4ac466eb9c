//! From an event and its spans to one line of text.

use std::error::Error;
use std::fmt;

use jiff::Timestamp;
use secret_mask::without_credentials;
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::Scope;

use super::Spans;
use crate::flags::LogEncoding;

/// Writes each event to `sink`.
pub(super) struct LineLayer<W> {
    encoding: LogEncoding,
    sink: W,
}

impl<W: Fn(&str)> LineLayer<W> {
    pub(super) fn new(encoding: LogEncoding, sink: W) -> Self {
        Self { encoding, sink }
    }
}

/// Names and values in the order in which they came. A later value of a name takes the place of an earlier one.
#[derive(Default)]
struct Fields(Vec<(&'static str, Value)>);

impl Fields {
    fn put(&mut self, name: &'static str, value: Value) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
    }

    fn take(&mut self, name: &str) -> Option<String> {
        let position = self.0.iter().position(|(known, _)| *known == name)?;
        match self.0.remove(position).1 {
            Value::String(text) => Some(text),
            other => Some(other.to_string()),
        }
    }
}

impl<S: Spans, W: Fn(&str) + 'static> Layer<S> for LineLayer<W> {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(Scope::from_root) {
            if let Some(Fields(outer)) = span.extensions().get::<Fields>() {
                outer
                    .iter()
                    .for_each(|(name, value)| fields.put(name, value.clone()));
            }
        }
        event.record(&mut fields);
        let line = match self.encoding {
            LogEncoding::Json => json_line(event.metadata(), fields, Timestamp::now()),
            LogEncoding::Console => console_line(event.metadata(), fields, Timestamp::now()),
        };
        (self.sink)(&line);
    }
}

/// The four keys of zap first, then the fields.
fn json_line(metadata: &Metadata<'_>, mut fields: Fields, now: Timestamp) -> String {
    let mut line = String::with_capacity(256);
    let message = fields.take("message").unwrap_or_default();
    let logger = logger(metadata, &mut fields);
    push_pair(&mut line, "level", &Value::from(level(metadata)));
    push_pair(&mut line, "ts", &Value::from(iso8601(now)));
    if let Some(logger) = logger {
        push_pair(&mut line, "logger", &Value::from(logger));
    }
    push_pair(&mut line, "msg", &Value::from(message));
    for (name, value) in &fields.0 {
        push_pair(&mut line, name, value);
    }
    line + "}\n"
}

fn push_pair(line: &mut String, name: &str, value: &Value) {
    line.push(if line.is_empty() { '{' } else { ',' });
    line.push_str(&Value::from(name).to_string());
    line.push(':');
    line.push_str(&value.to_string());
}

fn console_line(metadata: &Metadata<'_>, mut fields: Fields, now: Timestamp) -> String {
    let message = fields.take("message").unwrap_or_default();
    let logger = logger(metadata, &mut fields)
        .map(|logger| logger + "\t")
        .unwrap_or_default();
    let mut rest = String::new();
    for (name, value) in &fields.0 {
        push_pair(&mut rest, name, value);
    }
    let rest = if rest.is_empty() {
        rest
    } else {
        format!("\t{rest}}}")
    };
    // What comes from outside must not be able to write a line of its own.
    let message = message.replace('\n', "\\n");
    format!(
        "{}\t{}\t{logger}{message}{rest}\n",
        iso8601(now),
        level(metadata).to_uppercase()
    )
}

/// Name of zap's logger: given by the event, or the crate. Lines about an object have none, as in Flux.
fn logger(metadata: &Metadata<'_>, fields: &mut Fields) -> Option<String> {
    let named = fields.take("logger");
    if fields.0.iter().any(|(name, _)| *name == "controller") {
        return named;
    }
    named.or_else(|| {
        metadata
            .target()
            .split("::")
            .next()
            .map(|name| name.replace('_', "-"))
    })
}

fn level(metadata: &Metadata<'_>) -> &'static str {
    match *metadata.level() {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

/// zap's ISO8601 encoder.
fn iso8601(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), Value::from(without_credentials(value)));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let mut text = value.to_string();
        let mut source = value.source();
        while let Some(error) = source {
            text = format!("{text}: {error}");
            source = error.source();
        }
        self.record_str(field, &text);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), Value::from(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), Value::from(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), Value::from(value));
    }
}
