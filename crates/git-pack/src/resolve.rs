//! Naming what is sent as deltas: each is applied to its base once, from the objects that are no deltas on.

use std::fs::File;
use std::sync::atomic::Ordering;

use gix_hash::ObjectId;
use gix_hash::{Hasher, Kind as Hash};

use crate::entry::{self, Base, Entry, Kind};
use crate::error::Error;
use crate::inflate::{At, Inflater};
use crate::memory::Share;
use crate::receive::Input;
use crate::{Limits, Settings, delta};

/// The most that git makes. An object at the end of a chain costs as much as all of the chain, each time it is read.
const MAX_CHAIN: usize = 4095;
/// The content of a chain that is kept, in bytes, beside what is being made. The rest is made again when it is needed.
const KEPT: u64 = 64 << 20;

/// An object whose deltas are being applied.
struct Open {
    offset: u64,
    /// None while others have the room.
    content: Option<Vec<u8>>,
    /// Offsets of the deltas of it that are left.
    deltas: Vec<u64>,
}

/// Answers all objects with their offsets, sorted by name.
pub(crate) fn resolve(
    file: &File,
    mut seen: Seen,
    settings: &Settings,
) -> Result<Vec<(ObjectId, u64)>, Error> {
    let whole = std::mem::take(&mut seen.whole);
    let waiting = Waiting::new(std::mem::take(&mut seen.deltas));
    let bases: Vec<(ObjectId, u64, Kind)> = whole
        .iter()
        .filter(|&&(id, offset, _)| !waiting.deltas_on(id, offset).is_empty())
        .copied()
        .collect();
    // In the place of the other list, which has elements of the same size.
    let mut objects: Vec<(ObjectId, u64)> = whole.into_iter().map(|(id, offset, _)| (id, offset)).collect();
    objects.reserve_exact(waiting.count());
    let mut resolver = Resolver {
        file,
        seen,
        settings,
        inflater: Inflater::default(),
        share: settings.memory.share(),
        kept: 0,
    };
    let mut resolved = 0;
    for base in bases {
        resolved += resolver.family(base, &waiting, &mut objects)?;
    }
    let unresolved = waiting.count().saturating_sub(resolved);
    if unresolved > 0 {
        return Err(waiting.missing(&objects).unwrap_or(Error::Unresolved(unresolved)));
    }
    objects.sort_unstable();
    // The same object twice is allowed, and the same.
    objects.dedup_by_key(|(id, _)| *id);
    objects.shrink_to_fit();
    Ok(objects)
}

/// Deltas by their bases.
struct Waiting {
    by_offset: Vec<(u64, u64)>,
    by_name: Vec<(ObjectId, u64)>,
}

impl Waiting {
    fn new(deltas: Vec<(Base, u64)>) -> Self {
        let (mut by_offset, mut by_name) = (Vec::new(), Vec::new());
        for (base, offset) in deltas {
            match base {
                Base::Offset(base) => by_offset.push((base, offset)),
                Base::Name(base) => by_name.push((base, offset)),
            }
        }
        by_offset.sort_unstable();
        by_name.sort_unstable();
        Self { by_offset, by_name }
    }

    fn count(&self) -> usize {
        self.by_offset.len() + self.by_name.len()
    }

    /// Offsets of the deltas whose base is the object `id` at `offset`.
    fn deltas_on(&self, id: ObjectId, offset: u64) -> Vec<u64> {
        let by_offset = equal(&self.by_offset, &offset);
        by_offset.chain(equal(&self.by_name, &id)).collect()
    }

    /// The first delta whose base was not sent under its name.
    fn missing(&self, objects: &[(ObjectId, u64)]) -> Option<Error> {
        let sent: std::collections::HashSet<_> = objects.iter().map(|(id, _)| id).collect();
        let mut missing = self.by_name.iter().filter(|(base, _)| !sent.contains(base));
        missing
            .next()
            .map(|&(name, offset)| Error::FindBase { offset, name })
    }
}

/// The values of a key in pairs that are sorted.
fn equal<'a, K: Ord>(pairs: &'a [(K, u64)], key: &'a K) -> impl Iterator<Item = u64> + 'a {
    let from = pairs.partition_point(|(other, _)| other < key);
    pairs[from..]
        .iter()
        .take_while(move |(other, _)| other == key)
        .map(|(_, offset)| *offset)
}

struct Resolver<'a> {
    file: &'a File,
    seen: Seen,
    settings: &'a Settings,
    inflater: Inflater,
    share: Share,
    /// Bytes of the contents in the chain.
    kept: u64,
}

impl Resolver<'_> {
    /// Names all that is made of one object that is no delta. Answers how many there are.
    fn family(
        &mut self,
        (id, offset, kind): (ObjectId, u64, Kind),
        waiting: &Waiting,
        objects: &mut Vec<(ObjectId, u64)>,
    ) -> Result<usize, Error> {
        let mut resolved = 0;
        let content = self.whole(offset)?;
        let mut chain = Vec::new();
        self.open(&mut chain, offset, content, waiting.deltas_on(id, offset));
        while let Some(base) = chain.last_mut() {
            let Some(offset) = base.deltas.pop() else {
                let done = chain.pop().and_then(|done| done.content);
                self.kept -= done.map_or(0, |content| content.len() as u64);
                continue;
            };
            self.fill_last(&mut chain)?;
            let base = chain.last().and_then(|base| base.content.as_deref());
            let content = self.delta(offset, base.unwrap_or_default())?;
            let mut name = name(kind, content.len() as u64);
            name.update(&content);
            let id = name.try_finalize().map_err(|_| Error::Collision { offset })?;
            objects.push((id, offset));
            resolved += 1;
            let deltas = waiting.deltas_on(id, offset);
            if deltas.is_empty() {
                continue;
            }
            if chain.len() >= MAX_CHAIN {
                return Err(Error::TooLarge {
                    what: "the number of objects that are made of each other",
                    limit: MAX_CHAIN as u64,
                });
            }
            self.open(&mut chain, offset, content, deltas);
        }
        self.share.release();
        Ok(resolved)
    }

    /// Puts an object at the end of the chain, and lets go of the content of others where there is too much of it.
    fn open(&mut self, chain: &mut Vec<Open>, offset: u64, content: Vec<u8>, deltas: Vec<u64>) {
        self.kept += content.len() as u64;
        for open in chain.iter_mut() {
            if self.kept <= KEPT {
                break;
            }
            self.kept -= open.content.take().map_or(0, |content| content.len() as u64);
        }
        chain.push(Open {
            offset,
            content: Some(content),
            deltas,
        });
    }

    /// Makes the content of the last object again if it was let go.
    fn fill_last(&mut self, chain: &mut [Open]) -> Result<(), Error> {
        let from = chain.iter().rposition(|open| open.content.is_some());
        let from = match from {
            Some(from) if from + 1 == chain.len() => return Ok(()),
            Some(from) => from,
            None => {
                let first = self.whole(chain[0].offset)?;
                self.kept += first.len() as u64;
                chain[0].content = Some(first);
                0
            }
        };
        for place in from + 1..chain.len() {
            let base = chain[place - 1].content.as_deref().unwrap_or_default();
            let content = self.delta(chain[place].offset, base)?;
            self.kept += content.len() as u64;
            chain[place].content = Some(content);
            if self.kept > KEPT {
                self.kept -= chain[place - 1]
                    .content
                    .take()
                    .map_or(0, |content| content.len() as u64);
            }
        }
        Ok(())
    }

    /// The content of the object at `offset`, which is no delta.
    fn whole(&mut self, offset: u64) -> Result<Vec<u8>, Error> {
        let mut input = At::new(self.file, offset);
        match entry::read(&mut input, offset)? {
            Entry::Whole(header) => {
                self.check(header.size)?;
                self.seen.count(header.size, &self.settings.limits)?;
                self.hold(header.size)?;
                self.content(&mut input, offset, header.size)
            }
            Entry::Delta(_) => Err(Error::delta(offset, "it changed since it was received")),
        }
    }

    /// Applies the delta at `offset` to `base`.
    fn delta(&mut self, offset: u64, base: &[u8]) -> Result<Vec<u8>, Error> {
        if self.settings.cancelled.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let mut input = At::new(self.file, offset);
        let Entry::Delta(header) = entry::read(&mut input, offset)? else {
            return Err(Error::delta(offset, "it changed since it was received"));
        };
        self.hold(header.size)?;
        let instructions = self.content(&mut input, offset, header.size)?;
        let problem = |problem| Error::delta(offset, problem);
        let size = delta::size_of_result(&instructions).map_err(problem)?;
        self.check(size)?;
        // Before it is made: it may be made several times, and the work counts, too.
        self.seen.count(size, &self.settings.limits)?;
        self.hold(header.size + size)?;
        let mut content = Vec::new();
        delta::apply(
            base,
            &instructions,
            self.settings.limits.delta_bytes,
            &mut content,
        )
        .map_err(problem)?;
        Ok(content)
    }

    /// Waits until so many bytes can be held beside the chain.
    fn hold(&mut self, bytes: u64) -> Result<(), Error> {
        self.share.hold(self.kept + bytes, &self.settings.cancelled)
    }

    fn check(&self, size: u64) -> Result<(), Error> {
        let limit = self.settings.limits.delta_bytes;
        let what = "the size in bytes of an object that is a delta, or that one is made of,";
        if size > limit {
            return Err(Error::TooLarge { what, limit });
        }
        Ok(())
    }

    fn content(&mut self, input: &mut At<'_>, offset: u64, size: u64) -> Result<Vec<u8>, Error> {
        let mut content = Vec::new();
        crate::reserve(&mut content, size);
        self.inflater.run(input, offset, size, &mut |bytes| {
            content.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(content)
    }
}

/// Summary of a stream, after its end.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Those that are no deltas.
    pub(crate) whole: Vec<(ObjectId, u64, Kind)>,
    /// Deltas, by what they are applied to.
    pub(crate) deltas: Vec<(Base, u64)>,
    /// Bytes of all objects so far.
    pub(crate) inflated: u64,
}

impl Seen {
    pub(super) fn next(
        &mut self,
        input: &mut Input<'_>,
        inflater: &mut Inflater,
        limits: &Limits,
    ) -> Result<(), Error> {
        let offset = input.position;
        match entry::read(input, offset)? {
            Entry::Whole(header) => {
                self.count(header.size, limits)?;
                let mut name = name(header.kind, header.size);
                inflater.run(input, offset, header.size, &mut |bytes| {
                    name.update(bytes);
                    Ok(())
                })?;
                let name = name.try_finalize().map_err(|_| Error::Collision { offset })?;
                self.whole.push((name, offset, header.kind));
            }
            Entry::Delta(header) => {
                self.count(header.size, limits)?;
                if header.size > limits.delta_bytes {
                    let what = "the size in bytes of one of its deltas";
                    let limit = limits.delta_bytes;
                    return Err(Error::TooLarge { what, limit });
                }
                inflater.run(input, offset, header.size, &mut |_| Ok(()))?;
                self.deltas.push((header.kind, offset));
            }
        }
        input.written()
    }

    /// Takes account of an object's or delta's size before it is inflated.
    pub(crate) fn count(&mut self, size: u64, limits: &Limits) -> Result<(), Error> {
        self.inflated = self.inflated.saturating_add(size);
        let too_large = |what, limit| Err(Error::TooLarge { what, limit });
        if size > limits.object_bytes {
            return too_large("the size in bytes of one of its objects", limits.object_bytes);
        }
        if self.inflated > limits.inflated_bytes {
            return too_large("the size in bytes of all its objects", limits.inflated_bytes);
        }
        Ok(())
    }
}

/// The beginning of an object's name.
pub(crate) fn name(kind: Kind, size: u64) -> Hasher {
    let mut hasher = gix_hash::hasher(Hash::Sha1);
    hasher.update(format!("{} {size}\0", kind.word()).as_bytes());
    hasher
}
