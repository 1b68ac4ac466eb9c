//! Passwords, encryption, keys and certificates.

mod certificate;
mod der;
mod encryption;
mod keys;
mod passwords;
mod pem;
mod x509;

use go_template::Functions;

/// Registers what is told by the modules below.
pub(crate) fn register(functions: &mut Functions) {
    certificate::register(functions);
    encryption::register(functions);
    keys::register(functions);
    passwords::register(functions);
}
