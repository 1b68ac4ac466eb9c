//! Identifiers: JSON pointers, UUIDs, versions.

use go_text::quote::quoted_char;

use super::problem::{Problem, refuse};

pub(super) fn json_pointer(text: &str) -> Result<(), Problem> {
    if text.is_empty() {
        return Ok(());
    }
    let Some(tokens) = text.strip_prefix('/') else {
        return refuse("not starting with /");
    };
    let escapes_are_right = |token: &str| token.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    if tokens.split('/').all(escapes_are_right) {
        Ok(())
    } else {
        refuse("~ must be followed by 0 or 1")
    }
}

pub(super) fn relative_json_pointer(text: &str) -> Result<(), Problem> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return refuse("must start with non-negative integer");
    }
    if digits > 1 && text.starts_with('0') {
        return refuse("starts with zero");
    }
    match &text[digits..] {
        "#" => Ok(()),
        pointer => json_pointer(pointer),
    }
}

pub(super) fn uuid(text: &str) -> Result<(), Problem> {
    const LENGTHS: [usize; 5] = [8, 4, 4, 4, 12];
    let groups: Vec<&str> = text.split('-').collect();
    if groups.len() != LENGTHS.len() {
        return refuse("must have 5 elements");
    }
    for (index, (group, length)) in groups.iter().zip(LENGTHS).enumerate() {
        if group.len() != length {
            return refuse(format!("element {} must be {length} characters long", index + 1));
        }
        if let Some(c) = group.chars().find(|c| !c.is_ascii_hexdigit()) {
            return refuse(format!("non-hex character {}", quoted_char(c)));
        }
    }
    Ok(())
}

pub(super) fn semver(text: &str) -> Result<(), Problem> {
    let (text, build) = match text.split_once('+') {
        Some((text, build)) => (text, Some(build)),
        None => (text, None),
    };
    if let Some(build) = build {
        check_build(build)?;
    }
    let (core, pre_release) = match text.split_once('-') {
        Some((core, pre_release)) => (core, Some(pre_release)),
        None => (text, None),
    };
    if let Some(pre_release) = pre_release {
        check_pre_release(pre_release)?;
    }
    check_core(core)
}

fn check_build(build: &str) -> Result<(), Problem> {
    if build.is_empty() {
        return refuse("build is empty");
    }
    for identifier in build.split('.') {
        if identifier.is_empty() {
            return refuse("build identifier is empty");
        }
        check_characters(identifier, "build")?;
    }
    Ok(())
}

fn check_pre_release(pre_release: &str) -> Result<(), Problem> {
    for identifier in pre_release.split('.') {
        if identifier.is_empty() {
            return refuse("pre-release identifier is empty");
        }
        check_characters(identifier, "pre-release")?;
        let is_number = identifier.bytes().all(|c| c.is_ascii_digit());
        if is_number && identifier.len() > 1 && identifier.starts_with('0') {
            return refuse("pre-release numeric identifier starts with zero");
        }
    }
    Ok(())
}

fn check_characters(identifier: &str, part: &str) -> Result<(), Problem> {
    match identifier
        .chars()
        .find(|c| !c.is_ascii_alphanumeric() && *c != '-')
    {
        Some(c) => refuse(format!(
            "invalid character {} in {part} identifier",
            quoted_char(c)
        )),
        None => Ok(()),
    }
}

fn check_core(core: &str) -> Result<(), Problem> {
    let numbers: Vec<&str> = core.split('.').collect();
    if numbers.len() != 3 {
        return refuse("versionCore must have 3 numbers separated by dot");
    }
    for (number, name) in numbers.iter().zip(["major", "minor", "patch"]) {
        if number.is_empty() {
            return refuse(format!("{name} is empty"));
        }
        if number.len() > 1 && number.starts_with('0') {
            return refuse(format!("{name} starts with zero"));
        }
        if !number.bytes().all(|c| c.is_ascii_digit()) {
            return refuse(format!("{name} contains non-digit"));
        }
    }
    Ok(())
}
