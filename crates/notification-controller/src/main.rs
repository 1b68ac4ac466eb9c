//! The program of notification-controller.

use std::process::ExitCode;

fn main() -> ExitCode {
    controller_kit::main(notification_controller::program)
}
