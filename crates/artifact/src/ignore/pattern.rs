//! One line of an ignore file, as go-git understands it.
//!
//! Two forms. Without a slash (one at the end aside) a pattern is matched against each name of the path, so it
//! excludes what it names and all below. With a slash it is matched name by name from the folder of the
//! ignore file on, and all below what it matches is excluded too; `**` as a whole name stands for any number of
//! names. In both forms a slash at the end asks for a folder: the last name of a file's path does not count.
//!
//! Differences from Git that Flux's users rely on or live with: `/**` alone matches nothing; `a/**` matches `a`
//! itself; after `**` the first name that fits is taken, without trying a later one; `**` within a name never
//! matches when the pattern has a slash.

use super::glob::Glob;

/// A parsed line.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    verdict: Verdict,
    /// Asks for a folder.
    directory_only: bool,
    form: Form,
}

/// Verdict of a matching pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Exclude,
    Include,
}

#[derive(Debug, Clone)]
enum Form {
    /// No slash: any name of the path.
    Name(Glob),
    /// With a slash: names from the start of the path.
    Path(Vec<Step>),
    /// Cannot match anything.
    Never,
}

#[derive(Debug, Clone)]
enum Step {
    Name(Glob),
    /// `**`: any number of names before the next step.
    Descend,
    /// `**` at the end: whatever is below.
    Rest,
    /// An empty name, from a doubled or leading slash. It ends a descent.
    Nothing,
    /// `**` within a name.
    Never,
}

impl Pattern {
    /// Parses a line that is neither empty nor a comment.
    pub(super) fn parse(line: &str) -> Self {
        let (verdict, line) = match line.strip_prefix('!') {
            Some(rest) => (Verdict::Include, rest),
            None => (Verdict::Exclude, line),
        };
        // A backslash keeps one space at the end, and with it all before.
        let line = if line.ends_with("\\ ") {
            line
        } else {
            line.trim_end_matches(' ')
        };
        let (directory_only, line) = match line.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let form = if line.contains('/') {
            Form::Path(steps(line))
        } else {
            Glob::parse(line).map_or(Form::Never, Form::Name)
        };
        Self {
            verdict,
            directory_only,
            form,
        }
    }

    /// Returns whether it can match nothing because of how it is written.
    pub(super) fn is_malformed(&self) -> bool {
        match &self.form {
            Form::Never => true,
            Form::Path(steps) => steps.iter().any(|step| matches!(step, Step::Never)),
            Form::Name(_) => false,
        }
    }

    /// The verdict on a path, given as the names below the pattern's folder. None if it does not match.
    pub(super) fn verdict(&self, names: &[&str], is_directory: bool) -> Option<Verdict> {
        let behind = match &self.form {
            Form::Name(glob) => names
                .iter()
                .position(|name| glob.matches(name))
                .map(|index| names.len() - index - 1),
            Form::Path(steps) => walk(steps, names),
            Form::Never => None,
        }?;
        // The match ended at the last name, which is no folder.
        let wants_folder = self.directory_only && !is_directory && behind == 0;
        (!wants_folder).then_some(self.verdict)
    }
}

fn steps(line: &str) -> Vec<Step> {
    let names: Vec<&str> = line.split('/').collect();
    let last = names.len() - 1;
    let step = |(index, name): (usize, &&str)| match *name {
        "" => Step::Nothing,
        "**" if index == last => Step::Rest,
        "**" => Step::Descend,
        name if name.contains("**") => Step::Never,
        name => Glob::parse(name).map_or(Step::Never, Step::Name),
    };
    names.iter().enumerate().map(step).collect()
}

/// How many names of the path are left behind the match; None if there is no match.
fn walk(steps: &[Step], names: &[&str]) -> Option<usize> {
    let mut left = names;
    let mut matched = false;
    let mut descend = false;
    for step in steps {
        match step {
            Step::Nothing => descend = false,
            Step::Descend => descend = true,
            Step::Rest => break,
            Step::Never => return None,
            Step::Name(glob) => {
                let skipped = if descend {
                    left.iter().position(|name| glob.matches(name))
                } else {
                    left.first().filter(|name| glob.matches(name)).map(|_| 0)
                };
                descend = false;
                left = &left[skipped? + 1..];
                matched = true;
            }
        }
    }
    matched.then_some(left.len())
}
