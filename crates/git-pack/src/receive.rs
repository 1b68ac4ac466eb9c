//! Receiving: the stream goes to the file, and the objects that are no deltas get their names on the way.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufWriter, Read, Write as _};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gix_hash::{Hasher, Kind as Hash, ObjectId};

use crate::entry::{Base, Kind};
use crate::error::Error;
use crate::inflate::Inflater;
use crate::resolve::{self, Seen};
use crate::{Limits, Pack, Settings, write};

const CHECKSUM: usize = 20;
const BUFFER: usize = 64 << 10;

impl Pack {
    /// Receives a pack into the empty `file`, and no byte beyond its end. The file must be open for reading too.
    pub fn receive(stream: &mut dyn BufRead, file: File, settings: &Settings) -> Result<Self, Error> {
        Self::receive_over(stream, file, settings, &mut |_, _| Ok(None))
    }

    /// Receives a pack whose deltas may have bases that were not sent, as the client has them: a *thin* pack. They are copied
    /// into the file, so that the pack needs nothing beside it afterwards. `find` reads an object of up to so many bytes.
    pub fn receive_over(
        stream: &mut dyn BufRead,
        file: File,
        settings: &Settings,
        find: &mut Find<'_>,
    ) -> Result<Self, Error> {
        let limits = &settings.limits;
        let mut input = Input::new(stream, &file)?;
        let count = head(&mut input, limits)?;
        let mut seen = Seen::default();
        let mut inflater = Inflater::default();
        for _ in 0..count {
            if settings.cancelled.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            seen.next(&mut input, &mut inflater, limits)?;
        }
        let end = input.end()?;
        let copied = copy_bases(&file, end, &mut seen, limits, find)?;
        let objects = resolve::resolve(&file, seen, settings)?;
        Ok(Self {
            file: Arc::new(file),
            objects: Arc::new(objects),
            bytes: end + CHECKSUM as u64 + copied,
            settings: settings.clone(),
        })
    }
}

/// Reads an object by its name, of up to so many bytes; None if there is none.
pub type Find<'a> = dyn FnMut(&ObjectId, u64) -> Result<Option<(Kind, Vec<u8>)>, Error> + 'a;

/// Writes the bases that were not sent to the end of the file. Answers how many bytes they take.
fn copy_bases(
    mut file: &File,
    end: u64,
    seen: &mut Seen,
    limits: &Limits,
    find: &mut Find<'_>,
) -> Result<u64, Error> {
    let sent: HashSet<ObjectId> = seen.whole.iter().map(|(id, ..)| *id).collect();
    let named = seen.deltas.iter().filter_map(|(base, _)| match base {
        Base::Name(name) => Some(*name),
        Base::Offset(_) => None,
    });
    let wanted: BTreeSet<ObjectId> = named.filter(|name| !sent.contains(name)).collect();
    let mut copied = 0;
    for id in wanted {
        // One that is not there may be made of another that was sent.
        let Some((kind, content)) = find(&id, limits.delta_bytes)? else {
            continue;
        };
        seen.count(content.len() as u64, limits)?;
        let entry = write::entry(kind, &content)?;
        file.write_all(&entry).map_err(Error::Write)?;
        seen.whole.push((id, end + copied, kind));
        copied += entry.len() as u64;
    }
    Ok(copied)
}

/// Reads the first twelve bytes and answers the number of objects.
fn head(input: &mut Input<'_>, limits: &Limits) -> Result<u32, Error> {
    let mut head = [0; 12];
    input.read_exact(&mut head).map_err(Error::Receive)?;
    let number =
        |from: usize| u32::from_be_bytes([head[from], head[from + 1], head[from + 2], head[from + 3]]);
    if &head[..4] != b"PACK" || !matches!(number(4), 2 | 3) {
        return Err(Error::Signature);
    }
    let count = number(8);
    if count > limits.objects {
        return Err(Error::TooLarge {
            what: "the number of its objects",
            limit: limits.objects.into(),
        });
    }
    Ok(count)
}

/// The stream: what is taken from it is hashed and written to the file.
pub(super) struct Input<'a> {
    stream: &'a mut dyn BufRead,
    file: BufWriter<&'a File>,
    hasher: Hasher,
    pub(super) position: u64,
    /// `consume` cannot fail.
    failed: Option<io::Error>,
}

impl<'a> Input<'a> {
    fn new(stream: &'a mut dyn BufRead, file: &'a File) -> Result<Self, Error> {
        Ok(Self {
            stream,
            file: BufWriter::with_capacity(BUFFER, file),
            hasher: gix_hash::hasher(Hash::Sha1),
            position: 0,
            failed: None,
        })
    }

    /// Fails when something could not be written.
    pub(super) fn written(&mut self) -> Result<(), Error> {
        self.failed
            .take()
            .map_or(Ok(()), |error| Err(Error::Write(error)))
    }

    /// Compares the checksum at the end. Answers the number of bytes before it, which are those in the file.
    fn end(mut self) -> Result<u64, Error> {
        self.written()?;
        self.file.flush().map_err(Error::Write)?;
        let mut sent = [0; CHECKSUM];
        self.stream.read_exact(&mut sent).map_err(Error::Receive)?;
        let found = self.hasher.try_finalize().map_err(|_| Error::Checksum)?;
        (found == ObjectId::from(sent))
            .then_some(self.position)
            .ok_or(Error::Checksum)
    }
}

impl BufRead for Input<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.stream.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        // The same buffer as that of which the amount is: nothing was taken since.
        if let Ok(buffer) = self.stream.fill_buf() {
            let taken = &buffer[..amount];
            self.hasher.update(taken);
            if let Err(error) = self.file.write_all(taken) {
                self.failed.get_or_insert(error);
            }
        }
        self.position += amount as u64;
        self.stream.consume(amount);
    }
}

impl Read for Input<'_> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let length = available.len().min(target.len());
        target[..length].copy_from_slice(&available[..length]);
        self.consume(length);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Object;

    /// A pack with one delta of an object that is not in it: `hello there`, made of `hello world`.
    fn thin(base: ObjectId) -> Vec<u8> {
        // Both have eleven bytes. Six are copied from the beginning, five are new.
        let delta = [&[11, 11, 0x90, 6, 5][..], b"there"].concat();
        let compressed = write::entry(Kind::Blob, &delta).unwrap();
        let mut pack = [&b"PACK"[..], &2u32.to_be_bytes(), &1u32.to_be_bytes()].concat();
        // The size of the delta has one byte, and its kind is that of deltas by name.
        pack.push(7 << 4 | compressed[0] & 0x0f);
        pack.extend_from_slice(base.as_slice());
        pack.extend_from_slice(&compressed[1..]);
        let mut hasher = gix_hash::hasher(Hash::Sha1);
        hasher.update(&pack);
        pack.extend_from_slice(hasher.try_finalize().unwrap().as_slice());
        pack
    }

    fn receive(base: &Object, find: &mut Find<'_>) -> Result<Pack, Error> {
        let file = tempfile::tempfile().unwrap();
        Pack::receive_over(&mut thin(base.id()).as_slice(), file, &Settings::default(), find)
    }

    #[test]
    fn a_thin_pack_needs_nothing_beside_it_afterwards() {
        let base = Object::new(Kind::Blob, b"hello world".to_vec()).unwrap();
        let mut asked = Vec::new();
        let pack = receive(&base, &mut |id, _| {
            asked.push(*id);
            Ok(Some((base.kind(), base.content().to_vec())))
        });
        let pack = pack.unwrap();
        assert_eq!(asked, [base.id()]);
        let made = Object::new(Kind::Blob, b"hello there".to_vec()).unwrap();
        let mut content = Vec::new();
        for object in [&base, &made] {
            let kind = pack.read(&object.id(), 100, &mut content).unwrap();
            assert_eq!((kind, content.as_slice()), (Some(Kind::Blob), object.content()));
        }
        assert_eq!(pack.len(), 2);
    }

    #[test]
    fn a_base_that_no_one_has_is_named() {
        let base = Object::new(Kind::Blob, b"hello world".to_vec()).unwrap();
        let error = receive(&base, &mut |_, _| Ok(None)).unwrap_err();
        assert!(
            matches!(error, Error::FindBase { name, .. } if name == base.id()),
            "{error}"
        );
        // Another object in its place makes no object of that name.
        let other = |_: &ObjectId, _| Ok(Some((Kind::Blob, b"howdy world".to_vec())));
        let pack = receive(&base, &mut { other }).unwrap();
        let made = Object::new(Kind::Blob, b"hello there".to_vec()).unwrap();
        assert!(!pack.contains(&made.id()));
    }
}
