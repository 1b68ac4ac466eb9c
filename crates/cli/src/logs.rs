//! `windlass logs`: what the controllers have logged, of all of them, in the order of time.

mod line;
mod read;

use std::collections::BTreeMap;
use std::time::Duration;

use clap::{Args, ValueEnum};
use delivery_graph::kind;
use futures::stream::{self, StreamExt as _};

use crate::cluster::output::Colours;
use crate::cluster::{self, Cluster, Failure, Scope, controllers, parse_timeout, print};
use line::{Filter, Level, Line};
use read::Since;

/// Command line of `logs`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Show only logs about objects of this kind
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,

    /// Show only logs about the object with this name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Minimum level of log lines
    #[arg(long, value_enum)]
    level: Option<Level>,

    /// Stream new log lines
    #[arg(long, short)]
    follow: bool,

    /// Show only logs newer than this duration, e.g. 5m
    #[arg(long, value_name = "DURATION", value_parser = parse_timeout)]
    since: Option<Duration>,

    /// Number of recent log lines per controller
    #[arg(long, value_name = "LINES")]
    tail: Option<i64>,

    /// Namespace of the controllers
    #[arg(long, value_name = "NAME", default_value = "flux-system")]
    flux_namespace: String,

    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Form,

    #[command(flatten)]
    scope: Scope,
}

/// The forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Human-readable
    #[default]
    Text,
    /// Log lines as written by the controllers
    Json,
}

/// Reads, and prints. `report_line` is for Pods that cannot be read.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let filter = Filter {
        kind: flags.kind.as_deref().map(named),
        name: flags.name.clone(),
        // Who names no namespace wants to see all.
        namespace: flags.scope.cluster.named_namespace(),
        level: flags.level,
    };
    cluster::run(&flags.scope.cluster, async |cluster| {
        let pods = controllers::pods(&cluster, &flags.flux_namespace).await?;
        let show = Show {
            filter,
            form: flags.output,
            colours: Colours::of_terminal(),
        };
        let since = Since {
            seconds: flags.since.map(|since| since.as_secs().max(1)),
            tail: flags.tail,
        };
        // Without a window all is shown, and where that ends is known.
        let has_window = since.seconds.is_some() || since.tail.is_some();
        let mut last = match flags.follow && has_window {
            true => read::ends(&cluster, &pods).await,
            false => BTreeMap::new(),
        };
        let (lines, refused) = read::all(&cluster, &pods, since).await;
        refused
            .iter()
            .for_each(|why| report_line(&format!("warning: {why}")));
        if refused.len() == pods.len() {
            return Err(Failure::Incomplete(
                "no controller's log could be read".to_owned(),
            ));
        }
        let mut text = String::new();
        lines.iter().for_each(|line| text.push_str(&show.line(line)));
        print(&text)?;
        if flags.follow {
            last.extend(read::last_times(&lines));
            follow(&cluster, &flags.flux_namespace, last, &show).await?;
        }
        match refused.len() {
            0 => Ok(()),
            count => Err(Failure::Incomplete(format!(
                "the logs of {count} Pods could not be read"
            ))),
        }
    })
}

/// Normalizes the name of a kind: any of its names is accepted.
fn named(word: &str) -> String {
    kind::named(word).map_or_else(|| word.to_owned(), |kind| kind.kind.to_owned())
}

/// Pods that cannot be read yet, or have ended, are asked for again after this.
const AGAIN: Duration = Duration::from_secs(2);

/// Goes on, with the Pods that there are; when one ends, with those that came instead. `last` says when each has logged its
/// last line; of a Pod that it does not have, everything is new.
async fn follow(
    cluster: &Cluster,
    namespace: &str,
    mut last: BTreeMap<String, String>,
    show: &Show,
) -> Result<(), Failure> {
    loop {
        let pods = controllers::pods(cluster, namespace).await?;
        let mut streams = Vec::new();
        for pod in &pods {
            let after = last.get(&pod.name).cloned().unwrap_or_default();
            // A container that starts has no log yet. That one has ended is told as None: others may be silent for long.
            let lines = read::follow(cluster, pod, after).await.ok();
            streams.extend(lines.map(|lines| lines.map(Some).chain(stream::iter([None]))));
        }
        let mut open = streams.len();
        let mut lines = stream::select_all(streams);
        let again = tokio::time::sleep(AGAIN);
        tokio::pin!(again);
        loop {
            tokio::select! {
                Some(line) = lines.next(), if open > 0 => match line {
                    Some(line) => {
                        print(&show.line(&line))?;
                        last.insert(line.pod, line.time);
                    }
                    None => open -= 1,
                },
                () = &mut again, if open < pods.len() => break,
                else => break,
            }
        }
    }
}

struct Show {
    filter: Filter,
    form: Form,
    colours: Colours,
}

impl Show {
    fn line(&self, line: &Line) -> String {
        match self.filter.lets_through(line) {
            false => String::new(),
            true if self.form == Form::Json => format!("{}\n", line.raw),
            true => line.shown(self.colours),
        }
    }
}
