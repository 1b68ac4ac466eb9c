//! Packs that the real git made, and broken ones.

use std::fs::File;
use std::io::{Cursor, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use git_pack::{Error, Limits, Pack, Settings};
use gix_hash::ObjectId;
use proptest::prelude::*;
use tempfile::TempDir;

fn git(directory: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.com",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git is installed");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().expect("git ends");
    writer.join().expect("the writer does not panic");
    assert!(output.status.success(), "git {arguments:?}");
    output.stdout
}

/// Several versions of a few long files, which git sends as deltas, and a large one.
fn repository() -> TempDir {
    let directory = TempDir::new().expect("a folder");
    let path = directory.path();
    git(path, &["init", "-q"], b"");
    let lines = |version: usize| -> String {
        (0..400)
            .map(|line| {
                format!(
                    "line {line} of {}\n",
                    if line % 50 == version { version } else { 0 }
                )
            })
            .collect()
    };
    for version in 0..8 {
        for file in 0..3 {
            std::fs::write(path.join(format!("file-{file}")), lines(version + file)).expect("written");
        }
        let noise: Vec<u8> = (0..200_000_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        std::fs::write(path.join("large"), &noise[version..]).expect("written");
        git(path, &["add", "."], b"");
        git(path, &["commit", "-q", "-m", &format!("version {version}")], b"");
    }
    git(path, &["tag", "-a", "-m", "a tag", "v1"], b"");
    directory
}

fn pack_of(repository: &Path, options: &[&str]) -> Vec<u8> {
    let arguments = [
        &[
            "pack-objects",
            "--all",
            "--stdout",
            "-q",
            "--no-reuse-delta",
            "--revs",
        ],
        options,
    ]
    .concat();
    git(repository, &arguments, b"")
}

/// Returns whether git itself finds chains of deltas in the pack.
fn deltas(pack: &[u8]) -> bool {
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("it.pack"), pack).expect("written");
    git(folder.path(), &["index-pack", "it.pack"], b"");
    let listed = git(folder.path(), &["verify-pack", "-s", "it.pack"], b"");
    String::from_utf8_lossy(&listed).contains("chain length")
}

fn receive(bytes: &[u8], limits: &Limits) -> Result<Pack, Error> {
    let file: File = tempfile::tempfile().expect("a file");
    let settings = Settings {
        limits: *limits,
        ..Settings::default()
    };
    Pack::receive(&mut Cursor::new(bytes), file, &settings)
}

#[test]
fn reads_every_object_as_git_does() {
    let repository = repository();
    let path = repository.path();
    for options in [&["--delta-base-offset"][..], &[][..], &["--window=0"][..]] {
        let bytes = pack_of(path, options);
        let has_deltas = deltas(&bytes);
        assert_eq!(has_deltas, !options.contains(&"--window=0"), "{options:?}");
        let pack = receive(&bytes, &Limits::default()).expect("a good pack");
        let list = git(
            path,
            &[
                "cat-file",
                "--batch-all-objects",
                "--batch-check=%(objectname) %(objecttype)",
            ],
            b"",
        );
        let list = String::from_utf8(list).expect("text");
        assert_eq!(list.lines().count(), pack.len(), "{options:?}");
        for line in list.lines() {
            let (name, kind) = line.split_once(' ').expect("two words");
            let id = ObjectId::from_hex(name.as_bytes()).expect("a name");
            let (mut read, mut copied) = (vec![1], Vec::new());
            assert_eq!(
                pack.read(&id, 1 << 20, &mut read)
                    .expect("readable")
                    .map(git_pack::Kind::word),
                Some(kind)
            );
            assert_eq!(read, git(path, &["cat-file", kind, name], b""), "{line}");
            let (_, mut content) = pack.open(&id).expect("readable").expect("it is there");
            content.read_to_end(&mut copied).expect("readable");
            assert_eq!(copied, read, "{line}");
        }
        assert!(!pack.contains(&ObjectId::null(gix_hash::Kind::Sha1)));
    }
}

#[test]
fn takes_nothing_beyond_the_end() {
    let repository = repository();
    let mut bytes = pack_of(repository.path(), &[]);
    bytes.extend(b"0000");
    let mut stream = Cursor::new(bytes.as_slice());
    let file = tempfile::tempfile().expect("a file");
    Pack::receive(&mut stream, file, &Settings::default()).expect("a good pack");
    assert_eq!(stream.position() as usize, bytes.len() - 4);
}

#[test]
fn a_pack_beyond_the_limits_is_refused() {
    let repository = repository();
    let bytes = pack_of(repository.path(), &["--delta-base-offset"]);
    let check = |limits: Limits, expected: &str| {
        let error = receive(&bytes, &limits).expect_err("too large").to_string();
        assert_eq!(error, expected);
    };
    let limits = Limits::default();
    let objects = Limits { objects: 3, ..limits };
    check(
        objects,
        "refused the pack: the number of its objects is more than 3",
    );
    let object = Limits {
        object_bytes: 199_000,
        ..limits
    };
    check(
        object,
        "refused the pack: the size in bytes of one of its objects is more than 199000",
    );
    let all = Limits {
        inflated_bytes: 300_000,
        ..limits
    };
    check(
        all,
        "refused the pack: the size in bytes of all its objects is more than 300000",
    );
}

/// A pack with the given entries, right in all but them.
fn crafted(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"PACK\0\0\0\x02".to_vec();
    bytes.extend((entries.len() as u32).to_be_bytes());
    bytes.extend(entries.concat());
    let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
    hasher.update(&bytes);
    bytes.extend(hasher.try_finalize().expect("no collision").as_slice());
    bytes
}

fn deflated(head: &[u8], content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(head.to_vec(), flate2::Compression::default());
    encoder.write_all(content).expect("in memory");
    encoder.finish().expect("in memory")
}

#[test]
fn an_entry_that_makes_no_sense_is_refused_with_the_reason() {
    let check = |entries: &[Vec<u8>], expected: &str| {
        let error = receive(&crafted(entries), &Limits::default())
            .expect_err("broken")
            .to_string();
        assert_eq!(error, expected);
    };
    let at = |problem: &str| format!("failed to read the object at offset 12: {problem}");
    let blob = deflated(&[0x33], b"abc");
    check(&[deflated(&[0x03], b"abc")], &at("its kind is unknown"));
    check(&[deflated(&[0x32], b"abc")], &at("it is larger than it says"));
    check(&[deflated(&[0x34], b"abc")], &at("it is smaller than it says"));
    check(&[vec![0x33, 1, 2, 3, 4, 5]], &at("its compressed data is broken"));
    check(&[[0xbf; 12].to_vec()], &at("its size is beyond any bound"));
    check(&[deflated(&[0x63, 13], b"abc")], &at("its base is not before it"));
    check(&[deflated(&[0x63, 0], b"abc")], &at("its base is not before it"));
    let stranger = [&[0x73][..], &[7; 20]].concat();
    check(
        &[deflated(&stranger, b"abc")],
        &at("its base 0707070707070707070707070707070707070707 was not sent"),
    );
    // A base that is the middle of an entry.
    check(
        &[blob.clone(), deflated(&[0x63, 3], b"abc")],
        "failed to resolve 1 deltas: their bases were not sent",
    );
    let delta = deflated(
        &[0x65, u8::try_from(blob.len()).expect("short")],
        &[3, 2, 0x90, 2, 0],
    );
    let error = receive(&crafted(&[blob, delta]), &Limits::default())
        .expect_err("broken")
        .to_string();
    assert!(
        error.ends_with("its delta has an instruction that is reserved"),
        "{error}"
    );
}

#[test]
fn a_chain_that_git_would_not_make_is_refused() {
    let mut entries = vec![deflated(&[0x33], b"abc")];
    for number in 0..5000_u32 {
        // A delta of the entry before it, with content of its own.
        let delta = [
            &[if number == 0 { 3 } else { 4 }, 4, 4][..],
            &number.to_be_bytes(),
        ]
        .concat();
        let distance = u8::try_from(entries.last().expect("not empty").len()).expect("short");
        entries.push(deflated(&[0x67, distance], &delta));
    }
    assert!(receive(&crafted(&entries[..4000]), &Limits::default()).is_ok());
    let error = receive(&crafted(&entries), &Limits::default())
        .expect_err("too long")
        .to_string();
    assert_eq!(
        error,
        "refused the pack: the number of objects that are made of each other is more than 4095"
    );
}

/// The size of an entry, as the first bytes of one say it.
fn head(kind: u8, mut size: usize) -> Vec<u8> {
    let mut bytes = vec![kind << 4 | (size & 0x0f) as u8];
    size >>= 4;
    while size > 0 {
        *bytes.last_mut().expect("not empty") |= 0x80;
        bytes.push((size & 0x7f) as u8);
        size >>= 7;
    }
    bytes
}

fn number(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A delta of the object that begins `distance` before, of `size` bytes, that makes as many: another first byte, and the
/// rest of the base.
fn changed(distance: usize, size: usize, first: u8) -> Vec<u8> {
    let mut delta = [number(size), number(size), vec![1, first]].concat();
    let mut at = 1;
    while at < size {
        let length = (size - at).min(0x00ff_ffff);
        delta.push(0xff);
        delta.extend(&u32::try_from(at).expect("short").to_le_bytes());
        delta.extend(&length.to_le_bytes()[..3]);
        at += length;
    }
    let mut entry = head(6, delta.len());
    let mut back = vec![(distance & 0x7f) as u8];
    let mut rest = distance >> 7;
    while rest > 0 {
        rest -= 1;
        back.insert(0, 0x80 | (rest & 0x7f) as u8);
        rest >>= 7;
    }
    entry.extend(back);
    deflated(&entry, &delta)
}

/// A blob and so many others, each made of the one before.
fn chain(size: usize, length: usize) -> Vec<Vec<u8>> {
    let mut entries = vec![deflated(&head(3, size), &vec![0; size])];
    for link in 1..=length {
        let distance = entries.last().expect("not empty").len();
        entries.push(changed(distance, size, link as u8));
    }
    entries
}

#[test]
fn deltas_are_bounded_by_their_size_and_that_of_what_they_are_made_of() {
    let limits = Limits {
        delta_bytes: 4_000,
        ..Limits::default()
    };
    assert!(receive(&crafted(&chain(4_000, 5)), &limits).is_ok());
    let expected = "refused the pack: the size in bytes of an object that is a delta, or that one is made of, is more \
                    than 4000";
    let error = receive(&crafted(&chain(4_001, 1)), &limits).expect_err("too large");
    assert_eq!(error.to_string(), expected);
    // What it would make is too large: it is not made.
    let whole = deflated(&head(3, 3_000), &vec![0; 3_000]);
    let bomb = deflated(
        &[0x67, u8::try_from(whole.len()).expect("short")],
        &[0xb8, 0x17, 0x80, 0x80, 0x80, 0x01, 0xb0],
    );
    let error = receive(&crafted(&[whole, bomb]), &limits).expect_err("too large");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_chain_that_is_larger_than_what_is_kept_of_it_is_made_again_where_it_is_needed() {
    // 10 objects of 30 MB, and for each of the first ones a second delta that comes back to it.
    const SIZE: usize = 30_000_000;
    let mut entries = chain(SIZE, 9);
    let start = |entries: &[Vec<u8>], place: usize| entries[..place].iter().map(Vec::len).sum::<usize>();
    for place in [0, 3, 4] {
        let distance = start(&entries, entries.len()) - start(&entries, place);
        entries.push(changed(distance, SIZE, 100 + place as u8));
    }
    let pack = receive(&crafted(&entries), &Limits::default()).expect("a good pack");
    assert_eq!(pack.len(), 13);
    for first in [0, 1, 5, 9, 100, 103, 104] {
        let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
        hasher.update(format!("blob {SIZE}\0").as_bytes());
        hasher.update(&[first]);
        hasher.update(&vec![0; SIZE - 1]);
        let id = hasher.try_finalize().expect("no collision");
        assert!(pack.contains(&id), "{first}");
    }
    // Each time it is made again counts as work.
    let limits = Limits {
        inflated_bytes: 14 * SIZE as u64,
        ..Limits::default()
    };
    let error = receive(&crafted(&entries), &limits).expect_err("too much work");
    assert!(
        error.to_string().contains("the size in bytes of all its objects"),
        "{error}"
    );
}

#[test]
fn what_is_read_is_bounded_and_what_is_a_stream_is_not_held() {
    let pack = receive(&crafted(&chain(100_000, 1)), &Limits::default()).expect("a good pack");
    let mut buffer = Vec::new();
    for name in pack.names() {
        let error = pack.read(name, 99_999, &mut buffer).expect_err("too large");
        assert!(matches!(error, Error::TooLarge { limit: 99_999, .. }), "{error}");
        pack.read(name, 100_000, &mut buffer)
            .expect("as large as allowed");
        let (_, mut content) = pack.open(name).expect("readable").expect("it is there");
        assert_eq!(content.left(), 100_000);
        let mut read = Vec::new();
        content.read_to_end(&mut read).expect("readable");
        assert!(read == buffer && content.left() == 0);
    }
}

#[test]
fn an_empty_pack_has_no_objects() {
    assert!(
        receive(&crafted(&[]), &Limits::default())
            .expect("a good pack")
            .is_empty()
    );
    assert!(matches!(
        receive(b"PACK\0\0\0\x04\0\0\0\0", &Limits::default()),
        Err(Error::Signature)
    ));
    assert!(matches!(
        receive(b"<html>not a pack</html>", &Limits::default()),
        Err(Error::Signature)
    ));
}

#[test]
fn a_cancelled_receiver_stops() {
    let repository = repository();
    let bytes = pack_of(repository.path(), &[]);
    let file = tempfile::tempfile().expect("a file");
    let settings = Settings {
        cancelled: Arc::new(AtomicBool::new(true)),
        ..Settings::default()
    };
    let received = Pack::receive(&mut Cursor::new(bytes), file, &settings);
    assert!(matches!(received, Err(Error::Cancelled)));
}

/// Cuts and flips of a pack of a few hundred bytes.
fn small() -> Vec<u8> {
    let blob = deflated(&[0xba, 0x01], &[b'a'; 26]);
    let delta = deflated(
        &[0x66, u8::try_from(blob.len()).expect("short")],
        &[26, 5, 0x90, 3, 2, b'x', b'y'][..6],
    );
    crafted(&[deflated(&[0x33], b"abc"), blob, delta])
}

proptest! {
    #[test]
    fn a_changed_pack_is_refused_and_nothing_panics(place in 0usize..200, flip in 1u8..=255, length in 0usize..200) {
        let mut bytes = small();
        let place = place % bytes.len();
        bytes[place] ^= flip;
        let length = bytes.len() - length % bytes.len();
        prop_assert!(receive(&bytes[..length], &Limits::default()).is_err());
    }

    #[test]
    fn any_entries_are_read_or_refused(entries in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 0..5)) {
        drop(receive(&crafted(&entries), &Limits::default()));
    }

    #[test]
    fn any_deltas_are_applied_or_refused(instructions in proptest::collection::vec(any::<u8>(), 0..15)) {
        let blob = deflated(&[0x33], b"abc");
        let head = [0x60 | u8::try_from(instructions.len()).expect("short"), u8::try_from(blob.len()).expect("short")];
        drop(receive(&crafted(&[blob, deflated(&head, &instructions)]), &Limits::default()));
    }
}
