//! `windlass suspend` and `windlass resume`: whether controllers look at an object.

use std::time::Duration;

use clap::{ArgAction, Args};
use delivery_graph::kind::{self, Kind};
use delivery_graph::{object, request};
use manifest::ObjectId;

use crate::cluster::select::Selection;
use crate::cluster::{self, Cluster, ClusterFlags, Failure, parse_timeout, print, select};
use crate::progress::Progress;
use crate::reconcile;

/// Command line of `suspend`.
#[derive(Debug, Args)]
pub(crate) struct Suspend {
    #[command(flatten)]
    objects: Objects,
}

/// Command line of `resume`.
#[derive(Debug, Args)]
pub(crate) struct Resume {
    #[command(flatten)]
    objects: Objects,

    /// Wait until the objects are ready
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", default_value = "true")]
    wait: bool,

    /// Timeout per object
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_timeout)]
    timeout: Duration,

    /// Do not show progress
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Debug, Args)]
struct Objects {
    /// KIND/NAME…, KIND NAME…, or KIND with --all
    #[arg(value_name = "OBJECT", required = true)]
    words: Vec<String>,

    /// Select all objects of the kind in the namespace
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    cluster: ClusterFlags,
}

impl Objects {
    fn selection(&self) -> Result<Selection, Failure> {
        let selection = select::select(&self.words)?;
        let kinds: Vec<&Kind> = match (&selection, self.all) {
            (Selection::Kinds(kinds), true) if kinds.len() == 1 => kinds.clone(),
            (Selection::Targets(targets), false) => targets.iter().map(|target| target.kind).collect(),
            (Selection::Targets(_), true) => {
                return Err(Failure::Usage("give either names or --all".to_owned()));
            }
            (Selection::Kinds(_), _) => {
                return Err(Failure::Usage("name objects, or one kind with --all".to_owned()));
            }
        };
        match kinds.iter().find(|kind| !kind.suspends) {
            Some(kind) => Err(Failure::Usage(format!(
                "{} have no spec.suspend and cannot be suspended",
                kind.plural
            ))),
            None => Ok(selection),
        }
    }

    async fn ids(&self, cluster: &Cluster, selection: Selection) -> Result<Vec<ObjectId>, Failure> {
        match selection {
            Selection::Targets(targets) => Ok(targets
                .iter()
                .map(|target| target.id(&cluster.namespace))
                .collect()),
            Selection::Kinds(kinds) => {
                let mut ids = Vec::new();
                for kind in kinds {
                    let found = cluster.list(kind, Some(&cluster.namespace), None).await?;
                    ids.extend(found.iter().flatten().map(object::id));
                }
                Ok(ids)
            }
        }
    }
}

/// Suspends each object.
pub(crate) fn suspend(flags: &Suspend) -> Result<(), Failure> {
    let selection = flags.objects.selection()?;
    cluster::run(&flags.objects.cluster, async |cluster| {
        for id in flags.objects.ids(&cluster, selection).await? {
            cluster.merge(&id, "suspend", &request::suspend(true)).await?;
            print(&format!("{id} suspended\n"))?;
        }
        Ok(())
    })
}

/// Resumes each object, and waits for what its controller makes of it.
pub(crate) fn resume(flags: &Resume) -> Result<(), Failure> {
    let selection = flags.objects.selection()?;
    cluster::run(&flags.objects.cluster, async |cluster| {
        let ids = flags.objects.ids(&cluster, selection).await?;
        for id in &ids {
            cluster.merge(id, "resume", &request::suspend(false)).await?;
            print(&format!("{id} resumed\n"))?;
        }
        if flags.wait {
            let progress = Progress::new(flags.quiet);
            for id in ids
                .iter()
                .filter(|id| kind::kind_of(id).is_some_and(|kind| kind.answers))
            {
                progress.show(&format!("waiting for {id}"));
                let revision = reconcile::ready_at(&cluster, id, flags.timeout, &progress).await?;
                print(&format!("{id} is ready{revision}\n"))?;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        objects: Objects,
    }

    fn refused(words: &[&str]) -> String {
        let objects = Line::parse_from([&["suspend"], words].concat()).objects;
        objects
            .selection()
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn only_what_has_the_field_is_suspended_and_all_only_on_request() {
        assert_eq!(refused(&["ks/app", "hr/web"]), "");
        assert_eq!(refused(&["ks", "--all"]), "");
        assert_eq!(refused(&["ks"]), "name objects, or one kind with --all");
        assert_eq!(refused(&["all", "--all"]), "name objects, or one kind with --all");
        assert_eq!(refused(&["ks", "app", "--all"]), "give either names or --all");
        assert!(refused(&["ea/made"]).contains("externalartifacts have no spec.suspend"));
    }
}
