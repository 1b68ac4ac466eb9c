//! Arithmetic: on integers after casting, on floats by way of decimals, and lists of integers.

use go_template::{Context, Error, Functions, Kind, List, Type, Value};

use crate::arguments::{add, add_variadic, any, charge, int};
use crate::cast::{to_float64, to_int64};
use crate::decimal::Decimal;

const NONE: &[Type] = &[];
const ONE: &[Type] = &[Type::ANY];
const TWO: &[Type] = &[Type::ANY, Type::ANY];

pub(crate) fn register(functions: &mut Functions) {
    register_fixed(functions);
    register_variadic(functions);
}

/// Those that take so many numbers.
fn register_fixed(functions: &mut Functions) {
    add(
        functions,
        &[
            ("add1", ONE, |_, arguments| {
                Ok(Value::int64(number(arguments, 0).wrapping_add(1)))
            }),
            ("sub", TWO, |_, arguments| {
                Ok(Value::int64(
                    number(arguments, 0).wrapping_sub(number(arguments, 1)),
                ))
            }),
            ("div", TWO, |_, arguments| divide(arguments, i64::wrapping_div)),
            ("mod", TWO, |_, arguments| divide(arguments, i64::wrapping_rem)),
            ("add1f", ONE, |_, arguments| {
                let one = Decimal::from_number(1.0)?;
                Ok(Decimal::from_number(to_float64(&any(arguments, 0)))?
                    .add(&one)
                    .to_f64()
                    .into())
            }),
            ("floor", ONE, |_, arguments| {
                Ok(to_float64(&any(arguments, 0)).floor().into())
            }),
            ("ceil", ONE, |_, arguments| {
                Ok(to_float64(&any(arguments, 0)).ceil().into())
            }),
            ("until", &[Type::INT], |context, arguments| {
                let count = int(arguments, 0);
                let step = if count < 0 { -1 } else { 1 };
                Ok(List::new(Type::LIST_INT, until_step(context, 0, count, step)?).into())
            }),
            (
                "untilStep",
                &[Type::INT, Type::INT, Type::INT],
                |context, arguments| {
                    let (start, stop, step) = (int(arguments, 0), int(arguments, 1), int(arguments, 2));
                    Ok(List::new(Type::LIST_INT, until_step(context, start, stop, step)?).into())
                },
            ),
        ],
    );
}

/// Those that take any count of numbers.
fn register_variadic(functions: &mut Functions) {
    add_variadic(
        functions,
        Type::ANY,
        &[
            ("add", NONE, |_, arguments| fold(arguments, 0, i64::wrapping_add)),
            ("mul", ONE, |_, arguments| fold(arguments, 1, i64::wrapping_mul)),
            ("max", ONE, largest),
            ("biggest", ONE, largest),
            ("min", ONE, |_, arguments| {
                let smallest = arguments.iter().map(to_int64).min();
                Ok(Value::int64(smallest.unwrap_or_default()))
            }),
            ("maxf", ONE, |_, arguments| {
                Ok(fold_floats(arguments, maximum).into())
            }),
            ("minf", ONE, |_, arguments| {
                Ok(fold_floats(arguments, minimum).into())
            }),
            ("addf", NONE, |context, arguments| {
                fold_decimals(context, Decimal::from_number(0.0)?, arguments, |one, other| {
                    Ok(one.add(other))
                })
            }),
            ("subf", ONE, |context, arguments| {
                decimals(context, arguments, |one, other| Ok(one.subtract(other)))
            }),
            ("mulf", ONE, |context, arguments| {
                decimals(context, arguments, Decimal::multiply)
            }),
            ("divf", ONE, |context, arguments| {
                decimals(context, arguments, Decimal::divide)
            }),
        ],
    );
    add_variadic(
        functions,
        Type::FLOAT64,
        &[("round", &[Type::ANY, Type::INT], |_, arguments| {
            let from = arguments.get(2).map_or(0.5, to_float64);
            Ok(round(to_float64(&any(arguments, 0)), int(arguments, 1), from).into())
        })],
    );
    add_variadic(functions, Type::INT, &[("seq", NONE, sequence)]);
}

fn number(arguments: &[Value], index: usize) -> i64 {
    arguments.get(index).map_or(0, to_int64)
}

fn fold(arguments: &[Value], first: i64, operation: fn(i64, i64) -> i64) -> Result<Value, Error> {
    Ok(Value::int64(
        arguments.iter().map(to_int64).fold(first, operation),
    ))
}

fn divide(arguments: &[Value], operation: fn(i64, i64) -> i64) -> Result<Value, Error> {
    match number(arguments, 1) {
        0 => Err(Error::new("runtime error: integer divide by zero")),
        divisor => Ok(Value::int64(operation(number(arguments, 0), divisor))),
    }
}

fn largest(_: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let largest = arguments.iter().map(to_int64).max();
    Ok(Value::int64(largest.unwrap_or_default()))
}

fn fold_floats(arguments: &[Value], operation: fn(f64, f64) -> f64) -> f64 {
    arguments
        .iter()
        .map(to_float64)
        .reduce(operation)
        .unwrap_or_default()
}

/// Go's `math.Max`: infinity before NaN before all others, and zero above negative zero.
fn maximum(one: f64, other: f64) -> f64 {
    if one == f64::INFINITY || other == f64::INFINITY {
        f64::INFINITY
    } else if one.is_nan() || other.is_nan() {
        f64::NAN
    } else if one == 0.0 && other == 0.0 {
        if one.is_sign_negative() { other } else { one }
    } else if one > other {
        one
    } else {
        other
    }
}

/// Go's `math.Min`.
fn minimum(one: f64, other: f64) -> f64 {
    -maximum(-one, -other)
}

fn decimals(
    context: &mut Context<'_>,
    arguments: &[Value],
    operation: fn(&Decimal, &Decimal) -> Result<Decimal, Error>,
) -> Result<Value, Error> {
    let first = Decimal::from_number(to_float64(&any(arguments, 0)))?;
    fold_decimals(context, first, arguments.get(1..).unwrap_or_default(), operation)
}

fn fold_decimals(
    context: &mut Context<'_>,
    mut result: Decimal,
    arguments: &[Value],
    operation: fn(&Decimal, &Decimal) -> Result<Decimal, Error>,
) -> Result<Value, Error> {
    for argument in arguments {
        context.charge(result.size())?;
        result = operation(&result, &Decimal::from_number(to_float64(argument))?)?;
    }
    Ok(result.to_f64().into())
}

/// Rounds to places behind the point; a fraction counts up from `from` on. As sprig does it, a negative number is always
/// rounded down, since its fraction is negative.
fn round(value: f64, places: i64, from: f64) -> f64 {
    let power = power_of_ten(places);
    let digit = power * value;
    // Go's Modf gives NaN for NaN, and NaN beside an infinity.
    let fraction = if digit.is_infinite() {
        f64::NAN
    } else {
        digit - digit.trunc()
    };
    let rounded = if fraction >= from {
        digit.ceil()
    } else {
        digit.floor()
    };
    rounded / power
}

/// Go's `math.Pow(10, places)`, bit for bit: by squaring of the fraction of ten, with the exponents apart.
fn power_of_ten(places: i64) -> f64 {
    if places == 0 {
        return 1.0;
    }
    if places == 1 {
        return 10.0;
    }
    let mut rest = places.unsigned_abs();
    // Ten is 0.625 * 2^4.
    let (mut fraction, mut exponent) = (0.625_f64, 4_i64);
    let (mut result, mut result_exponent) = (1.0_f64, 0_i64);
    while rest != 0 {
        if exponent.abs() > 1 << 12 {
            result_exponent += exponent;
            break;
        }
        if rest & 1 == 1 {
            result *= fraction;
            result_exponent += exponent;
        }
        fraction *= fraction;
        exponent <<= 1;
        if fraction < 0.5 {
            fraction += fraction;
            exponent -= 1;
        }
        rest >>= 1;
    }
    if places < 0 {
        result = 1.0 / result;
        result_exponent = -result_exponent;
    }
    scale(result, result_exponent)
}

/// Go's `math.Ldexp` for numbers of middle size: `number * 2^exponent`, rounded once.
fn scale(number: f64, exponent: i64) -> f64 {
    if exponent > 1100 {
        return f64::INFINITY;
    }
    if exponent < -1200 {
        return 0.0;
    }
    // Of the factors only the last one can make a number subnormal, and so round.
    let (mut number, mut exponent) = (number, exponent);
    while exponent > 1000 {
        number *= 2.0_f64.powi(1000);
        exponent -= 1000;
    }
    if exponent < -1000 {
        number *= 2.0_f64.powi(-900);
        exponent += 900;
    }
    number * 2.0_f64.powi(i32::try_from(exponent).unwrap_or_default())
}

/// sprig's `seq`: numbers with spaces between them, both ends included.
fn sequence(context: &mut Context<'_>, arguments: &[Value]) -> Result<Value, Error> {
    let (start, end, step) = match arguments.len() {
        1 => {
            let end = int(arguments, 0);
            (1, end, if end < 1 { -1 } else { 1 })
        }
        2 => {
            let (start, end) = (int(arguments, 0), int(arguments, 1));
            (start, end, if end < start { -1 } else { 1 })
        }
        3 => (int(arguments, 0), int(arguments, 2), int(arguments, 1)),
        _ => return Ok("".into()),
    };
    if end < start && step > 0 {
        return Ok("".into());
    }
    let stop = end.wrapping_add(if end < start { -1 } else { 1 });
    let numbers = until_step(context, start, stop, step)?;
    let texts: Vec<String> = numbers
        .iter()
        .map(|number| int(std::slice::from_ref(number), 0).to_string())
        .collect();
    Ok(texts.join(" ").into())
}

/// Lists the integers from `start` on by `step`, without `stop`; none where the step leads away from it.
fn until_step(context: &mut Context<'_>, start: i64, stop: i64, step: i64) -> Result<Vec<Value>, Error> {
    let distance = if stop < start {
        step.checked_neg()
            .map_or(0, |_| i128::from(start) - i128::from(stop))
    } else {
        i128::from(stop) - i128::from(start)
    };
    let towards = if stop < start { step < 0 } else { step > 0 };
    if !towards || distance == 0 {
        return Ok(Vec::new());
    }
    let stride = i128::from(step.unsigned_abs());
    let count = usize::try_from((distance + stride - 1) / stride).unwrap_or(usize::MAX);
    charge(context, count, size_of::<Value>())?;
    let numbers = (0..count as i128).map(|index| {
        let number = i128::from(start) + i128::from(step) * index;
        Value::Int(i64::try_from(number).unwrap_or_default(), Kind::Int)
    });
    Ok(numbers.collect())
}

#[cfg(test)]
mod tests {
    use go_template::Value;

    fn check(template: &str, expected: &str) {
        crate::testing::check(template, &Value::Nil, expected);
    }

    #[test]
    fn integers_wrap_around() {
        check(
            r#"{{ add 1 "2" 3.9 }}{{ add1 9223372036854775807 }}{{ mul 2 "0x10" }}"#,
            "6-922337203685477580832",
        );
        check(
            "{{ div 7 2 }}{{ div -7 2 }}{{ mod -7 3 }}{{ max 1 3 2 }}{{ min 4 2 }}",
            "3-3-132",
        );
        check(
            "{{ div 1 0 }}",
            "error calling div: runtime error: integer divide by zero",
        );
        check(
            "{{ mod 1 nil }}",
            "error calling mod: runtime error: integer divide by zero",
        );
    }

    #[test]
    fn floats_go_through_decimals() {
        check(
            "{{ addf 0.1 0.2 }} {{ subf 1 0.9 }} {{ mulf 1.1 3 }} {{ divf 10 4 }}",
            "0.3 0.1 3.3 2.5",
        );
        check("{{ divf 1 0 }}", "error calling divf: decimal division by 0");
        check(
            "{{ maxf 1 2.5 }}{{ minf 1 -0.5 }}{{ floor -1.5 }}{{ ceil 1.2 }}",
            "2.5-0.5-22",
        );
    }

    #[test]
    fn numbers_are_rounded_down_where_they_are_negative() {
        check(
            "{{ round 2.5 0 }} {{ round -2.5 0 }} {{ round 1.005 2 }} {{ round 123.5 -2 }}",
            "3 -3 1 100",
        );
        check("{{ round 3.3 0 0.3 }} {{ round 1 400 }}", "3 NaN");
    }

    #[test]
    fn sequences_lead_from_start_to_stop() {
        check(
            "{{ until 3 }}{{ until -2 }}{{ untilStep 1 6 2 }}{{ untilStep 5 0 2 }}",
            "[0 1 2][0 -1][1 3 5][]",
        );
        check(
            "{{ seq 3 }}|{{ seq 0 }}|{{ seq 2 4 }}|{{ seq 0 2 5 }}|{{ seq 5 2 0 }}|{{ seq }}",
            "1 2 3|1 0|2 3 4|0 2 4||",
        );
        check(
            "{{ until 99999999999 | len }}",
            "error calling until: a function would make more than 2147483648 bytes",
        );
    }
}
