//! Directives and kinds beside what Go answered.

use super::{sprint, sprintf, sprintln};
use crate::{Kind, List, Object, Str, Type, TypeInfo, Value};

fn check(format: &str, operands: &[Value], expected: &str) {
    let text = sprintf(format.as_bytes(), operands).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), expected, "{format}");
}

fn list() -> Value {
    let strings = List::of_strings(["x"]).into();
    List::from(vec![Value::int(1), "a".into(), Value::Nil, strings]).into()
}

fn map() -> Value {
    Value::Map([("b", Value::int(1)), ("a", Value::Nil)].into_iter().collect())
}

#[test]
fn integers_are_printed_as_in_go() {
    check(
        "%d|%5d|%-5d|%05d|%+d|% d",
        &[
            Value::int(3),
            Value::int(3),
            Value::int(3),
            Value::int(3),
            Value::int(3),
            Value::int(3),
        ],
        "3|    3|3    |00003|+3| 3",
    );
    check(
        "%05d|%-05d|%.4d|%8.4d|%08.4d|%.0d",
        &[
            Value::int(-42),
            Value::int(-42),
            Value::int(-42),
            Value::int(-42),
            Value::int(-42),
            Value::int(0),
        ],
        "-0042|-42  |-0042|   -0042|   -0042|",
    );
    check(
        "%b|%o|%O|%x|%X|%#x|%#o|%#b",
        &[
            Value::int(-42),
            Value::int(-42),
            Value::int(-42),
            Value::int(-42),
            Value::int(-42),
            Value::int(-42),
            Value::int(-42),
            Value::int(-42),
        ],
        "-101010|-52|-0o52|-2a|-2A|-0x2a|-052|-0b101010",
    );
    check(
        "%c|%q|%#q|%U|%#U|%+q",
        &[
            Value::Uint(200, Kind::Uint8),
            Value::Uint(200, Kind::Uint8),
            Value::Uint(200, Kind::Uint8),
            Value::Uint(200, Kind::Uint8),
            Value::Uint(200, Kind::Uint8),
            Value::Uint(200, Kind::Uint8),
        ],
        r#"È|'È'|'È'|U+00C8|U+00C8 'È'|'\u00c8'"#,
    );
    check(
        "%v|%#v|%T|%v",
        &[
            Value::Uint(200, Kind::Uint8),
            Value::Uint(200, Kind::Uint8),
            Value::Uint(200, Kind::Uint8),
            Value::int64(1 << 40),
        ],
        "200|0xc8|uint8|1099511627776",
    );
    check(
        "%e|%s|%t|%z",
        &[Value::int(3), Value::int(3), Value::int(3), Value::int(-42)],
        "%!e(int=3)|%!s(int=3)|%!t(int=3)|%!z(int=-42)",
    );
    check(
        "%c|%U",
        &[Value::int(-42), Value::int(-42)],
        "�|U+FFFFFFFFFFFFFFD6",
    );
}

#[test]
fn floats_are_printed_as_in_go() {
    check(
        "%v|%g|%e|%f|%.2f|%8.1f|%-9.1f|%09.1f",
        &[
            Value::Float(1234.5678),
            Value::Float(1234.5678),
            Value::Float(1234.5678),
            Value::Float(1234.5678),
            Value::Float(1234.5678),
            Value::Float(1234.5678),
            Value::Float(1234.5678),
            Value::Float(-7.25159),
        ],
        "1234.5678|1234.5678|1.234568e+03|1234.567800|1234.57|  1234.6|1234.6   |-000007.3",
    );
    check(
        "%v|%v|%v|%v|%+v|% v",
        &[
            Value::Float(1e6),
            Value::Float(123456.0),
            Value::Float(-0.0),
            Value::Float(f64::INFINITY),
            Value::Float(f64::INFINITY),
            Value::Float(1234.5678),
        ],
        "1e+06|123456|-0|+Inf|+Inf| 1234.5678",
    );
    check(
        "%G|%E|%.3g|%.10g|%#g|%#.3g|%#v|%08.2f",
        &[
            Value::Float(1e6),
            Value::Float(1e6),
            Value::Float(1234.5678),
            Value::Float(1234.5678),
            Value::Float(1e6),
            Value::Float(123456.0),
            Value::Float(1234.5678),
            Value::Float(-7.25159),
        ],
        "1E+06|1.000000E+06|1.23e+03|1234.5678|1.00000e+06|1.23e+05|1234.5678|-0007.25",
    );
    check(
        "%b|%x|%X|%.3x|%d",
        &[
            Value::Float(1234.5678),
            Value::Float(1234.5678),
            Value::Float(1234.5678),
            Value::Float(1234.5678),
            Value::Float(1234.5678),
        ],
        "5429686605511341p-42|0x1.34a456d5cfaadp+10|0X1.34A456D5CFAADP+10|0x1.34ap+10|%!d(float64=1234.5678)",
    );
    check(
        "%v|%.1f|%d",
        &[
            Value::Complex(1.0, -2.5),
            Value::Complex(1.0, -2.5),
            Value::Complex(1.0, -2.5),
        ],
        "(1-2.5i)|(1.0-2.5i)|%!d(complex128=(1-2.5i))",
    );
}

#[test]
fn strings_and_bytes_are_printed_as_in_go() {
    check(
        "%s|%5s|%-5s|%.1s|%05s|%q|%#q|%+q|%x|% X|%#x",
        &[
            Value::from("hi"),
            Value::from("hi"),
            Value::from("hi"),
            Value::from("hi"),
            Value::from("hi"),
            Value::from("hi"),
            Value::from("hi"),
            Value::from("é\n😀"),
            Value::from("hi"),
            Value::from("hi"),
            Value::from("hi"),
        ],
        r#"hi|   hi|hi   |h|000hi|"hi"|`hi`|"\u00e9\n\U0001f600"|6869|68 69|0x6869"#,
    );
    check(
        "%q|%#q|%.1q|%x|% #x|%d",
        &[
            Value::from("é\n😀"),
            Value::from("é\n😀"),
            Value::from("é\n😀"),
            Value::from("é\n😀"),
            Value::from("hi"),
            Value::from("hi"),
        ],
        r#""é\n😀"|"é\n😀"|"é"|c3a90af09f9880|0x68 0x69|%!d(string=hi)"#,
    );
    check(
        "%s|%v|%x|%q|%d|%#v|%t",
        &[
            Value::Bytes("ab".into()),
            Value::Bytes("ab".into()),
            Value::Bytes("ab".into()),
            Value::Bytes("ab".into()),
            Value::Bytes("ab".into()),
            Value::Bytes("ab".into()),
            Value::Bytes("ab".into()),
        ],
        r#"ab|[97 98]|6162|"ab"|[97 98]|[]byte{0x61, 0x62}|[%!t(uint8=97) %!t(uint8=98)]"#,
    );
}

#[test]
fn composed_values_are_printed_as_in_go() {
    check(
        "%v|%s|%d|%q",
        &[list(), list(), list(), list()],
        r#"[1 a <nil> [x]]|[%!s(int=1) a <nil> [x]]|[1 %!d(string=a) <nil> [%!d(string=x)]]|['\x01' "a" <nil> ["x"]]"#,
    );
    check(
        "%v|%+v|%#v|%d",
        &[map(), map(), map(), map()],
        r#"map[a:<nil> b:1]|map[a:<nil> b:1]|map[string]interface {}{"a":interface {}(nil), "b":1}|map[%!d(string=a):<nil> %!d(string=b):1]"#,
    );
    check(
        "%#v|%T|%5v",
        &[list(), list(), list()],
        r#"[]interface {}{1, "a", interface {}(nil), []string{"x"}}|[]interface {}|[    1     a <nil> [    x]]"#,
    );
    check(
        "%v|%s|%d|%T|%5v|%#v",
        &[
            Value::Nil,
            Value::Nil,
            Value::Nil,
            Value::Nil,
            Value::Nil,
            Value::Nil,
        ],
        "<nil>|%!s(<nil>)|%!d(<nil>)|<nil>|<nil>|<nil>",
    );
    check(
        "%t|%v|%d|%6t",
        &[
            Value::Bool(true),
            Value::Bool(true),
            Value::Bool(true),
            Value::Bool(true),
        ],
        "true|true|%!d(bool=true)|  true",
    );
}

#[test]
fn widths_and_operands_are_chosen_as_in_go() {
    check(
        "%*d|%-*d|%.*f",
        &[
            Value::int(5),
            Value::int(3),
            Value::int(-6),
            Value::int(3),
            Value::int(1),
            Value::Float(1234.5678),
        ],
        "    3|3     |1234.6",
    );
    check(
        "%[2]d %[1]d|%[2]*[1]d|%d",
        &[Value::int(3), Value::int(4)],
        "4 3|   3|4",
    );
    check(
        "%[3]d|%[x]d|%[1]d|%[",
        &[Value::int(3)],
        "%!d(BADINDEX)|%!d(BADINDEX)|3|%!(NOVERB)",
    );
    check("%d %d", &[Value::int(3)], "3 %!d(MISSING)");
    check(
        "%d",
        &[
            Value::int(3),
            Value::from("hi"),
            Value::Nil,
            Value::Float(1234.5678),
        ],
        "3%!(EXTRA string=hi, <nil>, float64=1234.5678)",
    );
    check(
        "%*d|%.*d",
        &[Value::from("hi"), Value::int(3), Value::from("hi"), Value::int(3)],
        "%!(BADWIDTH)3|%!(BADPREC)3",
    );
    check("%|%!|%%|100%", &[], "%!|(MISSING)%!!(MISSING)|%|100%!(NOVERB)");
    check("%!", &[Value::int(3)], "%!!(int=3)");
    check("%-", &[], "%!(NOVERB)");
    check(
        "%.d|%5.|%.2147483648d",
        &[Value::int(3), Value::int(3), Value::int(3)],
        "3|%!|(int=    3)%!(NOVERB)%!(EXTRA int=3)",
    );
    check("%w", &[Value::from("hi")], "%!w(string=hi)");
}

/// A struct, or a pointer to one, with or without a method that prints it.
#[derive(Debug)]
struct Point {
    type_: Type,
    text: Option<&'static str>,
}

static STRUCT: TypeInfo = TypeInfo {
    named: true,
    ..TypeInfo::plain("p.Point", Kind::Struct)
};
static POINTER: TypeInfo = TypeInfo::plain("*p.Point", Kind::Pointer);

impl Object for Point {
    fn type_(&self) -> Type {
        self.type_
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![("X", Value::int(1)), ("Name", Value::from("n"))]
    }

    fn text(&self) -> Option<Str> {
        self.text.map(Str::from)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

#[test]
fn structs_and_pointers_are_printed_as_in_go() {
    let point = |info, text| {
        Value::object(Point {
            type_: Type::new(info),
            text,
        })
    };
    let plain = point(&STRUCT, None);
    let pointer = point(&POINTER, None);
    let named = point(&STRUCT, Some("at 1"));
    check(
        "%v|%+v|%#v",
        &[plain.clone(), plain.clone(), plain.clone()],
        "{1 n}|{X:1 Name:n}|p.Point{X:1, Name:\"n\"}",
    );
    check(
        "%v|%T|%d",
        &[pointer.clone(), pointer.clone(), plain],
        "&{1 n}|*p.Point|{1 %!d(string=n)}",
    );
    check(
        "%s|%8v|%q|%d|%#v",
        &[
            named.clone(),
            named.clone(),
            named.clone(),
            named.clone(),
            named.clone(),
        ],
        "at 1|    at 1|\"at 1\"|{1 %!d(string=n)}|p.Point{X:1, Name:\"n\"}",
    );
    check("%v", &[List::from(vec![named]).into()], "[at 1]");
    let within = sprint(&[List::from(vec![pointer]).into()]).unwrap();
    assert!(within.starts_with(b"[0xc0"), "{within:?}");
}

#[test]
fn spaces_stand_between_operands_that_are_no_strings() {
    let operands = [
        Value::int(1),
        Value::int(2),
        "a".into(),
        "b".into(),
        Value::Nil,
        Value::Bool(true),
    ];
    assert_eq!(sprint(&operands).unwrap(), b"1 2ab<nil> true");
    assert_eq!(sprintln(&operands).unwrap(), b"1 2 a b <nil> true\n");
}
