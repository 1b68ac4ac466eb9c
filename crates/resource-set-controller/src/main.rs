//! The program of resource-set-controller.

use std::process::ExitCode;

fn main() -> ExitCode {
    controller_kit::main(resource_set_controller::program)
}
