//! A count of what loops cost, and what is made larger and larger. cel-rust has none, so each range of a loop and each
//! part of what is joined is wrapped into a call that takes its length from what is left.

use std::cell::Cell;
use std::time::{Duration, Instant};

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr};
use cel::common::types::{CelString, DYN_TYPE};
use cel::common::value::Val;
use cel::{DeclarationError, Env, ExecutionError};

use crate::{patterns, texts};

/// Steps of all loops of an evaluation; Kubernetes allows some millions of units of cost for one.
const STEPS: usize = 1_000_000;
/// Time limit of one evaluation. Counting steps does not catch all slow operations: comparing two large objects is one step.
const TIME: Duration = Duration::from_secs(1);
/// Bytes of text that count as a step.
pub(crate) const BYTES: usize = 8;
/// A name that no text can call.
const CHARGE: &str = "@charge";
/// Variable in which macros collect their values.
const GATHERED: &str = "@result";
/// As [`CHARGE`]; each byte of a text counts.
const CHARGE_BYTES: &str = "@charge_bytes";

thread_local! {
    /// Remaining steps of the evaluation on this thread.
    static LEFT: Cell<usize> = const { Cell::new(STEPS) };
    /// When it ends.
    static UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Begins an evaluation.
pub(crate) fn reset() {
    LEFT.set(STEPS);
    UNTIL.set(Instant::now().checked_add(TIME));
}

/// Takes from what is left.
pub(crate) fn take(steps: usize) -> Result<(), ExecutionError> {
    if UNTIL.get().is_some_and(|until| Instant::now() > until) {
        let problem = format!("it takes longer than {} s", TIME.as_secs());
        return Err(ExecutionError::function_error("loop", problem));
    }
    let left = LEFT.get().checked_sub(steps);
    LEFT.set(left.unwrap_or(0));
    left.map(drop)
        .ok_or_else(|| ExecutionError::function_error("loop", format!("it makes more than {STEPS} steps")))
}

/// Declares the call.
pub(crate) fn extension(environment: &mut Env) -> Result<(), DeclarationError> {
    environment.add_overload(CHARGE, "charge_dyn", vec![DYN_TYPE], |mut arguments| {
        let range = arguments
            .pop()
            .ok_or_else(|| ExecutionError::function_error("loop", "it has no range"))?;
        // What cannot be looped over is refused by the loop itself.
        take(length(&*range))?;
        Ok(range)
    })?;
    environment.add_overload(
        CHARGE_BYTES,
        "charge_bytes_dyn",
        vec![DYN_TYPE],
        |mut arguments| {
            let text = arguments
                .pop()
                .ok_or_else(|| ExecutionError::function_error("split", "it has no text"))?;
            take(length(&*text).saturating_mul(BYTES))?;
            Ok(text)
        },
    )
}

/// Number of elements of a list or map; a part of the bytes of a text.
pub(crate) fn length(value: &dyn Val) -> usize {
    if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        return text.inner().len() / BYTES;
    }
    let Some(iterable) = value.as_iterable() else {
        return 0;
    };
    let (mut elements, mut count) = (iterable.iter(), 0);
    while elements.next().is_some() {
        count += 1;
    }
    count
}

/// Wraps the range of each loop in the tree.
pub(crate) fn charge(mut tree: IdedExpr) -> IdedExpr {
    wrap(&mut tree);
    tree
}

fn wrap(node: &mut IdedExpr) {
    match &mut node.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| wrap(target));
            call.args.iter_mut().for_each(wrap);
            count_texts(call);
        }
        Expr::Comprehension(comprehension) => {
            for part in [
                &mut comprehension.iter_range,
                &mut comprehension.accu_init,
                &mut comprehension.loop_cond,
                &mut comprehension.loop_step,
                &mut comprehension.result,
            ] {
                wrap(part);
            }
            charged(&mut comprehension.iter_range);
            // At each turn the clock is looked at.
            charged(&mut comprehension.loop_cond);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(wrap),
        Expr::Map(map) => map
            .entries
            .iter_mut()
            .for_each(|entry| wrap_entry(&mut entry.expr)),
        Expr::Struct(value) => value
            .entries
            .iter_mut()
            .for_each(|entry| wrap_entry(&mut entry.expr)),
        Expr::Select(select) => wrap(&mut select.operand),
    }
}

fn is_gathered(node: Option<&IdedExpr>) -> bool {
    matches!(node.map(|node| &node.expr), Some(Expr::Ident(name)) if name == GATHERED)
}

/// Has what makes texts larger, or many of one, counted.
fn count_texts(call: &mut CallExpr) {
    let counted = match call.func_name.as_str() {
        "replace" => texts::REPLACE,
        "join" => texts::JOIN,
        "matches" => patterns::MATCHES,
        "split" => {
            // Each character can become a text of its own.
            let target = call.target.as_deref_mut();
            target
                .into_iter()
                .for_each(|target| wrap_into(CHARGE_BYTES, target));
            return;
        }
        // A step of a macro, which adds one element to what it has gathered; its range is counted.
        "_+_" if is_gathered(call.args.first()) => return,
        "_+_" | "format" => {
            let parts = call.target.as_deref_mut().into_iter().chain(&mut call.args);
            parts.for_each(charged);
            return;
        }
        _ => return,
    };
    if let Some(target) = call.target.take() {
        call.args.insert(0, *target);
        call.func_name = counted.to_owned();
    } else if counted == patterns::MATCHES {
        // It can be written as a function, too.
        call.func_name = counted.to_owned();
    }
}

/// Wraps a value into the call that takes its length.
fn charged(node: &mut IdedExpr) {
    wrap_into(CHARGE, node);
}

fn wrap_into(function: &str, node: &mut IdedExpr) {
    let value = std::mem::take(node);
    *node = IdedExpr {
        id: value.id,
        expr: Expr::Call(CallExpr {
            func_name: function.to_owned(),
            target: None,
            args: vec![value],
        }),
    };
}

fn wrap_entry(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::StructField(field) => wrap(&mut field.value),
        EntryExpr::MapEntry(entry) => {
            wrap(&mut entry.key);
            wrap(&mut entry.value);
        }
    }
}
