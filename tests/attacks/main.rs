//! Attacks of a hostile tenant, repository or webhook, played on a real control plane against controllers
//! that are locked down as docs/tenancy.md says. One file for each story: what the attacker holds, what they
//! do, what they must not get. docs/security.md lists the boundaries and the tests that hold them.

#![expect(clippy::print_stderr, reason = "a test's output is shown when it fails")]

mod build_bombs;
mod chart_bombs;
mod copied_annotations;
mod described_clusters;
mod endless_answers;
mod expressions_that_hold;
mod git_bombs;
mod hostile_images;
mod kept_alive;
mod own_identity;
mod read_by_expression;
mod redirected_credentials;
mod remote_bases;
mod scene;
mod slow_webhooks;
mod stolen_artifacts;
mod unsigned_images;
mod unsigned_sources;
