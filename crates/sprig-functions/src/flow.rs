//! `fail`, and the greeting by which sprig shows that it is there.

use go_template::{Error, Functions, Type};

use crate::arguments::{add, string};

pub(crate) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("hello", &[], |_, _| Ok("Hello!".into())),
            ("fail", &[Type::STRING], |_, arguments| {
                Err(Error::new(string(arguments, 0).to_text()))
            }),
        ],
    );
}

#[cfg(test)]
mod tests {
    use go_template::Value;

    #[test]
    fn fail_fails_with_its_message() {
        crate::testing::check(
            r#"{{ fail "no way" }}"#,
            &Value::Nil,
            "error calling fail: no way",
        );
    }
}
