//! Everything that the story needs around it: cluster, definitions, Git repository, registry, Git service, our controllers.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use kube::Client;
use serde_json::json;
use testkit::controller::{Controller, ControllerOptions};
use testkit::git::Repository;
use testkit::tools::{self, Tool};
use testkit::{
    ControlPlane, GitServer, Options, Registry, artifact_access, install_all_crds, objects, wait_until_gone,
};

use super::forge::Forge;
use super::registry_sign::Sign;
use super::story::Story;

/// The namespace of everything in the story.
const NAMESPACE: &str = "windlass-demo";
/// Revision that the artifact names as its origin.
const ARTIFACT_REVISION: &str = "v1.4.0@sha1:5a0c9f1de0c6a9c1b8b6a1e6f4b7f3e2d1c0b9a8";

/// Running processes. Dropping it stops them all, controllers first.
pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) namespace: String,
    pub(crate) repository: Repository,
    pub(crate) registry: Registry,
    _sign: Sign,
    pub(crate) forge: Forge,
    pub(crate) artifact_digest: String,
    pub(crate) apply_controller: Controller,
    pub(crate) source_controller: Controller,
    pub(crate) image_controller: Controller,
    _git: GitServer,
    pub(crate) cluster: ControlPlane,
    /// True if the cluster is not ours, and must be left as it was.
    borrowed: bool,
}

impl World {
    /// Starts everything, telling each step and what it took.
    pub(crate) async fn prepare(story: &mut Story, once: bool) -> Result<Self> {
        story.chapter("Preparing")?;
        let borrowed = std::env::var_os("KUBECONFIG")
            .filter(|path| !path.is_empty())
            .map(PathBuf::from);
        build_tools(story, once, borrowed.is_some()).await?;

        let cluster = start_cluster(story, borrowed.as_deref()).await?;
        let client = cluster.client();

        let started = Instant::now();
        install_all_crds(&client).await?;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        objects::apply(&client, &namespace).await?;
        story.prepared(
            "definitions",
            started.elapsed(),
            "Flux's kinds, from charts/windlass/files/crds",
        )?;

        let started = Instant::now();
        let git = GitServer::start().await?;
        let repository = git.create_repository("shop")?;
        let first = repository.commit_folder("main", "open the shop", &manifests("shop"))?;
        let detail = format!("{} at {}", repository.url(), short(&first));
        story.prepared("Git repository", started.elapsed(), detail)?;

        let started = Instant::now();
        let (registry, artifact_digest) = start_registry().await?;
        let detail = format!(
            "{}:latest at {}",
            registry.url("reporter"),
            short(&artifact_digest)
        );
        story.prepared("OCI artifact", started.elapsed(), detail)?;

        let started = Instant::now();
        let forge = Forge::start().await?;
        story.prepared(
            "Git service",
            started.elapsed(),
            format!("Gitea at {}", forge.gitea.url()),
        )?;

        let options = ControllerOptions {
            namespace: NAMESPACE.to_owned(),
            ..ControllerOptions::default()
        };
        let started = Instant::now();
        let kubeconfig = cluster.kubeconfig_path();
        let source_controller = Controller::start_source(kubeconfig, options.clone()).await?;
        tell_controller(story, &source_controller, started)?;
        let started = Instant::now();
        let apply_controller =
            Controller::start_apply(kubeconfig, &source_controller, options.clone()).await?;
        tell_controller(story, &apply_controller, started)?;
        let started = Instant::now();
        let image_controller = Controller::start_image(kubeconfig, options).await?;
        tell_controller(story, &image_controller, started)?;

        let namespace = NAMESPACE.to_owned();
        let borrowed = borrowed.is_some();
        Ok(Self {
            client,
            namespace,
            repository,
            _sign: Sign::put_up(registry.address())?,
            registry,
            forge,
            artifact_digest,
            apply_controller,
            source_controller,
            image_controller,
            _git: git,
            cluster,
            borrowed,
        })
    }

    /// All of ours.
    pub(crate) fn controllers(&self) -> [&Controller; 3] {
        [
            &self.source_controller,
            &self.apply_controller,
            &self.image_controller,
        ]
    }

    /// Name of an image in the demo's registry.
    pub(crate) fn image(&self, name: &str) -> String {
        format!("{}/{name}", self.registry.address())
    }

    /// Pushes an image with this tag.
    pub(crate) async fn push_image(&self, name: &str, tag: &str) -> Result<()> {
        let files = [("release", tag)];
        self.registry
            .push_files(name, &[tag], ARTIFACT_REVISION, &files)
            .await
            .map(drop)
    }

    /// Fails when a process that we started has ended.
    pub(crate) fn check_running(&self) -> Result<()> {
        self.source_controller.check_running()?;
        self.apply_controller.check_running()?;
        self.image_controller.check_running()?;
        self.cluster.check_running()
    }

    /// Describes the state for a person when something did not happen.
    pub(crate) fn describe_failure(&self) -> String {
        let logs = self.controllers().map(|controller| {
            format!(
                "the end of the log of {}:\n{}",
                controller.name(),
                controller.log_tail(25)
            )
        });
        logs.join("\n")
    }

    /// Takes our objects out of a cluster that is not ours. Failing to is told and is no failure of the demo.
    pub(crate) async fn clean_up(&self, story: &mut Story) -> Result<()> {
        if !self.borrowed {
            return Ok(());
        }
        match self.delete_objects().await {
            Ok(()) => story.note("removed the demo's objects and its namespace; the definitions stay"),
            Err(error) => story.note(&format!("could not remove the demo's objects: {error:#}")),
        }
    }

    async fn delete_objects(&self) -> Result<()> {
        let patience = Duration::from_secs(60);
        // Kustomizations first: their controller takes back what they made, and still has its sources then.
        let kinds = [
            ("image.toolkit.fluxcd.io/v1", "ImageUpdateAutomation"),
            ("image.toolkit.fluxcd.io/v1", "ImagePolicy"),
            ("image.toolkit.fluxcd.io/v1", "ImageRepository"),
            ("kustomize.toolkit.fluxcd.io/v1", "Kustomization"),
            ("source.toolkit.fluxcd.io/v1", "GitRepository"),
            ("source.toolkit.fluxcd.io/v1", "OCIRepository"),
        ];
        for (api_version, kind) in kinds {
            let api = objects::api(&self.client, api_version, kind, &self.namespace);
            for object in api.list(&Default::default()).await? {
                let name = object.metadata.name.unwrap_or_default();
                api.delete(&name, &Default::default()).await?;
                wait_until_gone(&api, &name, patience).await?;
            }
        }
        artifact_access::forbid_all(&self.client, &self.namespace, artifact_access::READER).await?;
        self.cluster.delete_namespace(&self.namespace).await
    }
}

/// The folder of the demo's manifests.
pub(crate) fn manifests(name: &str) -> PathBuf {
    tools::hack_directory().join("demo").join(name)
}

/// The text with every hash in it cut to eight characters.
pub(crate) fn short(text: &str) -> String {
    let mut shortened = String::new();
    let mut run = String::new();
    let flush = |run: &mut String, shortened: &mut String| {
        // The shortest hash is SHA-1's 40 digits; no number or word is as long.
        let kept = if run.len() >= 40 { 8 } else { run.len() };
        shortened.extend(run.drain(..).take(kept));
    };
    for character in text.chars() {
        if character.is_ascii_hexdigit() {
            run.push(character);
            continue;
        }
        flush(&mut run, &mut shortened);
        shortened.push(character);
    }
    flush(&mut run, &mut shortened);
    shortened
}

async fn build_tools(story: &Story, once: bool, borrowed: bool) -> Result<()> {
    let mut wanted = vec![Tool::Registry];
    if !borrowed {
        wanted.extend(tools::CONTROL_PLANE);
    }
    if !once {
        wanted.push(Tool::Kubectl);
    }
    let wanted: Vec<Tool> = tools::ALL
        .iter()
        .copied()
        .filter(|tool| wanted.contains(tool))
        .collect();
    let started = Instant::now();
    let (report, mut lines) = tokio::sync::mpsc::unbounded_channel::<String>();
    let build = tokio::task::spawn_blocking(move || {
        // No one listens any more only when the demo is ending.
        tools::ensure(&wanted, &mut |line| drop(report.send(line.to_owned())))
    });
    while let Some(line) = lines.recv().await {
        story.note(&line)?;
    }
    build.await??;
    if !tools::is_gitea_built()? {
        story.note("building Gitea from its Go module, once: about four minutes on two cores")?;
        tokio::task::spawn_blocking(tools::gitea).await??;
    }
    story.prepared(
        "tools",
        started.elapsed(),
        "control plane, registry and Gitea are built",
    )
}

async fn start_registry() -> Result<(Registry, String)> {
    let registry = Registry::start().await?;
    let files = read_files(&manifests("reporter"))?;
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let digest = registry
        .push_files("reporter", &["latest", "1.4.0"], ARTIFACT_REVISION, &files)
        .await?;
    Ok((registry, digest))
}

fn read_files(folder: &Path) -> Result<Vec<(String, String)>> {
    let failed = || format!("failed to read {}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.push((name, std::fs::read_to_string(entry.path()).with_context(failed)?));
    }
    files.sort();
    Ok(files)
}

fn tell_controller(story: &Story, controller: &Controller, started: Instant) -> Result<()> {
    let process = controller.process()?;
    let detail = format!("process {}, ready", process.pid());
    story.prepared(controller.name(), started.elapsed(), detail)
}

/// Starts a control plane, or takes the cluster of a kubeconfig.
async fn start_cluster(story: &mut Story, borrowed: Option<&Path>) -> Result<ControlPlane> {
    let started = Instant::now();
    let cluster = match borrowed {
        Some(kubeconfig) => ControlPlane::existing(kubeconfig).await?,
        None => ControlPlane::start(Options::default()).await?,
    };
    let client = cluster.client();
    let version = client
        .apiserver_version()
        .await
        .context("the cluster does not answer")?;
    let origin = if borrowed.is_some() {
        "cluster of KUBECONFIG"
    } else {
        "control plane"
    };
    let detail = format!(
        "Kubernetes {} at {}",
        version.git_version,
        cluster.config().cluster_url
    );
    story.prepared(origin, started.elapsed(), detail)?;
    Ok(cluster)
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn only_hashes_are_shortened() {
        let hash = "0123456789abcdef0123456789abcdef01234567";
        for (text, expected) in [
            (hash.to_owned(), "01234567"),
            (format!("main@sha1:{hash}"), "main@sha1:01234567"),
            (
                format!("stored 'main@sha1:{hash}' 2 times"),
                "stored 'main@sha1:01234567' 2 times",
            ),
            (format!("{hash}/{hash}"), "01234567/01234567"),
            ("main 20260101".to_owned(), "main 20260101"),
            (String::new(), ""),
        ] {
            assert_eq!(short(&text), expected);
        }
    }
}
