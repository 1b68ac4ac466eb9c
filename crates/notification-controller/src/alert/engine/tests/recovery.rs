//! Whatever happens in which order: that an object works again is told of exactly those that were said to fail.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Step of a test; objects and ways to fail by number. Object 0 is what the others depend on.
#[derive(Debug, Clone)]
enum Step {
    Fails(usize, usize),
    IsReady(usize),
    IsDeleted(usize),
    Succeeds(usize),
    TimePasses(i64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4_usize, 0..3_usize).prop_map(|(object, way)| Step::Fails(object, way)),
        2 => (0..4_usize).prop_map(Step::IsReady),
        1 => (0..4_usize).prop_map(Step::IsDeleted),
        1 => (0..4_usize).prop_map(Step::Succeeds),
        2 => (1..400_i64).prop_map(Step::TimePasses),
    ]
}

/// Objects that were reported as failing, and whether they have recovered since.
type Told = BTreeMap<String, bool>;

struct World {
    run: Run,
    told: Told,
    /// The Alert is about object 0, too.
    source_is_told: bool,
}

impl World {
    fn new(annotations: &[(&str, &str)], by_object: bool, source_is_told: bool) -> Self {
        let mut run = Run::new(annotations);
        run.by_object = by_object;
        for object in 1..4 {
            run.known.parents.insert(key(object), vec![key(0)]);
        }
        Self {
            run,
            told: Told::new(),
            source_is_told,
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Fails(object, way) => {
                self.run.known.failing.insert(key(object), true);
                if self.hears(object) {
                    self.run
                        .event(&object.to_string(), "error", "BuildFailed", &format!("way {way}"));
                }
            }
            Step::IsReady(object) => {
                self.recover(object);
                self.run.ready(&object.to_string());
            }
            Step::IsDeleted(object) => {
                self.recover(object);
                self.run.known.failing.remove(&key(object));
                self.run.gone(&object.to_string());
            }
            Step::Succeeds(object) => {
                self.recover(object);
                if self.hears(object) {
                    self.run.succeed(&object.to_string());
                }
                // Its status tells as well.
                self.run.ready(&object.to_string());
            }
            Step::TimePasses(seconds) => {
                self.run.pass(seconds);
            }
        }
        self.listen();
    }

    fn hears(&self, object: usize) -> bool {
        object != 0 || self.source_is_told
    }

    fn recover(&mut self, object: usize) {
        self.run.known.failing.insert(key(object), false);
        if let Some(has_recovered) = self.told.get_mut(&key(object)) {
            *has_recovered = true;
        }
    }

    /// Hears what was said since.
    fn listen(&mut self) {
        for message in std::mem::take(&mut self.run.said) {
            let events = if message.events.is_empty() {
                vec![message.event.clone()]
            } else {
                message.events.clone()
            };
            let is_digest = message.event.reason == "Digest";
            for event in events {
                self.hear(&event, is_digest);
            }
        }
    }

    fn hear(&mut self, event: &Event, is_digest: bool) {
        let object = event.involved_object.to_string();
        if event.is_error() {
            let lost = self.told.insert(object.clone(), false) == Some(true);
            // A digest tells how it ended, and that it worked in between only by its numbers.
            assert!(
                !lost || is_digest,
                "{object} recovered, and nobody was told before it failed again"
            );
        } else if event.reason == "Resolved" {
            let known = self.told.remove(&object);
            assert!(
                known.is_some() || is_digest,
                "{object} is said to be ready again, and nobody knew that it was not"
            );
        } else {
            self.told.remove(&object);
        }
    }

    /// Lets all recover: who was told of failures must hear of it.
    fn end(&mut self) {
        for object in 0..4 {
            self.step(&Step::IsReady(object));
        }
        self.run.pass(48 * 3600);
        self.listen();
        assert_eq!(self.told, Told::new(), "nobody was told that these recovered");
        assert!(self.run.engine.is_empty());
    }
}

fn key(object: usize) -> String {
    format!("Kustomization/apps/{object}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn that_it_is_over_is_told_of_exactly_what_was_told(
        steps in vec(step(), 1..30),
        window in prop::option::of(Just(("group-window", "5m"))),
        hold in prop::option::of(Just(("for", "90s"))),
        fold in prop::option::of(Just(("fold", "true"))),
        digest in prop::option::weighted(0.2, Just(("digest", "15m"))),
        by_object in prop::bool::weighted(0.2),
        source_is_told in any::<bool>(),
    ) {
        let annotations: Vec<_> = [Some(("resolve", "true")), window, hold, fold, digest]
            .into_iter()
            .flatten()
            .collect();
        let mut world = World::new(&annotations, by_object, source_is_told);
        for step in &steps {
            world.step(step);
        }
        world.end();
    }
}
