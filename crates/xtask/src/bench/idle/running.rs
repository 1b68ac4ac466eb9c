//! All four controllers of one contestant, each in a control group whose memory is counted, if there can be one.

use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;
use testkit::controller::ControllerOptions;
use testkit::process::{Process, Usage};
use testkit::{ControlPlane, Controller};

use super::cgroup::Group;
use super::measured::Measured;
use crate::bench::contestant::{Contestant, flux};

/// The controllers. Groups go after what is in them, and so does the folder of Flux's.
pub(super) struct Running {
    programs: Vec<Program>,
    _directory: Option<TempDir>,
}

struct Program {
    name: &'static str,
    kind: Kind,
    group: Option<Group>,
}

enum Kind {
    Windlass(Box<Controller>),
    Flux(flux::Started),
}

impl Running {
    pub(super) async fn start(
        contestant: &Contestant,
        control_plane: &ControlPlane,
        all: bool,
    ) -> Result<Self> {
        match contestant {
            Contestant::Windlass if all => start_together(control_plane).await,
            Contestant::Windlass => start_ours(control_plane).await,
            Contestant::Flux(folder) => {
                let peer = flux::Peer::new(folder, control_plane.kubeconfig_path())?;
                start_flux(peer).await
            }
        }
    }

    pub(super) fn usages(&self) -> Result<Vec<Usage>> {
        self.programs
            .iter()
            .map(|program| program.process()?.usage())
            .collect()
    }

    pub(super) fn measure(&self, before: &[Usage]) -> Result<Vec<Measured>> {
        let all = self.programs.iter().zip(before);
        all.map(|(program, before)| {
            let usage = program.process()?.usage()?;
            Ok(Measured {
                name: program.name,
                start: program.start_time(),
                usage,
                share: program.process()?.proportional_bytes()?,
                working_set: program.group.as_ref().map(Group::working_set).transpose()?,
                cpu: usage.cpu_time.saturating_sub(before.cpu_time),
            })
        })
        .collect()
    }

    pub(super) fn log_tails(&self) -> String {
        let tails = self
            .programs
            .iter()
            .filter_map(|program| Some(program.process().ok()?.log_tail(20)));
        tails.collect::<Vec<_>>().join("\n")
    }
}

impl Program {
    fn process(&self) -> Result<&Process> {
        match &self.kind {
            Kind::Windlass(controller) => controller.process(),
            Kind::Flux(started) => Ok(&started.process),
        }
    }

    fn start_time(&self) -> Duration {
        match &self.kind {
            Kind::Windlass(controller) => controller.start_time(),
            Kind::Flux(started) => started.start_time,
        }
    }
}

async fn start_ours(control_plane: &ControlPlane) -> Result<Running> {
    let kubeconfig = control_plane.kubeconfig_path();
    let groups = ["source", "apply", "helm", "notification"].map(Group::new);
    let options = |group: &Option<Group>, flags: &[String]| ControllerOptions {
        flags: flags.to_vec(),
        wrapper: group.as_ref().map(Group::wrapper).unwrap_or_default(),
        ..ControllerOptions::default()
    };
    let notification = Controller::start_notification(kubeconfig, options(&groups[3], &[])).await?;
    let events = [format!("--events-addr={}", notification.events_url())];
    let source = Controller::start_source(kubeconfig, options(&groups[0], &events)).await?;
    let apply = Controller::start_apply(kubeconfig, &source, options(&groups[1], &events)).await?;
    let helm = Controller::start_helm(kubeconfig, &source, options(&groups[2], &events)).await?;
    let programs = [source, apply, helm, notification].into_iter().zip(groups);
    let programs = programs.map(|(controller, group)| Program {
        name: controller.name(),
        kind: Kind::Windlass(Box::new(controller)),
        group,
    });
    Ok(Running {
        programs: programs.collect(),
        _directory: None,
    })
}

async fn start_together(control_plane: &ControlPlane) -> Result<Running> {
    let group = Group::new("all");
    let options = ControllerOptions {
        wrapper: group.as_ref().map(Group::wrapper).unwrap_or_default(),
        ..ControllerOptions::default()
    };
    let controller = Controller::start_all(control_plane.kubeconfig_path(), options).await?;
    let program = Program {
        name: "all in one process",
        kind: Kind::Windlass(Box::new(controller)),
        group,
    };
    Ok(Running {
        programs: vec![program],
        _directory: None,
    })
}

/// Flux's send their events nowhere, as testkit starts them: that is to their advantage.
async fn start_flux(mut peer: flux::Peer) -> Result<Running> {
    const NAMES: [&str; 4] = [
        "source-controller",
        "kustomize-controller",
        "helm-controller",
        "notification-controller",
    ];
    let groups = NAMES.map(Group::new);
    for (name, group) in NAMES.into_iter().zip(&groups) {
        peer.wrap(name, group.as_ref().map(Group::wrapper).unwrap_or_default());
    }
    let started = [
        peer.source(&[]).await?,
        peer.other(NAMES[1]).await?,
        peer.other(NAMES[2]).await?,
        peer.notification().await?.0,
    ];
    let programs = started
        .into_iter()
        .zip(NAMES)
        .zip(groups)
        .map(|((started, name), group)| Program {
            name,
            kind: Kind::Flux(started),
            group,
        });
    Ok(Running {
        programs: programs.collect(),
        _directory: Some(peer.into_directory()),
    })
}
