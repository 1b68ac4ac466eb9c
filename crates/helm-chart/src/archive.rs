//! The files of a chart archive, a gzipped tar (pkg/chart/loader/archive): what may stand in it and how large it may be.
//!
//! The stream is unpacked while it is read; nothing but the files themselves is kept. Links and devices have no contents,
//! so they become empty files, as in Helm: no path outside of the archive is ever opened.

mod problem;
mod tar;

use std::fs::File as OsFile;
use std::io::{self, Read, Seek};

use flate2::read::MultiGzDecoder;
use go_text::quote::quoted;

use self::tar::{Entry, TarReader};
use super::error::{Error, ErrorKind, go_io};
use super::paths::clean;
use super::sniff::{SNIFFED, content_type, is_gzip};
use crate::chart::{File, Helm};
use crate::text::without_mark;
use problem::Problem;

/// How many bytes the files of one chart may have, without those of packed dependencies: Helm's 100 MiB.
pub const MAX_CHART_SIZE: u64 = 100 * 1024 * 1024;

/// How many bytes one file may have for Helm 3: 5 MiB. Helm 4 only bounds the whole.
pub const MAX_FILE_SIZE: u64 = 5 * 1024 * 1024;

/// How many bytes the tar may have around its files. Helm counts files only, so headers alone could fill the memory.
const MAX_HEADERS_SIZE: u64 = 64 * 1024 * 1024;

/// How many bytes a chart and all archives within it may have together. Helm counts each archive for itself, so 100 MiB of
/// packed dependencies may unpack to a thousand times as much.
const MAX_TOTAL_SIZE: u64 = 4 * MAX_CHART_SIZE;

/// Remaining budget for unpacking all archives of one chart.
#[derive(Debug)]
pub(super) struct Budget {
    remaining: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            remaining: MAX_TOTAL_SIZE,
        }
    }
}

/// Reads an archive that stands in a file.
pub(super) fn read_file(path: &str, helm: Helm, budget: &mut Budget) -> Result<Vec<File>, Error> {
    let mut file = OsFile::open(path).map_err(|error| go_io("open", path, &error))?;
    ensure_archive(path, &mut file)?;
    unpack(io::BufReader::new(file), helm, budget).map_err(|problem| match (problem, helm) {
        (problem @ Problem::NoGzip, _) => Error::new(
            ErrorKind::Archive,
            format!("file '{path}' does not appear to be a valid chart file (details: {problem})"),
        ),
        (_, Helm::V4) => Error::new(ErrorKind::Archive, "unable to load chart archive"),
        (problem, Helm::V3) => problem.into(),
    })
}

/// Reads an archive from a stream.
pub(super) fn read_stream(stream: impl Read, helm: Helm, budget: &mut Budget) -> Result<Vec<File>, Error> {
    unpack(stream, helm, budget).map_err(|problem| match (problem, helm) {
        (problem @ Problem::NoGzip, Helm::V4) => Error::new(
            ErrorKind::Archive,
            format!("stream does not appear to be a valid chart file (details: {problem})"),
        ),
        (problem, Helm::V4) => Error::from(problem).within("unable to load chart archive"),
        (problem, Helm::V3) => problem.into(),
    })
}

/// The files in which a chart says what it is, as far as they are there.
#[derive(Default)]
pub(super) struct MetadataFiles {
    pub(super) chart_yaml: Option<Vec<u8>>,
    pub(super) requirements: Option<Vec<u8>>,
}

/// Reads Chart.yaml and requirements.yaml of an archive and passes over everything else, whose paths are checked all the
/// same. Nothing but these two takes memory.
pub(super) fn read_metadata_files(
    stream: impl Read,
    helm: Helm,
    largest: u64,
) -> Result<MetadataFiles, Error> {
    let mut found = MetadataFiles::default();
    with_tar(stream, &mut Budget::default(), |tar| {
        while let Some(entry) = tar.next_entry()? {
            if entry.is_folder() || entry.is_extension() {
                continue;
            }
            let wanted = match chart_path(&entry.name)?.as_str() {
                "Chart.yaml" => &mut found.chart_yaml,
                "requirements.yaml" => &mut found.requirements,
                _ => continue,
            };
            check_size(&entry, MAX_FILE_SIZE, helm)?;
            if entry.size > largest {
                let name = &entry.name;
                return Err(Problem::TooLarge(format!(
                    "size of '{name}' exceeds '{largest}' bytes limit"
                )));
            }
            *wanted = Some(without_mark(tar.read_contents(entry.size)?));
        }
        Ok(())
    })?;
    Ok(found)
}

/// Reads an archive that stands in charts/.
pub(super) fn read_dependency(data: &[u8], helm: Helm, budget: &mut Budget) -> Result<Vec<File>, Error> {
    Ok(unpack(data, helm, budget)?)
}

/// Looks at the first bytes to refuse what is no archive with a hint of what it is.
fn ensure_archive(path: &str, file: &mut OsFile) -> Result<(), Error> {
    // Go hands all 512 bytes over, so a short text ends in zeros and counts as binary data.
    let mut head = [0; SNIFFED];
    let cannot_read =
        |error: io::Error| go_io("read", path, &error).within(format!("file '{path}' cannot be read"));
    file.read(&mut head).map_err(cannot_read)?;
    file.rewind().map_err(cannot_read)?;
    if is_gzip(&head) {
        return Ok(());
    }
    let text = if path.ends_with(".yml") || path.ends_with(".yaml") {
        format!("file '{path}' seems to be a YAML file, but expected a gzipped archive")
    } else {
        let found = content_type(&head);
        format!("file '{path}' does not appear to be a gzipped archive; got '{found}'")
    };
    Err(Error::new(ErrorKind::Archive, text))
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        let kind = match problem {
            Problem::TooLarge(_) => ErrorKind::Limit,
            _ => ErrorKind::Archive,
        };
        Self::new(kind, problem.to_string())
    }
}

fn unpack(stream: impl Read, helm: Helm, budget: &mut Budget) -> Result<Vec<File>, Problem> {
    with_tar(stream, budget, |tar| unpack_tar(tar, helm))
}

/// Unzips a stream, as much of it as the budget allows, and hands the tar over.
fn with_tar<S: Read, T>(
    mut stream: S,
    budget: &mut Budget,
    read: impl FnOnce(&mut TarReader<Unzipped<'_, S>>) -> Result<T, Problem>,
) -> Result<T, Problem> {
    let mut head = [0; 10];
    let length = read_up_to(&mut stream, &mut head).map_err(|error| Problem::of_stream(&error))?;
    match length {
        0 => return Err(Problem::Damaged("EOF".to_owned())),
        10 if !is_gzip(&head) => return Err(Problem::NoGzip),
        10 => {}
        _ => return Err(Problem::Damaged("unexpected EOF".to_owned())),
    }
    let unzipped = MultiGzDecoder::new((&head[..]).chain(stream));
    let limit = budget.remaining.min(MAX_CHART_SIZE + MAX_HEADERS_SIZE);
    let mut tar = TarReader::new(unzipped, limit);
    let result = read(&mut tar);
    budget.remaining = budget.remaining.saturating_sub(tar.read_bytes());
    result
}

/// The tar within a gzip, whose first bytes were read already.
type Unzipped<'a, S> = MultiGzDecoder<io::Chain<&'a [u8], S>>;

fn unpack_tar(tar: &mut TarReader<impl Read>, helm: Helm) -> Result<Vec<File>, Problem> {
    let mut remaining = MAX_CHART_SIZE;
    let mut files = Vec::new();
    while let Some(entry) = tar.next_entry()? {
        if entry.is_folder() || entry.is_extension() {
            continue;
        }
        let name = chart_path(&entry.name)?;
        check_size(&entry, remaining, helm)?;
        let data = tar.read_contents(entry.size)?;
        remaining -= data.len() as u64;
        if (data.len() as u64) < entry.size || remaining == 0 {
            return Err(too_large(helm));
        }
        files.push(File {
            name,
            data: without_mark(data).into(),
        });
    }
    if files.is_empty() {
        return Err(Problem::Damaged("no files in chart archive".to_owned()));
    }
    Ok(files)
}

/// Takes the first folder off a path in an archive, and refuses what would leave the chart.
fn chart_path(path: &str) -> Result<String, Problem> {
    let delimiter = if path.contains('\\') { '\\' } else { '/' };
    let (folder, name) = path.split_once(delimiter).unwrap_or((path, ""));
    let name = name.replace(delimiter, "/");
    if name.starts_with('/') {
        return Err(Problem::path("chart illegally contains absolute paths"));
    }
    let name = clean(&name);
    if name == "." {
        return Err(Problem::path(format!(
            "chart illegally contains content outside the base directory: {}",
            quoted(path)
        )));
    }
    if name.starts_with("..") {
        return Err(Problem::path("chart illegally references parent directory"));
    }
    if let [drive, b':', b'/', ..] = name.as_bytes()
        && drive.is_ascii_alphabetic()
    {
        return Err(Problem::path("chart contains illegally named files"));
    }
    if folder == "Chart.yaml" {
        return Err(Problem::path("chart yaml not in base directory"));
    }
    Ok(name)
}

fn check_size(entry: &Entry, remaining: u64, helm: Helm) -> Result<(), Problem> {
    if entry.size > remaining {
        return Err(too_large(helm));
    }
    if helm == Helm::V3 && entry.size > MAX_FILE_SIZE {
        return Err(Problem::TooLarge(format!(
            "decompressed chart file {} is larger than the maximum file size {MAX_FILE_SIZE}",
            quoted(&entry.name)
        )));
    }
    Ok(())
}

fn too_large(helm: Helm) -> Problem {
    Problem::TooLarge(match helm {
        Helm::V3 => format!("decompressed chart is larger than the maximum file size {MAX_CHART_SIZE}"),
        Helm::V4 => format!("decompressed chart is larger than the maximum size {MAX_CHART_SIZE}"),
    })
}

/// Fills a buffer as far as the stream goes.
fn read_up_to(stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match stream.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_would_leave_the_chart_are_refused() {
        for (path, expected) in [
            ("x/templates/a.yaml", Ok("templates/a.yaml")),
            ("x/./templates//a.yaml", Ok("templates/a.yaml")),
            ("x\\templates\\a.yaml", Ok("templates/a.yaml")),
            ("x/a/../b", Ok("b")),
            ("x//a", Err("chart illegally contains absolute paths")),
            (
                "Chart.yaml",
                Err("chart illegally contains content outside the base directory: \"Chart.yaml\""),
            ),
            ("x/..", Err("chart illegally references parent directory")),
            (
                "x/../../etc/passwd",
                Err("chart illegally references parent directory"),
            ),
            ("x/..a", Err("chart illegally references parent directory")),
            ("x\\c:\\foo", Err("chart contains illegally named files")),
            ("Chart.yaml/a", Err("chart yaml not in base directory")),
        ] {
            let found = chart_path(path).map_err(|problem| problem.to_string());
            assert_eq!(
                found.as_deref(),
                expected.map_err(str::to_owned).as_deref(),
                "{path:?}"
            );
        }
    }
}
