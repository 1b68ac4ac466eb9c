//! `windlass why`: from an object that is not ready to what keeps it from being so.
//!
//! The way is walked again and again over what was fetched, until nothing more is wanted. Of objects that are
//! none of Flux's the way goes through what delivers them ([`any`]).

mod any;
#[cfg(test)]
mod tests;

use clap::Args;
use delivery_graph::climb::climb;
use delivery_graph::object::short_revision;
use delivery_graph::walk::{Finding, State, walk_over};
use delivery_graph::{kind, origin};

use crate::cluster::output::{self, Cell, Colours, Tone};
use crate::cluster::{self, Cluster, ClusterFlags, Failure, Output, Reader, anything, print, select};

/// Command line of `why`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// KIND/NAME or KIND NAME, of any kind
    #[arg(value_name = "OBJECT", required = true)]
    words: Vec<String>,

    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    cluster: ClusterFlags,
}

/// Asks, and prints. An object that is not ready makes the command fail, so that scripts need not read.
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let asked = Asked::from_words(&flags.words)?;
    cluster::run(&flags.cluster, async |cluster| {
        let found = match &asked {
            Asked::OfFlux(target) => of_flux(&cluster, &target.id(&cluster.namespace)).await?,
            Asked::Any(named) => any::find(&cluster, named).await?,
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
            state => Err(Failure::NotReady(format!("{} is {}", found.object, words(state)))),
        }
    })
}

/// Subject of the question.
enum Asked {
    OfFlux(select::Target),
    Any(anything::Named),
}

impl Asked {
    /// Flux's words go before those of the cluster.
    fn from_words(words: &[String]) -> Result<Self, Failure> {
        let first = words.first().map_or("", String::as_str);
        let word = first.split('/').next().unwrap_or_default();
        let is_of_flux = kind::named(word).is_some() || (word == "all" || select::is_group(word));
        match is_of_flux {
            true => select::one_target(words).map(Self::OfFlux),
            false => anything::one_named(words).map(Self::Any),
        }
    }
}

async fn of_flux(cluster: &Cluster, root: &manifest::ObjectId) -> Result<Finding, Failure> {
    let object = cluster.need(root).await?;
    let reader = Reader::new(cluster);
    let mut found = walk_over(&reader, root).await;
    found.from = origin::origin_of(&climb(&reader, &object).await);
    Ok(found)
}

/// Draws the way, and says where it comes from.
pub(crate) fn tree(found: &Finding, colours: Colours) -> String {
    let mut text = String::new();
    write(found, ["", "", ""], colours, &mut text);
    if let Some(from) = &found.from {
        text.push_str(&format!("\nfrom: {from}\n"));
    }
    if !found.tags.is_empty() {
        let rows = found.tags.iter();
        let rows: Vec<Vec<Cell>> = rows
            .map(|one| vec![one.tag.as_str().into(), one.verdict.as_str().into()])
            .collect();
        text.push('\n');
        text.push_str(&output::table(&["TAG", "VERDICT"], &rows, colours));
    }
    if !found.environments.is_empty() {
        text.push('\n');
        text.push_str(&environments(found, colours));
    }
    for chosen in &found.images {
        text.push_str(&format!(
            "image: {} chosen by {}, written by {}",
            chosen.image, chosen.policy, chosen.automation
        ));
        if !chosen.commit.is_empty() {
            text.push_str(&format!(
                ", whose last commit is {}",
                short_revision(&chosen.commit)
            ));
        }
        if !chosen.newer.is_empty() {
            text.push_str(&format!("; the policy has chosen {} since", chosen.newer));
        }
        text.push('\n');
    }
    text
}

/// How the environments of a pipeline stand, each with all that its next release waits for.
fn environments(found: &Finding, colours: Colours) -> String {
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for one in &found.environments {
        let release = match (one.release, one.entering) {
            (Some(release), Some(entering)) if release != entering => format!("{release} → {entering}"),
            (None, Some(entering)) => format!("→ {entering}"),
            (release, _) => release.map_or("-".to_owned(), |release| release.to_string()),
        };
        let mut waits = one.waits.iter().map(String::as_str);
        let first = waits.next().unwrap_or("nothing");
        rows.push(vec![
            one.environment.as_str().into(),
            release.into(),
            first.into(),
        ]);
        rows.extend(waits.map(|wait| vec!["".into(), "".into(), wait.into()]));
    }
    output::table(&["ENVIRONMENT", "RELEASE", "WAITS FOR"], &rows, colours)
}

/// Prints a finding for people: the path as a tree, then the causes.
fn shown(found: &Finding, colours: Colours) -> String {
    let mut text = tree(found, colours);
    let roots = found.roots();
    if !roots.is_empty() && found.from.is_none() {
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
    if !found.path.is_empty() {
        parts.push(format!("path {}", found.path));
    }
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
