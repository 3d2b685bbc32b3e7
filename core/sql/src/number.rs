//! Values of numeric literals.

/// Largest exponent that is written out; PostgreSQL's numeric goes further, statements do not.
const EXPONENT_MAX: i64 = 1_000;

/// The decimal form of an integer literal; junk is given as written.
pub(crate) fn integer<'s>(source: &'s [u8], scratch: &'s mut Vec<u8>) -> &'s [u8] {
    let (negative, digits) = split_sign(source);
    let radix = match digits {
        [b'0', b'x' | b'X', ..] => 16,
        [b'0', b'o' | b'O', ..] => 8,
        [b'0', b'b' | b'B', ..] => 2,
        _ => 10,
    };
    if radix != 10 {
        return match radix_value(&digits[2..], radix) {
            Some(number) => {
                push_sign(negative && number != 0, scratch);
                push_decimal(number, scratch);
                scratch
            }
            None => source,
        };
    }
    if !digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'_') {
        return source;
    }
    if digits.first() != Some(&b'0') && !digits.contains(&b'_') {
        return source;
    }
    push_sign(negative, scratch);
    push_whole(digits.iter().copied().filter(|&byte| byte != b'_'), scratch);
    if scratch == b"-0" {
        scratch.remove(0);
    }
    scratch
}

/// The plain form of a literal with a point or an exponent, as numeric prints it: `.5` is `0.5`, `1e3` is `1000`,
/// `1.50` keeps its zero.
pub(crate) fn decimal<'s>(source: &'s [u8], scratch: &'s mut Vec<u8>) -> &'s [u8] {
    let (negative, rest) = split_sign(source);
    let Some((mantissa, exponent)) = split_exponent(rest) else { return source };
    let mut halves = mantissa.splitn(2, |&byte| byte == b'.');
    let whole = halves.next().unwrap_or_default();
    let fraction = halves.next().unwrap_or_default();
    let digits = || whole.iter().chain(fraction).copied().filter(|&byte| byte != b'_');
    if exponent.abs() > EXPONENT_MAX || !digits().all(|byte| byte.is_ascii_digit()) {
        return source;
    }
    let count = |part: &[u8]| part.iter().filter(|&&byte| byte != b'_').count() as i64;
    let point = count(whole) + exponent; // how many digits stand before the point
    let is_zero = digits().all(|byte| byte == b'0');
    push_sign(negative && !is_zero, scratch);
    let padding = usize::try_from(point - count(whole) - count(fraction)).unwrap_or(0);
    let before = digits().chain(std::iter::repeat_n(b'0', padding));
    push_whole(before.take(usize::try_from(point).unwrap_or(0)), scratch);
    if count(fraction) > exponent {
        scratch.push(b'.');
        scratch.extend(std::iter::repeat_n(b'0', usize::try_from(-point).unwrap_or(0)));
        scratch.extend(digits().skip(usize::try_from(point).unwrap_or(0)));
    }
    scratch
}

fn split_sign(source: &[u8]) -> (bool, &[u8]) {
    source.strip_prefix(b"-").map_or((false, source), |digits| (true, digits))
}

fn push_sign(negative: bool, scratch: &mut Vec<u8>) {
    if negative {
        scratch.push(b'-');
    }
}

/// Digits without leading zeros, at least one.
fn push_whole(digits: impl Iterator<Item = u8>, scratch: &mut Vec<u8>) {
    let start = scratch.len();
    scratch.extend(digits.skip_while(|&digit| digit == b'0'));
    if scratch.len() == start {
        scratch.push(b'0');
    }
}

fn push_decimal(mut number: u128, scratch: &mut Vec<u8>) {
    let start = scratch.len();
    loop {
        scratch.push(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    scratch[start..].reverse();
}

fn radix_value(digits: &[u8], radix: u32) -> Option<u128> {
    let mut number = 0_u128;
    let mut has_digit = false;
    for &byte in digits.iter().filter(|&&byte| byte != b'_') {
        let digit = char::from(byte).to_digit(radix)?;
        number = number.checked_mul(u128::from(radix))?.checked_add(u128::from(digit))?;
        has_digit = true;
    }
    has_digit.then_some(number)
}

fn split_exponent(number: &[u8]) -> Option<(&[u8], i64)> {
    match memchr::memchr2(b'e', b'E', number) {
        None => Some((number, 0)),
        Some(at) => {
            let exponent = std::str::from_utf8(&number[at + 1..]).ok()?.parse().ok()?;
            Some((&number[..at], exponent))
        }
    }
}
