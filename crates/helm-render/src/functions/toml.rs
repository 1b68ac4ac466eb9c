//! `toToml`, `mustToToml` and `fromToml`, as BurntSushi/toml has them.

mod encode;

use go_template::{Error, Function, Functions, Type};

use crate::Helm;

pub(super) fn register(functions: &mut Functions, helm: Helm) {
    functions.add(
        "toToml",
        Function::new(&[Type::ANY], |context, arguments| {
            match encode::encode(context, &arguments[0])? {
                Ok(text) => {
                    context.charge(text.len())?;
                    Ok(text.into())
                }
                // What cannot be written is told in the output.
                Err(problem) => Ok(problem.into()),
            }
        }),
    );
    if helm == Helm::V4 {
        functions.add(
            "mustToToml",
            Function::new(&[Type::ANY], |context, arguments| {
                let text = encode::encode(context, &arguments[0])?.map_err(Error::new)?;
                context.charge(text.len())?;
                Ok(text.into())
            }),
        );
    }
}
