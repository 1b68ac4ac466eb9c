//! The content of a source's artifact.

use artifact::archive::{self, EntryContent, Limits};
use delivery_graph::object::{self, text};
use kustomize_build::{DirEntry, FileKind, FileSystem, FsError, MemoryFs};
use manifest::ObjectId;
use yaml_setters::{MAX_FILE, is_yaml};

use crate::archive::Archives;
use crate::content::Content;
use crate::reader::Reader;

/// Bytes of an archive, and of its files: they are held in memory.
const MAX_ARCHIVE: u64 = 32 << 20;
const MAX_FILES: u64 = 64 << 20;

/// Levels of folders that are looked into.
const MAX_DEPTH: usize = 20;

/// The files that a source has now.
pub struct ArtifactFiles {
    source: ObjectId,
    revision: String,
    files: MemoryFs,
}

impl ArtifactFiles {
    /// Fetches those of a source.
    ///
    /// # Errors
    /// When there are none, or they cannot be had.
    pub async fn fetch(reader: &Reader, archives: &Archives, source: &ObjectId) -> Result<Self, String> {
        let found = reader.get(source).await?;
        let found = found.ok_or_else(|| format!("{source} does not exist"))?;
        let data = archives.fetch(reader, &found, MAX_ARCHIVE).await?;
        let limits = Limits {
            max_total_bytes: MAX_FILES,
            ..Limits::default()
        };
        let mut files = MemoryFs::default();
        let unpacked = archive::read(&data[..], &limits, |entry| {
            if let EntryContent::File { reader, .. } = entry.content {
                let mut bytes = Vec::new();
                reader.read_to_end(&mut bytes)?;
                files.insert(entry.path, bytes);
            }
            Ok(())
        });
        unpacked.map_err(|error| format!("the artifact of {source}: {}", error_chain::chain(&error)))?;
        Ok(Self {
            source: object::id(&found),
            revision: text(&found, "/status/artifact/revision").to_owned(),
            files,
        })
    }

    /// Puts other contents in the place of some.
    pub fn change(&mut self, contents: impl IntoIterator<Item = (String, String)>) {
        for (path, text) in contents {
            self.files.insert(path, text.into_bytes());
        }
    }

    /// The files of YAML below a folder whose content is accepted, with that.
    pub fn yaml_below(&self, folder: &str, accepts: &dyn Fn(&[u8]) -> bool) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        self.collect(folder, accepts, &mut found, 0);
        found
    }

    fn collect(
        &self,
        folder: &str,
        accepts: &dyn Fn(&[u8]) -> bool,
        found: &mut Vec<(String, Vec<u8>)>,
        depth: usize,
    ) {
        for entry in self.list(folder).unwrap_or_default() {
            let path = match folder {
                "" => entry.name,
                folder => format!("{folder}/{}", entry.name),
            };
            match entry.kind {
                FileKind::Directory if depth < MAX_DEPTH => self.collect(&path, accepts, found, depth + 1),
                FileKind::Directory => {}
                FileKind::File if is_yaml(&path) => {
                    let content = self.read(&path).unwrap_or_default();
                    if content.len() <= MAX_FILE && accepts(&content) {
                        found.push((path, content));
                    }
                }
                FileKind::File => {}
            }
        }
    }

    /// The revision that they are.
    pub fn revision(&self) -> &str {
        &self.revision
    }
}

impl FileSystem for ArtifactFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, FsError> {
        self.files.read(path)
    }

    fn kind(&self, path: &str) -> Result<Option<FileKind>, FsError> {
        self.files.kind(path)
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, FsError> {
        self.files.list(path)
    }
}

impl Content for ArtifactFiles {
    fn stands_for(&self, source: &ObjectId) -> bool {
        *source == self.source
    }

    fn word(&self) -> &'static str {
        "artifact"
    }

    fn place(&self) -> String {
        format!("{} at {}", self.source, self.revision)
    }
}
