//! How `windlass template` is used.

use crate::pflag::{Flag, Kind};

pub(super) const USAGE: &str = "windlass template [NAME] [CHART] [flags]";

/// Writes the help, with a line for each flag that does something here.
pub(super) fn text(flags: &[Flag]) -> String {
    let mut text = format!("Print what `helm template` prints.\n\nUsage: {USAGE}\n\nFlags:\n");
    let shown: Vec<(String, &str)> = flags
        .iter()
        .filter(|flag| !flag.help.is_empty())
        .map(|flag| (head(flag), flag.help))
        .collect();
    let width = shown.iter().map(|(head, _)| head.len()).max().unwrap_or(0);
    for (head, help) in shown {
        text.push_str(&format!("{head:width$}   {help}\n"));
    }
    text.push_str("\nOther flags of `helm template` are accepted if they have no effect offline, and rejected otherwise.\n");
    text
}

fn head(flag: &Flag) -> String {
    let short = flag
        .short
        .map_or("    ".to_owned(), |short| format!("-{short}, "));
    let value = match flag.kind {
        Kind::Switch => "",
        Kind::Integer | Kind::Number => " number",
        Kind::Duration => " duration",
        Kind::List | Kind::Pairs => " list",
        Kind::Text | Kind::TextOr(_) => " text",
    };
    format!("  {short}--{}{value}", flag.name)
}
