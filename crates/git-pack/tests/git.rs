//! Packs that the real git made, and broken ones.

use std::fs::File;
use std::io::{Cursor, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use git_pack::{Error, Limits, Pack};
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

/// Whether git itself finds chains of deltas in the pack.
fn deltas(pack: &[u8]) -> bool {
    let folder = TempDir::new().expect("a folder");
    std::fs::write(folder.path().join("it.pack"), pack).expect("written");
    git(folder.path(), &["index-pack", "it.pack"], b"");
    let listed = git(folder.path(), &["verify-pack", "-s", "it.pack"], b"");
    String::from_utf8_lossy(&listed).contains("chain length")
}

fn receive(bytes: &[u8], limits: &Limits) -> Result<Pack, Error> {
    let file: File = tempfile::tempfile().expect("a file");
    Pack::receive(&mut Cursor::new(bytes), file, limits, &AtomicBool::new(false))
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
                pack.read(&id, &mut read)
                    .expect("readable")
                    .map(git_pack::Kind::word),
                Some(kind)
            );
            assert_eq!(read, git(path, &["cat-file", kind, name], b""), "{line}");
            assert!(pack.copy(&id, &mut copied).expect("readable").is_some());
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
    Pack::receive(&mut stream, file, &Limits::default(), &AtomicBool::new(false)).expect("a good pack");
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

#[test]
fn chains_are_bounded_by_what_they_hold_and_siblings_are_no_chains() {
    let zeros = vec![0; 3_000];
    // Of 3,000 bytes, makes 3,000: copies the first 3,000.
    let copy = [0xb8, 0x17, 0xb8, 0x17, 0xb0, 0xb8, 0x0b];
    let limits = Limits {
        object_bytes: 4_000,
        ..Limits::default()
    };
    let whole = deflated(&[0xb8, 0xbb, 0x01], &zeros);
    let size = |entry: &Vec<u8>| u8::try_from(entry.len()).expect("short");
    let child = deflated(&[0x67, size(&whole)], &copy);
    let grandchild = deflated(&[0x67, size(&child)], &copy);
    let great_grandchild = deflated(&[0x67, size(&grandchild)], &copy);
    let chain = crafted(&[whole.clone(), child.clone(), grandchild, great_grandchild]);
    let error = receive(&chain, &limits).expect_err("too large").to_string();
    let expected =
        "refused the pack: the size in bytes of objects that are made of each other is more than 8000";
    assert_eq!(error, expected);
    let sibling = deflated(&[0x67, size(&whole) + size(&child)], &copy);
    assert!(receive(&crafted(&[whole.clone(), child, sibling]), &limits).is_ok());
    // What it would make is too large: it is not made.
    let bomb = deflated(&[0x67, size(&whole)], &[0xb8, 0x17, 0x80, 0x80, 0x80, 0x01, 0xb0]);
    let error = receive(&crafted(&[whole, bomb]), &limits)
        .expect_err("too large")
        .to_string();
    assert!(
        error.ends_with("it is larger than the limit of one object"),
        "{error}"
    );
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
    let received = Pack::receive(
        &mut Cursor::new(bytes),
        file,
        &Limits::default(),
        &AtomicBool::new(true),
    );
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
