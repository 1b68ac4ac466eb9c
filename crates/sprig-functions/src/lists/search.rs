//! Questions of equality and order: `has`, `uniq`, `without`, `sortAlpha`.

use std::collections::HashSet;

use go_template::{Context, Error, Functions, List, Str, Type, Value};

use super::items::items;
use crate::arguments::{add, add_variadic, any};
use crate::deep_equal::deep_equal;
use crate::printed::{text_of, texts_of};

const ONE: &[Type] = &[Type::ANY];
const TWO: &[Type] = &[Type::ANY, Type::ANY];

pub(super) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("uniq", ONE, unique),
            ("mustUniq", ONE, unique),
            ("has", TWO, has),
            ("mustHas", TWO, has),
            ("sortAlpha", ONE, sort_alpha),
        ],
    );
    add_variadic(
        functions,
        Type::ANY,
        &[("without", ONE, without), ("mustWithout", ONE, without)],
    );
}

fn unique(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let list = any(arguments, 0);
    let items = items(&list, |kind| format!("Cannot find uniq on type {kind}"))?;
    let mut texts: HashSet<&Str> = HashSet::new();
    let mut others: Vec<&Value> = Vec::new();
    let mut kept = Vec::new();
    for item in items.iter() {
        let is_new = if let Value::String(text) = item {
            texts.insert(text)
        } else {
            context.charge(others.len())?;
            let is_new = !others.iter().any(|other| deep_equal(item, other));
            others.extend(is_new.then_some(item));
            is_new
        };
        if is_new {
            kept.push(item.clone());
        }
    }
    Ok(List::from(kept).into())
}

fn without(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let list = any(arguments, 0);
    let omitted = arguments.get(1..).unwrap_or_default();
    let items = items(&list, |kind| format!("Cannot find without on type {kind}"))?;
    let kept = items
        .iter()
        .filter(|item| !omitted.iter().any(|omit| deep_equal(item, omit)));
    Ok(List::from(kept.cloned().collect::<Vec<_>>()).into())
}

fn has(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let (needle, haystack) = (any(arguments, 0), any(arguments, 1));
    if haystack.is_untyped_nil() {
        return Ok(false.into());
    }
    let items = items(&haystack, |kind| format!("Cannot find has on type {kind}"))?;
    Ok(items.iter().any(|item| deep_equal(&needle, item)).into())
}

/// Sorts the texts of a slice. A `[]string` is sorted in place, so that all who hold it see it sorted.
fn sort_alpha(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    match any(arguments, 0) {
        Value::List(list) if list.type_() == Type::LIST_STRING => {
            list.sort_strings();
            Ok(list.into())
        }
        value @ (Value::List(_) | Value::Bytes(_)) => {
            let mut texts = texts_of(&value)?;
            texts.sort_unstable();
            Ok(List::of_strings(texts).into())
        }
        value => Ok(List::of_strings([text_of(&value)?]).into()),
    }
}
