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
/// Bytes that all renders of a step print. As objects in memory they take many times that.
const MAX_BYTES: usize = 32 << 20;
/// Nodes that are walked by one.
const MAX_STEPS: u64 = 2_000_000;
/// Longest time for all.
const MAX_TIME: Duration = Duration::from_secs(30);

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
        let mut left = MAX_BYTES;
        for (index, set) in sets.iter().enumerate() {
            let inputs = functions::value(&Plain::Object(set.clone()));
            for (text, templates) in &parsed {
                let time = MAX_TIME.saturating_sub(began.elapsed());
                let made = one(text, templates, &inputs, &functions, limits(left, time))?;
                left = left.saturating_sub(made.len());
                each(text, index, &made)?;
            }
        }
        Ok(())
    });
    rendered.map_err(|error| error.to_string())?
}

fn limits(bytes: usize, time: Duration) -> Limits {
    Limits {
        stack: STACK - (512 << 10),
        bytes,
        steps: MAX_STEPS,
        time: Some(time),
        ..Limits::default()
    }
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
