//! A page of Markdown: what it tells to type and to apply, in its order.

use std::borrow::Cow;
use std::fs;

use anyhow::{Result, ensure};
use testkit::tools::repository_root;

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Type this. What is continued over lines is one line here, and comments are left out.
    Command(String),
    /// Apply these manifests.
    Manifests(String),
}

/// Treatment of a command that does not simply run to its end.
#[derive(Debug, Clone)]
pub enum Treatment {
    /// It serves until the test ends; this address, in which placeholders are filled, answers when it is ready.
    Serves(Cow<'static, str>),
    /// It goes on for ever, and is ended once it has printed this.
    Prints(&'static str),
    /// It ends with this code, and has said this.
    Ends(i32, &'static str),
    /// It is not run, for this reason.
    Skipped(&'static str),
}

/// A step of a page, as it is taken.
#[derive(Debug, Clone)]
pub struct Step {
    /// With values in the place of placeholders.
    pub piece: Piece,
    /// None: it runs to its end.
    pub treatment: Option<Treatment>,
}

/// Reads a page. Commands in the middle of prose are those that begin with one of the programs `in_prose`.
pub fn read(
    path: &str,
    in_prose: &[&str],
    placeholders: &[(&str, &str)],
    treatments: &[(&str, Treatment)],
) -> Result<Vec<Step>> {
    let text = fs::read_to_string(repository_root().join(path))?;
    let pieces = pieces(&text, in_prose);
    for (command, _) in treatments {
        let is_it = |piece: &Piece| matches!(piece, Piece::Command(text) if text == command);
        ensure!(
            pieces.iter().any(is_it),
            "{path} has no command `{command}` any more"
        );
    }
    for (placeholder, _) in placeholders {
        let is_in_address = |(_, treatment): &(&str, Treatment)| matches!(treatment, Treatment::Serves(address) if address.contains(placeholder));
        ensure!(
            text.contains(placeholder) || treatments.iter().any(is_in_address),
            "{path} has no {placeholder} any more"
        );
    }
    let fill = |text: &str| {
        let fill = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
        placeholders.iter().fold(text.to_owned(), fill)
    };
    let filled = |treatment: &Treatment| match treatment {
        Treatment::Serves(address) => Treatment::Serves(fill(address).into()),
        other => other.clone(),
    };
    let step = |piece: &Piece| match piece {
        Piece::Command(text) => Step {
            piece: Piece::Command(fill(text)),
            treatment: treatments
                .iter()
                .find(|(command, _)| command == text)
                .map(|(_, treatment)| filled(treatment)),
        },
        Piece::Manifests(text) => Step {
            piece: Piece::Manifests(fill(text)),
            treatment: None,
        },
    };
    Ok(pieces.iter().map(step).collect())
}

/// Returns the pieces in order: indented blocks, fenced blocks of shells and of YAML, and commands in prose.
fn pieces(text: &str, in_prose: &[&str]) -> Vec<Piece> {
    let (mut pieces, mut lines) = (Vec::new(), text.lines().peekable());
    let mut after_blank = true;
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let block: Vec<&str> = lines
                .by_ref()
                .take_while(|line| !line.starts_with("```"))
                .collect();
            match language.trim() {
                "yaml" => pieces.push(Piece::Manifests(block.join("\n") + "\n")),
                "sh" | "bash" | "shell" | "console" => pieces.extend(commands(&block)),
                _ => {}
            }
        } else if after_blank && line.starts_with("    ") {
            let mut block = vec![line];
            while let Some(line) = lines.next_if(|line| line.starts_with("    ")) {
                block.push(line);
            }
            pieces.extend(commands(&block));
        } else {
            let spans = line.split('`').skip(1).step_by(2);
            let is_command = |span: &&str| {
                let program = span.split(' ').next().unwrap_or_default();
                program.len() < span.len() && in_prose.contains(&program)
            };
            pieces.extend(
                spans
                    .filter(is_command)
                    .map(|span| Piece::Command(span.to_owned())),
            );
        }
        after_blank = line.trim().is_empty();
    }
    pieces
}

/// The commands of a block.
fn commands(lines: &[&str]) -> Vec<Piece> {
    let (mut commands, mut command) = (Vec::new(), String::new());
    for line in lines {
        // A comment begins after a space: "$#" and "a#b" are none.
        let line = line.split(" #").next().unwrap_or_default().trim();
        let (line, goes_on) = match line.strip_suffix('\\') {
            Some(line) => (line.trim_end(), true),
            None => (line, false),
        };
        if !command.is_empty() {
            command.push(' ');
        }
        command.push_str(line);
        if !goes_on && !command.trim().is_empty() {
            commands.push(Piece::Command(std::mem::take(&mut command).trim().to_owned()));
        }
    }
    commands
}

#[test]
fn commands_and_manifests_are_found_in_their_order() {
    let text = "# Title\n\nProse with `kubectl get pods`, `kubectl` and `other thing`.\n\n    make demo   # runs\n    \
                a --b \\\n        --c\n\n```yaml\na: 1\n```\n- list\n    continued `helm list`\n\n```sh\nlast --one\n```\n";
    let command = |text: &str| Piece::Command(text.to_owned());
    assert_eq!(
        pieces(text, &["kubectl", "helm"]),
        [
            command("kubectl get pods"),
            command("make demo"),
            command("a --b --c"),
            Piece::Manifests("a: 1\n".to_owned()),
            command("helm list"),
            command("last --one"),
        ]
    );
}
