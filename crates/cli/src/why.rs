//! `windlass why`: from an object that is not ready to what keeps it from being so.
//!
//! The way is walked again and again over what was fetched, until nothing more is wanted: [`walk`] is pure.

mod walk;

use clap::Args;
use futures::future::join_all;

use crate::cluster::output::{self, Colours, Tone};
use crate::cluster::{self, Cluster, ClusterFlags, Failure, Output, kind, print};
use walk::{Fetched, Finding, Lookup, State, walk};

/// What was typed.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// KIND/NAME, or KIND NAME
    #[arg(value_name = "OBJECT", required = true)]
    words: Vec<String>,

    /// In which form
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Asks, and prints. An object that is not ready makes the command fail, so that scripts need not read.
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let target = kind::one_target(&flags.words)?;
    cluster::run(&flags.cluster, async |cluster| {
        let root = target.id(&cluster.namespace);
        cluster.need(&root).await?;
        let mut fetched = Fetched::new();
        let found = loop {
            let mut wanted = Vec::new();
            let found = walk(&root, &fetched, &mut wanted);
            if wanted.is_empty() {
                break found;
            }
            wanted.sort();
            wanted.dedup();
            fetched.extend(fetch(&cluster, wanted).await);
        };
        match flags.output {
            Output::Json | Output::Yaml => {
                let value =
                    serde_json::to_value(&found).map_err(|error| Failure::Write(error.to_string()))?;
                print(&output::document(&value, flags.output)?)?;
            }
            Output::Name => {
                let roots = found.roots();
                print(
                    &roots
                        .iter()
                        .map(|root| format!("{}\n", root.object))
                        .collect::<String>(),
                )?;
            }
            Output::Table | Output::Wide => print(&shown(&found, Colours::of_terminal()))?,
        }
        match found.state {
            State::Ready => Ok(()),
            state => Err(Failure::NotReady(format!("{root} is {}", words(state)))),
        }
    })
}

async fn fetch(cluster: &Cluster, wanted: Vec<manifest::ObjectId>) -> Fetched {
    let lookups = wanted.into_iter().map(async |id| {
        let lookup = match cluster.get(&id).await {
            Ok(Some(object)) => Lookup::Found(object),
            Ok(None) => Lookup::Absent,
            Err(error) => Lookup::Refused(error.to_string()),
        };
        (id, lookup)
    });
    join_all(lookups).await.into_iter().collect()
}

/// What is printed for people: the way as a tree, then the causes.
fn shown(found: &Finding, colours: Colours) -> String {
    let mut text = String::new();
    write(found, ["", "", ""], colours, &mut text);
    let roots = found.roots();
    if !roots.is_empty() {
        text.push('\n');
    }
    for root in roots {
        let what = match root.state {
            State::NotReady if !root.reason.is_empty() => &root.reason,
            state => words(state),
        };
        text.push_str(&format!("cause: {}: {what}", root.object));
        if !root.message.is_empty() {
            text.push_str(&format!(": {}", root.message));
        }
        text.push('\n');
    }
    text
}

/// Writes an object and what is below it. `[first, rest, role]`: what stands before its first line, before its other lines,
/// and what it is for the object above.
fn write(found: &Finding, [first, rest, role]: [&str; 3], colours: Colours, text: &mut String) {
    let reason = match found.state {
        State::NotReady if !found.reason.is_empty() => format!(" ({})", found.reason),
        _ => String::new(),
    };
    let state = colours.paint(words(found.state), tone(found.state));
    text.push_str(&format!("{first}{role}{}: {state}{reason}\n", found.object));
    // Below a branch, lines of an object stand a little to the right of its children's branches.
    let mut line = |said: &str| text.push_str(&format!("{rest}  {said}\n"));
    if !found.message.is_empty() {
        line(&found.message);
    }
    if let Some(revision) = revision(found) {
        line(&revision);
    }
    let last = found.because.len().saturating_sub(1);
    for (number, cause) in found.because.iter().enumerate() {
        let (branch, below) = if number == last {
            ("└── ", "    ")
        } else {
            ("├── ", "│   ")
        };
        let prefixes = [
            format!("{rest}{branch}"),
            format!("{rest}{below}"),
            format!("{} ", cause.role),
        ];
        write(cause, prefixes.each_ref().map(String::as_str), colours, text);
    }
}

fn revision(found: &Finding) -> Option<String> {
    let mut parts = Vec::new();
    if !found.revision.is_empty() {
        let of = if found.url.is_empty() {
            String::new()
        } else {
            format!(" of {}", found.url)
        };
        parts.push(format!("revision {}{of}", found.revision));
    }
    if !found.attempted.is_empty() {
        parts.push(format!("{} was tried", found.attempted));
    }
    if !found.origin.is_empty() {
        parts.push(format!("made of {}", found.origin));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn words(state: State) -> &'static str {
    match state {
        State::Ready => "ready",
        State::Behind => "behind",
        State::NotReady => "not ready",
        State::Suspended => "suspended",
        State::Absent => "absent",
        State::Unreadable => "not readable",
    }
}

fn tone(state: State) -> Tone {
    match state {
        State::Ready => Tone::Good,
        State::Behind | State::Suspended => Tone::Open,
        _ => Tone::Bad,
    }
}
