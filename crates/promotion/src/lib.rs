//! What a pipeline promotes, and why it does not (ADR 21). Pure: no I/O, no clock.
//!
//! | module | in | out |
//! |---|---|---|
//! | [`check`] | spec | why it cannot work |
//! | [`values`] | an application as the API server has it | chart versions and images, by field |
//! | [`observe`] | spec, what was seen of the targets, the status before, the time | the status now: releases, who has which, since when |
//! | [`decisions`] | annotations of a pipeline | holds and approvals of people |
//! | [`board`] | a pipeline, the time | what people look at: which release is where, what waits for whom |
//! | [`decide`] | a pipeline, what a person wants | its annotations then |
//! | [`plan`] | spec, status, decisions, gates, the time | the steps that are due; for the rest a cause, and a time where there is one |
//! | [`arrivals`] | the status before and now | promotions that ended in between, and the histories with them |
//! | [`statement`] | a promotion that ended | the in-toto statement about it |
//! | [`triggers`] | Receivers, a pipeline and what it runs first | the webhooks that start it |
//! | [`manifests`] | files, what a release sets in them | the files then |
//! | [`weave`] | a Pipeline of Weave GitOps | the objects that are made of it, and its status |
//!
//! A caller observes, plans, records the steps by [`observe::begin`], writes the status, carries them out, and writes the commits
//! into it. It may be killed anywhere: a step that has no commit yet is planned again, and may find the files as they
//! should be.

pub mod arrivals;
pub mod board;
pub mod check;
pub mod decide;
pub mod decisions;
pub mod manifests;
pub mod observe;
pub mod plan;
pub mod statement;
pub mod triggers;
pub mod values;
pub mod weave;

/// Values of an application or of a release, by field.
pub type Values = std::collections::BTreeMap<String, String>;
