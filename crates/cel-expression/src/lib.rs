//! CEL expressions over objects, as Flux evaluates them: health checks, readiness of dependencies, filters.
//!
//! In: the text that a user wrote, and objects as JSON. Out: true or false, a text or JSON, or an error in Flux's words. The language is
//! cel-rust's; this adds what Flux's environment has beside it ([`sets`]), and bounds: the text is hostile, and cel-rust
//! neither counts what an expression costs nor survives a full stack. The length of the text and the depth of its brackets
//! are limited, all loops together may make a limited number of steps, and both parsing and evaluating run on a stack of
//! their own that is large enough for what the limits let through.
//!
//! ```
//! use serde_json::json;
//! let ready = cel_expression::Expression::parse("status.conditions.exists(c, c.type == 'Ready')")?;
//! let object = json!({"status": {"conditions": [{"type": "Ready"}]}});
//! assert!(ready.evaluate_boolean(&object)?);
//! # Ok::<(), cel_expression::Error>(())
//! ```

mod answer;
mod budget;
mod error;
mod lists;
mod names;
mod patterns;
mod scope;
mod sets;
mod stack;
mod texts;
mod value;

use std::sync::{Arc, LazyLock};

use cel::{Context, Env, IdedExpr, Value};

pub use scope::Scope;

pub use crate::error::Error;

/// Longer texts are refused: those of real users have a few hundred bytes.
const MAX_LENGTH: usize = 10_000;
/// Deeper brackets are refused.
const MAX_DEPTH: usize = 64;

/// An expression that was understood.
#[derive(Debug, Clone)]
pub struct Expression {
    text: Arc<str>,
    tree: Arc<IdedExpr>,
}

impl Expression {
    /// Parses an expression whose variables are not known beforehand: the fields of an object.
    pub fn parse(text: &str) -> Result<Self, Error> {
        check_limits(text).map_err(|problem| parse_error(text, problem))?;
        let parsed = stack::run(|| ENVIRONMENT.parser().parse(text).map(budget::charge));
        let tree = parsed
            .ok_or_else(|| parse_error(text, "it is too deep".to_owned()))?
            .map_err(|errors| parse_error(text, first_line(&errors.to_string())))?;
        Ok(Self {
            text: text.into(),
            tree: Arc::new(tree),
        })
    }

    /// Parses an expression that may use these variables and no others.
    pub fn parse_with_variables(text: &str, variables: &[&str]) -> Result<Self, Error> {
        let expression = Self::parse(text)?;
        // The walk may be as deep as the evaluation.
        let unknown = stack::run(|| {
            let names = names::free(&expression.tree);
            let unknown = names.into_iter().find(|name| !variables.contains(name));
            unknown.map(str::to_owned)
        });
        match unknown {
            Some(None) => Ok(expression),
            Some(Some(name)) => Err(parse_error(
                text,
                format!(
                    "undeclared reference to '{name}', there are {}",
                    variables.join(" and ")
                ),
            )),
            None => Err(parse_error(text, "it is too deep".to_owned())),
        }
    }

    /// Evaluates it with the fields of `variables`, a JSON object, as variables.
    pub fn evaluate_boolean(&self, variables: &serde_json::Value) -> Result<bool, Error> {
        self.evaluate_boolean_in(&Scope::of_object(variables))
    }

    /// As [`evaluate_boolean`](Self::evaluate_boolean), to a text.
    pub fn evaluate_string(&self, variables: &serde_json::Value) -> Result<String, Error> {
        match self.resolve(&Scope::of_object(variables))? {
            Value::String(text) => Ok(Arc::unwrap_or_clone(text)),
            _ => Err(Error::NotString {
                expression: shortened(&self.text),
            }),
        }
    }

    /// As [`evaluate_boolean`](Self::evaluate_boolean), to whatever it is, as JSON: bytes are base64, times and durations
    /// text. What JSON has no way to write, such as a type, is an error.
    pub fn evaluate(&self, variables: &serde_json::Value) -> Result<serde_json::Value, Error> {
        let value = self.resolve(&Scope::of_object(variables))?;
        stack::run(|| answer::json(&value))
            .unwrap_or(Err("it is too deep"))
            .map_err(|problem| self.failed(problem.to_owned()))
    }

    /// Evaluates it with the variables of a scope.
    pub fn evaluate_boolean_in(&self, scope: &Scope) -> Result<bool, Error> {
        match self.resolve(scope)? {
            Value::Bool(answer) => Ok(answer),
            _ => Err(Error::NotBoolean {
                expression: shortened(&self.text),
            }),
        }
    }

    /// As [`evaluate_boolean`](Self::evaluate_boolean), for many objects one after the other, as long as `go_on` says so: a
    /// hundred times as fast as one by one, since they share a stack. Each has the whole budget of steps.
    pub fn evaluate_booleans(
        &self,
        many: impl Iterator<Item = Scope> + Send,
        go_on: impl Fn() -> bool + Sync,
    ) -> Vec<Result<bool, Error>> {
        let evaluated = stack::run(|| {
            let each = many
                .take_while(|_| go_on())
                .map(|variables| match self.resolve_here(&variables)? {
                    Value::Bool(answer) => Ok(answer),
                    _ => Err(Error::NotBoolean {
                        expression: shortened(&self.text),
                    }),
                });
            each.collect()
        });
        evaluated.unwrap_or_else(|| vec![Err(self.failed("it is too deep".to_owned()))])
    }

    fn resolve(&self, scope: &Scope) -> Result<Value, Error> {
        let evaluated = stack::run(|| self.resolve_here(scope));
        evaluated.unwrap_or_else(|| Err(self.failed("it is too deep".to_owned())))
    }

    /// On a stack that is large enough.
    fn resolve_here(&self, scope: &Scope) -> Result<Value, Error> {
        budget::reset();
        let mut context = Context::with_env(Arc::clone(&ENVIRONMENT));
        for (name, variable) in scope.variables() {
            context.add_variable_from_value(name, variable.clone());
        }
        let resolved = context.resolve(&self.tree);
        resolved.map_err(|error| self.failed(value::words(&error, &self.text)))
    }

    fn failed(&self, problem: String) -> Error {
        Error::Evaluate {
            expression: shortened(&self.text),
            problem,
        }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Flux's environment: the standard library, optionals, strings, sets and encoders.
static ENVIRONMENT: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut environment = Env::stdlib();
    let added = environment
        .add_extension(cel::extensions::strings)
        .and_then(|()| environment.add_extension(cel::extensions::encoders))
        .and_then(|()| environment.add_extension(sets::extension))
        .and_then(|()| environment.add_extension(lists::extension))
        .and_then(|()| environment.add_extension(texts::extension))
        .and_then(|()| environment.add_extension(patterns::extension))
        .and_then(|()| environment.add_extension(budget::extension));
    added.expect("no two extensions have the same name");
    // As cel-go does, the last of two equal keys wins.
    environment.set_error_on_duplicate_map_keys(false);
    Arc::new(environment)
});

fn check_limits(text: &str) -> Result<(), String> {
    if text.len() > MAX_LENGTH {
        return Err(format!("it is longer than {MAX_LENGTH} bytes"));
    }
    let mut depth = 0_usize;
    for byte in text.bytes() {
        // Brackets in strings count too: that many are no mistake that anybody makes.
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(format!("its brackets are deeper than {MAX_DEPTH}"));
        }
    }
    Ok(())
}

fn parse_error(text: &str, problem: String) -> Error {
    Error::Parse {
        expression: shortened(text),
        problem,
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// As much of the text as a message should hold.
fn shortened(text: &str) -> String {
    const LENGTH: usize = 200;
    match text.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
