//! `windlass install`: brings the controllers to a cluster, or to the values that are given, as a Helm release of the chart that
//! is in this program.

pub(crate) mod pending;

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use helm_release::{Record, Release, Status};
use helm_render::Renderer;
use serde_json::{Map, Value};

use crate::cluster::output::Colours;
use crate::cluster::{self, Failure, parse_timeout, print};
use crate::platform::chart::{self, ValueFlags};
use crate::platform::controllers::{self, Controller};
use crate::platform::lock::Lock;
use crate::platform::plan::{Change, Plan};
use crate::platform::{
    Place, Platform, RELEASE, definitions, helm, managers, objects, ready, rights, rollout, version,
};

/// Command line of `install`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    #[command(flatten)]
    values: ValueFlags,

    /// Show what would change without changing anything
    #[arg(long)]
    dry_run: bool,

    /// Timeout for the controllers to become ready
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_timeout)]
    timeout: Duration,

    /// Take ownership of existing objects that do not belong to the release, including Flux's
    #[arg(long)]
    take_ownership: bool,

    #[command(flatten)]
    place: Place,
}

/// Installs, or upgrades. `report_line` is for what is under way.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    let given = flags.values.read()?;
    cluster::run(&flags.place.cluster(), async |cluster| {
        let platform = Platform::new(&cluster);
        let what = format!("install {RELEASE}");
        rights::check(&platform.client, &platform.namespace, &what).await?;
        suits(&platform).await?;
        let chart = chart::load()?;
        if flags.dry_run {
            let last = platform.last().await?;
            let wanted = Wanted::new(&platform, chart, last.as_ref(), given).await?;
            wanted.refuse_rivals(&platform, flags.take_ownership).await?;
            let plan = wanted.plan(&platform, last.as_ref()).await?;
            return print(&plan.shown(Colours::of_terminal()));
        }
        // What is wrong with the values is told before there is a namespace.
        let last = platform.last().await?;
        let wanted = Wanted::new(&platform, Arc::clone(&chart), last.as_ref(), given.clone()).await?;
        wanted.refuse_rivals(&platform, flags.take_ownership).await?;
        platform.create_namespace().await?;
        let lock = Lock::take(&platform.client, &platform.namespace, &report_line).await?;
        let installed = platform
            .interruptible(Some(&lock), locked(&platform, flags, given, &lock, &report_line))
            .await;
        lock.give_up().await;
        let (release, is_new) = installed?;
        print(&describe_release(&release, is_new))
    })
}

async fn locked(
    platform: &Platform,
    flags: &Flags,
    given: Option<Map<String, Value>>,
    lock: &Lock,
    report_line: &impl Fn(&str),
) -> Result<(Release, bool), Failure> {
    let last = pending::unlocked(platform, lock, flags.timeout, report_line).await?;
    let wanted = Wanted::new(platform, chart::load()?, last.as_ref(), given).await?;
    wanted
        .carry_out(platform, last, flags.timeout, flags.take_ownership)
        .await
}

fn describe_release(release: &Release, is_new: bool) -> String {
    let (namespace, version) = (&release.namespace, release.version);
    match is_new {
        true => format!("release {RELEASE} in namespace {namespace} is deployed, revision {version}\n"),
        false => format!(
            "release {RELEASE} in namespace {namespace} is as asked, revision {version}: nothing to do\n"
        ),
    }
}

/// Refuses clusters that the chart is not for.
pub(crate) async fn suits(platform: &Platform) -> Result<(), Failure> {
    let version = version::Version::from_client(&platform.client).await?;
    if let Some(problem) = version.problem() {
        return Err(Failure::NotReady(problem));
    }
    let definitions = definitions::compare(&platform.client).await?;
    let problems: Vec<String> = definitions
        .iter()
        .filter_map(definitions::Definition::problem)
        .collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::NotReady(problems.join("\n"))),
    }
}

/// The release to install.
pub(crate) struct Wanted {
    pub(crate) release: Release,
    chart: Arc<Renderer>,
    values: Map<String, Value>,
}

impl Wanted {
    /// Without values those of the revision before are kept, as helm does.
    pub(crate) async fn new(
        platform: &Platform,
        chart: Arc<Renderer>,
        last: Option<&Record>,
        given: Option<Map<String, Value>>,
    ) -> Result<Self, Failure> {
        let kept = || last.map(|last| last.release.config.clone());
        let values = given.or_else(kept).unwrap_or_default();
        let version = last.map_or(1, |last| last.release.version.saturating_add(1));
        let release = platform.preview(&chart, values.clone(), version).await?;
        Ok(Self {
            release,
            chart,
            values,
        })
    }

    /// The components of Flux that it has.
    pub(crate) fn components(&self) -> Result<Vec<String>, Failure> {
        let objects = objects::of_manifest(&self.release.manifest)?;
        let mut found: Vec<String> = objects
            .iter()
            .filter(|object| object.gvk().kind == "Deployment")
            .flat_map(controllers::components_of)
            .collect();
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// The Deployments that it has: namespace and name.
    pub(crate) fn deployments(&self) -> Result<Vec<manifest::ObjectId>, Failure> {
        let objects = objects::of_manifest(&self.release.manifest)?;
        let deployments = objects.iter().filter(|object| object.gvk().kind == "Deployment");
        Ok(deployments.map(manifest::Object::id).collect())
    }

    pub(crate) async fn plan(&self, platform: &Platform, last: Option<&Record>) -> Result<Plan, Failure> {
        let before = last.map(|last| last.release.manifest.as_str());
        Plan::make(platform, &self.release.manifest, before).await
    }

    /// Existing objects outside of the release that would be refused without `--take-ownership`.
    pub(crate) async fn in_the_way(&self, platform: &Platform) -> Result<Vec<manifest::ObjectId>, Failure> {
        let plan = self.plan(platform, None).await?;
        let there: Vec<_> = plan.with(Change::TakenOver).cloned().collect();
        let equal = definitions::equal_to_ours(platform, &self.release.manifest, &there).await?;
        Ok(there.into_iter().filter(|id| !equal.contains(id)).collect())
    }

    /// Refuses when controllers of Flux are at work that do the same. Those of the same name are replaced if that was asked for.
    async fn refuse_rivals(&self, platform: &Platform, take_ownership: bool) -> Result<(), Failure> {
        let found = controllers::find(&platform.client).await?;
        let own = self.deployments()?;
        let is_in_the_way = |rival: &&&Controller| !(take_ownership && own.contains(&rival.id));
        let rivals = controllers::rivals(&found, &self.components()?);
        let rivals: Vec<String> = rivals
            .iter()
            .filter(is_in_the_way)
            .map(|rival| rival.id.to_string())
            .collect();
        if rivals.is_empty() {
            return Ok(());
        }
        Err(Failure::NotReady(format!(
            "Flux's own controllers are here: {}; two that do the same would undo each other's work. \
             `windlass takeover -n {}` takes their place and checks that nothing was made anew",
            rivals.join(", "),
            platform.namespace
        )))
    }

    /// Releases, unless everything is so already; says which, and whether it is new.
    pub(crate) async fn carry_out(
        self,
        platform: &Platform,
        last: Option<Record>,
        timeout: Duration,
        take_ownership: bool,
    ) -> Result<(Release, bool), Failure> {
        let labels = format!("app.kubernetes.io/name=windlass,app.kubernetes.io/instance={RELEASE}");
        let (client, namespace) = (&platform.client, platform.namespace.clone());
        if let Some(last) = &last
            && last.release.info.status == Status::Deployed
            && last.release.manifest == self.release.manifest
            && last.release.config == self.values
            && self.plan(platform, Some(last)).await?.is_empty()
        {
            let waiting = ready::until_ready(platform, self.deployments()?, timeout);
            rollout::telling(client, &namespace, &labels, waiting).await?;
            return Ok((last.release.clone(), false));
        }
        let plan = self.plan(platform, last.as_ref()).await?;
        let there: Vec<_> = plan.with(Change::TakenOver).cloned().collect();
        let manifest = &self.release.manifest;
        let taken = match take_ownership {
            true => there,
            // Someone has applied them before, as README says; nothing changes by it whose they are.
            false => {
                let equal = definitions::equal_to_ours(platform, manifest, &there).await?;
                definitions::adopt(platform, &equal).await?;
                equal
            }
        };
        managers::make_ours(platform, manifest, &taken).await?;
        // Those of an uninstall that was interrupted may still be ending.
        ready::until_gone(platform, &self.deployments()?, timeout).await?;
        let wish = helm::Wish {
            values: self.values,
            timeout,
            take_ownership,
        };
        let release = platform.release(&self.chart, last.as_ref(), wish);
        let release = rollout::telling(client, &namespace, &labels, release).await?;
        Ok((release, true))
    }
}
