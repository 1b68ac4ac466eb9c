//! `windlass get`: objects of Flux and how they are.

use clap::Args;
use delivery_graph::kind::Kind;
use delivery_graph::object::{self, condition, ready, short_revision, text};
use futures::future::{join_all, try_join_all};
use serde_json::Value;

use crate::cluster::output::{self, Cell, Colours, Tone};
use crate::cluster::select::Selection;
use crate::cluster::{self, Cluster, Failure, Output, Scope, Target, print, select};

/// Command line of `get`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// KIND, KIND NAME…, KIND/NAME…, `sources`, `images`, or `all`
    #[arg(value_name = "OBJECT")]
    words: Vec<String>,

    /// Show only objects with this condition, e.g. ready=false
    #[arg(long, value_name = "TYPE=STATUS", value_parser = parse_status_selector)]
    status_selector: Option<StatusSelector>,

    /// Show only objects that match this label selector
    #[arg(long, short = 'l', value_name = "LABELS")]
    label_selector: Option<String>,

    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    scope: Scope,
}

/// A condition, and what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
struct StatusSelector {
    type_: String,
    status: String,
}

impl StatusSelector {
    /// As Flux has it: letters of any case, and an object without the condition does not fit.
    fn fits(&self, object: &Value) -> bool {
        condition(object, &self.type_).is_some_and(|found| found.status.eq_ignore_ascii_case(&self.status))
    }
}

fn parse_status_selector(text: &str) -> Result<StatusSelector, String> {
    match text.split_once('=') {
        Some((type_, status)) if !type_.is_empty() => Ok(StatusSelector {
            type_: type_.to_owned(),
            status: status.to_owned(),
        }),
        _ => Err(format!(
            "expected status selector in type=status format, but found: {text}"
        )),
    }
}

/// Gets, and prints. `report_line` is for what is not there.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let selection = select::select(&flags.words)?;
    cluster::run(&flags.scope.cluster, async |cluster| {
        let namespace = (!flags.scope.all_namespaces).then_some(cluster.namespace.as_str());
        let (mut found, missing) = match &selection {
            Selection::Kinds(kinds) => {
                let labels = flags.label_selector.as_deref();
                let found = of_kinds(&cluster, kinds, namespace, labels, &report_line).await?;
                (found, Vec::new())
            }
            Selection::Targets(targets) => by_name(&cluster, targets, flags).await?,
        };
        if let Some(selector) = &flags.status_selector {
            found.retain(|object| selector.fits(object));
        }
        let is_for_people = matches!(flags.output, Output::Table | Output::Wide);
        if found.is_empty() && missing.is_empty() && is_for_people {
            let place = namespace.map_or("any namespace".to_owned(), |name| format!("namespace {name}"));
            report_line(&format!("nothing found in {place}"));
            return Ok(());
        }
        if is_for_people {
            if !found.is_empty() {
                let colours = Colours::of_terminal();
                print(&shown(&found, &selection, flags, jiff::Timestamp::now(), colours))?;
            }
        } else if !found.is_empty() || missing.is_empty() {
            let one = matches!(&selection, Selection::Targets(targets) if targets.len() == 1);
            print(&output::objects(found, one, flags.output)?)?;
        }
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Failure::NotReady(format!(
                "{} does not exist",
                missing.join(", ")
            ))),
        }
    })
}

async fn of_kinds(
    cluster: &Cluster,
    kinds: &[&'static Kind],
    namespace: Option<&str>,
    labels: Option<&str>,
    report_line: &impl Fn(&str),
) -> Result<Vec<Value>, Failure> {
    // One kind was asked for by name: then it matters that it is absent or forbidden. Among all kinds it does not.
    let one = kinds.len() == 1;
    let lists = kinds.iter().map(|kind| cluster.list(kind, namespace, labels));
    let mut found = Vec::new();
    for (kind, list) in kinds.iter().zip(join_all(lists).await) {
        match list {
            Ok(Some(list)) => found.extend(list),
            Ok(None) if one => {
                let message = format!("the cluster has no {}: its CRD is not installed", kind.plural);
                return Err(Failure::NotReady(message));
            }
            Ok(None) => {}
            Err(failure @ Failure::Forbidden { .. }) if !one => report_line(&failure.to_string()),
            Err(failure) => return Err(failure),
        }
    }
    Ok(found)
}

/// Fetches objects by name; returns the names that were not found, too.
async fn by_name(
    cluster: &Cluster,
    targets: &[Target],
    flags: &Flags,
) -> Result<(Vec<Value>, Vec<String>), Failure> {
    if flags.scope.all_namespaces {
        let message = "an object is named in one namespace; give --namespace instead of --all-namespaces";
        return Err(Failure::Usage(message.to_owned()));
    }
    let ids: Vec<_> = targets
        .iter()
        .map(|target| target.id(&cluster.namespace))
        .collect();
    let objects = try_join_all(ids.iter().map(|id| cluster.get(id))).await?;
    let missing = ids.iter().zip(&objects).filter(|(_, object)| object.is_none());
    let missing = missing.map(|(id, _)| id.to_string()).collect();
    Ok((objects.into_iter().flatten().collect(), missing))
}

fn shown(
    found: &[Value],
    selection: &Selection,
    flags: &Flags,
    now: jiff::Timestamp,
    colours: Colours,
) -> String {
    let wide = flags.output == Output::Wide;
    let one_kind = match selection {
        Selection::Kinds(kinds) => kinds.len() == 1,
        Selection::Targets(targets) => targets.windows(2).all(|pair| pair[0].kind == pair[1].kind),
    };
    let mut header = Vec::new();
    if flags.scope.all_namespaces {
        header.push("NAMESPACE");
    }
    header.extend(["NAME", "REVISION", "SUSPENDED", "READY"]);
    if wide {
        header.extend(["AGE", "SOURCE"]);
    }
    header.push("MESSAGE");
    let row = |object: &Value| {
        let mut row: Vec<Cell> = Vec::new();
        if flags.scope.all_namespaces {
            row.push(object::namespace(object).into());
        }
        let kind = text(object, "/kind").to_lowercase();
        let name = object::name(object);
        row.push(if one_kind {
            name.into()
        } else {
            format!("{kind}/{name}").into()
        });
        let revision = object::revision(object);
        row.push(if wide {
            revision.into()
        } else {
            short_revision(revision).into()
        });
        let suspended = if object::is_suspended(object) {
            "True"
        } else {
            "False"
        };
        row.push(suspended.into());
        let ready = ready(object);
        row.push(Cell::toned(ready.status, Tone::from_status(ready.status)));
        if wide {
            row.push(output::age(text(object, "/metadata/creationTimestamp"), now).into());
            let links = object::links(object);
            let from = links.iter().find(|link| matches!(link.word, "source" | "chart"));
            row.push(from.map(|link| link.id.to_string()).unwrap_or_default().into());
        }
        row.push(ready.message.into());
        row
    };
    let rows: Vec<_> = found.iter().map(row).collect();
    output::table(&header, &rows, colours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use serde_json::json;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: Flags,
    }

    fn objects() -> Vec<Value> {
        vec![
            json!({"kind": "GitRepository", "metadata": {"name": "app", "namespace": "shop",
                   "creationTimestamp": "2026-01-01T00:00:00Z"},
                   "status": {"artifact": {"revision": "main@sha1:0123456789abcdef"}, "conditions": [
                       {"type": "Ready", "status": "True", "message": "stored artifact"}]}}),
            json!({"kind": "Kustomization", "metadata": {"name": "web", "namespace": "shop",
                   "creationTimestamp": "2026-01-01T00:00:00Z"},
                   "spec": {"suspend": true, "sourceRef": {"kind": "GitRepository", "name": "app"}},
                   "status": {"conditions": [{"type": "Ready", "status": "False", "message": "build failed:\n  oh"}]}}),
        ]
    }

    fn check(words: &[&str], expected: &str) {
        let flags = Line::parse_from([&["get"], words].concat()).flags;
        let selection = select::select(&flags.words).unwrap();
        let mut objects = objects();
        if let Some(selector) = &flags.status_selector {
            objects.retain(|object| selector.fits(object));
        }
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        assert_eq!(
            shown(&objects, &selection, &flags, now, Colours::none()),
            expected
        );
    }

    #[test]
    fn the_columns_are_those_of_flux() {
        check(
            &["all"],
            "NAME               REVISION            SUSPENDED  READY  MESSAGE\n\
             gitrepository/app  main@sha1:01234567  False      True   stored artifact\n\
             kustomization/web                      True       False  build failed: oh\n",
        );
        check(
            &["ks", "-A", "--status-selector", "ready=false"],
            "NAMESPACE  NAME  REVISION  SUSPENDED  READY  MESSAGE\n\
             shop       web             True       False  build failed: oh\n",
        );
        check(
            &["all", "-o", "wide", "--status-selector=Ready=FALSE"],
            "NAME               REVISION  SUSPENDED  READY  AGE  SOURCE                  MESSAGE\n\
             kustomization/web            True       False  60m  GitRepository/shop/app  build failed: oh\n",
        );
    }

    #[test]
    fn a_status_selector_without_a_value_is_refused_in_flux_words() {
        assert_eq!(
            parse_status_selector("ready").unwrap_err(),
            "expected status selector in type=status format, but found: ready"
        );
    }
}
