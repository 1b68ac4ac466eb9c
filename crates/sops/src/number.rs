//! Numbers as the stores of SOPS write them: each format in its own way.

use go_text::number::format_json;
use manifest::yaml::number::format_g;

/// For the authentication code, and for encryption: all digits, never an exponent (Go's `'f'`).
pub(crate) fn plain_digits(float: f64) -> String {
    special(float).map_or_else(|| float.to_string(), str::to_owned)
}

/// For dotenv and INI: the shortest, but never what reads as an integer (Go's `'G'`).
pub(crate) fn shortest(float: f64) -> String {
    if let Some(name) = special(float) {
        return name.to_owned();
    }
    let text = format_g(float).to_uppercase();
    if text.contains(['.', 'E']) {
        text
    } else {
        format!("{float:.1}")
    }
}

/// For JSON, as Go's `encoding/json`; None for what JSON has no number for.
pub(crate) fn json(float: f64) -> Option<String> {
    if !float.is_finite() {
        return None;
    }
    Some(format_json(float))
}

fn special(float: f64) -> Option<&'static str> {
    match float {
        f if f.is_nan() => Some("NaN"),
        f if f == f64::INFINITY => Some("+Inf"),
        f if f == f64::NEG_INFINITY => Some("-Inf"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_writes_floats_in_its_way() {
        for (float, plain, short, in_json) in [
            (1.5, "1.5", "1.5", "1.5"),
            (3.0, "3", "3.0", "3"),
            (1e21, "1000000000000000000000", "1E+21", "1e+21"),
            (1e6, "1000000", "1E+06", "1000000"),
            (-2.5e-7, "-0.00000025", "-2.5E-07", "-2.5e-7"),
            (0.0, "0", "0.0", "0"),
            (123_456_789.0, "123456789", "1.23456789E+08", "123456789"),
        ] {
            assert_eq!(plain_digits(float), plain);
            assert_eq!(shortest(float), short);
            assert_eq!(json(float).as_deref(), Some(in_json));
        }
        assert_eq!(plain_digits(f64::INFINITY), "+Inf");
        assert_eq!(json(f64::NAN), None);
    }
}
