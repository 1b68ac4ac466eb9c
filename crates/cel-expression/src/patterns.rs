//! `matches`: each pattern is compiled once for an evaluation, within a size, and counted. The tree calls it here instead of
//! cel-rust's ([`crate::budget`]), which compiles it at each call.

use std::cell::RefCell;
use std::collections::HashMap;

use cel::common::types::{CelBool, CelString, DYN_TYPE};
use cel::common::value::CowVal;
use cel::{DeclarationError, Env, ExecutionError};
use regex::{Regex, RegexBuilder};

use crate::budget::{self, BYTES};

/// A name that no text can call.
pub(crate) const MATCHES: &str = "@matches";
/// Bytes that a pattern may be compiled to.
const SIZE: usize = 256 << 10;
/// Steps that compiling counts for, beside the pattern's length.
const COMPILING: usize = 2_000;

thread_local! {
    /// Those of the evaluation on this thread, which is its own.
    static COMPILED: RefCell<HashMap<String, Regex>> = RefCell::default();
}

/// Declares it.
pub(crate) fn extension(environment: &mut Env) -> Result<(), DeclarationError> {
    let dynamic = vec![DYN_TYPE, DYN_TYPE];
    environment.add_overload(MATCHES, "matches_pattern", dynamic, |arguments| {
        matches(&arguments)
    })
}

fn matches<'b, 'v>(arguments: &[CowVal<'_, '_>]) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let text = |at: usize| {
        let text = arguments.get(at)?.downcast_ref::<CelString<'_>>()?;
        Some(text.inner())
    };
    let (Some(text), Some(pattern)) = (text(0), text(1)) else {
        return Err(ExecutionError::function_error("matches", "it takes texts"));
    };
    budget::take(1 + text.len() / BYTES)?;
    let compiled = COMPILED.with_borrow(|compiled| compiled.get(pattern).cloned());
    let compiled = match compiled {
        Some(compiled) => compiled,
        None => compile(pattern)?,
    };
    Ok(CowVal::owned(CelBool::from(compiled.is_match(text))))
}

fn compile(pattern: &str) -> Result<Regex, ExecutionError> {
    budget::take(COMPILING + pattern.len())?;
    let compiled = RegexBuilder::new(pattern)
        .size_limit(SIZE)
        .dfa_size_limit(SIZE)
        .build();
    let compiled = compiled.map_err(|error| {
        let problem = match error {
            regex::Error::CompiledTooBig(_) => "the pattern is too large",
            _ => "it is no pattern",
        };
        ExecutionError::function_error("matches", problem)
    })?;
    COMPILED.with_borrow_mut(|all| all.insert(pattern.to_owned(), compiled.clone()));
    Ok(compiled)
}
