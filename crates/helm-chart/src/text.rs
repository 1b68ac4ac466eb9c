//! Text of a chart's files.

/// Takes a byte order mark off the front.
pub(super) fn without_mark(mut data: Vec<u8>) -> Vec<u8> {
    if data.starts_with(b"\xef\xbb\xbf") {
        data.drain(..3);
    }
    data
}
