//! The text form of a file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Problem;

const HEADER: &str = "-----BEGIN AGE ENCRYPTED FILE-----";
const FOOTER: &str = "-----END AGE ENCRYPTED FILE-----";
const COLUMNS: usize = 64;
/// How much white space may be around it.
const MAX_SPACE: usize = 1024;

/// Writes full lines, and a last one that may be shorter.
pub(super) fn encode(binary: &[u8]) -> String {
    let mut text = format!("{HEADER}\n");
    for line in binary.chunks(COLUMNS / 4 * 3) {
        text.push_str(&STANDARD.encode(line));
        text.push('\n');
    }
    text.push_str(FOOTER);
    text.push('\n');
    text
}

/// Decodes strictly: full lines but the last, and nothing but white space around.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, Problem> {
    let begin = text.find(HEADER).ok_or("invalid armor: invalid first line")?;
    let (space, text) = text.split_at(begin);
    if !space.trim_ascii().is_empty() || space.len() > MAX_SPACE {
        return Err("invalid armor: invalid first line");
    }
    if !(space.is_empty() || space.ends_with('\n')) {
        return Err("invalid armor: invalid first line");
    }
    let mut lines = text
        .split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line));
    if lines.next() != Some(HEADER) {
        return Err("invalid armor: invalid first line");
    }
    let mut binary = Vec::new();
    let mut is_short = false;
    loop {
        let line = lines.next().ok_or("invalid armor: unexpected EOF")?;
        if line == FOOTER {
            break;
        }
        if is_short {
            return Err("invalid armor: invalid closing line");
        }
        if line.is_empty() || line.len() > COLUMNS {
            return Err("invalid armor: a line is empty or too long");
        }
        let bytes = STANDARD
            .decode(line)
            .map_err(|_| "invalid armor: illegal base64 data")?;
        is_short = bytes.len() < COLUMNS / 4 * 3;
        binary.extend(bytes);
    }
    let rest: usize = lines.clone().map(|line| line.len() + 1).sum();
    if lines.any(|line| !line.trim_ascii().is_empty()) || rest > MAX_SPACE {
        return Err("invalid armor: trailing data after armored file");
    }
    Ok(binary)
}
