//! Fuzzes the engine with generated templates.
//!
//! Always, and quickly: no template and no bytes make it panic or run long. With `ORACLE` set to the program of
//! hack/oracle/helm (`make fuzz-render`), both render every template and the answers are compared, bytes and words. A template with
//! two answers is made small and printed; add it to tests/cases/helm/templates when it is fixed.
//!
//! `CASES` is the number of templates, `SEED` the first one's; `HELM=v3` follows Helm 3.

mod differential;
mod expression;
mod functions;
mod generate;
mod oracle;
#[path = "../support/partial.rs"]
mod partial;
mod random;
mod shrink;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use helm_chart::Helm;
use proptest::prelude::{Strategy, any};
use proptest::test_runner::{Config, RngAlgorithm, RngSeed, TestCaseError, TestRunner};

use crate::random::Random;

/// Time limit for a template of a few lines, with room for a busy machine and unoptimised code.
const LONG: Duration = Duration::from_secs(20);

const VALUES: &str = include_str!("../../../../tests/cases/helm/templates/values.yaml");

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn helm() -> Helm {
    match std::env::var("HELM").as_deref() {
        Ok("v3") => Helm::V3,
        _ => Helm::V4,
    }
}

/// Output of a template, or its error.
type Answer = Result<Vec<u8>, String>;

/// Renders, and tells a panic and a render that takes long from an answer.
fn answer(template: &str, values: &str, helm: Helm) -> Result<Answer, String> {
    let start = Instant::now();
    let answer = catch_unwind(AssertUnwindSafe(|| partial::render(template, values, helm)));
    if start.elapsed() > LONG {
        return Err(format!("took {:?}", start.elapsed()));
    }
    answer.map_err(|_| "panicked".to_owned())
}

/// A runner whose cases are the same in every run.
fn run<S: Strategy>(strategy: &S, check: impl Fn(S::Value) -> Result<(), TestCaseError>) {
    let mut runner = TestRunner::new(Config {
        cases: number("CASES").map_or(300, |cases| cases as u32),
        failure_persistence: None,
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: RngSeed::Fixed(number("SEED").unwrap_or(1)),
        ..Config::default()
    });
    runner.run(strategy, check).expect("every template has an answer");
}

fn has_an_answer(template: &str, values: &str) -> Result<(), TestCaseError> {
    answer(template, values, helm())
        .map(drop)
        .map_err(|why| TestCaseError::fail(format!("{why}: {template}")))
}

#[test]
fn generated_templates_are_rendered_without_a_panic() {
    run(&any::<u64>(), |seed| {
        has_an_answer(&generate::template(&mut Random::new(seed)).to_string(), VALUES)
    });
}

#[test]
fn generated_templates_with_changed_letters_are_rendered_without_a_panic() {
    run(
        &(any::<u64>(), any::<u16>(), any::<char>()),
        |(seed, place, letter)| {
            let text = generate::template(&mut Random::new(seed)).to_string();
            let mut letters: Vec<char> = text.chars().collect();
            let place = usize::from(place) % letters.len().max(1);
            if seed % 2 == 0 && !letters.is_empty() {
                letters.remove(place);
            } else {
                letters.insert(place.min(letters.len()), letter);
            }
            has_an_answer(&letters.into_iter().collect::<String>(), VALUES)
        },
    );
}

#[test]
fn text_that_is_almost_a_template_is_rendered_without_a_panic() {
    let almost =
        r#"([{]{2}-? ?([a-z$.|:=(),"'`\\0-9x_+-]{0,9} ?){0,6}-?[}]{2}|if|end|range|with|\PC{0,4}|\n){0,12}"#;
    run(&almost, |template: String| has_an_answer(&template, VALUES));
}

#[test]
fn any_text_is_rendered_without_a_panic_whether_template_or_values() {
    run(&(any::<String>(), any::<String>()), |(template, values)| {
        has_an_answer(&template, &values)
    });
}

#[test]
fn generated_templates_are_rendered_as_the_real_helm_renders_them() {
    let Some(program) = std::env::var_os("ORACLE") else {
        println!("ORACLE is not set: skipped");
        return;
    };
    differential::run(program.into());
}
