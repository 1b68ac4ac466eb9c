//! The last words of `git-receive-pack`: what became of the pack and of each reference (gitprotocol-pack(5)).

use std::collections::BTreeMap;
use std::io::{self, Read};

use super::packet_line;

/// More of what a server prints is not kept, in bytes.
const MAX_SAID: usize = 4096;
/// A report has two lines for each reference.
const MAX_REPORT: usize = 1 << 20;

/// What became of a push.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    /// Why the pack was not taken.
    pub(super) unpack: Option<String>,
    /// By reference: taken, or why not.
    pub(super) refs: BTreeMap<String, Result<(), String>>,
    /// What the server, or a hook of it, printed for people.
    pub(super) said: String,
}

impl Report {
    /// Reads the answer to its end; `bands` if it is mixed with what the server prints.
    pub(super) fn read(reader: &mut dyn Read, bands: bool) -> io::Result<Self> {
        let mut report = Self::default();
        if !bands {
            report.read_lines(reader)?;
            return Ok(report);
        }
        let mut lines = Vec::new();
        while let Some(packet) = packet_line::read(reader)? {
            match packet.split_first() {
                Some((1, data)) => {
                    if lines.len() + data.len() > MAX_REPORT {
                        return Err(io::Error::other("the report of the push is too long"));
                    }
                    lines.extend_from_slice(data);
                }
                Some((2, data)) => report.keep_text(data),
                Some((3, data)) => {
                    report.keep_text(data);
                    return Err(io::Error::other(format!("the server gave up: {}", report.said)));
                }
                _ => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "the answer makes no sense",
                    ));
                }
            }
        }
        report.read_lines(&mut lines.as_slice())?;
        Ok(report)
    }

    fn read_lines(&mut self, reader: &mut dyn Read) -> io::Result<()> {
        let mut has_unpack = false;
        while let Some(line) = packet_line::read(reader)? {
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches('\n');
            match line.split_once(' ') {
                Some(("unpack", "ok")) => has_unpack = true,
                Some(("unpack", problem)) => {
                    has_unpack = true;
                    self.unpack = Some(shown(problem));
                }
                Some(("ok", name)) => {
                    self.refs.insert(name.to_owned(), Ok(()));
                }
                Some(("ng", rest)) => {
                    let (name, reason) = rest.split_once(' ').unwrap_or((rest, "no reason is given"));
                    self.refs.insert(name.to_owned(), Err(shown(reason)));
                }
                // `option` lines of report-status-v2 say how a hook renamed a reference.
                _ => {}
            }
        }
        if has_unpack {
            Ok(())
        } else {
            Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the server does not report on the push",
            ))
        }
    }

    fn keep_text(&mut self, data: &[u8]) {
        let text = String::from_utf8_lossy(data);
        let printable = text
            .chars()
            .map(|c| if c == '\r' { '\n' } else { c })
            .filter(|c| *c == '\n' || !c.is_control());
        for character in printable {
            if self.said.len() + character.len_utf8() > MAX_SAID {
                break;
            }
            self.said.push(character);
        }
    }
}

/// A reason in one line of limited length.
fn shown(reason: &str) -> String {
    const MAX_REASON: usize = 300;
    let printable = reason.chars().map(|c| if c.is_control() { ' ' } else { c });
    printable.take(MAX_REASON).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for line in lines {
            packet_line::push(&mut bytes, line.as_bytes());
        }
        bytes.extend_from_slice(packet_line::FLUSH);
        bytes
    }

    #[test]
    fn a_report_is_read_with_and_without_bands() {
        let plain = lines(&[
            "unpack ok\n",
            "ok refs/heads/a\n",
            "option refname refs/heads/x\n",
            "ng refs/heads/b hook declined\n",
        ]);
        let read = Report::read(&mut plain.as_slice(), false).unwrap();
        assert_eq!(read.unpack, None);
        assert_eq!(read.refs["refs/heads/a"], Ok(()));
        assert_eq!(read.refs["refs/heads/b"], Err("hook declined".to_owned()));

        // A line may be split between packets.
        let (start, end) = plain.split_at(7);
        let mut banded = Vec::new();
        packet_line::push(&mut banded, &[&[1], start].concat());
        packet_line::push(&mut banded, b"\x02\x1b[1mto open a merge request\rvisit it\n");
        packet_line::push(&mut banded, &[&[1], end].concat());
        banded.extend_from_slice(packet_line::FLUSH);
        let banded = Report::read(&mut banded.as_slice(), true).unwrap();
        assert_eq!(banded.refs, read.refs);
        assert_eq!(banded.said, "[1mto open a merge request\nvisit it\n");
    }

    #[test]
    fn an_answer_that_reports_nothing_is_an_error() {
        assert!(Report::read(&mut &b""[..], false).is_err());
        assert!(Report::read(&mut lines(&[]).as_slice(), false).is_err());
        let error = Report::read(&mut lines(&["\x03out of disk"]).as_slice(), true).unwrap_err();
        assert_eq!(error.to_string(), "the server gave up: out of disk");
        let read = Report::read(
            &mut lines(&["unpack index-pack abnormal exit\n"]).as_slice(),
            false,
        )
        .unwrap();
        assert_eq!(read.unpack.as_deref(), Some("index-pack abnormal exit"));
    }

    #[test]
    fn what_a_server_prints_is_bounded() {
        let mut banded = Vec::new();
        for _ in 0..10 {
            packet_line::push(&mut banded, &[&[2], vec![b'x'; 1000].as_slice()].concat());
        }
        packet_line::push(&mut banded, b"\x01000eunpack ok\n0000");
        banded.extend_from_slice(packet_line::FLUSH);
        assert_eq!(
            Report::read(&mut banded.as_slice(), true).unwrap().said.len(),
            MAX_SAID
        );
    }
}
