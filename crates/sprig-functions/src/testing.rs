//! Renders of templates in unit tests.

use go_template::{Options, Templates, Value};

/// Checks what a template gives with `.` as data: its output, or the words of its error behind `error calling NAME: `.
#[track_caller]
pub(crate) fn check(template: &str, data: &Value, expected: &str) {
    let functions = crate::all();
    let mut templates = Templates::new("test");
    let found = templates
        .parse("test", template, &functions)
        .and_then(|()| templates.execute("test", data, &functions, &Options::default()));
    let found = match found {
        Ok(output) => String::from_utf8_lossy(&output).into_owned(),
        Err(error) => match error.message().split_once("error calling ") {
            Some((_, message)) => format!("error calling {message}"),
            None => error.message().to_owned(),
        },
    };
    assert_eq!(found, expected, "{template}");
}
