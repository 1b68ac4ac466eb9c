//! The program of apply-controller.

use std::process::ExitCode;

fn main() -> ExitCode {
    controller_kit::main(apply_controller::program)
}
