//! All controllers in one program: one of them, or several in one process.
//!
//! Containers of one image share its pages in memory, whichever controller each of them runs. It is one of them if the program is called
//! so, or if its first argument is. With `all`, several run in one process: less memory, and no isolation from each other.

mod command_line;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;
use controller_kit::Parse;

use crate::command_line::{All, groups};

/// The controllers, by Flux's names where it has one; the first four are those of a new installation.
const CONTROLLERS: [(&str, Parse); 7] = [
    ("source-controller", source_controller::program),
    ("kustomize-controller", apply_controller::program),
    ("helm-controller", helm_controller::program),
    ("notification-controller", notification_controller::program),
    ("image-controller", image_controller::program),
    ("pipeline-controller", pipeline_controller::program),
    ("resource-set-controller", resource_set_controller::program),
];
/// How many run without being named.
const BASE: usize = 4;
/// The name of the program of kustomize-controller.
const ALIAS: (&str, &str) = ("apply-controller", "kustomize-controller");
/// Several in one process.
const ALL: &str = "all";

fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let word = |at: usize| arguments.get(at).map(Path::new).and_then(Path::file_name);
    let parse = |at| find(&word(at)?.to_string_lossy());
    if let Some(parse) = parse(0) {
        return controller_kit::run(parse, arguments);
    }
    match parse(1) {
        Some(parse) => controller_kit::run(parse, arguments.split_off(1)),
        None if arguments.get(1).is_some_and(|word| word == ALL) => run_all(arguments.split_off(1)),
        None => {
            let names: Vec<_> = CONTROLLERS.iter().map(|(name, _)| *name).collect();
            refuse(&format!(
                "name a controller, or all\n\nUsage: windlass-controllers CONTROLLER [FLAGS]\n       windlass-controllers all [FLAGS] [-- CONTROLLER \
                 [FLAGS]]...\n\nControllers: {}\n",
                names.join(", ")
            ))
        }
    }
}

fn refuse(problem: &str) -> ! {
    clap::Error::raw(ErrorKind::InvalidValue, problem).exit()
}

fn find(name: &str) -> Option<Parse> {
    let name = if name == ALIAS.0 { ALIAS.1 } else { name };
    let found = CONTROLLERS.iter().find(|(known, _)| *known == name);
    found.map(|(_, parse)| *parse)
}

fn run_all(arguments: Vec<OsString>) -> ExitCode {
    let base: Vec<&str> = CONTROLLERS.iter().take(BASE).map(|(name, _)| *name).collect();
    let (own, groups) = groups(arguments, &base);
    let all = All::parse_from(&own);
    let mut programs = Vec::new();
    for group in groups {
        let name = group.first().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        let Some(parse) = find(&name) else {
            refuse(&format!("'{name}' after -- is not a controller\n"));
        };
        match parse(group) {
            Ok(program) => programs.push(program),
            Err(error) => error.exit(),
        }
    }
    controller_kit::run_together(programs, &all.common.log, &all.common.endpoints)
}
