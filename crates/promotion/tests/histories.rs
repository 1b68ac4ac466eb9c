//! What the planner promises (ADR 21), over random histories of deployments, failures, holds and killed processes.

use std::collections::{BTreeMap, BTreeSet};

use api::delivery::{
    AppKind, AppReference, Environment, OnFailure, PipelineSpec, PipelineStatus, Rollout, Target,
    TargetChange, TargetStatus,
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use promotion::decisions::{Decisions, Hold, Promotion};
use promotion::observe::{Health, Seen, begin, observe, time};
use promotion::plan::{Plan, Situation, Step, plan};
use proptest::prelude::*;

const FIELD: &str = "HelmRelease/shop: chart";
/// As the spec of each environment has it.
const TIMEOUT: SignedDuration = SignedDuration::from_mins(20);

#[derive(Debug, Clone)]
struct Shape {
    needs: Vec<usize>,
    targets: usize,
    soak: u8,
    max_concurrent: Option<u32>,
    stops: bool,
    proposes: bool,
    rolls_back: bool,
}

fn shape() -> impl Strategy<Value = Shape> {
    let needs = proptest::collection::vec(0usize..4, 1..3);
    let most = proptest::option::of(1u32..3);
    let options = any::<(bool, bool, bool)>();
    (needs, 1usize..4, 0u8..6, most, options).prop_map(
        |(needs, targets, soak, max_concurrent, (stops, proposes, rolls_back))| Shape {
            needs,
            targets,
            soak,
            max_concurrent,
            stops,
            proposes,
            rolls_back,
        },
    )
}

#[derive(Debug, Clone)]
enum Event {
    Deploy,
    GoBack,
    Apply(usize),
    Healthy(usize),
    Fail(usize),
    Toggle(usize),
    TakeBack(usize),
    Merge(usize),
    Hold(usize, u64),
    HoldAll(usize),
    Promote(usize, u64),
    Release,
    Pass(u8),
    Reconcile(Option<usize>),
}

fn event() -> impl Strategy<Value = Event> {
    let target = 0usize..16;
    prop_oneof![
        2 => Just(Event::Deploy),
        1 => Just(Event::GoBack),
        6 => target.clone().prop_map(Event::Apply),
        6 => target.clone().prop_map(Event::Healthy),
        1 => target.clone().prop_map(Event::Fail),
        1 => target.clone().prop_map(Event::Toggle),
        1 => target.clone().prop_map(Event::TakeBack),
        3 => target.clone().prop_map(Event::Merge),
        1 => (target.clone(), 1u64..8).prop_map(|(at, release)| Event::Hold(at, release)),
        1 => target.clone().prop_map(Event::HoldAll),
        1 => (target, 1u64..8).prop_map(|(at, release)| Event::Promote(at, release)),
        2 => Just(Event::Release),
        4 => (1u8..8).prop_map(Event::Pass),
        6 => Just(Event::Reconcile(None)),
        4 => (0usize..12).prop_map(|at| Event::Reconcile(Some(at))),
    ]
}

#[derive(Debug, Clone)]
struct Place {
    environment: usize,
    target: usize,
    git: u64,
    live: u64,
    health: Health,
    is_reachable: bool,
    pushed: Option<Timestamp>,
    /// Whether changes go in by pull request, and what the open one proposes.
    proposes: bool,
    request: Option<u64>,
}

impl Place {
    /// A person merges the pull request.
    fn merge(&mut self, now: Timestamp) {
        if let Some(version) = self.request.take() {
            self.git = version;
            self.pushed = Some(now);
        }
    }
}

/// The cluster, Git and people; and what was seen of them, for the checks.
struct World {
    spec: PipelineSpec,
    places: Vec<Place>,
    version: u64,
    holds: Vec<Hold>,
    promotions: Vec<Promotion>,
    now: Timestamp,
    /// What survives the process.
    status: PipelineStatus,
    /// Looks that were recorded, oldest first.
    looks: Vec<(Timestamp, Vec<Vec<Seen>>)>,
}

fn values(version: u64) -> promotion::Values {
    [(FIELD.to_owned(), format!("{version}.0.0"))].into()
}

impl World {
    fn new(shapes: &[Shape]) -> Self {
        let minutes =
            |minutes: i64| serde_json::from_value(format!("{minutes}m").into()).expect("it is there");
        let name = |index: usize| format!("e{index}");
        let environments = shapes.iter().enumerate().map(|(index, shape)| {
            let mut needs: Vec<_> = shape
                .needs
                .iter()
                .filter(|need| **need < index)
                .map(|need| name(*need))
                .collect();
            needs.dedup();
            if needs.is_empty() && index > 0 {
                needs.push(name(index - 1));
            }
            Environment {
                name: name(index),
                targets: (0..shape.targets)
                    .map(|target| Target {
                        namespace: Some(format!("e{index}-{target}")),
                        ..Target::default()
                    })
                    .collect(),
                needs: Some(needs),
                soak: Some(minutes(shape.soak.into())),
                rollout: Some(Rollout {
                    max_concurrent: shape.max_concurrent,
                    on_failure: shape.stops.then_some(OnFailure::Stop),
                    timeout: Some(minutes(TIMEOUT.as_secs() / 60)),
                    rollback_within: shape.rolls_back.then(|| minutes(10)),
                }),
                ..Environment::default()
            }
        });
        let environments: Vec<_> = environments.collect();
        let places = environments.iter().enumerate().flat_map(|(environment, one)| {
            (0..one.targets.len()).map(move |target| Place {
                environment,
                target,
                git: 1,
                live: 1,
                health: Health::Ready,
                is_reachable: true,
                pushed: None,
                proposes: shapes[environment].proposes,
                request: None,
            })
        });
        let app = AppReference {
            kind: AppKind::HelmRelease,
            name: "shop".to_owned(),
            selector: None,
        };
        Self {
            places: places.collect(),
            spec: PipelineSpec {
                apps: vec![app],
                environments,
                ..PipelineSpec::default()
            },
            version: 1,
            holds: Vec::new(),
            promotions: Vec::new(),
            now: "2026-11-26T12:00:00Z".parse().expect("it is there"),
            status: PipelineStatus::default(),
            looks: Vec::new(),
        }
    }

    fn seen(&self) -> Vec<Vec<Seen>> {
        let mut seen = vec![Vec::new(); self.spec.environments.len()];
        for place in &self.places {
            seen[place.environment].push(match place.is_reachable {
                true => Seen {
                    values: values(place.live),
                    health: place.health.clone(),
                },
                false => Seen {
                    values: promotion::Values::new(),
                    health: Health::Unknown("away".to_owned()),
                },
            });
        }
        seen
    }

    fn happens(&mut self, event: &Event) {
        let count = self.places.len();
        match event {
            Event::Deploy => {
                self.version += 1;
                let version = self.version;
                self.deploy(version);
            }
            Event::GoBack => self.deploy((self.version / 2).max(1)),
            Event::Apply(at) => {
                let place = &mut self.places[at % count];
                if place.live != place.git {
                    place.live = place.git;
                    place.health = Health::Progressing("rolling out".to_owned());
                }
            }
            Event::Healthy(at) => self.places[at % count].health = Health::Ready,
            Event::Fail(at) => self.places[at % count].health = Health::Failed("crash".to_owned()),
            Event::Toggle(at) => {
                let place = &mut self.places[at % count];
                place.is_reachable = !place.is_reachable;
            }
            Event::TakeBack(at) => {
                let place = &mut self.places[at % count];
                if place.environment > 0 {
                    (place.git, place.live) = ((place.live / 2).max(1), (place.live / 2).max(1));
                    place.pushed = None;
                }
            }
            Event::Merge(at) => {
                let now = self.now;
                self.places[at % count].merge(now);
            }
            Event::Hold(at, release) => self.holds.push(Hold {
                environment: format!("e{}", at % self.spec.environments.len()),
                release: Some(*release),
                ..Hold::default()
            }),
            Event::HoldAll(at) => self.holds.push(Hold {
                environment: format!("e{}", at % self.spec.environments.len()),
                until: Some(self.now + SignedDuration::from_mins(5)),
                ..Hold::default()
            }),
            Event::Promote(at, release) => self.promotions.push(Promotion {
                environment: format!("e{}", at % self.spec.environments.len()),
                release: *release,
                at: self.now,
                ..Promotion::default()
            }),
            Event::Release => self.holds.clear(),
            Event::Pass(minutes) => self.now += SignedDuration::from_mins((*minutes).into()),
            Event::Reconcile(killed) => self.reconcile(*killed),
        }
    }

    fn deploy(&mut self, version: u64) {
        for place in self.places.iter_mut().filter(|place| place.environment == 0) {
            (place.git, place.live) = (version, version);
            place.health = Health::Progressing("rolling out".to_owned());
        }
    }

    /// One reconcile, whose process is killed after so many of its actions.
    fn reconcile(&mut self, killed: Option<usize>) {
        let mut left = killed.unwrap_or(usize::MAX);
        let mut alive = move || {
            let is_alive = left > 0;
            left = left.saturating_sub(1);
            is_alive
        };
        let seen = self.seen();
        let decisions = Decisions {
            holds: self.holds.clone(),
            promotions: self.promotions.clone(),
            ..Decisions::default()
        };
        let status = observe(&self.spec, &seen, &self.status, &decisions, self.now);
        let mut refused = BTreeMap::new();
        let mut open = BTreeSet::new();
        let mut status = status;
        loop {
            let situation = Situation {
                spec: &self.spec,
                status: &status,
                decisions: &decisions,
                gates: &(),
                refused: &refused,
                open: &open,
                now: self.now,
            };
            let Plan { steps, .. } = plan(&situation);
            assert_eq!(
                steps,
                plan(&situation).steps,
                "the same state gives the same plan"
            );
            if steps.is_empty() {
                break;
            }
            let before = status.clone();
            for step in &steps {
                begin(
                    &mut status,
                    step.environment,
                    step.target,
                    self.change(step, None),
                );
            }
            if !alive() {
                return;
            }
            self.status = status.clone();
            self.looks.push((self.now, seen.clone()));
            for step in &steps {
                self.check(step, &before);
                if !alive() {
                    return;
                }
                match self.carry_out(step) {
                    Some(change) => {
                        if change.commit.is_none() {
                            open.insert((step.environment, step.target));
                        }
                        begin(&mut status, step.environment, step.target, change);
                    }
                    None => {
                        let before = &before.environments[step.environment].targets[step.target];
                        let target = &mut status.environments[step.environment].targets[step.target];
                        *target = before.clone();
                        refused.insert((step.environment, step.target), "away".to_owned());
                    }
                }
            }
        }
        if alive() {
            self.status = status;
            self.looks.push((self.now, seen));
        }
    }

    fn change(&self, step: &Step, commit: Option<String>) -> TargetChange {
        TargetChange {
            release: step.release,
            commit,
            pull_request: None,
            at: Some(Time(self.now)),
            asked: step.asked.map(Time),
        }
    }

    fn place(&mut self, step: &Step) -> &mut Place {
        let mut places = self.places.iter_mut();
        let found = places.find(|place| (place.environment, place.target) == (step.environment, step.target));
        found.expect("it is there")
    }

    /// Changes Git or proposes it, where the target can be read.
    fn carry_out(&mut self, step: &Step) -> Option<TargetChange> {
        let (version, now) = (self.version_of(step.release), self.now);
        let mut change = self.change(step, None);
        let place = self.place(step);
        if !place.is_reachable {
            return None;
        }
        if place.git != version && place.proposes {
            place.request = Some(version);
            change.pull_request = Some("pull request 1".to_owned());
            return Some(change);
        }
        if place.git != version {
            place.git = version;
            place.pushed = Some(now);
        }
        place.request = None;
        change.commit = Some("c".to_owned());
        Some(change)
    }

    fn version_of(&self, release: u64) -> u64 {
        let mut releases = self.status.releases.iter();
        let found = releases.find(|one| one.number == release).expect("it is there");
        found.values[FIELD]
            .split('.')
            .next()
            .expect("it is there")
            .parse()
            .expect("it is there")
    }

    /// Checks a step against what was seen, by other means than the planner's.
    fn check(&mut self, step: &Step, before: &PipelineStatus) {
        let environment = &self.spec.environments[step.environment];
        let name = environment.name.clone();
        assert!(
            !self
                .holds
                .iter()
                .any(|hold| hold.holds(&name, step.release, self.now)),
            "a hold was passed by: {step:?}"
        );
        let version = self.version_of(step.release);
        let known = &before.environments[step.environment].targets[step.target];
        let is_redone = known
            .change
            .as_ref()
            .is_some_and(|change| change.release == step.release);
        if let Some(asked) = step.asked {
            let target = &environment.targets[step.target];
            if !is_redone {
                self.check_asked(step, asked, known, target.namespace.as_deref());
            }
            return;
        }
        if !is_redone {
            assert!(
                known.newest < Some(step.release),
                "an older release, or one again: {step:?} {known:?}"
            );
            for need in self.spec.needs(step.environment) {
                let need = self
                    .spec
                    .environments
                    .iter()
                    .position(|one| one.name == need)
                    .expect("it is there");
                assert!(self.has_passed(need, version), "{step:?} has not passed e{need}");
            }
            let release = before
                .releases
                .iter()
                .find(|one| one.number == step.release)
                .expect("it is there");
            assert_eq!(release.rolled_back, None, "{step:?}");
        }
        let now = self.now;
        // What is held and proposed may be merged unseen: its pull request is made one for another release.
        let was_held = known.change.as_ref().is_some_and(|change| {
            let mut holds = self.holds.iter();
            holds.any(|hold| hold.holds(&name, change.release, now))
        });
        // Who goes back while a release is on its way knows that it is.
        let was_asked = known.change.as_ref().is_some_and(|change| change.asked.is_some());
        let place = self.place(step);
        let is_on_its_way = place.git != place.live
            && place.git != version
            && place
                .pushed
                .is_some_and(|pushed| now.duration_since(pushed) < TIMEOUT);
        // A proposal that was begun is finished, though one for another release was merged in between: that puts nothing in.
        let is_proposed_again = place.proposes && is_redone;
        assert!(
            !is_on_its_way || was_held || was_asked || is_proposed_again,
            "two releases at once: {step:?} {place:?}"
        );
    }

    /// A step that was asked for: by a person who wants what the target had or something older, and once; or by a failure.
    fn check_asked(&self, step: &Step, asked: Timestamp, known: &TargetStatus, target: Option<&str>) {
        let environment = &self.spec.environments[step.environment];
        assert!(
            known.newest >= Some(step.release),
            "{target:?} never had it: {step:?}"
        );
        let by_hand = self.promotions.iter().any(|one| {
            (one.environment.as_str(), one.release, time(one.at).0)
                == (&environment.name, step.release, asked)
        });
        if by_hand && known.last_asked < Some(Time(asked)) {
            return;
        }
        let rolls_back = environment
            .rollout
            .as_ref()
            .and_then(|rollout| rollout.rollback_within.as_ref());
        assert!(
            rolls_back.is_some(),
            "it was carried out, or no one asked: {step:?} {known:?}"
        );
        assert!(
            known.newest > Some(step.release),
            "{step:?} is no rollback of {known:?}"
        );
        let (version, newest) = (self.version_of(step.release), known.newest.expect("it is there"));
        let newest = self.status.releases.iter().find(|one| one.number == newest);
        let newest = newest.map(|one| one.values.clone());
        let seen = |look: &Vec<Vec<Seen>>| look[step.environment][step.target].clone();
        let was_healthy = self.looks.iter().any(|(_, look)| {
            let seen = seen(look);
            seen.values == values(version) && seen.health == Health::Ready
        });
        assert!(was_healthy, "it was never healthy there: {step:?}");
        // The last look at the newer one was not a good one.
        let last = self.looks.iter().rev().map(|(_, look)| seen(look));
        let last = last
            .filter(|seen| Some(&seen.values) == newest.as_ref())
            .map(|seen| seen.health)
            .next();
        assert_ne!(
            last,
            Some(Health::Ready),
            "{step:?} though the newer one is healthy"
        );
    }

    /// Returns whether a version was seen healthy everywhere in an environment for the soak time, has not been seen to fail
    /// there since, and is healthy where it is now.
    fn has_passed(&self, environment: usize, version: u64) -> bool {
        let soak = self.spec.environments[environment]
            .soak
            .as_ref()
            .expect("it is there")
            .to_std();
        let soak = SignedDuration::try_from(soak).expect("it is there");
        let (mut since, mut passed) = (None, false);
        for (time, look) in &self.looks {
            let targets = &look[environment];
            let has = |one: &Seen| one.values == values(version);
            let all = targets.iter().all(|one| has(one) && one.health == Health::Ready);
            since = if all { since.or(Some(*time)) } else { None };
            passed |= since.is_some_and(|since| time.duration_since(since) >= soak);
            let failed = |one: &Seen| has(one) && matches!(one.health, Health::Failed(_));
            if targets.iter().any(failed) {
                passed = false;
            }
        }
        let (_, last) = self.looks.last().expect("it is there");
        let mut having = last[environment]
            .iter()
            .filter(|one| one.values == values(version));
        passed && having.all(|one| one.health == Health::Ready)
    }

    /// Everything works from now on.
    fn calm(&mut self) {
        self.holds.clear();
        self.promotions.clear();
        self.version += 1;
        let version = self.version;
        self.deploy(version);
        for _ in 0..60 {
            for place in &mut self.places {
                place.is_reachable = true;
                place.merge(self.now);
                place.live = place.git;
                place.health = Health::Ready;
            }
            self.reconcile(None);
            self.now += SignedDuration::from_mins(3);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn promises_hold_in_every_history(
        shapes in proptest::collection::vec(shape(), 2..5),
        events in proptest::collection::vec(event(), 1..120),
    ) {
        let mut world = World::new(&shapes);
        for event in &events {
            world.happens(event);
        }
        world.calm();
        let version = world.version;
        for place in &world.places {
            prop_assert_eq!(place.live, version, "in the end all have the newest: {:?}\n{:#?}", place, &world.status);
        }
    }
}
