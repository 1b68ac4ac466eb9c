//! Compares our answer with the real Helm's, for many templates, and shows each sort of difference once, made small.

#![expect(clippy::print_stdout, reason = "differences are shown as they are found")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::generate::{self, Body};
use crate::oracle::Oracle;
use crate::random::Random;
use crate::shrink::shrink;
use crate::{Answer, VALUES, answer, helm, number};

/// Runs `CASES` templates; fails when any answer is different.
pub fn run(program: PathBuf) {
    let mut oracle = Oracle::new(program).expect("ORACLE starts");
    let first = number("SEED").unwrap_or(1);
    let cases = number("CASES").unwrap_or(1000);
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let mut failed = 0;
    for seed in first..first + cases {
        let body = generate::template(&mut Random::new(seed));
        let Some(difference) = compare(&mut oracle, &body, &mut failed) else {
            continue;
        };
        let sort = difference.sort;
        let small = shrink(body, |body| {
            compare(&mut oracle, body, &mut 0).is_some_and(|other| other.sort == sort)
        });
        let difference = compare(&mut oracle, &small, &mut 0).unwrap_or(difference);
        let count = found.entry(difference.signature(&small)).or_default();
        *count += 1;
        if *count == 1 {
            println!(
                "=== {seed} {sort}\n{small}\nexpected {}\nactual   {}\n",
                difference.theirs, difference.ours
            );
        }
    }
    for (signature, count) in &found {
        println!("{count} {signature}");
    }
    let differences: usize = found.values().sum();
    println!(
        "{cases} templates, {failed} with an error, {differences} differences of {} sorts",
        found.len()
    );
    assert!(found.is_empty(), "{differences} of {cases} answers are different");
}

struct Difference {
    sort: &'static str,
    theirs: String,
    ours: String,
}

impl Difference {
    /// The functions of the small template: what is likely to be wrong.
    fn signature(&self, small: &Body) -> String {
        let text: String = small
            .to_string()
            .chars()
            .filter(|c| !c.is_ascii_digit())
            .take(100)
            .collect();
        format!("{} {text:?}", self.sort)
    }
}

fn compare(oracle: &mut Oracle, body: &Body, failed: &mut usize) -> Option<Difference> {
    let template = body.to_string();
    let theirs = oracle.ask(&template, VALUES, helm())?;
    *failed += usize::from(theirs.is_err());
    let ours = answer(&template, VALUES, helm());
    let sort = match (&theirs, &ours) {
        (_, Err(_)) => "panic",
        (Ok(theirs), Ok(Ok(ours))) if theirs == ours => return None,
        (Err(theirs), Ok(Err(ours))) if without_pointers(theirs) == without_pointers(ours) => return None,
        (Ok(_), Ok(Ok(_))) => "other output",
        (Err(_), Ok(Err(_))) => "other error",
        (Ok(_), Ok(Err(_))) => "refused",
        (Err(_), Ok(Ok(_))) => "not refused",
    };
    let ours = ours.map_or_else(|why| why, |answer| show(&answer));
    Some(Difference {
        sort,
        theirs: show(&theirs),
        ours,
    })
}

fn show(answer: &Answer) -> String {
    let text = match answer {
        Ok(output) => format!("output {:?}", String::from_utf8_lossy(output)),
        Err(error) => format!("error {error}"),
    };
    text.chars().take(1200).collect()
}

/// Addresses are different each time.
fn without_pointers(text: &str) -> String {
    let mut parts = text.split("0x");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_hexdigit).count();
        out.push_str(if digits >= 8 { "0xPTR" } else { "0x" });
        out.push_str(if digits >= 8 { &part[digits..] } else { part });
    }
    out
}
