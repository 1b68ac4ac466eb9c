//! From an event to what is to be said: which Alerts want it ([`rule`], [`admit`]), what they add ([`metadata`]), and what they
//! make of many ([`engine`]). All of it is pure.

pub mod admit;
pub mod commit_status;
pub mod engine;
pub mod metadata;
pub mod options;
pub mod rule;
pub mod summary;
pub mod template;
