//! Packs as we send them: whole objects, each compressed, none of them a delta.
//!
//! What is sent is a commit and the files that it changes, with the folders above them: a delta would save little, and every
//! server takes a pack without.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use gix_hash::{Kind as Hash, ObjectId};

use crate::entry::Kind;
use crate::error::Error;
use crate::resolve::name;

/// An object that is not in a pack yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    id: ObjectId,
    kind: Kind,
    content: Vec<u8>,
}

impl Object {
    /// Names an object by the hash of its content.
    ///
    /// # Errors
    /// When the content is one of those that were made to collide with another's hash.
    pub fn new(kind: Kind, content: Vec<u8>) -> Result<Self, Error> {
        let mut hasher = name(kind, content.len() as u64);
        hasher.update(&content);
        let id = hasher.try_finalize().map_err(|_| Error::Forged)?;
        Ok(Self { id, kind, content })
    }

    /// Its name.
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// Its type.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its content, without the header that is hashed with it.
    pub fn content(&self) -> &[u8] {
        &self.content
    }
}

/// Writes a pack of these objects, with its checksum at the end.
///
/// # Errors
/// When there are more than a pack can hold, or their bytes have the marks of a collision attack.
pub fn write(objects: &[Object]) -> Result<Vec<u8>, Error> {
    let count =
        u32::try_from(objects.len()).map_err(|_| Error::Write(std::io::ErrorKind::FileTooLarge.into()))?;
    let mut pack = Vec::new();
    pack.extend_from_slice(b"PACK");
    pack.extend_from_slice(&2u32.to_be_bytes());
    pack.extend_from_slice(&count.to_be_bytes());
    for object in objects {
        pack.extend(entry(object.kind, &object.content)?);
    }
    let mut hasher = gix_hash::hasher(Hash::Sha1);
    hasher.update(&pack);
    let checksum = hasher.try_finalize().map_err(|_| Error::Forged)?;
    pack.extend_from_slice(checksum.as_slice());
    Ok(pack)
}

/// An object as it stands in a pack.
pub(crate) fn entry(kind: Kind, content: &[u8]) -> Result<Vec<u8>, Error> {
    let mut entry = Vec::new();
    push_head(&mut entry, kind, content.len());
    let mut encoder = ZlibEncoder::new(entry, Compression::default());
    encoder.write_all(content).map_err(Error::Write)?;
    encoder.finish().map_err(Error::Write)
}

/// Kind and size: four bits of the size beside the kind, then seven in each byte, the lowest first.
fn push_head(pack: &mut Vec<u8>, kind: Kind, size: usize) {
    let kind = match kind {
        Kind::Commit => 1,
        Kind::Tree => 2,
        Kind::Blob => 3,
        Kind::Tag => 4,
    };
    let more = |rest: usize| if rest > 0 { 0x80 } else { 0 };
    let mut rest = size >> 4;
    pack.push(more(rest) | kind << 4 | (size & 0x0f) as u8);
    while rest > 0 {
        let low = (rest & 0x7f) as u8;
        rest >>= 7;
        pack.push(more(rest) | low);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Pack, Settings};

    #[test]
    fn objects_have_the_names_that_git_gives_them() {
        let empty = Object::new(Kind::Tree, Vec::new()).unwrap();
        assert_eq!(empty.id().to_string(), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
        let hello = Object::new(Kind::Blob, b"hello\n".to_vec()).unwrap();
        assert_eq!(hello.id().to_string(), "ce013625030ba8dba906f756967f9e9ca394464a");
    }

    proptest! {
        #[test]
        fn a_written_pack_is_received_again(sizes in proptest::collection::vec(0usize..40_000, 0..6)) {
            let kinds = [Kind::Commit, Kind::Tree, Kind::Blob, Kind::Tag];
            let objects: Vec<_> = sizes
                .iter()
                .enumerate()
                .map(|(at, size)| Object::new(kinds[at % 4], vec![at as u8; *size]).unwrap())
                .collect();
            let bytes = write(&objects).unwrap();
            let file = tempfile::tempfile().unwrap();
            let pack = Pack::receive(&mut bytes.as_slice(), file, &Settings::default()).unwrap();
            let mut buffer = Vec::new();
            for object in &objects {
                let kind = pack.read(&object.id(), 1 << 20, &mut buffer).unwrap();
                prop_assert_eq!(kind, Some(object.kind()));
                prop_assert_eq!(buffer.as_slice(), object.content());
            }
        }
    }
}
