//! The program of source-controller.

use std::process::ExitCode;

fn main() -> ExitCode {
    controller_kit::main(source_controller::program)
}
