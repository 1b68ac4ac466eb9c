//! `windlass wait`: until everything that should run a revision does. For pipelines that pushed it.

use std::time::Duration;

use clap::Args;
use delivery_graph::kind::{self, Kind};
use delivery_graph::progress::{Delivery, Objects, Progress};
use delivery_graph::{object, one_line};
use futures::future::try_join_all;
use futures::stream::{self, SelectAll, StreamExt as _};

use crate::cluster::{self, Change, Cluster, Failure, Scope, parse_timeout, print};
use crate::progress::Progress as Under;

/// Command line of `wait`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Commit, digest or tag; a commit or digest may be shortened to at least 7 characters
    #[arg(long, value_name = "REVISION", required = true)]
    revision: String,

    /// Timeout
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_timeout)]
    timeout: Duration,

    /// Stop at the first failure, even if it will be retried
    #[arg(long)]
    fail_fast: bool,

    /// Do not show progress
    #[arg(long, short)]
    quiet: bool,

    #[command(flatten)]
    scope: Scope,
}

/// Waits.
pub(crate) fn run(flags: &Flags) -> Result<(), Failure> {
    let delivery = Delivery::from_revision(&flags.revision)
        .ok_or_else(|| Failure::Usage("--revision: give at least 7 characters".to_owned()))?;
    cluster::run(&flags.scope.cluster, async |cluster| {
        let namespace = (!flags.scope.all_namespaces).then_some(cluster.namespace.as_str());
        let mut waiting = Waiting {
            cluster: &cluster,
            namespace,
            place: None,
            delivery,
            objects: Objects::new(),
            last: Progress::default(),
        };
        let under_way = Under::new(flags.quiet);
        let outcome =
            tokio::time::timeout(flags.timeout, waiting.carry_out(flags.fail_fast, &under_way)).await;
        under_way.clear();
        let progress = &waiting.last;
        match outcome {
            Ok(outcome) => {
                outcome?;
                for id in &progress.done {
                    print(&format!("{id} is ready at {}\n", flags.revision))?;
                }
                Ok(())
            }
            Err(_) => {
                let timeout = api::meta::Duration::from(flags.timeout);
                let head = format!("not everything runs {} after {timeout}", flags.revision);
                Err(Failure::TimedOut(format!("{head}{}", missing(progress))))
            }
        }
    })
}

struct Waiting<'a> {
    cluster: &'a Cluster,
    namespace: Option<&'a str>,
    /// Where objects are read: everywhere, unless that is forbidden.
    place: Option<&'a str>,
    delivery: Delivery,
    objects: Objects,
    last: Progress,
}

impl Waiting<'_> {
    async fn carry_out(&mut self, fail_fast: bool, under_way: &Under) -> Result<(), Failure> {
        let kinds = self.read().await?;
        let watches = kinds
            .iter()
            .map(|kind| self.cluster.watch(kind, self.place).boxed_local());
        let mut changes: SelectAll<_> = stream::select_all(watches);
        loop {
            self.last = self.delivery.progress(&self.objects, self.namespace);
            if fail_fast && !self.last.failed.is_empty() {
                return Err(Failure::NotReady(format!(
                    "something failed{}",
                    missing(&self.last)
                )));
            }
            if self.last.is_done() {
                // Watches of different kinds run beside each other: what one has shown may have made something that another
                // shows later.
                self.read().await?;
                self.last = self.delivery.progress(&self.objects, self.namespace);
                if self.last.is_done() {
                    return Ok(());
                }
            }
            under_way.show(&self.last.summary());
            let Some(change) = changes.next().await else {
                let message = "the watches ended".to_owned();
                return Err(Failure::Request {
                    what: "watch".to_owned(),
                    why: message,
                });
            };
            match change? {
                Some(Change::There(object)) => _ = self.objects.insert(object::id(&object), object),
                Some(Change::Gone(id)) => _ = self.objects.remove(&id),
                Some(Change::Interrupted) => _ = self.read().await?,
                None => {}
            }
        }
    }

    /// Reads everything anew; returns the kinds that the cluster has. Sources may be in other namespaces than asked for; who
    /// may not look there sees those of the namespace.
    async fn read(&mut self) -> Result<Vec<&'static Kind>, Failure> {
        let kinds: Vec<&'static Kind> = kind::ALL.iter().filter(|kind| delivers(kind)).collect();
        let (cluster, everywhere) = (self.cluster, self.place.is_none());
        let lists =
            async |place| try_join_all(kinds.iter().map(|kind| cluster.list(kind, place, None))).await;
        let lists = match lists(self.place).await {
            Err(Failure::Forbidden { .. }) if everywhere && self.namespace.is_some() => {
                self.place = self.namespace;
                lists(self.place).await?
            }
            outcome => outcome?,
        };
        let there = kinds.iter().zip(&lists).filter(|(_, list)| list.is_some());
        let there = there.map(|(kind, _)| *kind).collect();
        let objects = lists.into_iter().flatten().flatten();
        self.objects = objects.map(|object| (object::id(&object), object)).collect();
        Ok(there)
    }
}

fn delivers(kind: &Kind) -> bool {
    kind.is_source() || matches!(kind.kind, "HelmChart" | "Kustomization" | "HelmRelease")
}

fn missing(progress: &Progress) -> String {
    let mut text = String::new();
    if progress.missing.is_empty() && progress.failed.is_empty() {
        text.push_str(": no Kustomization or HelmRelease here is made of a source");
    }
    for (id, why) in progress.failed.iter().chain(&progress.missing) {
        text.push_str(&format!("\n  {id}: {}", one_line(why)));
    }
    text
}
