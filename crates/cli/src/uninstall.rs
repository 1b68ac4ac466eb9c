//! `windlass uninstall`: takes the controllers away. What they delivered stays, and so do the definitions with all sources,
//! Kustomizations and HelmReleases, unless that is asked for too.

use std::time::Duration;

use clap::Args;

use crate::cluster::{self, Cluster, Failure, parse_timeout, print};
use crate::platform::controllers::{self, Controller};
use crate::platform::lock::Lock;
use crate::platform::{Place, Platform, RELEASE, definitions, leftovers, objects, ready, rights};
use crate::takeover::record;

/// Command line of `uninstall`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Also delete the CustomResourceDefinitions, and with them all sources, Kustomizations, HelmReleases and so on;
    /// requires --yes
    #[arg(long)]
    crds: bool,

    /// Confirm --crds
    #[arg(long)]
    yes: bool,

    /// Timeout for the deletion
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = parse_timeout)]
    timeout: Duration,

    #[command(flatten)]
    place: Place,
}

/// Uninstalls. `report_line` is for what is under way.
pub(crate) fn run(flags: &Flags, report_line: impl Fn(&str)) -> Result<(), Failure> {
    cluster::run(&flags.place.cluster(), async |cluster| {
        let platform = Platform::new(&cluster);
        let what = format!("uninstall {RELEASE}");
        rights::check(&platform.client, &platform.namespace, &what).await?;
        let counts = definitions::count(&cluster).await?;
        if flags.crds && !flags.yes {
            return Err(Failure::Usage(would_go(&counts)));
        }
        if flags.crds {
            refuse(&others(&platform).await?)?;
        }
        if platform.last().await?.is_none() {
            return absent(&cluster, &platform, flags, &report_line).await;
        }
        let lock = Lock::take(&platform.client, &platform.namespace, &report_line).await?;
        let gone = platform
            .interruptible(Some(&lock), all(&cluster, &platform, flags, &report_line))
            .await;
        lock.give_up().await;
        gone?;
        let mut text = describe_objects(&platform.namespace, &counts, flags.crds);
        if record::load(&platform.client, &platform.namespace)
            .await?
            .is_some()
        {
            text.push_str(&format!(
                "left too: Secret {}/{} with Flux as it was; `windlass giveback` brings it back\n",
                platform.namespace,
                record::NAME
            ));
        }
        print(&text)
    })
}

async fn all(
    cluster: &Cluster,
    platform: &Platform,
    flags: &Flags,
    report_line: &impl Fn(&str),
) -> Result<(), Failure> {
    if flags.crds {
        nobody_else(platform, flags.timeout).await?;
        // The definitions may be the release's. They go when no object has a finalizer any more, and none gets one when no
        // controller is left.
        stop(platform, flags.timeout).await?;
        definitions::unbind(cluster).await?;
    }
    take_away(platform, flags.crds, flags.timeout, report_line).await?;
    rest(cluster, platform, flags, report_line).await.map(drop)
}

/// Controllers that are not the release's, in any namespace.
async fn others(platform: &Platform) -> Result<Vec<Controller>, Failure> {
    let own = match platform.last().await? {
        Some(last) => objects::of_manifest(&last.release.manifest)?,
        None => Vec::new(),
    };
    let own: Vec<_> = own.iter().map(manifest::Object::id).collect();
    Ok(controllers::beside(
        controllers::find(&platform.client).await?,
        &own,
    ))
}

/// Refuses to delete definitions while other controllers run: they take the deletion of their objects for the
/// wish to delete what they delivered.
fn refuse(others: &[Controller]) -> Result<(), Failure> {
    let at_work: Vec<String> = others
        .iter()
        .filter(|other| !other.is_going)
        .map(|other| other.id.to_string())
        .collect();
    match at_work.is_empty() {
        true => Ok(()),
        false => Err(Failure::NotReady(format!(
            "other controllers are at work: {}; they would delete all that was delivered together with the objects that go with \
             the definitions. Uninstall them first, or scale them to 0",
            at_work.join(", ")
        ))),
    }
}

/// Makes sure that there are no other controllers; those that are ending are waited for.
async fn nobody_else(platform: &Platform, timeout: Duration) -> Result<(), Failure> {
    let others = others(platform).await?;
    refuse(&others)?;
    let ids: Vec<_> = others.into_iter().map(|other| other.id).collect();
    ready::until_gone(platform, &ids, timeout).await
}

/// Deletes the controllers of the release with their Pods.
async fn stop(platform: &Platform, timeout: Duration) -> Result<(), Failure> {
    let Some(last) = platform.last().await? else {
        return Ok(());
    };
    let objects = objects::of_manifest(&last.release.manifest)?;
    let deployments = objects
        .into_iter()
        .filter(|object| object.gvk().kind == "Deployment");
    let mut gone = Vec::new();
    for deployment in deployments {
        let mapper = platform.engine.mapper();
        let located = objects::locate(&platform.client, mapper, deployment, &platform.namespace).await?;
        located.delete().await?;
        gone.push(located.at());
    }
    for at in gone {
        platform.wait_gone(&at, timeout).await?;
    }
    Ok(())
}

fn would_go(counts: &[(&'static delivery_graph::kind::Kind, usize)]) -> String {
    let total: usize = counts.iter().map(|(_, count)| count).sum();
    let listed = match counts.is_empty() {
        true => String::new(),
        false => format!(" ({})", definitions::counted(counts)),
    };
    format!(
        "--crds would delete the definitions and with them {total} objects{listed} in all namespaces; what these delivered \
         stays. Give --yes if that is meant"
    )
}

/// There is no release. What controllers made may be left all the same, of an uninstall by helm, and the definitions, of one
/// of ours that was interrupted.
async fn absent(
    cluster: &Cluster,
    platform: &Platform,
    flags: &Flags,
    report_line: &impl Fn(&str),
) -> Result<(), Failure> {
    let work = async {
        if flags.crds {
            nobody_else(platform, flags.timeout).await?;
        }
        rest(cluster, platform, flags, report_line).await
    };
    // Without the namespace there is no lock, and nothing in it that two could be at.
    let gone = match platform.has_namespace(&platform.namespace).await? {
        true => {
            let lock = Lock::take(&platform.client, &platform.namespace, report_line).await?;
            let gone = platform.interruptible(Some(&lock), work).await;
            lock.give_up().await;
            gone?
        }
        false => platform.interruptible(None, work).await?,
    };
    match flags.crds {
        true => {
            print("the definitions are gone with all of their objects; what was delivered stays as it is\n")
        }
        false if !gone.is_empty() => Ok(()),
        false => Err(Failure::NotReady(format!(
            "there is no release {RELEASE} in namespace {}",
            platform.namespace
        ))),
    }
}

/// Takes the release away, and nothing that is to stay.
pub(crate) async fn take_away(
    platform: &Platform,
    with_definitions: bool,
    timeout: Duration,
    report_line: &impl Fn(&str),
) -> Result<(), Failure> {
    let Some(last) = platform.last().await? else {
        return Ok(());
    };
    if !with_definitions && deletes_definitions(&last.release.manifest)? {
        return Err(Failure::NotReady(format!(
            "the release {RELEASE} was installed with crds.keep=false: its definitions would be deleted, and with them all \
             sources, Kustomizations and HelmReleases. `windlass install --set crds.keep=true` (with the other values) makes it \
             keep them; --crds --yes deletes them"
        )));
    }
    if last.release.info.status.is_pending() {
        report_line(&format!(
            "revision {} was left {}",
            last.release.version, last.release.info.status
        ));
    }
    report_line("deleting the objects of the release");
    platform.uninstall(timeout).await
}

fn deletes_definitions(manifest: &str) -> Result<bool, Failure> {
    let objects = objects::of_manifest(manifest)?;
    let mut definitions = objects
        .iter()
        .filter(|object| object.gvk().kind == "CustomResourceDefinition");
    Ok(definitions.any(|definition| definition.annotation("helm.sh/resource-policy") != Some("keep")))
}

async fn rest(
    cluster: &Cluster,
    platform: &Platform,
    flags: &Flags,
    report_line: &impl Fn(&str),
) -> Result<Vec<String>, Failure> {
    let (client, namespace) = (&platform.client, &platform.namespace);
    let mut gone = leftovers::delete(client, namespace).await?;
    gone.extend(leftovers::delete_leases(client, namespace).await?);
    gone.iter().for_each(|id| report_line(&format!("{id} deleted")));
    if flags.crds {
        report_line("deleting the definitions and all of their objects");
        definitions::unbind(cluster).await?;
        definitions::delete(platform, flags.timeout).await?;
    }
    Ok(gone)
}

fn describe_objects(
    namespace: &str,
    counts: &[(&'static delivery_graph::kind::Kind, usize)],
    with_definitions: bool,
) -> String {
    let head = format!("release {RELEASE} in namespace {namespace} is uninstalled\n");
    let delivered = "what was delivered stays as it is";
    let left = match (with_definitions, counts.is_empty()) {
        (true, _) => format!("left: the namespace {namespace}; {delivered}\n"),
        (false, true) => format!("left: the namespace {namespace} and the definitions, without objects\n"),
        (false, false) => format!(
            "left: the namespace {namespace}, the definitions, and {}; {delivered}, and nothing looks after it any more\n",
            definitions::counted(counts)
        ),
    };
    head + &left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_that_would_go_are_seen_in_the_manifest() {
        let manifest = |annotations: &str| {
            format!(
                "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: a\n{annotations}\
                 ---\napiVersion: v1\nkind: Service\nmetadata:\n  name: b\n"
            )
        };
        assert!(deletes_definitions(&manifest("")).unwrap());
        let kept = manifest("  annotations: {helm.sh/resource-policy: keep}\n");
        assert!(!deletes_definitions(&kept).unwrap());
    }

    #[test]
    fn what_is_left_is_told() {
        let counts = [(&delivery_graph::kind::ALL[0], 2)];
        assert!(
            describe_objects("n", &counts, false)
                .contains("left: the namespace n, the definitions, and 2 gitrepositories;")
        );
        assert!(
            describe_objects("n", &counts, true).contains("left: the namespace n; what was delivered stays")
        );
        assert!(
            would_go(&counts)
                .starts_with("--crds would delete the definitions and with them 2 objects (2 git")
        );
    }
}
