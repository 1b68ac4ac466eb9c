//! The program of image-controller.

use std::process::ExitCode;

fn main() -> ExitCode {
    controller_kit::main(image_controller::program)
}
