//! From an index as it is served to one as it is stored.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};

use crate::error::Error;
use crate::index::Index;
use crate::outcome::Attempt;
use crate::{json_input, yaml_input};

pub use crate::outcome::Summary;

/// Reads an index, YAML or JSON, and writes it as JSON with sorted entries. The spool is empty scratch space, in which up
/// to about the size of the index is kept for a moment.
///
/// # Errors
/// When it is no index that Helm reads, is larger in a piece than what is held in memory, or cannot be read or written.
pub fn normalize<I, S, O>(input: &mut I, spool: S, out: O) -> Result<Summary, Error>
where
    I: Read + Seek,
    S: Read + Write + Seek,
    O: Write,
{
    let mut reader = BufReader::with_capacity(64 << 10, input);
    if reader.fill_buf()?.is_empty() {
        return Err(Error::Empty);
    }
    let mut spool = spool;
    if json_input::looks_like_json(&mut reader)? {
        let mut index = Index::new(spool, false);
        reader.seek(SeekFrom::Start(0))?;
        match json_input::read(&mut reader, &mut index)? {
            Attempt::Done => return index.finish(out),
            Attempt::NotInPieces(_) => spool = emptied(index)?,
        }
    } else {
        let mut index = Index::new(spool, true);
        reader.seek(SeekFrom::Start(0))?;
        match yaml_input::read_pieces(&mut reader, &mut index)? {
            Attempt::Done => return index.finish(out),
            Attempt::NotInPieces(problem) => {
                spool = emptied(index)?;
                let mut index = Index::new(spool, true);
                yaml_input::read_whole(&mut reader, &mut index, problem)?;
                return index.finish(out);
            }
        }
    }
    let mut index = Index::new(spool, true);
    yaml_input::read_whole(&mut reader, &mut index, None)?;
    index.finish(out)
}

fn emptied<S: Read + Write + Seek>(index: Index<S>) -> Result<S, Error> {
    let mut spool = index.into_spool()?;
    // What was written is overwritten; nothing behind it is read.
    spool.seek(SeekFrom::Start(0))?;
    Ok(spool)
}

#[cfg(test)]
mod tests;
