//! Renders templates between `<<` and `>>`, within bounds.

use std::time::Duration;

use api::flux_operator::AnyMap;
use go_template::{Delimiters, Functions, Limits, MissingKey, Options, Render, Templates, Value, on_stack};
use serde_json::Value as Plain;

use crate::functions::{self, Current};

/// Actions stand between these.
const DELIMITERS: Delimiters = Delimiters {
    left: *b"<<",
    right: *b">>",
};
/// Bytes of stack.
const STACK: usize = 8 << 20;
/// What templates may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Bytes that all print.
    pub(crate) bytes: usize,
    /// Nodes that are walked by one.
    pub(crate) steps: u64,
    /// Longest time for all.
    pub(crate) time: Duration,
}

impl Bounds {
    /// Those of the objects of a step. In memory they take many times these bytes.
    pub(crate) const OBJECTS: Self = Self {
        bytes: 32 << 20,
        steps: 2_000_000,
        time: Duration::from_secs(30),
    };
    /// Those of a line for each set of inputs.
    pub(crate) const LINES: Self = Self {
        bytes: 1 << 20,
        steps: 10_000,
        time: Duration::from_secs(2),
    };
}

/// A text with templates, and what it is called in errors.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Renders each text with each set of inputs, set by set, and hands what comes of it to `each`.
///
/// # Errors
/// In the words of Go's template engine, or those of `each`.
pub(crate) fn render_all(
    texts: &[Text],
    sets: &[AnyMap],
    bounds: Bounds,
    mut each: impl FnMut(&Text, usize, &str) -> Result<(), String> + Send,
) -> Result<(), String> {
    let rendered = on_stack(STACK, || {
        let functions = functions::all();
        let mut parsed = Vec::new();
        for text in texts {
            let mut templates = Templates::new(text.name.as_str()).between(DELIMITERS);
            let result = templates.parse(text.name.as_str(), text.text.as_str(), &functions);
            result.map_err(|error| error.to_string())?;
            parsed.push((text, templates));
        }
        let began = std::time::Instant::now();
        let mut left = bounds.bytes;
        for (index, set) in sets.iter().enumerate() {
            let inputs = functions::value(&Plain::Object(set.clone()));
            for (text, templates) in &parsed {
                let limits = Limits {
                    stack: STACK - (512 << 10),
                    bytes: left,
                    steps: bounds.steps,
                    time: Some(bounds.time.saturating_sub(began.elapsed())),
                    ..Limits::default()
                };
                let made = one(text, templates, &inputs, &functions, limits)?;
                left = left.saturating_sub(made.len());
                each(text, index, &made)?;
            }
        }
        Ok(())
    });
    rendered.map_err(|error| error.to_string())?
}

fn one(
    text: &Text,
    templates: &Templates,
    inputs: &Value,
    functions: &Functions,
    limits: Limits,
) -> Result<String, String> {
    let options = Options {
        missing_key: MissingKey::Error,
        limits,
    };
    let mut render = Render::new(templates, functions, &options);
    render.context().state::<Current>().0 = inputs.clone();
    let made = render.execute(text.name.as_str(), inputs);
    let made = made.map_err(|error| match error.is_limit() {
        true => format!("the templates make too much, or take too long: {error}"),
        false => error.to_string(),
    })?;
    Ok(String::from_utf8_lossy(&made).into_owned())
}
