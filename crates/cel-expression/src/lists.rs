//! `first()` and `last()` of lists, which belong to cel-go's optional types.

use cel::common::types::{CelOptional, LIST_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{DeclarationError, Env, ExecutionError, Value};

use crate::budget;

/// Declares both.
pub(crate) fn extension(environment: &mut Env) -> Result<(), DeclarationError> {
    environment.add_member_overload("first", "list_first", LIST_TYPE, vec![], |arguments| {
        end(&arguments, <[Value]>::first)
    })?;
    environment.add_member_overload("last", "list_last", LIST_TYPE, vec![], |arguments| {
        end(&arguments, <[Value]>::last)
    })
}

fn end<'b, 'v>(
    arguments: &[CowVal<'_, '_>],
    choose: fn(&[Value]) -> Option<&Value>,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let no_list = || ExecutionError::function_error("list", "it takes a list");
    let list: &dyn Val = &**arguments.first().ok_or_else(no_list)?;
    budget::take(budget::length(list))?;
    let Value::List(elements) = Value::try_from(list)? else {
        return Err(no_list());
    };
    let element = choose(&elements).cloned().map(Box::<dyn Val>::try_from);
    Ok(CowVal::owned(match element.transpose()? {
        Some(element) => CelOptional::of(element),
        None => CelOptional::none(),
    }))
}
