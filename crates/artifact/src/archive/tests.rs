//! Hostile archives as a table, and the digest of one archive as it must stay.

use std::{
    borrow::Cow,
    collections::HashMap,
    convert::Infallible,
    io::{Cursor, Read as _, Write as _},
};

use flate2::{Compression, write::GzEncoder};
use tar::{EntryType, Header};

use super::*;
use crate::{
    digest::Digest,
    tree::{Builder, Directory, Tree},
};

/// An archive made entry by entry, with names that the tar crate would refuse to write.
#[derive(Default)]
struct Crafted {
    bytes: Vec<u8>,
}

impl Crafted {
    fn entry(mut self, kind: EntryType, name: &str, mode: u32, content: &[u8]) -> Self {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(content.len() as u64);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(1_700_000_000);
        header.set_cksum();
        self.bytes.extend(header.as_bytes());
        self.bytes.extend(content);
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self
    }

    fn file(self, name: &str, content: &[u8]) -> Self {
        self.entry(EntryType::Regular, name, 0o644, content)
    }

    fn gzip(mut self) -> Vec<u8> {
        self.bytes.extend([0; 1024]);
        gzip(&self.bytes)
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Reads an archive: lines like `f a/b 3 hello`, or the whole chain of the error.
fn outcome(archive: &[u8], limits: &Limits) -> Result<Vec<String>, String> {
    let mut seen = Vec::new();
    let read = read(archive, limits, |entry| {
        seen.push(match entry.content {
            EntryContent::Directory => format!("d {}", entry.path),
            EntryContent::File {
                executable,
                size,
                reader,
            } => {
                let mut text = String::new();
                reader.read_to_string(&mut text)?;
                format!(
                    "{} {} {size} {text}",
                    if executable { 'x' } else { 'f' },
                    entry.path
                )
            }
        });
        Ok(())
    });
    read.map(|_| seen).map_err(|error| error_chain::chain(&error))
}

#[test]
fn what_flux_unpacks_is_read() {
    let archive = Crafted::default()
        .entry(
            EntryType::XGlobalHeader,
            "pax_global_header",
            0o666,
            b"52 comment=0123456789012345678901234567890123456789\n",
        )
        .entry(EntryType::Directory, "./", 0o755, b"")
        .entry(EntryType::Directory, "apps/", 0o000, b"")
        .file("./apps/a.yaml", b"a: 1")
        .entry(EntryType::Regular, "apps//run.sh", 0o4711, b"#!")
        .entry(EntryType::Symlink, "apps/link", 0o777, b"")
        .entry(EntryType::Symlink, "../outside", 0o777, b"")
        .entry(EntryType::Continuous, "old", 0o600, b"x")
        .file("apps/a.yaml", b"a: 2")
        .file("..a/...", b"")
        .gzip();
    let expected = [
        "d apps",
        "f apps/a.yaml 4 a: 1",
        "x apps/run.sh 2 #!",
        "f old 1 x",
        "f apps/a.yaml 4 a: 2",
        "f ..a/... 0 ",
    ];
    assert_eq!(outcome(&archive, &Limits::default()).unwrap(), expected);
}

#[test]
fn two_gzip_members_are_one_archive() {
    let whole = Crafted::default().file("a", b"1").bytes;
    let mut archive = gzip(&whole[..512]);
    archive.extend(gzip(&[&whole[512..], &[0; 1024]].concat()));
    assert_eq!(outcome(&archive, &Limits::default()).unwrap(), ["f a 1 1"]);
}

#[test]
fn hostile_archives_are_refused_and_the_entry_is_named() {
    let limits = Limits {
        max_entries: 5,
        max_total_bytes: 3000,
        max_file_bytes: 2000,
        ..Limits::default()
    };
    let one = |kind, name: &str, content: &[u8]| Crafted::default().entry(kind, name, 0o644, content).gzip();
    let file = |name: &str| one(EntryType::Regular, name, b"x");
    let refuse_links = Limits {
        symlinks: Symlinks::Refuse,
        ..Limits::default()
    };
    let table: Vec<(&str, Vec<u8>, &Limits, &str)> = vec![
        (
            "absolute path",
            file("/etc/passwd"),
            &limits,
            "\"/etc/passwd\": it is absolute",
        ),
        ("parent", file("../x"), &limits, "\"../x\": it leaves its folder"),
        ("parent inside", file("a/../../x"), &limits, "leaves its folder"),
        ("parent at the end", file("a/.."), &limits, "leaves its folder"),
        (
            "parent folder",
            one(EntryType::Directory, "..", b""),
            &limits,
            "leaves its folder",
        ),
        ("backslash", file("a\\b"), &limits, "invalid name"),
        ("empty name", file(""), &limits, "invalid name"),
        ("root as a file", file("."), &limits, "invalid name"),
        ("line feed", file("a\nb"), &limits, "not a file name"),
        (
            "hard link",
            one(EntryType::Link, "link", b""),
            &limits,
            "\"link\": it is a link",
        ),
        (
            "symbolic link",
            one(EntryType::Symlink, "link", b""),
            &refuse_links,
            "\"link\": it is a link",
        ),
        (
            "character device",
            one(EntryType::Char, "null", b""),
            &limits,
            "\"null\": it is not a file",
        ),
        (
            "block device",
            one(EntryType::Block, "sda", b""),
            &limits,
            "\"sda\": it is not a file",
        ),
        (
            "pipe",
            one(EntryType::Fifo, "pipe", b""),
            &limits,
            "\"pipe\": it is not a file",
        ),
        (
            "unknown kind",
            one(EntryType::new(b'Z'), "what", b""),
            &limits,
            "\"what\": it is not a file",
        ),
        (
            "file too big",
            one(EntryType::Regular, "big", &[b'x'; 2001]),
            &limits,
            "\"big\": 2001 bytes are more",
        ),
        (
            "all too big",
            Crafted::default()
                .file("a", &[b'x'; 1600])
                .file("b", &[b'x'; 1600])
                .gzip(),
            &limits,
            "\"b\": more than 3000 bytes in all files",
        ),
        (
            "too many entries",
            (0..6)
                .fold(Crafted::default(), |archive, index| {
                    archive.file(&index.to_string(), b"")
                })
                .gzip(),
            &limits,
            "\"5\": more than 5 entries",
        ),
        (
            "not gzip",
            b"hello, this is no archive".to_vec(),
            &limits,
            "failed to read the archive after 0 entries",
        ),
        (
            "gzip of something else",
            gzip(&[b'x'; 2000]),
            &limits,
            "failed to read the archive after 0 entries",
        ),
        (
            "empty",
            Vec::new(),
            &limits,
            "failed to read the archive after 0 entries",
        ),
    ];
    for (what, archive, limits, expected) in table {
        let error = outcome(&archive, limits).expect_err(what);
        assert!(error.contains(expected), "{what}: {error}");
    }
}

#[test]
fn sparse_files_are_refused_in_both_forms() {
    let records = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n30 GNU.sparse.realsize=100000\n";
    let pax = Crafted::default()
        .entry(EntryType::XHeader, "x", 0o644, records)
        .file("s", b"1\n")
        .gzip();
    let error = outcome(&pax, &Limits::default()).unwrap_err();
    assert!(error.contains("\"s\": it is not a file"), "{error}");

    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::GNUSparse);
    header.as_old_mut().name[..2].copy_from_slice(b"gs");
    header.set_size(0);
    let gnu = header.as_gnu_mut().unwrap();
    gnu.set_real_size(1 << 40);
    gnu.sparse[0].set_offset(1 << 40);
    gnu.sparse[0].set_length(0);
    header.set_cksum();
    let archive = gzip(&[header.as_bytes().as_slice(), &[0; 1024]].concat());
    assert!(outcome(&archive, &Limits::default()).is_err());
}

#[test]
fn archives_that_are_cut_off_are_refused() {
    let noise: Vec<u8> = (0..100_000_u32)
        .flat_map(|n| Digest::from_content(&n.to_le_bytes()).hex().into_bytes())
        .collect();
    let archive = Crafted::default()
        .file("a", &noise[..200_000])
        .file("b", b"end")
        .gzip();
    assert_eq!(outcome(&archive, &Limits::default()).unwrap().len(), 2);
    for cut in [0, 5, 30, archive.len() / 2, archive.len() - 600] {
        assert!(
            outcome(&archive[..cut], &Limits::default()).is_err(),
            "cut at {cut}"
        );
    }
}

#[test]
fn a_file_that_ends_early_is_no_shorter_file() {
    // The tar itself is cut within a file, while the gzip stream is whole.
    let mut bytes = Crafted::default().file("a", &[b'x'; 1000]).bytes;
    bytes.truncate(512 + 300);
    let error = outcome(&gzip(&bytes), &Limits::default()).unwrap_err();
    assert!(error.contains("\"a\"") && error.contains("cut off"), "{error}");
}

#[test]
fn bombs_end_early() {
    let zeros = vec![0; 17 << 20];
    let archive = Crafted::default().file("zeros", &zeros).file("next", b"").gzip();
    let error = outcome(&archive, &Limits::default()).unwrap_err();
    assert!(
        error.contains("\"zeros\": more than 250 unpacked bytes per packed byte"),
        "{error}"
    );

    // Names that would be read into memory whole.
    for kind in [EntryType::GNULongName, EntryType::XHeader] {
        let archive = Crafted::default()
            .entry(kind, "long", 0o644, &zeros)
            .file("a", b"")
            .gzip();
        let error = outcome(&archive, &Limits::default()).unwrap_err();
        assert!(error.contains("headers of an entry are too long"), "{error}");
    }
}

#[test]
fn an_error_of_the_sink_ends_the_reading_and_names_the_entry() {
    let archive = Crafted::default().file("a", b"1").file("b", b"2").gzip();
    let mut seen = 0;
    let error = read(archive.as_slice(), &Limits::default(), |_| {
        seen += 1;
        Err("no room".into())
    });
    assert_eq!(
        (error_chain::chain(&error.unwrap_err()).as_str(), seen),
        ("failed to take archive entry \"a\": no room", 1)
    );
}

#[test]
fn what_the_sink_leaves_unread_is_skipped() {
    let archive = Crafted::default()
        .file("a", &vec![b'x'; 500_000])
        .file("b", b"2")
        .gzip();
    let mut names = Vec::new();
    let summary = read(archive.as_slice(), &Limits::default(), |entry| {
        names.push(entry.path.to_owned());
        Ok(())
    });
    assert_eq!(names, ["a", "b"]);
    assert_eq!(
        summary.unwrap(),
        Summary {
            files: 2,
            bytes: 500_001,
            skipped: 0
        }
    );
}

/// A tree with its blobs in memory.
#[derive(Default)]
struct Memory {
    builder: Builder,
    blobs: HashMap<Digest, Vec<u8>>,
    tree: Option<Tree>,
}

impl Memory {
    fn from_files(files: &[(&str, bool, &[u8])]) -> Self {
        let mut memory = Self::default();
        for (path, executable, content) in files {
            let digest = Digest::from_content(content);
            memory
                .builder
                .file(path, *executable, digest, content.len() as u64)
                .unwrap();
            memory.blobs.insert(digest, content.to_vec());
        }
        memory
    }

    fn write(&mut self) -> (Vec<u8>, Written) {
        let tree = self.builder.finish().0;
        let root = tree.root();
        self.tree = Some(tree);
        let mut bytes = Vec::new();
        let written = write(&mut bytes, &root, self).unwrap();
        (bytes, written)
    }
}

impl Content for Memory {
    type Error = Infallible;
    type Blob = Cursor<Vec<u8>>;

    fn directory(&self, digest: &Digest) -> Result<Cow<'_, Directory>, Infallible> {
        Ok(Cow::Borrowed(
            self.tree.as_ref().unwrap().directory(digest).unwrap(),
        ))
    }

    fn blob(&self, digest: &Digest) -> Result<Self::Blob, Infallible> {
        Ok(Cursor::new(self.blobs[digest].clone()))
    }
}

fn known_tree() -> Memory {
    let long = "folder/".repeat(20) + "file.yaml";
    let big: Vec<u8> = (0..40_000_u32)
        .flat_map(|n| Digest::from_content(&n.to_le_bytes()).hex().into_bytes())
        .collect();
    let mut memory = Memory::from_files(&[
        ("kustomization.yaml", false, b"resources: [app.yaml]\n"),
        ("app.yaml", false, b"kind: ConfigMap\n"),
        ("run.sh", true, b"#!/bin/sh\n"),
        ("apps/one/deployment.yaml", false, b"kind: Deployment\n"),
        ("apps/two/empty", false, b""),
        ("gr\u{fc}n/\u{e4}.yaml", false, b"a: 1\n"),
        (&long, false, b"deep: true\n"),
        ("big", false, &big),
    ]);
    memory.builder.folder("nothing/here").unwrap();
    memory
}

/// If this fails after an update of the compressor: see the module documentation of `write`.
#[test]
fn the_archive_of_a_tree_is_the_same_for_ever() {
    let (bytes, written) = known_tree().write();
    assert_eq!(written.digest, Digest::from_content(&bytes));
    assert_eq!(written.size, bytes.len() as u64);
    assert_eq!(
        written.digest.to_string(),
        "sha256:3c7e4d64bf55dd375faaef68dffe2deb4ecd0518e59e75dbb7e653f5a19cea5e"
    );
}

#[test]
fn a_written_archive_has_the_modes_of_flux_and_nothing_of_the_machine() {
    let (bytes, _) = known_tree().write();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
    let mut lines = Vec::new();
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        let header = entry.header();
        assert_eq!(
            (
                header.uid().unwrap(),
                header.gid().unwrap(),
                header.mtime().unwrap()
            ),
            (0, 0, 0)
        );
        assert_eq!(
            (header.username().unwrap(), header.groupname().unwrap()),
            (Some(""), Some(""))
        );
        let path = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
        lines.push(format!(
            "{:?} {:o} {path}",
            header.entry_type(),
            header.mode().unwrap()
        ));
    }
    assert_eq!(
        lines[..4],
        [
            "Directory 750 .",
            "Regular 600 app.yaml",
            "Directory 750 apps",
            "Directory 750 apps/one"
        ]
    );
    assert!(lines.contains(&"Regular 700 run.sh".to_owned()));
    assert!(lines.contains(&"Regular 600 gr\u{fc}n/\u{e4}.yaml".to_owned()));
    assert!(lines.contains(&format!("Regular 600 {}file.yaml", "folder/".repeat(20))));
    assert!(lines.contains(&"Directory 750 nothing/here".to_owned()));
}

#[test]
fn reading_what_was_written_gives_the_same_tree() {
    let mut memory = known_tree();
    let (bytes, _) = memory.write();
    let mut builder = Builder::new();
    read(bytes.as_slice(), &Limits::default(), |entry| {
        match entry.content {
            EntryContent::Directory => builder.folder(entry.path)?,
            EntryContent::File {
                executable,
                size,
                reader,
            } => {
                let mut content = Vec::new();
                reader.read_to_end(&mut content)?;
                builder.file(entry.path, executable, Digest::from_content(&content), size)?;
            }
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(builder.finish().0.root(), memory.tree.unwrap().root());
}

#[test]
fn a_blob_of_another_size_is_refused() {
    for content in [b"too long".as_slice(), b"x".as_slice()] {
        let mut memory = Memory::from_files(&[("a", false, b"1234")]);
        memory
            .blobs
            .insert(Digest::from_content(b"1234"), content.to_vec());
        let tree = memory.builder.finish().0;
        let root = tree.root();
        memory.tree = Some(tree);
        let error = write(Vec::new(), &root, &memory).unwrap_err();
        assert!(matches!(error, WriteError::Size { expected: 4, .. }), "{error}");
    }
}

/// Checks that no path leads out and that no limit is exceeded.
fn check_bounds(archive: &[u8]) -> Result<(), proptest::test_runner::TestCaseError> {
    let limits = Limits {
        max_entries: 8,
        max_total_bytes: 4096,
        max_file_bytes: 2048,
        ..Limits::default()
    };
    let (mut entries, mut total) = (0, 0);
    let mut paths = Vec::new();
    let _ = read(archive, &limits, |entry| {
        entries += 1;
        paths.push(entry.path.to_owned());
        if let EntryContent::File { reader, .. } = entry.content {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes)?;
            total += bytes.len();
        }
        Ok(())
    });
    proptest::prop_assert!(entries <= 8 && total <= 4096, "{} {}", entries, total);
    for path in paths {
        let names = path.split('/').all(|name| !matches!(name, "" | "." | ".."));
        proptest::prop_assert!(names && !path.contains(['\\', '\0']), "{:?}", path);
    }
    Ok(())
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..4000)) {
        check_bounds(&bytes)?;
        check_bounds(&gzip(&bytes))?;
    }

    /// Real archives of any entries, with some bytes changed.
    #[test]
    fn no_archive_leads_out_or_is_larger_than_allowed(
        entries in proptest::collection::vec(("[a./\\\\\u{0}-\u{20}]{0,20}", proptest::prelude::Just(b"0125346ZxgLKSD7"), 0..3000_usize), 0..12),
        changes in proptest::collection::vec((proptest::prelude::any::<proptest::sample::Index>(), 0_u8..=255), 0..6),
    ) {
        let archive = entries.iter().fold(Crafted::default(), |archive, (name, kinds, size)| {
            let kind = EntryType::new(kinds[size % kinds.len()]);
            archive.entry(kind, name, 0o755, &vec![b'x'; *size])
        });
        check_bounds(&archive.gzip())?;
        let mut bytes = Vec::new();
        let archive = entries.iter().fold(Crafted::default(), |archive, (name, ..)| archive.file(name, b"x")).gzip();
        flate2::read::MultiGzDecoder::new(archive.as_slice()).read_to_end(&mut bytes).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        check_bounds(&gzip(&bytes))?;
    }
}
