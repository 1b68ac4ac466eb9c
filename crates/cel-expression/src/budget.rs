//! A count of what loops cost. cel-rust has none, so each range of a loop is wrapped into a call that takes its length
//! from what is left.

use std::cell::Cell;

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr};
use cel::common::types::DYN_TYPE;
use cel::common::value::Val;
use cel::{DeclarationError, Env, ExecutionError};

/// Steps of all loops of an evaluation; Kubernetes allows some millions of units of cost for one.
const STEPS: usize = 1_000_000;
/// A name that no text can call.
const CHARGE: &str = "@charge";

thread_local! {
    /// What is left for the evaluation on this thread.
    static LEFT: Cell<usize> = const { Cell::new(STEPS) };
}

/// Begins an evaluation.
pub(crate) fn reset() {
    LEFT.set(STEPS);
}

/// Takes from what is left.
pub(crate) fn take(steps: usize) -> Result<(), ExecutionError> {
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
    })
}

/// Number of elements of a list or map.
pub(crate) fn length(value: &dyn Val) -> usize {
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
            let range = std::mem::take(&mut comprehension.iter_range);
            comprehension.iter_range = IdedExpr {
                id: range.id,
                expr: Expr::Call(CallExpr {
                    func_name: CHARGE.to_owned(),
                    target: None,
                    args: vec![range],
                }),
            };
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

fn wrap_entry(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::StructField(field) => wrap(&mut field.value),
        EntryExpr::MapEntry(entry) => {
            wrap(&mut entry.key);
            wrap(&mut entry.value);
        }
    }
}
