//! Charts: fetched, loaded and parsed once per artifact, and shared by all releases of it.
//!
//! What is kept is bounded by the bytes of the charts' files; the chart that was not used for longest goes first. Who asks
//! for a chart that is being loaded waits for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use artifact::client::{ArtifactRef, Client, SourceObject};
use helm_chart::{Chart, Helm};
use helm_render::Renderer;
use tokio::sync::OnceCell;

use crate::source::{self, SourceArtifact};

/// For how long a chart is kept that no one asks for: what was just released is asked for again when it fails or drifts.
const IDLE: Duration = Duration::from_secs(600);
/// Charts that are kept, whatever their size.
const MAX_KEPT: usize = 1024;
/// The largest archive of a chart. Helm takes no more when it is unpacked.
const MAX_ARCHIVE: u64 = 100 << 20;

/// A chart that is ready to be rendered.
#[derive(Debug)]
pub struct Loaded {
    /// Its templates, parsed as they are needed.
    pub renderer: Arc<Renderer>,
    /// The digest of the OCI artifact that it came from, where the source's revision names one.
    pub oci_digest: Option<String>,
    /// Bytes of its files.
    size: usize,
}

impl Loaded {
    /// A chart, from an OCI artifact or not.
    pub fn new(renderer: Renderer, oci_digest: Option<String>) -> Self {
        Self {
            size: size(renderer.chart()),
            renderer: Arc::new(renderer),
            oci_digest,
        }
    }

    /// The chart.
    pub fn chart(&self) -> &Chart {
        self.renderer.chart()
    }
}

/// Why there is no chart.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The artifact could not be had.
    #[error("failed to fetch artifact of revision {revision}")]
    Fetch {
        /// Which revision.
        revision: String,
        /// Why.
        #[source]
        source: artifact::client::Error,
    },
    /// It is no chart.
    #[error("{0}")]
    Load(#[from] helm_chart::Error),
    /// Its version does not fit its source.
    #[error(transparent)]
    Version(#[from] source::VersionError),
    /// The task that loads ended without an answer.
    #[error("failed to finish loading the chart")]
    Interrupted(#[from] tokio::task::JoinError),
}

impl Error {
    /// Returns whether the artifact is not there any more, so that the source will soon name another.
    pub fn is_gone(&self) -> bool {
        let Self::Fetch { source, .. } = self else {
            return false;
        };
        source.is_gone()
    }
}

/// Key of a chart.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    /// Source object that alone has it; None: the artifact service knows who has it.
    of: Option<SourceObject>,
    digest: String,
    revision: String,
}

fn reference(artifact: &SourceArtifact) -> ArtifactRef {
    ArtifactRef {
        object: artifact.object.clone(),
        url: artifact.url.clone(),
        digest: artifact.digest.clone(),
        revision: artifact.revision.clone(),
    }
}

/// All charts of the process.
pub struct Charts {
    client: Client,
    /// Bytes that may be kept.
    budget: usize,
    /// The digest of a chart's OCI artifact becomes part of its version.
    tracks_digests: bool,
    kept: Mutex<HashMap<Key, Kept>>,
}

struct Kept {
    cell: Arc<OnceCell<Arc<Loaded>>>,
    used: Instant,
}

impl Charts {
    /// Keeps none yet.
    pub fn new(client: Client, budget: usize, tracks_digests: bool) -> Self {
        Self {
            client,
            budget,
            tracks_digests,
            kept: Mutex::default(),
        }
    }

    /// The chart of an artifact.
    pub async fn get(&self, artifact: &SourceArtifact) -> Result<Arc<Loaded>, Error> {
        // What one object has is not for whoever names its digest: it is shared only between those that are known to have it.
        let held = self.client.is_held(&reference(artifact)).await;
        let held = held.map_err(|source| Error::Fetch {
            revision: artifact.revision.clone(),
            source,
        })?;
        // The revision says how the version is written.
        let key = Key {
            of: (!held).then(|| artifact.object.clone()),
            digest: artifact.digest.clone(),
            revision: artifact.revision.clone(),
        };
        let cell = {
            let mut kept = self.kept();
            let entry = kept.entry(key.clone()).or_insert_with(|| Kept {
                cell: Arc::default(),
                used: Instant::now(),
            });
            entry.used = Instant::now();
            Arc::clone(&entry.cell)
        };
        let loaded = cell.get_or_try_init(|| self.load(artifact)).await;
        let loaded = loaded.map(Arc::clone);
        self.tidy(&key, loaded.is_ok());
        loaded
    }

    async fn load(&self, artifact: &SourceArtifact) -> Result<Arc<Loaded>, Error> {
        let archive = self.client.archive(&reference(artifact), MAX_ARCHIVE).await;
        let archive = archive.map_err(|source| Error::Fetch {
            revision: artifact.revision.clone(),
            source,
        })?;
        let loading = tokio::task::spawn_blocking(move || {
            helm_chart::load_archive(&archive[..], Helm::V4, &mut Vec::new())
        });
        let mut chart = loading.await??;
        let tracked = source::track_digest(&chart.metadata.version, artifact)?;
        if let Some(tracked) = &tracked
            && self.tracks_digests
        {
            Arc::make_mut(&mut chart.metadata)
                .version
                .clone_from(&tracked.version);
        }
        tracing::debug!(chart = chart.name(), version = chart.metadata.version, "loaded");
        let oci_digest = tracked.map(|tracked| tracked.digest);
        Ok(Arc::new(Loaded::new(Renderer::new(chart, Helm::V4), oci_digest)))
    }

    /// Lets go of what could not be loaded, and of what is too much.
    fn tidy(&self, key: &Key, is_loaded: bool) {
        let mut kept = self.kept();
        if !is_loaded && kept.get(key).is_some_and(|kept| kept.cell.get().is_none()) {
            kept.remove(key);
        }
        kept.retain(|_, kept| kept.used.elapsed() < IDLE);
        let weigh = |kept: &Kept| kept.cell.get().map_or(0, |loaded| loaded.size);
        let mut weight: usize = kept.values().map(weigh).sum();
        while kept.len() > 1 && (weight > self.budget || kept.len() > MAX_KEPT) {
            let oldest = kept.iter().min_by_key(|(_, kept)| kept.used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                return;
            };
            weight -= kept.remove(&oldest).map_or(0, |kept| weigh(&kept));
        }
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Key, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes of all files of a chart and of those that it holds.
fn size(chart: &Chart) -> usize {
    let files = chart.content.templates.iter().chain(&chart.content.files);
    let own: usize = files.map(|file| file.data.len()).sum();
    own + chart.dependencies.iter().map(size).sum::<usize>()
}
