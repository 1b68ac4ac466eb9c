//! `windlass completion`: what a shell has to know to complete this command's words.

use std::io;

use clap::{Args, Command};
use clap_complete::{Shell, generate};

/// Command line of `completion`.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Shell to complete for
    #[arg(value_enum)]
    shell: Shell,
}

/// Writes the script.
pub(crate) fn script(flags: &Flags, mut command: Command) -> Result<String, io::Error> {
    let mut script = Vec::new();
    generate(flags.shell, &mut command, "windlass", &mut script);
    String::from_utf8(script).map_err(io::Error::other)
}
