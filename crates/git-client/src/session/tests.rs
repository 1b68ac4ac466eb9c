//! Answers that no server would give: nothing of them makes the conversation panic or go on for ever.

use std::io::Cursor;

use gix::protocol::transport::client::git::ConnectMode;
use gix::protocol::transport::client::git::blocking_io::Connection as Stream;
use proptest::prelude::*;

use super::super::reference::Fields;
use super::*;

const HASH: &str = "0123456789012345678901234567890123456789";

/// A line as it goes over the wire.
fn line(content: &str) -> Vec<u8> {
    let mut line = format!("{:04x}", content.len() + 4).into_bytes();
    line.extend(content.as_bytes());
    line
}

/// A conversation with someone who says this, whatever is asked: as far as it gets.
fn converse(answers: &[u8], reference: &Reference) -> Result<usize, Error> {
    let stream = Stream::new(
        Cursor::new(answers.to_vec()),
        std::io::sink(),
        Protocol::V2,
        "/app.git",
        None::<(String, Option<u16>)>,
        ConnectMode::Process,
        false,
    );
    let trouble = Trouble::Http {
        failure: Failure::default(),
        limit: Rc::default(),
    };
    let mut session = Session::greet(Box::new(stream), trouble)?;
    let refs = session.list_refs(reference)?;
    session.list_siblings(reference);
    let resolved = reference.resolve(&refs)?;
    let directory = tempfile::tempdir().unwrap();
    let filter = session.is_partial().then_some(NO_CONTENT);
    session.receive_commit(&resolved, filter, directory.path(), &Settings::default())?;
    Ok(refs.len())
}

fn advertisement(version: u8) -> Vec<u8> {
    let refs = [line(&format!("{HASH} refs/heads/main\n")), b"0000".to_vec()].concat();
    let capabilities =
        "multi_ack_detailed side-band-64k ofs-delta shallow filter symref=HEAD:refs/heads/main";
    match version {
        2 => [
            line("version 2\n"),
            line("ls-refs=unborn\n"),
            line("fetch=shallow wait-for-done filter\n"),
            line("object-format=sha1\n"),
            b"0000".to_vec(),
            refs.clone(),
            refs,
        ]
        .concat(),
        version => {
            let hello = if version == 1 {
                line("version 1\n")
            } else {
                Vec::new()
            };
            [hello, line(&format!("{HASH} HEAD\0{capabilities}\n")), refs].concat()
        }
    }
}

fn pack() -> Vec<u8> {
    [
        line("packfile\n"),
        line("\u{2}counting\n"),
        line("\u{1}PACK\0\0\0\u{2}\0\0\0\u{1}"),
        b"0000".to_vec(),
    ]
    .concat()
}

fn main() -> Reference {
    Reference::from_fields(Fields {
        branch: Some("main"),
        ..Fields::default()
    })
}

fn references() -> impl Strategy<Value = Reference> {
    let text = "[a-z./*^1-9 ]{0,8}";
    (0..5_usize, text).prop_map(|(field, text)| {
        let mut fields = Fields::default();
        let fields_of = [
            &mut fields.branch,
            &mut fields.tag,
            &mut fields.semver,
            &mut fields.name,
            &mut fields.commit,
        ];
        if let Some(field) = fields_of.into_iter().nth(field) {
            *field = Some(&text);
        }
        Reference::from_fields(fields)
    })
}

#[test]
fn what_a_server_would_say_is_understood_up_to_the_pack() {
    for version in 0..3 {
        let answers = [
            advertisement(version),
            line("shallow 0123456789012345678901234567890123456789\n"),
            pack(),
        ];
        let error = converse(&answers.concat(), &main()).unwrap_err();
        assert!(matches!(error, Error::Talk(_)), "{version}: {error}");
    }
    let empty = converse(&[line("version 1\n"), b"0000".to_vec()].concat(), &main()).unwrap_err();
    assert!(
        matches!(empty, Error::EmptyRepository | Error::Talk(_)),
        "{empty}"
    );
}

/// Found by the properties below after 90,000 cases: gix panics on some of these.
#[test]
fn no_single_wrong_byte_makes_it_panic() {
    for version in 0..3 {
        let answers = [advertisement(version), pack()].concat();
        for at in 0..answers.len() {
            for byte in *b"014\n" {
                let mut changed = answers.clone();
                changed[at] = byte;
                let _ = converse(&changed, &main());
            }
        }
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(answers in any::<Vec<u8>>(), reference in references()) {
        let _ = converse(&answers, &reference);
    }

    /// Made of the lines of real answers, so that the deeper parts are reached.
    #[test]
    fn no_lines_make_it_panic(
        version in 0..4_u8,
        lines in prop::collection::vec(
            prop::sample::select(vec![
                line("version 1\n"), line("version 2\n"), line("ls-refs\n"), line("fetch=filter shallow\n"),
                line(&format!("{HASH} refs/heads/main\n")), line(&format!("{HASH} refs/tags/v1.0.0 peeled:{HASH}\n")),
                line("unborn HEAD symref-target:refs/heads/main\n"), line(&format!("{HASH} refs/tags/v1.0.0^{{}}\n")),
                line("ERR no such repository\n"), line("shallow-info\n"), line(&format!("shallow {HASH}\n")),
                line("acknowledgments\n"), line("NAK\n"), line(&format!("ACK {HASH} common\n")), line("ready\n"),
                line("packfile\n"), line("\u{1}PACK\0\0\0\u{2}\0\0\0\u{1}"), line("\u{2}words"), line("\u{3}fatal: words"),
                line("\u{4}"), line(""), b"0000".to_vec(), b"0001".to_vec(), b"0002".to_vec(), b"0003".to_vec(),
                b"ffff".to_vec(), b"fff0x".to_vec(), b"zzzz".to_vec(),
            ]),
            0..12,
        ),
        reference in references(),
    ) {
        let start = if version < 3 { advertisement(version) } else { Vec::new() };
        let _ = converse(&[start, lines.concat()].concat(), &reference);
    }

    #[test]
    fn no_change_of_an_answer_makes_it_panic(
        version in 0..3_u8,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut answers = [advertisement(version), pack()].concat();
        for (at, byte) in changes {
            let at = at.index(answers.len());
            answers[at] = byte;
        }
        answers.truncate(cut.index(answers.len()));
        let _ = converse(&answers, &main());
    }
}
