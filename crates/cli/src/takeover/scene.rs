//! Surveys the cluster before a takeover: what is there, what would change, and what prevents it.

use std::collections::BTreeSet;

use helm_release::Status;
use manifest::ObjectId;
use serde_json::{Map, Value};

use super::obstacles;
use super::record::{self, Record, Stage};
use crate::cluster::output::Colours;
use crate::cluster::{Cluster, Failure};
use crate::install::Wanted;
use crate::platform::controllers::{self, Controller};
use crate::platform::plan::{Change, Plan};
use crate::platform::{Platform, chart};

/// Survey of the cluster, and the planned changes.
pub(super) struct Scene {
    pub(super) last: Option<helm_release::Record>,
    pub(super) wanted: Wanted,
    pub(super) plan: Plan,
    /// Controllers of Flux that do what ours do.
    pub(super) rivals: Vec<Controller>,
    /// Objects that deliver Flux's own objects.
    pub(super) deliverers: Vec<ObjectId>,
    pub(super) record: Option<Record>,
}

impl Scene {
    pub(super) async fn look(
        cluster: &Cluster,
        platform: &Platform,
        given: Option<Map<String, Value>>,
    ) -> Result<Self, Failure> {
        let record = record::load(&platform.client, &platform.namespace).await?;
        // Flux is there as it was: what there is now is what counts.
        let record = record.filter(|record| record.stage != Stage::GivenBack);
        if record
            .as_ref()
            .is_some_and(|record| record.stage == Stage::GivingBack)
        {
            return Err(Failure::NotReady(
                "Flux is being given its place back: end that first, with `windlass giveback`".to_owned(),
            ));
        }
        let last = platform.last().await?;
        let found = controllers::find(&platform.client).await?;
        let kept = || last.as_ref().map(|last| last.release.config.clone());
        let mut values = given.or_else(kept).unwrap_or_default();
        if found.iter().any(|one| one.wanted > 0 && one.is_of_images()) {
            enable_images(&mut values);
        }
        let wanted = Wanted::new(platform, chart::load()?, last.as_ref(), Some(values)).await?;
        let plan = wanted.plan(platform, last.as_ref()).await?;
        let rivals: Vec<Controller> = controllers::rivals(&found, &wanted.components()?)
            .into_iter()
            .cloned()
            .collect();
        if rivals.is_empty() && record.is_none() {
            return Err(Failure::NotReady(format!(
                "no controllers of Flux are here whose place could be taken: `windlass install -n {}`",
                platform.namespace
            )));
        }
        let mut own: Vec<ObjectId> = plan.changes.iter().map(|(id, _)| id.clone()).collect();
        own.extend(rivals.iter().map(|rival| rival.id.clone()));
        Ok(Self {
            deliverers: obstacles::deliverers(cluster, &own).await?,
            last,
            wanted,
            plan,
            rivals,
            record,
        })
    }

    /// Returns whether the release is there, and not its history only.
    pub(super) fn is_released(&self) -> bool {
        let status = self.last.as_ref().map(|last| &last.release.info.status);
        status.is_some_and(|status| *status != Status::Uninstalled)
    }

    /// Those of the chart's objects that are someone's.
    pub(super) fn taken(&self) -> Vec<ObjectId> {
        self.plan.with(Change::TakenOver).cloned().collect()
    }

    /// Those that get no object of ours under their name.
    pub(super) fn displaced(&self) -> Vec<&Controller> {
        let own = |rival: &&Controller| self.plan.changes.iter().any(|(id, _)| *id == rival.id);
        self.rivals.iter().filter(|rival| !own(rival)).collect()
    }

    pub(super) async fn refuse_obstacles(
        &self,
        platform: &Platform,
        suspend_self: bool,
    ) -> Result<(), Failure> {
        let mut problems = obstacles::operators(platform).await?;
        problems.extend(obstacles::newer(&self.rivals));
        let manifest = &self.wanted.release.manifest;
        problems.extend(obstacles::selectors(platform, manifest, &self.taken()).await?);
        if !suspend_self {
            problems.extend(obstacles::advice_lines(&self.deliverers));
        }
        match problems.is_empty() {
            true => Ok(()),
            false => Err(Failure::NotReady(problems.join("\n"))),
        }
    }

    /// Notes for the user.
    pub(super) fn notes(&self) -> BTreeSet<String> {
        let releases = self.rivals.iter().filter_map(|rival| rival.release.as_ref());
        releases
            .map(|release| {
                format!(
                    "Flux is of the Helm release {release}: to upgrade or uninstall that would take away what is ours by then"
                )
            })
            .collect()
    }

    pub(super) fn shown(&self, suspend_self: bool) -> String {
        let mut text = String::new();
        if suspend_self {
            self.deliverers
                .iter()
                .for_each(|id| text.push_str(&format!("suspend {id}\n")));
        }
        for rival in self.displaced() {
            text.push_str(&format!("scale down {} ({})\n", rival.id, rival.image));
        }
        for release in self.rivals.iter().filter_map(|rival| rival.release.as_ref()) {
            let line =
                format!("note: Flux is of the Helm release {release}: do not upgrade or uninstall it\n");
            if !text.contains(&line) {
                text.push_str(&line);
            }
        }
        text + &self.plan.shown(Colours::of_terminal())
    }
}

/// Image controllers are not a part of every Flux, so the chart has them disabled: where they are at work, they are wanted.
fn enable_images(values: &mut Map<String, Value>) {
    let images = values
        .entry("images")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(images) = images {
        images.entry("enabled").or_insert(Value::Bool(true));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn image_controllers_are_wanted_unless_the_values_say_no() {
        for (given, expected) in [
            (json!({}), json!({"images": {"enabled": true}})),
            (
                json!({"images": {"replicas": 2}}),
                json!({"images": {"replicas": 2, "enabled": true}}),
            ),
            (
                json!({"images": {"enabled": false}}),
                json!({"images": {"enabled": false}}),
            ),
        ] {
            let mut values = given.as_object().cloned().unwrap_or_default();
            enable_images(&mut values);
            assert_eq!(Value::Object(values), expected);
        }
    }
}
