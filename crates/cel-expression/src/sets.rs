//! The sets extension of cel-go: lists compared without regard to order and repetition.

use cel::common::types::{CelBool, LIST_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError, Value};

use crate::budget;

type Sets = (Vec<Value>, Vec<Value>);

/// Declares `sets.contains`, `sets.equivalent` and `sets.intersects`.
pub(crate) fn extension(environment: &mut Env) -> Result<(), DeclarationError> {
    let lists = || vec![LIST_TYPE, LIST_TYPE];
    environment.add_overload("sets.contains", "list_sets_contains_list", lists(), |arguments| {
        answer(&arguments, |(list, part)| contains(list, part))
    })?;
    environment.add_overload(
        "sets.equivalent",
        "list_sets_equivalent_list",
        lists(),
        |arguments| answer(&arguments, |(a, b)| contains(a, b) && contains(b, a)),
    )?;
    environment.add_overload(
        "sets.intersects",
        "list_sets_intersects_list",
        lists(),
        |arguments| answer(&arguments, |(a, b)| a.iter().any(|element| b.contains(element))),
    )
}

fn answer<'b, 'v>(
    arguments: &[CowVal<'_, '_>],
    decide: fn(&Sets) -> bool,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [first, second] = arguments else {
        return Err(ExecutionError::function_error("sets", "it takes two lists"));
    };
    budget::take(budget::length(&**first).saturating_mul(budget::length(&**second)))?;
    let sets = (elements(&**first)?, elements(&**second)?);
    Ok(CowVal::owned(CelBool::from(decide(&sets))))
}

fn contains(list: &[Value], part: &[Value]) -> bool {
    part.iter().all(|element| list.contains(element))
}

fn elements(list: &dyn Val) -> Result<Vec<Value>, ExecutionError> {
    match Value::try_from(list)? {
        Value::List(elements) => Ok(elements.to_vec()),
        _ => Err(ExecutionError::function_error("sets", "it takes two lists")),
    }
}
