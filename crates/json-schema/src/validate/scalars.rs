//! Types and choices, and keywords about strings and numbers.

use super::arrays::equal;
use super::{Run, Step};
use crate::failure::{Failure, bound, count, display, quote};
use crate::node::Types;
use crate::number::Decimal;
use go_text::json::Json;

impl<'v> Step<'_, 'v, '_> {
    pub(super) fn check_type(&self, run: &mut Run<'_, 'v>) -> Result<(), Box<Failure>> {
        let types = self.node.types;
        if types.is_empty() || types.match_value(self.value) {
            return Ok(());
        }
        Err(self.alone(run, || {
            format!(
                "got {}, want {}",
                Types::from_value(self.value).names(),
                types.names()
            )
        }))
    }

    pub(super) fn check_choices(&self, run: &mut Run<'_, 'v>) -> Result<(), Box<Failure>> {
        if let Some(constant) = &self.node.constant
            && !equal(self.value, constant)
        {
            return Err(self.alone(run, || match constant {
                Json::Array(_) | Json::Object(_) => "'const' failed".to_owned(),
                _ => format!("value must be {}", display(constant)),
            }));
        }
        match &self.node.choices {
            Some(choices) if !choices.iter().any(|choice| equal(self.value, choice)) => {
                Err(self.alone(run, || not_chosen(choices)))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn check_text(&mut self, text: &str, run: &mut Run<'_, 'v>) {
        let Some(rules) = self.node.texts.as_deref() else {
            return;
        };
        if rules.min_length.is_some() || rules.max_length.is_some() {
            let characters = text.chars().count();
            let length = i64::try_from(characters).unwrap_or(i64::MAX);
            if let Some(want) = rules.min_length
                && length < want
            {
                self.fail(run, || count("minLength", characters, want));
            }
            if let Some(want) = rules.max_length
                && length > want
            {
                self.fail(run, || count("maxLength", characters, want));
            }
        }
        if let Some(pattern) = &rules.pattern
            && !pattern.matches(text)
        {
            self.fail(run, || {
                format!("{} does not match pattern {}", quote(text), quote(pattern.text()))
            });
        }
    }

    pub(super) fn check_number(&mut self, number: &str, run: &mut Run<'_, 'v>) {
        let Some(rules) = self.node.numbers.as_deref() else {
            return;
        };
        let Some(got) = Decimal::read(number) else { return };
        let mut refuse_if =
            |keyword: &str, want: &Option<Decimal>, is_wrong: fn(&Decimal, &Decimal) -> bool| {
                if let Some(want) = want
                    && is_wrong(&got, want)
                {
                    self.fail(run, || bound(keyword, got.to_float(), want.to_float()));
                }
            };
        refuse_if("minimum", &rules.minimum, |got, want| got < want);
        refuse_if("maximum", &rules.maximum, |got, want| got > want);
        refuse_if("exclusiveMinimum", &rules.exclusive_minimum, |got, want| {
            got <= want
        });
        refuse_if("exclusiveMaximum", &rules.exclusive_maximum, |got, want| {
            got >= want
        });
        refuse_if("multipleOf", &rules.multiple_of, |got, want| {
            !got.is_multiple_of(want)
        });
    }
}

fn not_chosen(choices: &[Json<'_>]) -> String {
    let is_scalar = |choice: &Json<'_>| !matches!(choice, Json::Array(_) | Json::Object(_));
    if !choices.iter().all(is_scalar) {
        return "'enum' failed".to_owned();
    }
    match choices {
        [choice] => format!("value must be {}", display(choice)),
        _ => {
            let choices: Vec<String> = choices.iter().map(display).collect();
            format!("value must be one of {}", choices.join(", "))
        }
    }
}
