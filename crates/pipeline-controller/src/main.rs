//! The program of pipeline-controller.

use std::process::ExitCode;

fn main() -> ExitCode {
    controller_kit::main(pipeline_controller::program)
}
