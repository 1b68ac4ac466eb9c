//! The console on the real control plane: what callers see, in lists, in ways through the graph, and in streams.

mod actions;
mod cdevents;
mod changes;
mod clusters;
mod diff;
mod download;
mod grpc;
mod ledger;
mod lists;
mod logs;
mod matrix;
mod mcp;
mod monitoring;
mod pages;
mod pipelines;
mod rights;
mod running;
mod sign_in;
mod streams;
mod tables;
mod ui;
mod world;
