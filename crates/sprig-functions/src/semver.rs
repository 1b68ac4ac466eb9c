//! Versions: `semver`, the object that it gives, and `semverCompare`.

use std::any::Any;
use std::cmp::Ordering;

use go_semver::{Constraints, Version};
use go_template::{Error, Function, Functions, Kind, Object, Str, Type, TypeInfo, Value};

use crate::arguments::{add, string};

pub(crate) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("semver", &[Type::STRING], |_, arguments| {
                let version = Version::parse(&string(arguments, 0).to_text()).map_err(worded)?;
                Ok(Value::object(VersionObject {
                    version,
                    type_: Type::new(&POINTER),
                }))
            }),
            ("semverCompare", &[Type::STRING, Type::STRING], |_, arguments| {
                let range = Constraints::parse(&string(arguments, 0).to_text()).map_err(worded)?;
                let version = Version::parse(&string(arguments, 1).to_text()).map_err(worded)?;
                Ok(range.check(&version).into())
            }),
        ],
    );
}

fn worded(error: go_semver::Error) -> Error {
    Error::new(error.to_string())
}

/// Copies a version like Go's copystructure, which only copies exported fields: a version has none, so the copy is 0.0.0.
pub(crate) fn copied(value: &Value) -> Option<Value> {
    let Value::Object(object) = value else {
        return None;
    };
    let found = object.as_any().downcast_ref::<VersionObject>()?;
    let version = Version::parse("0.0.0").ok()?;
    Some(Value::object(VersionObject {
        version,
        type_: found.type_,
    }))
}

/// A `*semver.Version`, or the `semver.Version` that its methods make.
#[derive(Debug)]
struct VersionObject {
    version: Version,
    type_: Type,
}

impl Object for VersionObject {
    fn type_(&self) -> Type {
        self.type_
    }

    fn text(&self) -> Option<Str> {
        Some(self.version.to_string().into())
    }

    fn json(&self) -> Option<Value> {
        Some(self.version.to_string().into())
    }

    fn equals(&self, other: &dyn Object) -> bool {
        // Two pointers are never the same; two structs are when all their parts are.
        self.type_.kind() == Kind::Struct
            && other
                .as_any()
                .downcast_ref::<Self>()
                .is_some_and(|other| other.type_ == self.type_ && other.version == self.version)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

static POINTER: TypeInfo = TypeInfo {
    named: false,
    method: Some(|name| method_of_pointer(name).or_else(|| method(name))),
    ..TypeInfo::plain("*semver.Version", Kind::Pointer)
};

static STRUCT: TypeInfo = TypeInfo {
    named: true,
    method: Some(method),
    ..TypeInfo::plain("semver.Version", Kind::Struct)
};

/// The methods of `*semver.Version` alone.
fn method_of_pointer(name: &str) -> Option<Function> {
    const OTHER: &[Type] = &[Type::new(&POINTER)];
    Some(match name {
        "Original" => Function::new(&[], |_, arguments| Ok(receiver(arguments)?.original().into())),
        "Compare" => Function::new(OTHER, |_, arguments| Ok(Value::int(compare(arguments)? as i64))),
        "Equal" => Function::new(OTHER, |_, arguments| {
            let is_nil = version(arguments, 1).is_none();
            Ok((!is_nil && compare(arguments)?.is_eq()).into())
        }),
        "LessThan" => Function::new(OTHER, |_, arguments| Ok(compare(arguments)?.is_lt().into())),
        "LessThanEqual" => Function::new(OTHER, |_, arguments| Ok(compare(arguments)?.is_le().into())),
        "GreaterThan" => Function::new(OTHER, |_, arguments| Ok(compare(arguments)?.is_gt().into())),
        "GreaterThanEqual" => Function::new(OTHER, |_, arguments| Ok(compare(arguments)?.is_ge().into())),
        _ => return None,
    })
}

/// The methods of `semver.Version`, which its pointer has as well.
fn method(name: &str) -> Option<Function> {
    const NONE: &[Type] = &[];
    const TEXT: &[Type] = &[Type::STRING];
    Some(match name {
        "String" | "Value" => Function::new(NONE, |_, arguments| Ok(receiver(arguments)?.to_string().into())),
        "Major" => Function::new(NONE, |_, arguments| Ok(uint64(receiver(arguments)?.major()))),
        "Minor" => Function::new(NONE, |_, arguments| Ok(uint64(receiver(arguments)?.minor()))),
        "Patch" => Function::new(NONE, |_, arguments| Ok(uint64(receiver(arguments)?.patch()))),
        "Prerelease" => Function::new(NONE, |_, arguments| Ok(receiver(arguments)?.prerelease().into())),
        "Metadata" => Function::new(NONE, |_, arguments| Ok(receiver(arguments)?.metadata().into())),
        "IncMajor" => Function::new(NONE, |_, arguments| {
            raised(receiver(arguments)?.inc_major(), "major")
        }),
        "IncMinor" => Function::new(NONE, |_, arguments| {
            raised(receiver(arguments)?.inc_minor(), "minor")
        }),
        "IncPatch" => Function::new(NONE, |_, arguments| {
            raised(receiver(arguments)?.inc_patch(), "patch")
        }),
        "SetPrerelease" => Function::new(TEXT, |_, arguments| {
            changed(receiver(arguments)?.set_prerelease(&string(arguments, 1).to_text()))
        }),
        "SetMetadata" => Function::new(TEXT, |_, arguments| {
            changed(receiver(arguments)?.set_metadata(&string(arguments, 1).to_text()))
        }),
        "MarshalText" => Function::new(NONE, |_, arguments| {
            Ok(Value::Bytes(receiver(arguments)?.to_string().into()))
        }),
        "MarshalJSON" => Function::new(NONE, |_, arguments| {
            Ok(Value::Bytes(format!("\"{}\"", receiver(arguments)?).into()))
        }),
        _ => return None,
    })
}

fn version(arguments: &[Value], index: usize) -> Option<&Version> {
    arguments
        .get(index)?
        .as_object::<VersionObject>()
        .map(|object| &object.version)
}

fn receiver(arguments: &[Value]) -> Result<&Version, Error> {
    version(arguments, 0).ok_or_else(nil_pointer)
}

fn compare(arguments: &[Value]) -> Result<Ordering, Error> {
    let other = version(arguments, 1).ok_or_else(nil_pointer)?;
    Ok(receiver(arguments)?.compare(other))
}

fn nil_pointer() -> Error {
    Error::new("runtime error: invalid memory address or nil pointer dereference")
}

fn uint64(number: u64) -> Value {
    Value::Uint(number, Kind::Uint64)
}

fn raised(version: Option<Version>, part: &str) -> Result<Value, Error> {
    let overflow = || Error::new(format!("{part} version increment would overflow uint64"));
    version.map(made).ok_or_else(overflow)
}

fn changed(version: Result<Version, go_semver::Error>) -> Result<Value, Error> {
    version.map(made).map_err(worded)
}

fn made(version: Version) -> Value {
    Value::object(VersionObject {
        version,
        type_: Type::new(&STRUCT),
    })
}

#[cfg(test)]
mod tests {
    use go_template::Value;

    fn check(template: &str, expected: &str) {
        crate::testing::check(template, &Value::Nil, expected);
    }

    #[test]
    fn versions_are_compared_with_ranges() {
        check(
            r#"{{ semverCompare "^1.2.0" "1.3.0" }} {{ semverCompare ">=1.19" "1.20.0-alpha.1" }}"#,
            "true false",
        );
        check(
            r#"{{ semverCompare "" "1.0.0" }}"#,
            r#"error calling semverCompare: improper constraint: """#,
        );
        check(
            r#"{{ semverCompare ">1" "x" }}"#,
            "error calling semverCompare: invalid semantic version",
        );
    }

    #[test]
    fn a_copy_of_a_version_is_empty() {
        check(
            r#"{{ deepCopy (semver "1.2.3") }} {{ (deepCopy (dict "v" (semver "1.2.3"))).v }}"#,
            "0.0.0 0.0.0",
        );
    }

    #[test]
    fn a_version_has_the_methods_of_go() {
        check(
            r#"{{ $v := semver "v1.2" }}{{ $v }} {{ $v.Original }} {{ $v.Major }} {{ $v.Patch }}"#,
            "1.2.0 v1.2 1 0",
        );
        check(r#"{{ (semver "1.2.3").Compare (semver "1.10.0") }}"#, "-1");
        check(r#"{{ (semver "1.2.3").LessThan (semver "1.2.3") }}"#, "false");
        check(
            r#"{{ (semver "1.2.3-a+b").Prerelease }}{{ (semver "1.2.3-a+b").Metadata }}"#,
            "ab",
        );
        check(
            r#"{{ (semver "1.2.3").IncMinor }} {{ (semver "1.2.3-a").IncPatch }}"#,
            "1.3.0 1.2.3",
        );
        check(r#"{{ (semver "1.2.3").SetPrerelease "rc.1" }}"#, "1.2.3-rc.1");
        check(r#"{{ (semver "1.2.3").IncMajor.IncPatch.String }}"#, "2.0.1");
        check(
            r#"{{ typeOf (semver "1") }} {{ typeOf (semver "1").IncMajor }}"#,
            "*semver.Version semver.Version",
        );
        check(r#"{{ semver "1.2" | toJson }}"#, r#""1.2.0""#);
        check(
            r#"{{ semver "x" }}"#,
            "error calling semver: invalid semantic version",
        );
    }
}
