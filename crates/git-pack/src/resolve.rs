//! Naming what is sent as deltas: each is applied to its base once, from the objects that are no deltas on.

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};

use gix_hash::ObjectId;

use crate::entry::{self, Base, Entry, Kind};
use crate::error::Error;
use crate::inflate::{At, Inflater};
use crate::receive::{Seen, name};
use crate::{Limits, delta};

/// The most that git makes. An object at the end of a chain costs as much as all of the chain, each time it is read.
const MAX_CHAIN: usize = 4095;

/// An object whose deltas are being applied.
struct Open {
    content: Vec<u8>,
    kind: Kind,
    /// Offsets of the deltas of it that are left.
    deltas: Vec<u64>,
}

/// Answers all objects with their offsets, sorted by name.
pub(crate) fn resolve(
    file: &File,
    mut seen: Seen,
    limits: &Limits,
    cancelled: &AtomicBool,
) -> Result<Vec<(ObjectId, u64)>, Error> {
    let whole = std::mem::take(&mut seen.whole);
    let waiting = Waiting::new(std::mem::take(&mut seen.deltas));
    let mut resolver = Resolver {
        file,
        seen,
        limits,
        inflater: Inflater::default(),
    };
    let mut objects = Vec::with_capacity(whole.len() + waiting.count());
    let mut resolved = 0;
    for &(id, offset, kind) in &whole {
        objects.push((id, offset));
        let deltas = waiting.of(id, offset);
        if deltas.is_empty() {
            continue;
        }
        let content = resolver.whole(offset)?;
        let mut held = content.len() as u64;
        let mut open = vec![Open {
            content,
            kind,
            deltas,
        }];
        while let Some(base) = open.last_mut() {
            if cancelled.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            let Some(offset) = base.deltas.pop() else {
                held -= open.pop().map_or(0, |done| done.content.len() as u64).min(held);
                continue;
            };
            let (id, content) = resolver.delta(offset, &base.content, base.kind)?;
            objects.push((id, offset));
            resolved += 1;
            let (kind, deltas) = (base.kind, waiting.of(id, offset));
            if deltas.is_empty() {
                continue;
            }
            if open.len() >= MAX_CHAIN {
                return Err(Error::TooLarge {
                    what: "the number of objects that are made of each other",
                    limit: MAX_CHAIN as u64,
                });
            }
            held += content.len() as u64;
            // A chain holds all that is between its ends.
            if held > limits.object_bytes.saturating_mul(2) {
                return Err(Error::TooLarge {
                    what: "the size in bytes of objects that are made of each other",
                    limit: limits.object_bytes.saturating_mul(2),
                });
            }
            open.push(Open {
                content,
                kind,
                deltas,
            });
        }
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
    fn of(&self, id: ObjectId, offset: u64) -> Vec<u64> {
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
    limits: &'a Limits,
    inflater: Inflater,
}

impl Resolver<'_> {
    /// The content of the object at `offset`, which is no delta.
    fn whole(&mut self, offset: u64) -> Result<Vec<u8>, Error> {
        let mut input = At::new(self.file, offset);
        match entry::read(&mut input, offset)? {
            Entry::Whole(header) => self.content(&mut input, offset, header.size),
            Entry::Delta(_) => Err(Error::delta(offset, "it changed since it was received")),
        }
    }

    /// Name and content of the object that the delta at `offset` makes of `base`.
    fn delta(&mut self, offset: u64, base: &[u8], kind: Kind) -> Result<(ObjectId, Vec<u8>), Error> {
        let mut input = At::new(self.file, offset);
        let Entry::Delta(header) = entry::read(&mut input, offset)? else {
            return Err(Error::delta(offset, "it changed since it was received"));
        };
        let instructions = self.content(&mut input, offset, header.size)?;
        let mut content = Vec::new();
        delta::apply(base, &instructions, self.limits.object_bytes, &mut content)
            .map_err(|problem| Error::delta(offset, problem))?;
        self.seen.count(content.len() as u64, self.limits)?;
        let mut name = name(kind, content.len() as u64);
        name.update(&content);
        let name = name.try_finalize().map_err(|_| Error::Collision { offset })?;
        Ok((name, content))
    }

    fn content(&mut self, input: &mut At<'_>, offset: u64, size: u64) -> Result<Vec<u8>, Error> {
        let mut content = Vec::new();
        self.inflater.run(input, offset, size, &mut |bytes| {
            content.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(content)
    }
}
