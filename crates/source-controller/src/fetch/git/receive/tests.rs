//! Packs made by hand: those that Git makes are in the tests of the module above.

use std::io::Cursor;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use gix::progress;

use super::*;

const BLOB: u8 = 3;
const OFS_DELTA: u8 = 6;
const REF_DELTA: u8 = 7;
const MIB: u64 = 1 << 20;

/// A pack that is being written.
struct Writing {
    bytes: Vec<u8>,
    offsets: Vec<usize>,
}

impl Writing {
    fn new(objects: u32) -> Self {
        let mut bytes = b"PACK\0\0\0\x02".to_vec();
        bytes.extend(objects.to_be_bytes());
        Self {
            bytes,
            offsets: Vec::new(),
        }
    }

    fn entry(mut self, type_: u8, base: &[u8], content: &[u8]) -> Self {
        self.offsets.push(self.bytes.len());
        let mut size = content.len();
        let mut byte = (type_ << 4) | (size & 15) as u8;
        size >>= 4;
        while size > 0 {
            self.bytes.push(byte | 0x80);
            byte = (size & 0x7f) as u8;
            size >>= 7;
        }
        self.bytes.push(byte);
        self.bytes.extend(base);
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).unwrap();
        self.bytes.extend(encoder.finish().unwrap());
        self
    }

    fn blob(self, content: &[u8]) -> Self {
        self.entry(BLOB, &[], content)
    }

    /// Made of the object that was written so many objects ago.
    fn delta(self, back: usize, delta: &[u8]) -> Self {
        let mut distance = self.bytes.len() - self.offsets[self.offsets.len() - back];
        let mut base = vec![(distance & 0x7f) as u8];
        while distance >= 0x80 {
            distance = (distance >> 7) - 1;
            base.insert(0, (distance & 0x7f) as u8 | 0x80);
        }
        self.entry(OFS_DELTA, &base, delta)
    }

    fn finish(mut self) -> Vec<u8> {
        let mut hasher = gix::hash::hasher(SHA1);
        hasher.update(&self.bytes);
        self.bytes.extend(hasher.try_finalize().unwrap().as_bytes());
        self.bytes
    }
}

fn number(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Says that it makes so many bytes of so many, and copies the first of them.
fn copies(of: u64, makes: u64) -> Vec<u8> {
    let size = of.min(0xff_ffff).to_le_bytes();
    [number(of), number(makes), vec![0xf0], size[..3].to_vec()].concat()
}

fn limits() -> Limits {
    Limits {
        objects: 5,
        object: 4 * MIB,
        all: 20 * MIB,
        chain: 8 * MIB,
    }
}

/// The number of objects, or what there is too much of.
fn check(pack: &[u8], limits: Limits) -> Result<u32, String> {
    let directory = tempfile::tempdir().unwrap();
    let refusal = Refusal::default();
    let received = receive(
        &mut Cursor::new(pack),
        directory.path(),
        limits,
        &refusal,
        &mut progress::Discard,
        &AtomicBool::new(false),
    );
    let excess = refusal.lock().unwrap().take();
    match (received, excess) {
        (Ok(Some(index)), None) => Ok(pack::Bundle::at(index, SHA1).unwrap().index.num_objects()),
        (Ok(None), None) => Ok(0),
        (Err(_), Some(excess)) => Err(format!("{} > {}", excess.what, excess.limit)),
        (Err(error), None) => Err(super::super::chain(&error)),
        (Ok(_), Some(excess)) => panic!("received all the same: {excess:?}"),
    }
}

#[test]
fn what_git_would_send_is_received() {
    let zeros = vec![0; 2 * MIB as usize];
    let delta = copies(2 * MIB, 2 * MIB);
    let pack = Writing::new(3).blob(b"a").blob(&zeros).delta(1, &delta).finish();
    assert_eq!(check(&pack, limits()), Ok(3));
    assert_eq!(check(&pack, Limits::default()), Ok(3));
    assert_eq!(check(&Writing::new(0).finish(), limits()), Ok(0));
}

#[test]
fn the_number_of_objects_is_bounded_before_the_first() {
    // Nothing follows: it is not even waited for.
    let head = Writing::new(u32::MAX).bytes;
    assert_eq!(
        check(&head, limits()),
        Err("the number of its objects is > 5".to_owned())
    );
}

#[test]
fn a_small_pack_does_not_inflate_to_a_large_one() {
    let zeros = vec![0; 3 * MIB as usize];
    let bomb = (0..5).fold(Writing::new(5), |pack, _| pack.blob(&zeros)).finish();
    assert!(bomb.len() < 200_000, "{}", bomb.len());
    let less = Limits {
        all: 10 * MIB,
        ..limits()
    };
    assert_eq!(
        check(&bomb, less),
        Err("the size in bytes of all its objects is > 10485760".to_owned())
    );
    let large = Writing::new(1).blob(&vec![0; 5 * MIB as usize]).finish();
    assert_eq!(
        check(&large, limits()),
        Err("the size in bytes of one of its objects is > 4194304".to_owned())
    );
}

#[test]
fn a_delta_is_measured_by_what_it_makes() {
    let pack = Writing::new(2).blob(b"a").delta(1, &copies(1, 1 << 40)).finish();
    assert_eq!(
        check(&pack, limits()),
        Err("the size in bytes of one of its objects is > 4194304".to_owned())
    );
    // The number does not end.
    let endless = Writing::new(2).blob(b"a").delta(1, &[0x80; 40]).finish();
    assert!(check(&endless, limits()).is_err());
    let empty = Writing::new(2).blob(b"a").delta(1, b"").finish();
    assert!(check(&empty, limits()).is_err());
}

#[test]
fn chains_of_deltas_are_bounded_and_siblings_are_not_chains() {
    let zeros = vec![0; 3 * MIB as usize];
    let delta = copies(3 * MIB, 3 * MIB);
    let chain = Writing::new(3)
        .blob(&zeros)
        .delta(1, &delta)
        .delta(1, &delta)
        .finish();
    assert_eq!(
        check(&chain, limits()),
        Err("the size in bytes of objects that are made of each other is > 8388608".to_owned())
    );
    let siblings = Writing::new(3)
        .blob(&zeros)
        .delta(1, &delta)
        .delta(2, &delta)
        .finish();
    assert_eq!(check(&siblings, limits()), Ok(3));
    // Whoever names what an object is made of may name any.
    let mut hasher = gix::hash::hasher(SHA1);
    hasher.update(format!("blob {}\0", zeros.len()).as_bytes());
    hasher.update(&zeros);
    let name = hasher.try_finalize().unwrap();
    let named = |count: u32| {
        let pack = Writing::new(count + 1).blob(&zeros);
        let pack = (0..count).fold(pack, |pack, _| pack.entry(REF_DELTA, name.as_bytes(), &delta));
        check(&pack.finish(), limits())
    };
    assert_eq!(named(2), Ok(3));
    assert!(named(3).unwrap_err().contains("made of each other"));
}

#[test]
fn packs_that_are_cut_or_changed_are_refused() {
    let pack = Writing::new(2).blob(b"abc").delta(1, &copies(3, 3)).finish();
    assert_eq!(check(&pack, limits()), Ok(2));
    for length in 0..pack.len() {
        assert!(check(&pack[..length], limits()).is_err(), "{length}");
        let mut changed = pack.clone();
        changed[length] ^= 0x20;
        assert!(check(&changed, limits()).is_err(), "{length}");
    }
}
