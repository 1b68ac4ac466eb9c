//! A container: a process in namespaces of its own, with the image as its root, as the user that the Pod names. Needs no root and
//! no container engine, only `unshare`, `mount` and `ip`.
//!
//! A debug build is linked dynamically, and its image has no loader: of such a program the loader and the libraries of this machine
//! are mounted beside it. What is shipped is linked statically and runs with what its image has.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::image::Image;
use super::network::{self, Ways};
use super::plan::Plan;
use crate::controller::development_program;
use crate::process::Process;

/// The arguments: the Pod's folder, then the command. Waits for the network, which the command needs from the start.
const SCRIPT: &str = r#"
set -e
cd "$1"; shift
root=$PWD/root
ip link set lo up
for address in $(cat addresses); do ip address add "$address/32" dev lo; done
./pod-network network > listening & read -r _ < listening
if [ -s pods ]; then
    ip link add pod type veth peer name others
    unshare --net sh -c '
        echo > unshared
        until ip link set others up 2> /dev/null; do sleep 0.01; done
        ip link set lo up
        for address in $(cat pod-addresses); do ip address add "$address/32" dev lo; done
        ip route add "$(cat own-address)/32" dev others
        exec ./pod-network pods > pods-listening
    ' &
    read -r _ < unshared
    ip link set others netns $!
    ip address add "$(cat own-address)/32" dev pod
    ip link set pod up
    ip route add 10.1.0.0/16 dev pod
    read -r _ < pods-listening
fi
mount --bind "$root" "$root"
while read -r from to mode; do
    mount --rbind "$from" "$root$to"
    if [ "$mode" = ro ]; then mount -o remount,bind,ro "$root$to"; fi
done < mounts
mount -t proc proc "$root/proc" 2> /dev/null || mount --rbind /proc "$root/proc"
if [ -e read-only ]; then mount -o remount,bind,ro "$root"; fi
exec "$@"
"#;

/// By which the script waits for what it starts.
const FIFOS: [&str; 3] = ["listening", "unshared", "pods-listening"];

/// Starts the container in the Pod's folder, which has its volumes in `volumes`.
pub(super) fn start(plan: &Plan, image: &Image, ways: &Ways, folder: &Path, starts: u32) -> Result<Process> {
    let root = folder.join("root");
    if root.exists() {
        fs::remove_dir_all(&root).context("failed to remove what an earlier start left")?;
        for fifo in FIFOS {
            fs::remove_file(folder.join(fifo)).context("failed to remove what an earlier start left")?;
        }
    }
    link(&image.root, &root)?;
    write(folder, "network", &ways.table)?;
    write(folder, "addresses", &ways.addresses.join("\n"))?;
    write(folder, "hosts", &ways.hosts)?;
    write(folder, "pods", &ways.pods)?;
    write(folder, "pod-addresses", &ways.pod_addresses.join("\n"))?;
    write(folder, "own-address", &ways.own)?;
    write(folder, "mounts", &mounts(plan, image, folder, &root)?)?;
    if plan.read_only {
        write(folder, "read-only", "")?;
    }
    let network = folder.join("pod-network");
    if !network.exists() {
        std::os::unix::fs::symlink(development_program("pod-network")?, &network)
            .context("failed to link pod-network")?;
    }
    for port in plan.ports.iter().map(|port| port.number) {
        // A socket of an earlier start would be in the way.
        _ = fs::remove_file(network::socket_of(folder, port));
    }
    let made = Command::new("mkfifo")
        .args(FIFOS.map(|fifo| folder.join(fifo)))
        .status();
    anyhow::ensure!(made.context("failed to start mkfifo")?.success(), "mkfifo failed");
    let mut command = Command::new("unshare");
    command
        .args([
            "--user",
            "--map-root-user",
            "--net",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
        ])
        .args(["sh", "-c", SCRIPT, "sh"])
        .arg(folder)
        .args(["env", "--ignore-environment"])
        .args(environment(plan, image))
        // A user namespace more, in which the process is the Pod's user and has no capabilities.
        .args(["/usr/bin/unshare", "--user"])
        .arg(format!("--map-user={}", plan.user))
        .arg(format!("--map-group={}", plan.group))
        .arg(format!("--root={}", root.display()))
        .arg("--wd=/")
        .args(&image.entrypoint)
        .args(&plan.arguments);
    Process::start(&plan.container, command, folder.join(format!("log.{starts}")))
}

fn environment(plan: &Plan, image: &Image) -> Vec<String> {
    let (host, port) = network::API_ADDRESS;
    let mut environment = image.environment.clone();
    environment.push(format!("KUBERNETES_SERVICE_HOST={host}"));
    environment.push(format!("KUBERNETES_SERVICE_PORT={port}"));
    environment.extend(
        plan.environment
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    environment
}

/// Mounts: from where, to which path below the root, and how. Creates the mount points.
fn mounts(plan: &Plan, image: &Image, folder: &Path, root: &Path) -> Result<String> {
    let mut wanted: Vec<(PathBuf, String, bool)> = Vec::new();
    for place in [
        "/dev/null",
        "/dev/zero",
        "/dev/full",
        "/dev/random",
        "/dev/urandom",
    ] {
        wanted.push((place.into(), place.to_owned(), false));
    }
    wanted.push((folder.join("hosts"), "/etc/hosts".to_owned(), true));
    if let Some(entry) = image.entrypoint.first()
        && needs_loader(&image.root.join(entry.trim_start_matches('/')))?
    {
        let libraries = ["/lib", "/lib64", "/usr/lib"];
        let there = libraries.into_iter().filter(|place| Path::new(place).exists());
        wanted.extend(there.map(|place| (place.into(), place.to_owned(), true)));
    }
    for mount in &plan.mounts {
        wanted.push((
            folder.join("volumes").join(&mount.volume),
            mount.path.clone(),
            mount.read_only,
        ));
    }
    fs::create_dir_all(root.join("proc")).context("failed to make /proc")?;
    let mut table = String::new();
    for (from, to, read_only) in wanted {
        let place = root.join(to.trim_start_matches('/'));
        let made = if place.exists() {
            Ok(())
        } else if from.is_dir() {
            fs::create_dir_all(&place)
        } else {
            let parent = place.parent().map_or(Ok(()), fs::create_dir_all);
            parent.and_then(|()| fs::File::create(&place).map(drop))
        };
        made.with_context(|| format!("failed to make {to} in the container"))?;
        writeln!(
            table,
            "{} {to} {}",
            from.display(),
            if read_only { "ro" } else { "rw" }
        )?;
    }
    Ok(table)
}

/// Returns whether a program names a loader, which it does in its first bytes.
fn needs_loader(program: &Path) -> Result<bool> {
    let bytes = fs::read(program).with_context(|| format!("failed to read {}", program.display()))?;
    let start = &bytes[..bytes.len().min(4096)];
    Ok(start.windows(8).any(|window| window == b"/ld-linu"))
}

/// Copies a folder by hard links.
fn link(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| format!("failed to make {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("failed to read {}", from.display()))? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            link(&entry.path(), &place)?;
        } else {
            fs::hard_link(entry.path(), &place)
                .with_context(|| format!("failed to link {}", place.display()))?;
        }
    }
    Ok(())
}

fn write(folder: &Path, name: &str, content: &str) -> Result<()> {
    fs::write(folder.join(name), content).with_context(|| format!("failed to write {name}"))
}
