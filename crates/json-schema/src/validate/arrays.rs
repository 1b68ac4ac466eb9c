//! Keywords about arrays.

use std::collections::HashMap;

use super::{Run, Step, Token};
use crate::draft::Draft;
use crate::failure::count;
use crate::node::{Additional, ArrayRules, Items, NodeId};
use crate::number::{Decimal, english};
use go_text::json::Json;

impl<'v> Step<'_, 'v, '_> {
    pub(super) fn check_array(&mut self, items: &'v [Json<'v>], run: &mut Run<'_, 'v>) {
        let Some(rules) = self.node.arrays.as_deref() else {
            return;
        };
        let size = whole(items.len());
        if let Some(want) = rules.min_items
            && size < want
        {
            self.fail(run, || count("minItems", items.len(), want));
        }
        if let Some(want) = rules.max_items
            && size > want
        {
            self.fail(run, || count("maxItems", items.len(), want));
        }
        if rules.unique_items
            && let Some((one, two)) = duplicates(items)
        {
            self.fail(run, || {
                format!("items at {} and {} are equal", english(one), english(two))
            });
        }
        if self.node.draft < Draft::D2020 {
            self.check_items(rules, items, run);
        } else {
            for (index, item) in items.iter().enumerate() {
                if let Some(schema) = rules.prefix_items.get(index).copied().or(rules.rest_items) {
                    self.check_item(schema, index, item, run);
                }
            }
        }
        if let Some(contains) = rules.contains {
            self.check_contains(contains, rules, items, run);
        }
    }

    fn check_item(&mut self, schema: NodeId, index: usize, item: &'v Json<'v>, run: &mut Run<'_, 'v>) {
        let checked = self.check_part(schema, item, Token::Index(index), run);
        self.note(checked);
    }

    fn check_items(&mut self, rules: &ArrayRules, items: &'v [Json<'v>], run: &mut Run<'_, 'v>) {
        let mut evaluated = 0;
        match &rules.items {
            Some(Items::Each(schema)) => {
                for (index, item) in items.iter().enumerate() {
                    self.check_item(*schema, index, item, run);
                }
                evaluated = items.len();
            }
            Some(Items::Tuple(schemas)) => {
                for (index, (item, schema)) in items.iter().zip(schemas).enumerate() {
                    self.check_item(*schema, index, item, run);
                }
                evaluated = schemas.len().min(items.len());
            }
            None => {}
        }
        match &rules.additional_items {
            Some(Additional::Allowed(false)) if evaluated < items.len() => {
                let left = english(whole(items.len() - evaluated));
                self.fail(run, || format!("last {left} additionalItem(s) not allowed"));
            }
            Some(Additional::Schema(schema)) => {
                for (index, item) in items.iter().enumerate().skip(evaluated) {
                    self.check_item(*schema, index, item, run);
                }
            }
            Some(Additional::Allowed(_)) | None => {}
        }
    }

    fn check_contains(
        &mut self,
        contains: NodeId,
        rules: &ArrayRules,
        items: &'v [Json<'v>],
        run: &mut Run<'_, 'v>,
    ) {
        let mut causes = Vec::new();
        let mut matched = Vec::new();
        for (index, item) in items.iter().enumerate() {
            match self.check_part(contains, item, Token::Index(index), run) {
                Err(failure) => causes.push(*failure),
                Ok(()) => {
                    matched.push(index);
                    if self.node.draft >= Draft::D2020 {
                        self.unevaluated.items.remove(&index);
                    }
                }
            }
        }
        let size = whole(matched.len());
        match rules.min_contains {
            Some(want) if size < want => self.fail_because(causes, run, || too_few(want, &matched)),
            None if matched.is_empty() => {
                self.fail_because(causes, run, || "no items match contains schema".to_owned());
            }
            _ => {}
        }
        if let Some(want) = rules.max_contains
            && size > want
        {
            self.fail(run, || {
                let items = items_matched(&matched);
                format!(
                    "max {} items required to match contains schema, but {items}",
                    english(want)
                )
            });
        }
    }
}

fn too_few(want: i64, matched: &[usize]) -> String {
    let items = if matched.is_empty() {
        "none matched".to_owned()
    } else {
        items_matched(matched)
    };
    format!(
        "min {} items required to match contains schema, but {items}",
        english(want)
    )
}

fn items_matched(matched: &[usize]) -> String {
    let places: Vec<String> = matched.iter().map(usize::to_string).collect();
    format!(
        "matched {} items at {}",
        english(whole(matched.len())),
        places.join(" ")
    )
}

fn whole(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

/// The first item that equals one before it, and the first of those.
fn duplicates(items: &[Json<'_>]) -> Option<(i64, i64)> {
    let mut seen: HashMap<String, usize> = HashMap::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let mut key = String::new();
        write_key(item, &mut key);
        if let Some(first) = seen.get(&key) {
            return Some((whole(*first), whole(index)));
        }
        seen.insert(key, index);
    }
    None
}

/// Writes a text that only equal values share.
fn write_key(value: &Json<'_>, key: &mut String) {
    match value {
        Json::Null => key.push('n'),
        Json::Bool(true) => key.push('t'),
        Json::Bool(false) => key.push('f'),
        Json::Number(number) => match Decimal::read(number) {
            Some(number) => key.push_str(&format!("{number:?}")),
            None => key.push_str(&format!("#{number}")),
        },
        Json::Text(text) => key.push_str(&format!("{}:{text}", text.len())),
        Json::Array(items) => {
            key.push('[');
            for item in items {
                write_key(item, key);
                key.push(',');
            }
            key.push(']');
        }
        Json::Object(fields) => {
            key.push('{');
            for (name, value) in fields {
                key.push_str(&format!("{}:{name}", name.len()));
                write_key(value, key);
                key.push(',');
            }
            key.push('}');
        }
    }
}

/// Returns whether two values are equal; numbers by what they amount to.
pub(super) fn equal(one: &Json<'_>, two: &Json<'_>) -> bool {
    match (one, two) {
        (Json::Number(one), Json::Number(two)) => {
            one == two
                || matches!((Decimal::read(one), Decimal::read(two)), (Some(one), Some(two)) if one == two)
        }
        (Json::Array(one), Json::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| equal(one, two))
        }
        (Json::Object(one), Json::Object(two)) => {
            let same = |((name, one), (other, two)): (&(_, _), &(_, _))| name == other && equal(one, two);
            one.len() == two.len() && one.iter().zip(two).all(same)
        }
        _ => one == two,
    }
}
