//! Plan of a Pod, as far as this node can run it; features that it cannot run are rejected by name.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Container, EnvVar, Pod, Probe, Volume};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;

/// One container, and what it needs.
#[derive(Debug)]
pub(super) struct Plan {
    pub container: String,
    pub image: String,
    pub arguments: Vec<String>,
    /// Name and value.
    pub environment: Vec<(String, String)>,
    pub user: i64,
    pub group: i64,
    pub read_only: bool,
    pub volumes: Vec<Volume>,
    pub mounts: Vec<Mount>,
    /// That are listened on.
    pub ports: Vec<Port>,
    pub ready: Option<HttpProbe>,
}

#[derive(Debug)]
pub(super) struct Mount {
    pub volume: String,
    pub path: String,
    pub read_only: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Port {
    pub name: String,
    pub number: u16,
}

#[derive(Debug)]
pub(super) struct HttpProbe {
    pub port: u16,
    pub path: String,
}

/// Reads a Pod.
pub(super) fn plan_of(pod: &Pod) -> Result<Plan> {
    let spec = pod.spec.as_ref().context("it has no spec")?;
    ensure!(
        spec.init_containers.is_none(),
        "init containers are not supported"
    );
    let [container] = spec.containers.as_slice() else {
        anyhow::bail!("more than one container is not supported");
    };
    let context = spec.security_context.as_ref();
    let user = context.and_then(|context| context.run_as_user);
    let group = context.and_then(|context| context.run_as_group);
    let own = container.security_context.as_ref();
    let ports = ports(container)?;
    Ok(Plan {
        container: container.name.clone(),
        image: container.image.clone().context("the container has no image")?,
        arguments: container.args.clone().unwrap_or_default(),
        environment: container
            .env
            .iter()
            .flatten()
            .map(|variable| Ok((variable.name.clone(), value(variable, pod)?)))
            .collect::<Result<_>>()?,
        user: user.context("spec.securityContext.runAsUser is missing: it would run as root")?,
        group: group.context("spec.securityContext.runAsGroup is missing: it would run as root")?,
        read_only: own.and_then(|context| context.read_only_root_filesystem) == Some(true),
        volumes: spec.volumes.clone().unwrap_or_default(),
        mounts: mounts(container)?,
        ready: container
            .readiness_probe
            .as_ref()
            .map(|probe| http(probe, &ports))
            .transpose()?,
        ports,
    })
}

fn ports(container: &Container) -> Result<Vec<Port>> {
    let ports = container.ports.iter().flatten();
    ports
        .map(|port| {
            Ok(Port {
                name: port.name.clone().unwrap_or_default(),
                number: number(port.container_port)?,
            })
        })
        .collect()
}

fn mounts(container: &Container) -> Result<Vec<Mount>> {
    let mounts = container.volume_mounts.iter().flatten();
    mounts
        .map(|mount| {
            ensure!(
                mount.sub_path.is_none(),
                "the mount {} has a subPath, which is not supported",
                mount.name
            );
            Ok(Mount {
                volume: mount.name.clone(),
                path: mount.mount_path.clone(),
                read_only: mount.read_only == Some(true),
            })
        })
        .collect()
}

fn value(variable: &EnvVar, pod: &Pod) -> Result<String> {
    let Some(source) = &variable.value_from else {
        return Ok(variable.value.clone().unwrap_or_default());
    };
    let field = source.field_ref.as_ref().map(|field| field.field_path.as_str());
    let field = field.with_context(|| format!("the variable {} is no field of the Pod", variable.name))?;
    pod_field(pod, field)
}

/// A field as the downward API names it.
pub(super) fn pod_field(pod: &Pod, path: &str) -> Result<String> {
    let metadata = &pod.metadata;
    let found = match path {
        "metadata.name" => metadata.name.clone(),
        "metadata.namespace" => metadata.namespace.clone(),
        "metadata.uid" => metadata.uid.clone(),
        "status.podIP" => Some(address(pod)),
        _ => anyhow::bail!("the field {path} is not supported"),
    };
    found.with_context(|| format!("the Pod has no {path}"))
}

fn http(probe: &Probe, ports: &[Port]) -> Result<HttpProbe> {
    let get = probe
        .http_get
        .as_ref()
        .context("a probe other than httpGet is not supported")?;
    Ok(HttpProbe {
        port: port(&get.port, ports)?,
        path: get.path.clone().unwrap_or_else(|| "/".to_owned()),
    })
}

/// The number of a port that may be named.
pub(super) fn port(port: &IntOrString, ports: &[Port]) -> Result<u16> {
    match port {
        IntOrString::Int(port) => number(*port),
        IntOrString::String(name) => {
            let named = ports.iter().find(|port| port.name == *name);
            Ok(named.with_context(|| format!("no port is named {name}"))?.number)
        }
    }
}

fn number(port: i32) -> Result<u16> {
    u16::try_from(port).with_context(|| format!("{port} is no port"))
}

/// The address of a Pod, by the beginning of its UID.
pub(super) fn address(pod: &Pod) -> String {
    let uid = pod.uid().unwrap_or_default();
    let number = uid
        .get(..4)
        .and_then(|digits| u16::from_str_radix(digits, 16).ok());
    let [third, last] = number.unwrap_or_default().to_be_bytes();
    format!("10.1.{third}.{last}")
}
