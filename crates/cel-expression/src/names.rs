//! The names that an expression takes from outside.

use std::collections::BTreeSet;

use cel::common::ast::{EntryExpr, Expr, IdedExpr};

/// Lists the names that are bound neither by a loop nor by the language.
pub(crate) fn free(tree: &IdedExpr) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    collect(tree, &mut Vec::new(), &mut names);
    names
}

/// Names that are types, and no variables.
const TYPES: [&str; 11] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "timestamp",
    "uint",
];
/// Before these names stands a dot that is part of a function's name.
const NAMESPACES: [&str; 6] = ["base64", "google", "math", "optional", "sets", "strings"];

fn collect<'a>(node: &'a IdedExpr, bound: &mut Vec<&'a str>, names: &mut BTreeSet<&'a str>) {
    match &node.expr {
        Expr::Unspecified | Expr::Literal(_) => {}
        Expr::Ident(name) => {
            let name = name.trim_start_matches('.');
            if !bound.contains(&name) && !TYPES.contains(&name) && !NAMESPACES.contains(&name) {
                names.insert(name);
            }
        }
        Expr::Call(call) => {
            let parts = call.target.as_deref().into_iter().chain(&call.args);
            parts.for_each(|part| collect(part, bound, names));
        }
        Expr::Comprehension(comprehension) => {
            collect(&comprehension.iter_range, bound, names);
            collect(&comprehension.accu_init, bound, names);
            let outside = bound.len();
            bound.push(&comprehension.accu_var);
            collect(&comprehension.result, bound, names);
            bound.push(&comprehension.iter_var);
            bound.extend(comprehension.iter_var2.as_deref());
            collect(&comprehension.loop_cond, bound, names);
            collect(&comprehension.loop_step, bound, names);
            bound.truncate(outside);
        }
        Expr::List(list) => list
            .elements
            .iter()
            .for_each(|element| collect(element, bound, names)),
        Expr::Map(map) => entries(map.entries.iter().map(|entry| &entry.expr), bound, names),
        Expr::Struct(value) => entries(value.entries.iter().map(|entry| &entry.expr), bound, names),
        Expr::Select(select) => collect(&select.operand, bound, names),
    }
}

fn entries<'a>(
    entries: impl Iterator<Item = &'a EntryExpr>,
    bound: &mut Vec<&'a str>,
    names: &mut BTreeSet<&'a str>,
) {
    for entry in entries {
        match entry {
            EntryExpr::StructField(field) => collect(&field.value, bound, names),
            EntryExpr::MapEntry(entry) => {
                collect(&entry.key, bound, names);
                collect(&entry.value, bound, names);
            }
        }
    }
}
