//! Which argument is the name of the release, and which the chart.

use super::Failure;
use super::flags::Settings;

/// The name of a release that was given none.
const DEFAULT: &str = "release-name";

/// Returns the release's name and the chart.
pub(super) fn name_and_chart(settings: &Settings) -> Result<(String, &str), Failure> {
    let refuse = |text: &str| Err(Failure::Flag(text.to_owned()));
    match &settings.arguments[..] {
        [_, _, more @ ..] if !more.is_empty() => refuse(&format!(
            "expected at most two arguments, unexpected arguments: {}",
            more.join(", ")
        )),
        [_, _] if settings.generate_name => refuse("cannot set --generate-name and also specify a name"),
        [_, _] if settings.name_template.is_some() => {
            refuse("cannot set --name-template and also specify a name")
        }
        [name, chart, ..] => Ok((name.clone(), chart)),
        [chart] => match &settings.name_template {
            Some(template) => {
                let name = helm_render::name_from_template(template).map_err(Failure::Flag)?;
                Ok((name, chart))
            }
            None => Ok((DEFAULT.to_owned(), chart)),
        },
        [] => refuse("there is no chart"),
    }
}
