//! The program of helm-controller.

use std::process::ExitCode;

fn main() -> ExitCode {
    controller_kit::main(helm_controller::program)
}
