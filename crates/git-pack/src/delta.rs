//! Deltas: how an object is made of another one.

const CUT: &str = "its delta ends in the middle of an instruction";

/// How large the object becomes, as the instructions say it.
pub(crate) fn size_of_result(instructions: &[u8]) -> Result<u64, &'static str> {
    let mut rest = instructions;
    size(&mut rest).and_then(|_| size(&mut rest)).ok_or(CUT)
}

/// Writes what `instructions` make of `base` over what is in `result`. The error says what is wrong with them.
pub(crate) fn apply(
    base: &[u8],
    instructions: &[u8],
    limit: u64,
    result: &mut Vec<u8>,
) -> Result<(), &'static str> {
    let mut rest = instructions;
    let base_size = size(&mut rest).ok_or(CUT)?;
    let size = size(&mut rest).ok_or(CUT)?;
    if base_size != base.len() as u64 {
        return Err("its delta is of a base of another size");
    }
    if size > limit {
        return Err("it is larger than the limit of one object");
    }
    result.clear();
    crate::reserve(result, size);
    while let Some((&instruction, tail)) = rest.split_first() {
        rest = tail;
        let bytes = match instruction {
            0 => return Err("its delta has an instruction that is reserved"),
            1..=0x7f => take(&mut rest, usize::from(instruction)).ok_or(CUT)?,
            _ => {
                let offset = sparse(&mut rest, instruction, 4).ok_or(CUT)?;
                let length = match sparse(&mut rest, instruction >> 4, 3).ok_or(CUT)? {
                    0 => 0x1_0000,
                    length => length,
                };
                let copied = base.get(offset..offset.saturating_add(length));
                copied.ok_or("its delta copies from beyond its base")?
            }
        };
        if (result.len() + bytes.len()) as u64 > size {
            return Err("it is larger than its delta says");
        }
        result.extend_from_slice(bytes);
    }
    let whole = result.len() as u64 == size;
    whole.then_some(()).ok_or("it is smaller than its delta says")
}

/// A number of seven bits a byte, the lowest first.
fn size(rest: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        if shift > 56 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
}

/// A little-endian number of up to `bytes` bytes, of which only those are there whose bit is set.
fn sparse(rest: &mut &[u8], present: u8, bytes: u32) -> Option<usize> {
    let mut value = 0;
    for byte in 0..bytes {
        if present >> byte & 1 == 1 {
            value |= usize::from(*take(rest, 1)?.first()?) << (8 * byte);
        }
    }
    Some(value)
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::apply;

    fn check(instructions: &[u8], expected: Result<&[u8], &str>) {
        let mut result = vec![1, 2, 3];
        let applied = apply(b"0123456789", instructions, 100, &mut result);
        assert_eq!(
            applied.map(|()| result.as_slice()).map_err(str::to_owned),
            expected.map_err(str::to_owned)
        );
    }

    #[test]
    fn copies_and_inserts() {
        check(&[10, 5, 0x91, 2, 3, 2, b'x', b'y'], Ok(b"234xy"));
        check(&[10, 0], Ok(b""));
    }

    #[test]
    fn says_what_is_wrong() {
        check(&[], Err("its delta ends in the middle of an instruction"));
        check(
            &[10, 5, 0x91, 2],
            Err("its delta ends in the middle of an instruction"),
        );
        check(
            &[10, 5, 7, b'a'],
            Err("its delta ends in the middle of an instruction"),
        );
        check(&[9, 5], Err("its delta is of a base of another size"));
        check(&[10, 5, 0], Err("its delta has an instruction that is reserved"));
        check(&[10, 5, 0x91, 8, 3], Err("its delta copies from beyond its base"));
        check(&[10, 5, 0x80], Err("its delta copies from beyond its base"));
        check(&[10, 1, 2, b'a', b'b'], Err("it is larger than its delta says"));
        check(&[10, 5, 1, b'a'], Err("it is smaller than its delta says"));
        check(&[10, 101], Err("it is larger than the limit of one object"));
        check(&[0xff; 12], Err("its delta ends in the middle of an instruction"));
    }
}
