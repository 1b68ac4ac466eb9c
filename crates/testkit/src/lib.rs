//! For development only: the real peers that the controllers meet, started on loopback for one test or the demo.
//!
//! Nothing here is a mock. [`ControlPlane`] is etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok;
//! [`GitServer`] is `git http-backend`; [`Gitea`] a whole forge; [`Dex`] an OpenID provider; [`Registry`] is the distribution registry; [`Controller`] is one of our own
//! binaries as a process. Git server and registry stand behind a small in-process HTTP server that counts requests and
//! injects faults, because "one `ls-refs` and nothing else" and "401 in the middle" must be things that a test can say.
//!
//! [`tools`] builds the programs from `hack/go.mod`. [`objects`], [`wait`] and [`crds`] are what every cluster test
//! needs beside them.

pub mod artifact_access;
pub mod bucket;
pub mod certificates;
pub mod control_plane;
pub mod controller;
pub mod crds;
pub mod dex;
pub mod forward_proxy;
pub mod git;
pub mod gitea;
pub mod helm_repository;
pub mod message_sink;
pub mod node;
pub mod objects;
pub mod ports;
pub mod postgres;
pub mod process;
pub mod prometheus;
pub mod recorded;
pub mod registry;
pub mod scratch;
pub mod scripted_registry;
pub mod service;
pub mod tls_front;
pub mod tools;
pub mod wait;

pub use bucket::ObjectStore;
pub use control_plane::{ControlPlane, Options};
pub use controller::Controller;
pub use crds::{install_all_crds, install_crds, install_flux_operator_crds, install_weave_crds};
pub use dex::Dex;
pub use forward_proxy::ForwardProxy;
pub use git::GitServer;
pub use gitea::Gitea;
pub use helm_repository::HelmRepository;
pub use message_sink::MessageSink;
pub use node::Node;
pub use postgres::Postgres;
pub use prometheus::Prometheus;
pub use registry::Registry;
pub use service::Service;
pub use tls_front::TlsFront;
pub use wait::{wait_for, wait_until_gone};
