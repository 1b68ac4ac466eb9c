//! The controllers as processes, on a real control plane, with a real Git server and a real registry.
//!
//! One control plane and one pair of controllers serve all tests; each test has a namespace of its own. Only the tests that
//! kill a controller start their own pair, and keep out of the way of the others by the shard label.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test's output is shown when it fails"
)]

mod alert_clients;
mod alert_options;
mod alert_providers;
mod alerts;
mod annotations;
mod argocd_import;
mod artifact_replicas;
mod artifacts;
mod authority;
mod backup;
mod builds;
mod changes;
mod cli;
mod cli_diff;
mod cli_diff_helm;
mod cli_drill;
mod cli_logs;
mod cli_orphans;
mod cli_push;
mod cli_restore;
mod cli_shards;
mod cli_trace;
mod cli_ways;
mod crds;
mod decryption;
mod deletion;
mod dependencies;
mod drift;
mod examples;
mod expressions;
mod failures;
mod fairness;
mod fences;
mod flux_cli;
mod flux_create;
mod flux_words;
mod formats;
mod freezes;
mod generator;
mod guard;
mod handover;
mod health_waits;
mod helm;
mod helm_changes;
mod helm_cli;
mod helm_crds;
mod helm_deletion;
mod helm_failures;
mod helm_releases;
mod helm_remote;
mod helm_requests;
mod helm_sources;
mod helm_takeover;
mod helm_waits;
mod ignore;
mod kill;
mod lifecycle;
mod like_flux;
mod monitoring;
mod readers;
mod receivers;
mod remote;
mod remote_bases;
mod remote_identity;
mod rollback;
mod rollback_by_hand;
mod service;
mod statements;
mod store;
mod sync;
mod takeover;
mod tenant_references;
mod tenants;
mod together;
mod vanished;
mod vault;
mod verification;
mod why;
mod world;
