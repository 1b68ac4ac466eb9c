//! `replace` and `join`, whose value can be as large as the product of what they are given: what it will take is counted
//! before it is made. The tree calls them here instead of cel-rust's ([`crate::budget`]).

use cel::common::types::{CelInt, CelString, DYN_TYPE};
use cel::common::value::CowVal;
use cel::{DeclarationError, Env, ExecutionError, Value};

use crate::budget::{self, BYTES};

/// Names that no text can call.
pub(crate) const REPLACE: &str = "@replace";
/// As [`REPLACE`].
pub(crate) const JOIN: &str = "@join";

/// Declares both.
pub(crate) fn extension(environment: &mut Env) -> Result<(), DeclarationError> {
    let dynamic = |count| (0..count).map(|_| DYN_TYPE).collect();
    environment.add_overload(REPLACE, "replace_all", dynamic(3), |arguments| {
        replace(&arguments, None)
    })?;
    environment.add_overload(REPLACE, "replace_some", dynamic(4), |arguments| {
        let most = arguments.get(3).and_then(|most| most.downcast_ref::<CelInt>());
        let most = *most.ok_or_else(|| unfit("replace"))?.inner();
        replace(&arguments, usize::try_from(most).ok())
    })?;
    environment.add_overload(JOIN, "join_plain", dynamic(1), |arguments| join(&arguments))?;
    environment.add_overload(JOIN, "join_separated", dynamic(2), |arguments| join(&arguments))
}

/// At most so many are replaced; None is all.
fn replace<'b, 'v>(
    arguments: &[CowVal<'_, '_>],
    most: Option<usize>,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let text = |at| text(arguments, at).ok_or_else(|| unfit("replace"));
    let (whole, old, new) = (text(0)?, text(1)?, text(2)?);
    let found = whole.matches(old).take(most.unwrap_or(usize::MAX)).count();
    take(whole.len().saturating_add(found.saturating_mul(new.len())))?;
    Ok(owned(whole.replacen(old, new, found)))
}

fn join<'b, 'v>(arguments: &[CowVal<'_, '_>]) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let separator = match arguments.len() {
        1 => "",
        _ => text(arguments, 1).ok_or_else(|| unfit("join"))?,
    };
    let list = arguments.first().ok_or_else(|| unfit("join"))?;
    budget::take(budget::length(&**list))?;
    let Value::List(elements) = Value::try_from(&**list)? else {
        return Err(unfit("join"));
    };
    let texts = elements.iter().map(|element| match element {
        Value::String(text) => Ok(text.as_str()),
        _ => Err(unfit("join")),
    });
    let texts = texts.collect::<Result<Vec<&str>, _>>()?;
    let length = texts
        .iter()
        .fold(0_usize, |length, text| length.saturating_add(text.len()));
    take(length.saturating_add(texts.len().saturating_mul(separator.len())))?;
    Ok(owned(texts.join(separator)))
}

fn take(bytes: usize) -> Result<(), ExecutionError> {
    budget::take(bytes / BYTES)
}

fn text<'a>(arguments: &'a [CowVal<'_, '_>], at: usize) -> Option<&'a str> {
    let text = arguments.get(at)?.downcast_ref::<CelString<'_>>()?;
    Some(text.inner())
}

fn owned<'b, 'v>(text: String) -> CowVal<'b, 'v> {
    CowVal::owned(CelString::from(text))
}

fn unfit(function: &str) -> ExecutionError {
    ExecutionError::function_error(function, "it takes texts")
}
