//! State that `windlass check` examines, in the order of its output.

use std::collections::BTreeSet;

use delivery_graph::{kind, object};
use serde_json::{Map, Value};

use super::artifact_service;
use super::line::{Level, Line};
use crate::cluster::{Cluster, Failure};
use crate::install::Wanted;
use crate::platform::controllers::{self, COMPONENTS, Controller};
use crate::platform::definitions::{self, Definition};
use crate::platform::version::Version;
use crate::platform::{Platform, RELEASE, chart, rights};

/// Checks the requirements of an installation.
pub(super) async fn before(platform: &Platform) -> Result<Vec<Line>, Failure> {
    let mut lines = vec![kubernetes(platform).await?];
    lines.extend(allowed(platform).await?);
    let definitions = definitions::compare(&platform.client).await;
    match definitions {
        Ok(definitions) => lines.push(replaceable(&definitions)),
        Err(failure) => lines.push(Line::new("definitions", Level::Bad, failure.to_string())),
    }
    match controllers::find(&platform.client).await {
        Ok(found) => lines.push(rivals_before(&found)),
        Err(failure) => lines.push(Line::new("controllers", Level::Bad, failure.to_string())),
    }
    // With Flux at work its objects are what a takeover is for.
    if lines
        .iter()
        .all(|line| line.check != "controllers" || line.level == Level::Good)
    {
        lines.push(in_the_way(platform).await);
    }
    Ok(lines)
}

/// Checks for objects that an installation with the chart's own values would refuse.
async fn in_the_way(platform: &Platform) -> Line {
    let found = async {
        let chart = chart::load()?;
        let wanted = Wanted::new(platform, chart, None, Some(Map::new())).await?;
        wanted.in_the_way(platform).await
    };
    match found.await {
        Ok(found) if found.is_empty() => Line::new(
            "objects",
            Level::Good,
            "nothing of the names of the release's objects is in the way",
        ),
        Ok(found) => {
            let names: Vec<String> = found.iter().map(ToString::to_string).collect();
            let text = format!(
                "not of the release, and not as it would make them: {}; `windlass takeover` takes the place of Flux, \
                 `windlass install --take-ownership` takes them as they are",
                names.join(", ")
            );
            Line::new("objects", Level::Bad, text)
        }
        Err(failure) => Line::new("objects", Level::Note, failure.to_string()),
    }
}

/// How everything is.
pub(super) async fn now(cluster: &Cluster, platform: &Platform) -> Result<Vec<Line>, Failure> {
    let mut lines = vec![kubernetes(platform).await?];
    let found = controllers::find(&platform.client).await?;
    lines.push(installed(&definitions::compare(&platform.client).await?, &found));
    lines.push(release(platform).await);
    lines.extend(ours(&found, &platform.namespace));
    lines.extend(rivals(&found));
    let objects = objects(cluster).await?;
    if found
        .iter()
        .any(|one| one.is_ours && one.component == COMPONENTS[0])
    {
        lines.push(artifact_service::line(platform, &found, &objects).await?);
    }
    lines.push(delivery(&objects));
    Ok(lines)
}

async fn kubernetes(platform: &Platform) -> Result<Line, Failure> {
    let version = Version::from_client(&platform.client).await?;
    Ok(match version.problem() {
        Some(problem) => Line::new("kubernetes", Level::Bad, problem),
        None => Line::new("kubernetes", Level::Good, format!("Kubernetes {}", version.text)),
    })
}

async fn allowed(platform: &Platform) -> Result<Vec<Line>, Failure> {
    let missing = rights::lacking(&platform.client, &platform.namespace).await?;
    if missing.is_empty() {
        let text = "the credentials allow an installation";
        return Ok(vec![Line::new("rights", Level::Good, text)]);
    }
    let line = |missing: String| {
        Line::new(
            "rights",
            Level::Bad,
            format!("the credentials do not allow to {missing}"),
        )
    };
    Ok(missing.into_iter().map(line).collect())
}

fn problems(definitions: &[Definition]) -> Option<Line> {
    let problems: Vec<String> = definitions.iter().filter_map(Definition::problem).collect();
    (!problems.is_empty()).then(|| Line::new("definitions", Level::Bad, problems.join("; ")))
}

fn replaceable(definitions: &[Definition]) -> Line {
    problems(definitions).unwrap_or_else(|| {
        let there = definitions.iter().filter(|one| one.live.is_some()).count();
        let text = match there {
            0 => "no definitions of Flux are there yet".to_owned(),
            _ => format!("{there} definitions are there, in versions that can go on being stored"),
        };
        Line::new("definitions", Level::Good, text)
    })
}

fn installed(definitions: &[Definition], controllers: &[Controller]) -> Line {
    let has = |component: &str| {
        controllers
            .iter()
            .any(|one| one.is_ours && one.component == component)
    };
    let is_wanted = |one: &&Definition| one.comes_with(has);
    let missing: Vec<&str> = definitions
        .iter()
        .filter(|one| one.live.is_none())
        .filter(is_wanted)
        .map(|one| one.name.as_str())
        .collect();
    if !missing.is_empty() {
        let text = format!("definitions are missing: {}", missing.join(", "));
        return Line::new("definitions", Level::Bad, text);
    }
    problems(definitions).unwrap_or_else(|| {
        let text = format!(
            "{} definitions, stored in the versions of Flux 2.9",
            definitions.iter().filter(|one| one.live.is_some()).count()
        );
        Line::new("definitions", Level::Good, text)
    })
}

/// Checks the release. If the user may not read Secrets, the line says so; the other lines are still useful.
async fn release(platform: &Platform) -> Line {
    let namespace = &platform.namespace;
    match platform.last().await {
        Ok(Some(last)) => {
            let info = &last.release.info;
            let level = match info.status {
                helm_release::Status::Deployed => Level::Good,
                _ => Level::Bad,
            };
            let chart = last.release.chart.as_ref();
            let version = chart.map(helm_release::Chart::version).unwrap_or_default();
            let revision = last.release.version;
            Line::new(
                "release",
                level,
                format!(
                    "release {RELEASE} in namespace {namespace}: {}, chart {version}, revision {revision}",
                    info.status
                ),
            )
        }
        Ok(None) => {
            let text = format!("there is no release {RELEASE} in namespace {namespace}");
            Line::new("release", Level::Note, text)
        }
        Err(failure) => Line::new("release", Level::Note, failure.to_string()),
    }
}

/// A line for each controller of ours; one when there is none.
fn ours(found: &[Controller], namespace: &str) -> Vec<Line> {
    let line = |controller: &Controller| {
        let Controller {
            id,
            wanted,
            ready,
            image,
            ..
        } = controller;
        let is_replaced = is_of_flux(image);
        let level = match controller.is_ready() && !is_replaced {
            true => Level::Good,
            false => Level::Bad,
        };
        let within = found.iter().filter(|one| one.is_shared && one.id == *id);
        let within: Vec<&str> = within.map(|one| one.component.as_str()).collect();
        let mut text = format!("{id}: {ready} of {wanted} ready, {image}");
        if !within.is_empty() {
            text.push_str(&format!(" ({})", within.join(", ")));
        }
        if is_replaced {
            text.push_str(
                ": that is Flux's own; stop what has put it over ours, then `windlass uninstall` and `windlass install`",
            );
        }
        Line::new("controller", level, text)
    };
    // Several in one process are one Deployment.
    let mut seen = BTreeSet::new();
    let own = found.iter().filter(|one| one.is_ours);
    let lines: Vec<Line> = own.filter(|one| seen.insert(&one.id)).map(line).collect();
    if lines.is_empty() {
        let text = format!("no controllers of Windlass are there: `windlass install -n {namespace}`");
        return vec![Line::new("controller", Level::Bad, text)];
    }
    lines
}

/// Returns whether an image is Flux's, from its own registry or a mirror: an apply of Flux's manifests changes the image of a Deployment of ours
/// and leaves its labels.
fn is_of_flux(image: &str) -> bool {
    image.split('/').rev().nth(1) == Some("fluxcd")
}

fn rivals_before(found: &[Controller]) -> Line {
    let all: Vec<String> = COMPONENTS.iter().map(ToString::to_string).collect();
    let rivals = controllers::rivals(found, &all);
    if rivals.is_empty() {
        return Line::new(
            "controllers",
            Level::Good,
            "no controllers of Flux are in the way",
        );
    }
    let names: Vec<String> = rivals.iter().map(|rival| rival.id.to_string()).collect();
    let text = format!(
        "Flux's own controllers are here: {}; `windlass takeover` takes their place",
        names.join(", ")
    );
    Line::new("controllers", Level::Note, text)
}

/// Both at once is a defect: they would undo each other's work.
fn rivals(found: &[Controller]) -> Vec<Line> {
    let ours: Vec<String> = found
        .iter()
        .filter(|one| one.is_ours && one.wanted > 0)
        .map(|one| one.component.clone())
        .collect();
    let all: Vec<String> = COMPONENTS.iter().map(ToString::to_string).collect();
    let line = |rival: &&Controller| match rival.rivals(&ours) {
        true => Line::new(
            "rivals",
            Level::Bad,
            format!(
                "{} of Flux is at work on the same objects: scale it down, or `windlass takeover`",
                rival.id
            ),
        ),
        false => Line::new(
            "rivals",
            Level::Note,
            format!("{} is Flux's own, {}", rival.id, rival.image),
        ),
    };
    controllers::rivals(found, &all).iter().map(line).collect()
}

async fn objects(cluster: &Cluster) -> Result<Vec<Value>, Failure> {
    let mut all = Vec::new();
    for kind in &kind::ALL {
        all.extend(cluster.list(kind, None, None).await?.unwrap_or_default());
    }
    Ok(all)
}

fn delivery(objects: &[Value]) -> Line {
    let active: Vec<&Value> = objects
        .iter()
        .filter(|object| !object::is_suspended(object))
        .collect();
    let failed: Vec<&&Value> = active.iter().filter(|object| !object::is_ready(object)).collect();
    let suspended = objects.len() - active.len();
    if failed.is_empty() {
        let text = format!("{} objects are ready, {suspended} suspended", active.len());
        return Line::new("objects", Level::Good, text);
    }
    let named: Vec<String> = failed
        .iter()
        .take(NAMED)
        .map(|object| object::id(object).to_string())
        .collect();
    let more = match failed.len() {
        0..=NAMED => String::new(),
        all => format!(" and {} more", all - NAMED),
    };
    let text = format!(
        "{} of {} objects are not ready: {}{more}; `windlass get all -A --status-selector ready=false`",
        failed.len(),
        active.len(),
        named.join(", ")
    );
    Line::new("objects", Level::Bad, text)
}

/// So many objects are named.
const NAMED: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(name: &str, status: &str, suspend: bool, message: &str) -> Value {
        json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": name, "namespace": "n", "generation": 1}, "spec": {"suspend": suspend},
            "status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": status, "message": message}]}})
    }

    #[test]
    fn objects_that_are_not_ready_are_counted_and_named_and_suspended_ones_are_not() {
        let good = [object("a", "True", false, ""), object("b", "False", true, "")];
        let line = delivery(&good);
        assert_eq!(
            (line.level, line.text.as_str()),
            (Level::Good, "1 objects are ready, 1 suspended")
        );
        let bad = [good[0].clone(), object("c", "False", false, "")];
        let line = delivery(&bad);
        assert_eq!(line.level, Level::Bad);
        assert!(
            line.text
                .starts_with("1 of 2 objects are not ready: Kustomization/n/c;"),
            "{}",
            line.text
        );
    }

    #[test]
    fn two_that_do_the_same_are_a_defect_and_flux_beside_ours_is_not() {
        let controller = |name: &str, component: &str, is_ours: bool| Controller {
            id: kind::ALL[0].id("flux-system", name),
            component: component.to_owned(),
            is_ours,
            is_shared: false,
            version: String::new(),
            image: "image".to_owned(),
            wanted: 1,
            is_going: false,
            ready: 1,
            is_current: true,
            release: None,
        };
        let found = [
            controller("source-controller", "source-controller", true),
            controller("source-watcher", "source-watcher", false),
            controller("helm-controller", "helm-controller", false),
            controller(
                "image-automation-controller",
                "image-automation-controller",
                false,
            ),
        ];
        let levels: Vec<Level> = rivals(&found).iter().map(|line| line.level).collect();
        assert_eq!(levels, [Level::Bad, Level::Note, Level::Note]);
        assert_eq!(ours(&found, "flux-system").len(), 1);
        let mut replaced = found[0].clone();
        replaced.image = "ghcr.io/fluxcd/source-controller:v1.9.1".to_owned();
        let line = &ours(&[replaced], "flux-system")[0];
        assert!(
            line.level == Level::Bad && line.text.contains("Flux's own"),
            "{}",
            line.text
        );
        let none = ours(&found[1..], "flux-system");
        assert!(none[0].level == Level::Bad && none[0].text.ends_with("`windlass install -n flux-system`"));
    }
}
