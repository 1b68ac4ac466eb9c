//! Boolean flags.

/// Reads a flag's value as Go's flags do.
pub(super) fn parse_bool(text: &str) -> Result<bool, String> {
    go_text::numeral::parse_bool(text)
        .ok_or_else(|| format!("strconv.ParseBool: parsing {text:?}: invalid syntax"))
}
