//! Strings: as Go has them, so that lengths and cuts count bytes.

mod case;
mod layout;
mod parts;
mod quoting;
mod replacing;
mod trimming;
mod words;

use go_template::Functions;

pub(crate) fn register(functions: &mut Functions) {
    case::register(functions);
    layout::register(functions);
    parts::register(functions);
    quoting::register(functions);
    replacing::register(functions);
    trimming::register(functions);
    words::register(functions);
}
