//! Compares our answer with the real kustomize's, for many trees, and shows each sort of difference once, made small.

#![expect(clippy::print_stdout, reason = "differences are shown as they are found")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use proptest::strategy::{Strategy, ValueTree};

use regex::Regex;

use crate::oracle::{Answer, Oracle};
use crate::tree::{Shrinking, Tree, Trees};
use crate::{answer, generate, number, runner};

/// How both answers differ: what has to stay the same while a tree gets smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    OtherOutput,
    OtherWords,
    Refused,
    NotRefused,
    Panic,
}

struct Difference {
    sort: Sort,
    /// The difference without names and numbers, so that the same bug counts once.
    signature: String,
    details: String,
}

impl Difference {
    /// Returns whether another difference may be of the same bug.
    fn is_like(&self, other: &Self) -> bool {
        let start = |signature: &str| signature.chars().take(24).collect::<String>();
        let by_words = matches!(self.sort, Sort::Refused | Sort::NotRefused);
        self.sort == other.sort && (!by_words || start(&self.signature) == start(&other.signature))
    }
}

/// Runs `CASES` trees; fails when any answer is different.
pub fn run(program: PathBuf) {
    let mut oracle = Oracle::new(program).expect("KUSTOMIZE starts");
    let mut cases = 0;
    let mut refusals: BTreeMap<String, usize> = BTreeMap::new();
    let mut found: BTreeMap<(Sort, String), usize> = BTreeMap::new();
    let mut runner = runner(1);
    let wanted = number("CASES").unwrap_or(1000);
    let mut trees: Vec<Shrinking> = Vec::new();
    if let Some(seed) = number("TREE") {
        trees.push(Shrinking::new(generate::tree(seed)));
    }
    let single = !trees.is_empty();
    while cases < if single { 1 } else { wanted } {
        let tree = trees
            .pop()
            .unwrap_or_else(|| Trees.new_tree(&mut runner).expect("a tree"));
        cases += 1;
        let ours = ours(&tree.current());
        if let Ok(Err(refusal)) = &ours {
            *refusals.entry(general(refusal)).or_default() += 1;
        }
        let Some(first) = compare(ours, &mut oracle, &tree.current()) else {
            continue;
        };
        // The whole tree tells little about the bug: the small one does.
        let (small, difference) = shrink(tree, first, &mut oracle);
        let count = found.entry((difference.sort, difference.signature)).or_default();
        *count += 1;
        if *count == 1 {
            println!(
                "=== {:?}\n{}\n{}\n",
                difference.sort,
                small.show(),
                difference.details
            );
        }
    }
    let differences: usize = found.values().sum();
    let refused: usize = refusals.values().sum();
    println!(
        "{cases} trees, {refused} refused, {differences} differences of {} sorts",
        found.len()
    );
    for ((sort, signature), count) in &found {
        println!("{count} {sort:?} {signature}");
    }
    if std::env::var_os("REFUSALS").is_some() {
        for (words, count) in &refusals {
            println!("{count} refused: {words}");
        }
    }
    assert!(found.is_empty(), "{differences} of {cases} answers are different");
}

fn ours(tree: &Tree) -> Result<Answer, String> {
    answer(&tree.file_system(), &tree.folder)
}

fn shrink(mut tree: Shrinking, mut difference: Difference, oracle: &mut Oracle) -> (Tree, Difference) {
    let mut small = tree.current();
    let mut more = tree.simplify();
    for _ in 0..3000 {
        if !more {
            break;
        }
        let current = tree.current();
        match compare(ours(&current), oracle, &current) {
            Some(same) if difference.is_like(&same) => {
                (small, difference) = (current, same);
                more = tree.simplify();
            }
            _ => more = tree.complicate(),
        }
    }
    (small, difference)
}

fn compare(ours: Result<Answer, String>, oracle: &mut Oracle, tree: &Tree) -> Option<Difference> {
    let theirs = oracle.build(tree).expect("the real kustomize answers");
    let (sort, signature, details) = match (ours, theirs) {
        (Err(why), theirs) => (Sort::Panic, why.clone(), format!("{why}\nexpected {theirs:?}")),
        (Ok(Ok(ours)), Ok(theirs)) => {
            if ours == theirs {
                return None;
            }
            let lines = changed(&theirs, &ours);
            (Sort::OtherOutput, general(&lines), lines)
        }
        (Ok(Err(ours)), Err(theirs)) => {
            if ours == theirs || intended(&ours, &theirs) {
                return None;
            }
            let details = format!("expected {}\nactual   {}", shortened(&theirs), shortened(&ours));
            (Sort::OtherWords, differing(&theirs, &ours), details)
        }
        (Ok(Err(ours)), Ok(theirs)) => (
            Sort::Refused,
            general(&ours),
            format!("actual {ours}\nexpected\n{theirs}"),
        ),
        (Ok(Ok(_)), Err(theirs)) if may_be_taken(&theirs) => return None,
        (Ok(Ok(ours)), Err(theirs)) => (
            Sort::NotRefused,
            general(&theirs),
            format!("expected {theirs}\nactual\n{ours}"),
        ),
    };
    Some(Difference {
        sort,
        signature,
        details,
    })
}

/// Returns whether both messages have a part, and are the same before it.
fn same_until(part: &str, ours: &str, theirs: &str) -> bool {
    let before = |text: &str| text.split_once(part).map(|(before, _)| pointers_hidden(before));
    before(theirs).is_some() && before(theirs) == before(ours)
}

/// Addresses are different each time.
fn pointers_hidden(text: &str) -> String {
    let pointer = Regex::new("0x[0-9a-f]{6,}").expect("a pattern");
    pointer.replace_all(text, "0xPTR").into_owned()
}

/// Shows the ends of a long message.
fn shortened(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    match letters.len() {
        0..=1500 => text.to_owned(),
        length => letters[..600].iter().chain(&letters[length - 900..]).collect(),
    }
}

/// Tells a refusal that has other words on purpose: docs/compatibility/kustomize.md names them.
fn intended(ours: &str, theirs: &str) -> bool {
    const REFERENCE: &str = "updating name reference in '";
    const NUMBER: &str = "json: unsupported value: ";
    let both = |part: &str| ours.contains(part) && theirs.contains(part);
    let shows_a_secret = theirs.contains("\"kind\":\"Secret\"");
    // What we refuse and it dies of.
    let died = theirs.starts_with("panic: ") || theirs.starts_with("the real kustomize died");
    // Go's addresses.
    let same = ours == pointers_hidden(theirs);
    // The object with what is secret in it.
    let secret = shows_a_secret && (same_until("[{", ours, theirs) || theirs.starts_with("map[string]"));
    // All field specifications of a configuration.
    let dump = theirs.contains("merging config &{") && ours.contains("conflicting fieldspecs");
    // A part of the object as it is written: in the style of its file there.
    let style = same_until("node contents:", ours, theirs);
    // The first of several in the order of a Go map, which is none.
    let order = both(REFERENCE);
    same || died || may_be_taken(theirs) || secret || dump || style || order || both(NUMBER)
}

/// Returns whether what it refuses may be taken.
fn may_be_taken(theirs: &str) -> bool {
    // An object whose apiVersion or kind is null.
    theirs.contains("node-referrerOriginal '")
}

/// Shows the lines that are in one text only.
fn changed(expected: &str, actual: &str) -> String {
    let (expected, actual): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let same = expected.iter().zip(&actual).take_while(|(e, a)| e == a).count();
    let ends = expected[same..].iter().rev().zip(actual[same..].iter().rev());
    let tail = ends.take_while(|(e, a)| e == a).count();
    let mut lines = vec![format!("line {}", same + 1)];
    for (sign, text) in [("-", &expected), ("+", &actual)] {
        for line in text[same..text.len() - tail].iter().take(25) {
            lines.push(format!("{sign}{line}"));
        }
    }
    lines.join("\n")
}

/// Takes away what is different each time: the way to the failure, digits, and the words that trees are made of.
fn general(text: &str) -> String {
    let words = [
        "app-web", "app", "web", "config", "db", "base", "other", "middle", "top", "prod", "shop", "default",
    ];
    let text = text
        .rsplit("recursed accumulation of path '")
        .next()
        .unwrap_or(text);
    let mut general: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
    for word in words {
        general = general.replace(word, "_");
    }
    let line = general.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(160).collect()
}

/// Gives the words in which two messages differ.
fn differing(expected: &str, actual: &str) -> String {
    let (expected, actual): (Vec<&str>, Vec<&str>) =
        (expected.split(' ').collect(), actual.split(' ').collect());
    let same = expected.iter().zip(&actual).take_while(|(e, a)| e == a).count();
    let tail = expected[same..]
        .iter()
        .rev()
        .zip(actual[same..].iter().rev())
        .take_while(|(e, a)| e == a)
        .count();
    let from = same.saturating_sub(3);
    format!(
        "expected {} actual {}",
        general(&expected[from..expected.len() - tail].join(" ")),
        general(&actual[from..actual.len() - tail].join(" "))
    )
}
