//! `windlass events`: what controllers have told about objects of Flux.

use std::collections::BTreeSet;

use clap::Args;
use delivery_graph::kind;
use delivery_graph::object::text;
use futures::StreamExt as _;
use serde_json::Value;

use crate::cluster::output::{self, Cell, Colours, Tone};
use crate::cluster::{self, Cluster, Failure, Output, Scope, Told, print, select};

/// Command line of `events`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// KIND/NAME or KIND NAME; defaults to all Flux objects
    #[arg(value_name = "OBJECT")]
    words: Vec<String>,

    /// Show only events of these types, e.g. Warning
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    types: Vec<String>,

    /// Watch for new events
    #[arg(long, short)]
    watch: bool,

    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    scope: Scope,
}

/// Reads, and prints the oldest first. `report_line` is for when there is nothing.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let target = match flags.words.is_empty() {
        true => None,
        false => Some(select::one_target(&flags.words)?),
    };
    cluster::run(&flags.scope.cluster, async |cluster| {
        let namespace = (!flags.scope.all_namespaces).then_some(cluster.namespace.as_str());
        let fields = target.as_ref().map_or(String::new(), |target| {
            format!(
                "involvedObject.kind={},involvedObject.name={}",
                target.kind.kind, target.name
            )
        });
        if flags.watch {
            return watch(&cluster, namespace, &fields, flags).await;
        }
        let events = cluster.events(namespace, &fields).await?;
        let events = chosen(events, &flags.types);
        match flags.output {
            Output::Table | Output::Wide if events.is_empty() => {
                report_line("no events found");
                Ok(())
            }
            Output::Table | Output::Wide => {
                let all = flags.scope.all_namespaces;
                print(&shown(
                    &events,
                    all,
                    jiff::Timestamp::now(),
                    Colours::of_terminal(),
                ))
            }
            _ => print(&output::objects(events, false, flags.output)?),
        }
    })
}

/// Prints what is there, then each as it comes. An event that comes again is told again: it is counted, and newer.
async fn watch(
    cluster: &Cluster,
    namespace: Option<&str>,
    fields: &str,
    flags: &Flags,
) -> Result<(), Failure> {
    let mut changes = Box::pin(cluster.watch_events(namespace, fields));
    // Those of a beginning, which come in no order; None when there is none under way.
    let mut beginning = Some(Vec::new());
    let mut seen = BTreeSet::new();
    while let Some(change) = changes.next().await {
        match change? {
            Told::Begins => beginning = Some(Vec::new()),
            Told::Event(event) => {
                let is_new = seen.insert((
                    text(&event, "/metadata/uid").to_owned(),
                    text(&event, "/metadata/resourceVersion").to_owned(),
                ));
                match &mut beginning {
                    _ if !is_new => {}
                    Some(gathered) => gathered.push(event),
                    None => print_lines(chosen(vec![event], &flags.types), flags)?,
                }
            }
            Told::Began => {
                let gathered = beginning.take().unwrap_or_default();
                print_lines(chosen(gathered, &flags.types), flags)?;
            }
        }
    }
    Ok(())
}

/// One line for each: what comes later is not known yet, so that no column can be made wide enough.
fn print_lines(events: Vec<Value>, flags: &Flags) -> Result<(), Failure> {
    let mut text = String::new();
    for event in events {
        match flags.output {
            Output::Table | Output::Wide => text.push_str(&line(&event, Colours::of_terminal())),
            Output::Json => text.push_str(&format!("{event}\n")),
            Output::Yaml => text.push_str(&format!("---\n{}", output::document(&event, Output::Yaml)?)),
            Output::Name => text.push_str(&output::objects(vec![event], false, Output::Name)?),
        }
    }
    print(&text)
}

fn line(event: &Value, colours: Colours) -> String {
    let type_ = text(event, "/type");
    let tone = if type_ == "Normal" { Tone::Plain } else { Tone::Bad };
    let of = |field: &str| text(event, &format!("/involvedObject/{field}"));
    let object = [of("kind"), of("namespace"), of("name")].join("/");
    let (reason, message) = (
        text(event, "/reason"),
        delivery_graph::one_line(text(event, "/message")),
    );
    format!(
        "{} {} {object} {reason}: {message}\n",
        time(event),
        colours.paint(type_, tone)
    )
}

/// Those about objects of Flux and of the wanted types, the oldest first.
fn chosen(mut events: Vec<Value>, types: &[String]) -> Vec<Value> {
    events.retain(|event| {
        let (group, _) = text(event, "/involvedObject/apiVersion")
            .split_once('/')
            .unwrap_or_default();
        let kind = kind::exact(text(event, "/involvedObject/kind"));
        let wanted = |type_: &String| type_.eq_ignore_ascii_case(text(event, "/type"));
        kind.is_some_and(|kind| kind.group == group) && (types.is_empty() || types.iter().any(wanted))
    });
    events.sort_by_key(|event| time(event).parse::<jiff::Timestamp>().ok());
    events
}

/// When it was last seen, as whoever wrote it says: there are three generations of Events.
fn time(event: &Value) -> &str {
    let pointers = [
        "/series/lastObservedTime",
        "/lastTimestamp",
        "/eventTime",
        "/metadata/creationTimestamp",
    ];
    let found = pointers.into_iter().map(|pointer| text(event, pointer));
    found
        .into_iter()
        .find(|time| !time.is_empty())
        .unwrap_or_default()
}

fn shown(events: &[Value], all_namespaces: bool, now: jiff::Timestamp, colours: Colours) -> String {
    let mut header = vec!["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"];
    if all_namespaces {
        header.insert(0, "NAMESPACE");
    }
    let row = |event: &Value| {
        let type_ = text(event, "/type");
        let tone = if type_ == "Normal" { Tone::Plain } else { Tone::Bad };
        let object = format!(
            "{}/{}",
            text(event, "/involvedObject/kind"),
            text(event, "/involvedObject/name")
        );
        let mut row: Vec<Cell> = Vec::new();
        if all_namespaces {
            row.push(text(event, "/metadata/namespace").into());
        }
        row.push(output::age(time(event), now).into());
        row.push(Cell::toned(type_, tone));
        row.push(text(event, "/reason").into());
        row.push(object.into());
        row.push(text(event, "/message").into());
        row
    };
    output::table(&header, &events.iter().map(row).collect::<Vec<_>>(), colours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_of_flux_are_shown_the_oldest_first() {
        let event = |kind: &str, api_version: &str, type_: &str, time: Value| {
            let mut event = json!({"type": type_, "reason": "R", "message": "said\nmore", "metadata": {"namespace": "shop"},
                "involvedObject": {"kind": kind, "name": "app", "apiVersion": api_version}});
            if let (Some(event), Value::Object(time)) = (event.as_object_mut(), time) {
                event.extend(time);
            }
            event
        };
        let flux = "kustomize.toolkit.fluxcd.io/v1";
        let events = vec![
            event(
                "Kustomization",
                flux,
                "Warning",
                json!({"lastTimestamp": "2026-01-01T00:59:00Z"}),
            ),
            event(
                "Pod",
                "v1",
                "Warning",
                json!({"lastTimestamp": "2026-01-01T00:00:00Z"}),
            ),
            event(
                "Kustomization",
                flux,
                "Normal",
                json!({"lastTimestamp": null, "eventTime": "2026-01-01T00:30:00.000001Z"}),
            ),
        ];
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        assert_eq!(
            shown(&chosen(events.clone(), &[]), false, now, Colours::none()),
            "LAST SEEN  TYPE     REASON  OBJECT             MESSAGE\n\
             30m        Normal   R       Kustomization/app  said more\n\
             60s        Warning  R       Kustomization/app  said more\n"
        );
        let warnings = chosen(events, &["warning".to_owned()]);
        assert_eq!(
            line(&warnings[0], Colours::none()),
            "2026-01-01T00:59:00Z Warning Kustomization//app R: said more\n"
        );
        assert_eq!(warnings.len(), 1);
    }
}
