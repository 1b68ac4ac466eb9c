//! What a comparison found, for people.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use serde_json::Value;

use crate::compare::{Comparison, Difference, EVENTS};
use crate::known;

/// How long a value is shown.
const SHOWN: usize = 160;

/// The report as Markdown: how much is equal, what differs for a reason, and what is open.
pub fn markdown(comparison: &Comparison) -> Result<String, fmt::Error> {
    let mut text = String::new();
    table_of_steps(comparison, &mut text)?;
    table_of_rows(comparison, &mut text)?;
    open(comparison, &mut text)?;
    Ok(text)
}

fn table_of_steps(comparison: &Comparison, text: &mut String) -> fmt::Result {
    writeln!(
        text,
        "| after the step | objects | equal | equal but for rows below | open | events of objects | equal | rows below | open |"
    )?;
    writeln!(text, "|---|---|---|---|---|---|---|---|---|")?;
    let mut sums = [0; 8];
    for ((step, objects), (_, events)) in comparison.objects.iter().zip(&comparison.events) {
        let at_step: Vec<_> = comparison
            .differences
            .iter()
            .filter(|difference| difference.step == *step)
            .collect();
        let [objects, events] = [(*objects, false), (*events, true)].map(|(count, is_events)| {
            let of = |is_open: bool| -> BTreeSet<(&str, &str)> {
                let matching = at_step.iter().filter(|difference| {
                    (difference.path == [EVENTS]) == is_events
                        && known::row_of(difference).is_none() == is_open
                });
                matching
                    .map(|difference| (difference.case.as_str(), difference.object.as_str()))
                    .collect()
            };
            let open = of(true);
            let explained = of(false).difference(&open).count();
            [count, count - explained - open.len(), explained, open.len()]
        });
        let row = [objects, events].concat();
        sums.iter_mut().zip(&row).for_each(|(sum, count)| *sum += count);
        write_row(text, step.name(), &row)?;
    }
    write_row(text, "**all**", &sums)
}

fn write_row(text: &mut String, name: &str, counts: &[usize]) -> fmt::Result {
    let counts: Vec<_> = counts.iter().map(ToString::to_string).collect();
    writeln!(text, "| {name} | {} |", counts.join(" | "))
}

fn table_of_rows(comparison: &Comparison, text: &mut String) -> fmt::Result {
    let mut rows: BTreeMap<known::Row, (usize, BTreeSet<&str>)> = BTreeMap::new();
    for difference in &comparison.differences {
        if let Some(row) = known::row_of(difference) {
            let (count, cases) = rows.entry(row).or_default();
            *count += 1;
            cases.insert(&difference.case);
        }
    }
    writeln!(
        text,
        "\n| differs for a reason | under | values | cases |\n|---|---|---|---|"
    )?;
    for (row, (count, cases)) in rows {
        writeln!(
            text,
            "| {} | {} | {count} | {} |",
            row.what,
            row.section,
            cases.len()
        )?;
    }
    Ok(())
}

/// The differences that nothing explains, those in most values first.
fn open(comparison: &Comparison, text: &mut String) -> fmt::Result {
    let mut groups: BTreeMap<String, Vec<&Difference>> = BTreeMap::new();
    for difference in &comparison.differences {
        if known::row_of(difference).is_none() {
            groups.entry(signature(difference)).or_default().push(difference);
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, found)| std::cmp::Reverse(found.len()));
    writeln!(text, "\nOpen: {} kinds of differences.\n", groups.len())?;
    for (signature, found) in groups {
        let cases: BTreeSet<_> = found.iter().map(|difference| &difference.case).collect();
        let Some(first) = found.first() else { continue };
        writeln!(
            text,
            "- `{signature}`: {} values in {} cases; {} after \"{}\": Flux `{}`, Windlass `{}`",
            found.len(),
            cases.len(),
            first.case,
            first.step.name(),
            shown(first.peer.as_ref()),
            shown(first.ours.as_ref())
        )?;
    }
    Ok(())
}

/// Kind and place of a difference, without names.
fn signature(difference: &Difference) -> String {
    let kind = difference.object.split(' ').next().unwrap_or_default();
    let side = match (&difference.peer, &difference.ours) {
        (Some(_), None) => " (only Flux)",
        (None, Some(_)) => " (only Windlass)",
        _ => "",
    };
    format!("{kind} {}{side}", difference.path.join("."))
}

fn shown(value: Option<&Value>) -> String {
    let Some(value) = value else {
        return "nothing".to_owned();
    };
    let text = value.to_string().replace('`', "'");
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
