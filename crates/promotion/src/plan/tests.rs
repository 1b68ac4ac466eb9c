//! Texts and rules, one by one; `tests/histories.rs` has the promises.

use api::delivery::PipelineSpec;
use serde_json::{Value, json};

use super::*;
use crate::Values;
use crate::decisions::{Approval, Hold, Promotion};
use crate::observe::{Health, Seen, begin, observe};

/// Clusters as they are, and a pipeline over them.
struct Scene {
    spec: PipelineSpec,
    status: PipelineStatus,
    decisions: Decisions,
    refused: BTreeMap<(usize, usize), String>,
    open: BTreeSet<(usize, usize)>,
    now: Timestamp,
    seen: Vec<Vec<Seen>>,
}

fn ready(version: &str) -> Seen {
    let values = [("HelmRelease/shop: chart".to_owned(), version.to_owned())];
    Seen {
        values: Values::from(values),
        health: Health::Ready,
    }
}

impl Scene {
    /// dev, and production with two targets, all with version 1.
    fn new(production: &Value) -> Self {
        let mut production = production.clone();
        production["name"] = json!("production");
        production["targets"] = json!([{"namespace": "eu"}, {"namespace": "us"}]);
        let spec = json!({
            "apps": [{"kind": "HelmRelease", "name": "shop"}],
            "environments": [{"name": "dev", "targets": [{"namespace": "dev"}], "soak": "10m"}, production],
        });
        let mut scene = Self {
            spec: serde_json::from_value(spec).unwrap(),
            status: PipelineStatus::default(),
            decisions: Decisions::default(),
            refused: BTreeMap::new(),
            open: BTreeSet::new(),
            now: "2026-11-27T18:00:00Z".parse().unwrap(),
            seen: vec![vec![ready("1")], vec![ready("1"), ready("1")]],
        };
        scene.look();
        scene
    }

    /// Version 2 has been in dev for ten minutes.
    fn deployed(production: &Value) -> Self {
        let mut scene = Self::new(production);
        scene.seen[0][0] = ready("2");
        scene.look();
        scene.pass(10);
        scene
    }

    fn pass(&mut self, minutes: i64) {
        self.now += jiff::SignedDuration::from_mins(minutes);
        self.look();
    }

    fn look(&mut self) {
        self.status = observe(&self.spec, &self.seen, &self.status, &self.decisions, self.now);
    }

    fn plan(&self) -> Plan {
        plan(&Situation {
            spec: &self.spec,
            status: &self.status,
            decisions: &self.decisions,
            gates: &(),
            refused: &self.refused,
            open: &self.open,
            now: self.now,
        })
    }

    /// Targets that are given a release, and what production waits for.
    fn says(&self) -> (Vec<String>, Vec<String>) {
        let plan = self.plan();
        let steps = plan.steps.iter().map(|step| {
            let environment = &self.spec.environments[step.environment];
            let name = environment.targets[step.target].namespace.as_deref().unwrap();
            format!("{name}: {}", step.release)
        });
        let waits = plan.waits[1].iter().map(ToString::to_string);
        (steps.collect(), waits.collect())
    }

    /// Makes the changes that are due; Flux has them applied.
    fn carry_out(&mut self) {
        for step in self.plan().steps {
            let change = api::delivery::TargetChange {
                release: step.release,
                commit: Some("abc".to_owned()),
                pull_request: None,
                at: Some(crate::observe::time(self.now)),
                asked: step.asked.map(crate::observe::time),
            };
            begin(&mut self.status, step.environment, step.target, change);
        }
    }
}

#[test]
fn a_release_soaks_before_it_goes_on() {
    let mut scene = Scene::new(&json!({}));
    assert_eq!(scene.says(), (vec![], vec![]), "all have it");
    scene.seen[0][0] = ready("2");
    scene.look();
    let wait = "release 2 must be healthy in dev until Fri 2026-11-27 18:10:00 UTC";
    assert_eq!(scene.says(), (vec![], vec![wait.to_owned()]));
    assert_eq!(scene.plan().again.unwrap().to_string(), "2026-11-27T18:10:00Z");
    scene.pass(9);
    scene.seen[0][0].health = Health::Progressing("restarting".to_owned());
    scene.look();
    let unhealthy = "release 2 is not healthy in dev".to_owned();
    assert_eq!(scene.says(), (vec![], vec![unhealthy]));
    scene.seen[0][0].health = Health::Ready;
    scene.pass(1);
    let again = "release 2 must be healthy in dev until Fri 2026-11-27 18:20:00 UTC";
    assert_eq!(
        scene.says(),
        (vec![], vec![again.to_owned()]),
        "from the beginning"
    );
    scene.pass(10);
    assert_eq!(scene.says().0, ["eu: 2", "us: 2"]);
}

#[test]
fn causes_are_named_together_with_their_time() {
    let mut scene = Scene::deployed(&json!({
        "windows": [{"days": ["Mon"], "from": "08:00", "to": "16:00", "timeZone": "Europe/Berlin"}],
        "approvals": {"required": 2},
    }));
    let approve = |by: &str, digest: &str| Approval {
        environment: "production".to_owned(),
        digest: digest.to_owned(),
        by: by.to_owned(),
        group: String::new(),
        at: None,
    };
    let digest = scene.status.releases[1].digest.clone();
    scene.decisions.approvals.push(approve("ana", &digest));
    scene
        .decisions
        .approvals
        .push(approve("ben", "sha256:another release"));
    let waits = [
        "window opens Mon 2026-11-30 07:00:00 UTC",
        "release 2: approval 1 of 2 (ana)",
    ];
    assert_eq!(scene.says(), (vec![], waits.map(str::to_owned).to_vec()));
    scene.now = "2026-11-30T07:00:00Z".parse().unwrap();
    scene.look();
    scene.decisions.approvals.push(approve("cem", &digest));
    assert_eq!(
        scene.says(),
        (vec!["eu: 2".to_owned(), "us: 2".to_owned()], vec![])
    );
}

#[test]
fn a_hold_wins_and_an_older_release_may_pass_it() {
    let mut scene = Scene::deployed(&json!({}));
    scene.decisions.holds.push(Hold {
        release: Some(2),
        reason: "bad migration".to_owned(),
        by: "ana".to_owned(),
        until: Some("2026-11-28T00:00:00Z".parse().unwrap()),
        ..Hold::default()
    });
    let wait = "release 2 is held by ana: bad migration, until Sat 2026-11-28 00:00:00 UTC";
    assert_eq!(scene.says(), (vec![], vec![wait.to_owned()]));
    scene.seen[0][0] = ready("3");
    scene.look();
    scene.pass(10);
    assert_eq!(scene.says().0, ["eu: 3", "us: 3"]);
    scene.decisions.holds[0].release = Some(3);
    assert_eq!(scene.says().0, ["eu: 2", "us: 2"], "the one before is not held");
}

#[test]
fn targets_follow_each_other() {
    let mut scene = Scene::deployed(&json!({"rollout": {"maxConcurrent": 1}}));
    assert_eq!(
        scene.says(),
        (vec!["eu: 2".to_owned()], vec!["us: waits for eu".to_owned()])
    );
    scene.carry_out();
    scene.look();
    assert_eq!(scene.says(), (vec![], vec!["us: waits for eu".to_owned()]));
    scene.seen[1][0] = ready("2");
    scene.look();
    assert_eq!(scene.says(), (vec!["us: 2".to_owned()], vec![]));
}

#[test]
fn a_target_that_fails_leaves_the_others_unhurt() {
    let mut scene = Scene::deployed(&json!({"rollout": {"maxConcurrent": 1}}));
    scene
        .refused
        .insert((1, 0), "the cluster does not answer".to_owned());
    let wait = "eu: the cluster does not answer".to_owned();
    assert_eq!(scene.says(), (vec!["us: 2".to_owned()], vec![wait]));
    scene.refused.clear();
    scene.carry_out();
    scene.seen[1][0] = Seen {
        health: Health::Failed("crash".to_owned()),
        ..ready("2")
    };
    scene.look();
    assert_eq!(scene.says(), (vec!["us: 2".to_owned()], vec![]));
}

#[test]
fn a_target_that_fails_stops_the_others_where_that_is_wanted() {
    let mut scene =
        Scene::deployed(&json!({"rollout": {"maxConcurrent": 1, "onFailure": "Stop", "timeout": "5m"}}));
    scene.carry_out();
    scene.pass(5);
    let wait = "stopped: eu failed with release 2: release 2 is not healthy after 5m".to_owned();
    assert_eq!(scene.says(), (vec![], vec![wait]));
    // A newer one, which mends it.
    scene.seen[0][0] = ready("3");
    scene.look();
    scene.pass(10);
    assert_eq!(scene.says().0, ["eu: 3"]);
}

#[test]
fn what_people_take_back_stays_taken_back() {
    let mut scene = Scene::deployed(&json!({}));
    scene.carry_out();
    scene.seen[1] = vec![ready("2"), ready("2")];
    scene.look();
    // In production, by hand.
    scene.seen[1][0] = ready("1");
    scene.look();
    assert_eq!(scene.says(), (vec![], vec![]));
    // In dev, before a release could go on.
    scene.seen[0][0] = ready("3");
    scene.look();
    scene.pass(10);
    assert_eq!(scene.says().0, ["eu: 3", "us: 3"]);
    scene.seen[0][0] = ready("2");
    scene.look();
    assert_eq!(scene.says().0, Vec::<String>::new());
    assert_eq!(scene.status.releases[2].rolled_back.as_deref(), Some("dev"));
    // And forward again, with a new soak time.
    scene.seen[0][0] = ready("3");
    scene.look();
    assert_eq!(scene.says().0, Vec::<String>::new());
    scene.pass(10);
    assert_eq!(scene.says().0, ["eu: 3", "us: 3"]);
}

#[test]
fn what_was_begun_and_not_finished_is_done_again() {
    let mut scene = Scene::deployed(&json!({}));
    let change = api::delivery::TargetChange {
        release: 2,
        commit: None,
        pull_request: None,
        at: Some(crate::observe::time(scene.now)),
        asked: None,
    };
    begin(&mut scene.status, 1, 0, change);
    scene.look();
    assert_eq!(scene.says().0, ["eu: 2", "us: 2"]);
    scene.decisions.holds.push(Hold::default());
    let waits = ["eu: release 2 is held by someone", "release 2 is held by someone"];
    assert_eq!(scene.says(), (vec![], waits.map(str::to_owned).to_vec()));
}

#[test]
fn going_back_before_the_newer_one_has_arrived_is_not_done_before_git_says_so() {
    let mut scene = Scene::deployed(&json!({}));
    let now = crate::observe::time(scene.now);
    let change = |release, commit: Option<&str>, asked| api::delivery::TargetChange {
        release,
        commit: commit.map(str::to_owned),
        pull_request: None,
        at: Some(now.clone()),
        asked,
    };
    begin(&mut scene.status, 1, 0, change(2, Some("c"), None));
    scene.look();
    // The target has 1 still, and Git has 2: the process was killed before it wrote 1 again.
    begin(&mut scene.status, 1, 0, change(1, None, Some(now.clone())));
    scene.look();
    assert_eq!(scene.says().0[0], "eu: 1");
    begin(&mut scene.status, 1, 0, change(1, Some("d"), Some(now.clone())));
    scene.look();
    assert_eq!(
        scene.status.environments[1].targets[0].change, None,
        "it is there"
    );
}

#[test]
fn a_pull_request_waits_for_people_and_becomes_one_for_a_newer_release() {
    let mut scene = Scene::deployed(&json!({"rollout": {"maxConcurrent": 1, "timeout": "5m"}}));
    let propose = |scene: &mut Scene, release: u64| {
        let change = api::delivery::TargetChange {
            release,
            commit: None,
            pull_request: Some("pull request 1".to_owned()),
            at: Some(crate::observe::time(scene.now)),
            asked: None,
        };
        begin(&mut scene.status, 1, 0, change);
    };
    propose(&mut scene, 2);
    scene.pass(60);
    let waits = ["eu: pull request 1", "us: waits for eu"].map(str::to_owned);
    assert_eq!(
        scene.says(),
        (vec!["eu: 2".to_owned()], waits[1..].to_vec()),
        "the forge is asked"
    );
    scene.open.insert((1, 0));
    assert_eq!(
        scene.says(),
        (vec![], waits.to_vec()),
        "it was asked a moment ago"
    );
    scene.seen[0][0] = ready("3");
    scene.look();
    scene.open.clear();
    scene.pass(10);
    let on_its_way = "eu: release 2 is on its way".to_owned();
    assert_eq!(
        scene.says(),
        (vec!["eu: 2".to_owned()], vec![on_its_way, waits[1].clone()]),
        "first the forge is asked whether it was merged"
    );
    scene.open.insert((1, 0));
    assert_eq!(scene.says(), (vec!["eu: 3".to_owned()], waits.to_vec()));
    propose(&mut scene, 3);
    assert_eq!(scene.says().0, Vec::<String>::new());
}

#[test]
fn what_is_proposed_is_not_forgotten_and_what_was_said_stays_until_it_is_said_anew() {
    let mut scene = Scene::deployed(&json!({}));
    let change = api::delivery::TargetChange {
        release: 2,
        commit: None,
        pull_request: Some("pull request 1".to_owned()),
        at: Some(crate::observe::time(scene.now)),
        asked: None,
    };
    begin(&mut scene.status, 1, 0, change);
    scene.status.environments[1].waits = vec!["eu: pull request 1".to_owned()];
    for version in 3..30 {
        scene.seen[0][0] = ready(&version.to_string());
        scene.look();
    }
    let numbers: Vec<u64> = scene.status.releases.iter().map(|one| one.number).collect();
    assert_eq!(
        numbers[..3],
        [1, 2, 20],
        "in production; in a pull request; the last ten"
    );
    assert_eq!(scene.status.environments[1].waits, ["eu: pull request 1"]);
}

fn promotion(release: u64, at: Timestamp) -> Promotion {
    Promotion {
        environment: "production".to_owned(),
        release,
        at,
        ..Promotion::default()
    }
}

#[test]
fn a_rollback_is_carried_out_once_and_leaves_newer_releases_alone() {
    let windows = json!([{"days": ["Mon"], "from": "08:00", "to": "09:00"}]);
    let mut scene = Scene::deployed(&json!({"windows": windows}));
    scene.seen[1] = vec![ready("2"), ready("2")];
    scene.look();
    scene.decisions.promotions.push(promotion(1, scene.now));
    scene.look();
    assert_eq!(scene.says().0, ["eu: 1", "us: 1"], "no window is waited for");
    scene.carry_out();
    scene.seen[1] = vec![ready("1"), ready("1")];
    scene.pass(1);
    assert_eq!(
        scene.says(),
        (vec![], vec![]),
        "and release 2 does not come again"
    );
    // By hand in Git: the rollback is over.
    scene.seen[1][0] = ready("2");
    scene.look();
    assert_eq!(scene.says().0, Vec::<String>::new());
    scene.seen[0][0] = ready("3");
    scene.spec.environments[1].windows.clear();
    scene.look();
    scene.pass(10);
    assert_eq!(scene.says().0, ["eu: 3", "us: 3"]);
}

#[test]
fn what_was_taken_back_can_be_promoted_again() {
    let mut scene = Scene::deployed(&json!({"approvals": {"required": 1}}));
    scene.seen[1] = vec![ready("2"), ready("2")];
    scene.look();
    scene.seen[1] = vec![ready("1"), ready("1")];
    scene.look();
    assert_eq!(scene.says().0, Vec::<String>::new());
    scene.decisions.promotions.push(promotion(2, scene.now));
    scene.look();
    assert_eq!(scene.says().0, ["eu: 2", "us: 2"]);
    // A hold wins over it, and one that is not due yet waits for its time.
    scene.decisions.holds.push(Hold {
        release: Some(2),
        ..Hold::default()
    });
    let held = "eu: release 2 is held by someone".to_owned();
    assert_eq!(scene.says().1[0], held);
    assert_eq!(scene.says().0, Vec::<String>::new());
    scene.decisions.holds.clear();
    scene.decisions.promotions[0].at += jiff::SignedDuration::from_mins(5);
    assert_eq!(scene.says().0, Vec::<String>::new());
    assert_eq!(scene.plan().again, Some(scene.decisions.promotions[0].at));
    scene.pass(5);
    assert_eq!(scene.says().0, ["eu: 2", "us: 2"]);
}

#[test]
fn a_promotion_by_hand_gives_nothing_that_the_environment_never_had() {
    let mut scene = Scene::deployed(&json!({"approvals": {"required": 1}}));
    scene.decisions.promotions.push(promotion(2, scene.now));
    scene.look();
    assert_eq!(
        scene.says(),
        (vec![], vec!["release 2: approval 0 of 1".to_owned()])
    );
    // Nor does it come back for it when release 3 is there.
    scene.seen[0][0] = ready("3");
    scene.look();
    scene.seen[1] = vec![ready("3"), ready("3")];
    scene.pass(20);
    assert_eq!(scene.says().0, Vec::<String>::new());
}

#[test]
fn what_fails_soon_goes_back_by_itself_and_stays_there() {
    let rollout = json!({"rollout": {"rollbackWithin": "15m", "maxConcurrent": 1, "onFailure": "Stop"}});
    let mut scene = Scene::deployed(&rollout);
    assert_eq!(scene.says().0, ["eu: 2"]);
    scene.carry_out();
    scene.seen[1][0] = ready("2");
    scene.pass(1);
    // It arrived, and fails a little later. The other has begun in the meantime.
    assert_eq!(scene.says().0, ["us: 2"]);
    scene.carry_out();
    scene.seen[1][0].health = Health::Failed("crash".to_owned());
    scene.pass(9);
    assert_eq!(scene.says().0, ["eu: 1"]);
    scene.carry_out();
    scene.look();
    assert_eq!(scene.says().0, Vec::<String>::new(), "it is begun once");
    scene.seen[1][0] = ready("1");
    scene.seen[1][1] = ready("2");
    scene.seen[1][1].health = Health::Progressing("rolling out".to_owned());
    scene.pass(1);
    assert_eq!(scene.says().0, Vec::<String>::new());
    // The other is late with it, and goes back as well.
    scene.pass(30);
    assert_eq!(scene.says().0, ["us: 1"]);
    scene.carry_out();
    scene.seen[1][1] = ready("1");
    scene.pass(1);
    // What was healthy before fails, too: there is nothing to go back to.
    scene.seen[1][0].health = Health::Failed("crash".to_owned());
    scene.pass(1);
    assert_eq!(scene.says().0, Vec::<String>::new());
}

#[test]
fn what_fails_late_stays_for_people() {
    let mut scene = Scene::deployed(&json!({"rollout": {"rollbackWithin": "15m"}}));
    scene.carry_out();
    scene.seen[1] = vec![ready("2"), ready("2")];
    scene.pass(16);
    scene.seen[1][0].health = Health::Failed("crash".to_owned());
    scene.look();
    assert_eq!(scene.says().0, Vec::<String>::new());
}
