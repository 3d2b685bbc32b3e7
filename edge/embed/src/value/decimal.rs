//! `numeric`: decimal numbers between PostgreSQL's two formats and what SQLite stores.
//!
//! SQLite has 64-bit integers and doubles. A numeric that is an integer is stored as one. Any other is stored as a
//! double, which holds 15 significant digits exactly. More digits are refused, never rounded silently.

use crate::error::{SqlError, SqlResult};
use crate::value::InlineText;

/// Most significant digits of a fraction that a double gives back unchanged.
pub(crate) const FRACTION_DIGITS_MAX: u32 = 15;

/// A decimal number: `coefficient` × 10^−`scale`, or not a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decimal {
    Number { negative: bool, coefficient: u128, scale: u32 },
    NaN,
}

/// What SQLite is given for a numeric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum StoredDecimal {
    Integer(i64),
    Real(f64),
    NaN,
}

impl Decimal {
    /// Reads what PostgreSQL's numeric input accepts, exponents included.
    pub(crate) fn parse(text: &str) -> SqlResult<Self> {
        let trimmed = text.trim();
        if trimmed.eq_ignore_ascii_case("nan") {
            return Ok(Self::NaN);
        }
        let invalid = || SqlError::invalid_text("numeric", text);
        let (negative, digits) = match trimmed.as_bytes() {
            [b'-', ..] => (true, &trimmed[1..]),
            [b'+', ..] => (false, &trimmed[1..]),
            _ => (false, trimmed),
        };
        let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
            None => (digits, 0),
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| invalid())?),
        };
        let mut coefficient = 0u128;
        let mut scale = 0i32;
        let mut has_point = false;
        let mut has_digit = false;
        for byte in mantissa.bytes() {
            match byte {
                b'0'..=b'9' => {
                    has_digit = true;
                    coefficient = coefficient
                        .checked_mul(10)
                        .and_then(|shifted| shifted.checked_add(u128::from(byte - b'0')))
                        .ok_or_else(too_many_digits)?;
                    scale += i32::from(has_point);
                }
                b'.' if !has_point => has_point = true,
                _ => return Err(invalid()),
            }
        }
        if !has_digit {
            return Err(invalid());
        }
        Self::from_parts(negative, coefficient, scale.saturating_sub(exponent))
    }

    fn from_parts(negative: bool, coefficient: u128, scale: i32) -> SqlResult<Self> {
        if scale >= 0 {
            return Ok(Self::Number { negative, coefficient, scale: scale as u32 });
        }
        let factor = 10u128.checked_pow(scale.unsigned_abs()).ok_or_else(too_many_digits)?;
        let coefficient = coefficient.checked_mul(factor).ok_or_else(too_many_digits)?;
        Ok(Self::Number { negative, coefficient, scale: 0 })
    }

    /// The decimal number that a stored double stands for: its 15 significant digits, trailing zeros dropped.
    pub(crate) fn of_real(real: f64) -> SqlResult<Self> {
        if real.is_nan() {
            return Ok(Self::NaN);
        }
        if real.is_infinite() {
            return Err(SqlError::out_of_range("numeric"));
        }
        let text = InlineText::format(format_args!("{real:.14e}"));
        Self::parse(text.as_str()).map(Self::without_trailing_zeros)
    }

    pub(crate) fn of_integer(integer: i64) -> Self {
        Self::Number { negative: integer < 0, coefficient: u128::from(integer.unsigned_abs()), scale: 0 }
    }

    fn without_trailing_zeros(self) -> Self {
        let Self::Number { negative, mut coefficient, mut scale } = self else { return self };
        while scale > 0 && coefficient % 10 == 0 {
            coefficient /= 10;
            scale -= 1;
        }
        Self::Number { negative, coefficient, scale }
    }

    /// Rounds half away from zero, or appends zeros, so that `scale` digits follow the point.
    pub(crate) fn rescale(self, wanted: u32) -> SqlResult<Self> {
        let Self::Number { negative, coefficient, scale } = self else { return Ok(self) };
        let coefficient = if wanted >= scale {
            let factor = 10u128.checked_pow(wanted - scale).ok_or_else(too_many_digits)?;
            coefficient.checked_mul(factor).ok_or_else(too_many_digits)?
        } else {
            match 10u128.checked_pow(scale - wanted) {
                None => 0,
                Some(factor) => coefficient / factor + u128::from(coefficient % factor >= factor / 2),
            }
        };
        Ok(Self::Number { negative, coefficient, scale: wanted })
    }

    /// Rounds to a declared scale and refuses what the declared precision cannot hold.
    pub(crate) fn fit(self, precision: u32, scale: u32) -> SqlResult<Self> {
        let fitted = self.rescale(scale)?;
        match fitted {
            Self::Number { coefficient, .. }
                if 10u128.checked_pow(precision).is_some_and(|limit| coefficient >= limit) =>
            {
                let mut error = SqlError::new("22003", "numeric field overflow");
                error.more().detail = Some(format!(
                    "A field with precision {precision}, scale {scale} must round to an absolute value less than 10^{}.",
                    i64::from(precision) - i64::from(scale)
                ));
                Err(error)
            }
            _ => Ok(fitted),
        }
    }

    /// Digits after the point, without trailing zeros.
    pub(crate) fn fraction_digits(self) -> u32 {
        match self.without_trailing_zeros() {
            Self::Number { scale, .. } => scale,
            Self::NaN => 0,
        }
    }

    /// What SQLite is to store; an error where neither of its numbers holds the value exactly.
    pub(crate) fn stored(self) -> SqlResult<StoredDecimal> {
        let Self::Number { negative, coefficient, scale } = self.without_trailing_zeros() else {
            return Ok(StoredDecimal::NaN);
        };
        if scale == 0 {
            let magnitude = i128::try_from(coefficient).map_err(|_| too_many_digits())?;
            let signed = if negative { -magnitude } else { magnitude };
            return i64::try_from(signed).map(StoredDecimal::Integer).map_err(|_| too_many_digits());
        }
        if coefficient >= 10u128.pow(FRACTION_DIGITS_MAX) {
            return Err(too_many_digits());
        }
        let text =
            InlineText::format(format_args!("{}{coefficient}e-{scale}", if negative { "-" } else { "" }));
        text.as_str().parse().map(StoredDecimal::Real).map_err(|_| SqlError::out_of_range("numeric"))
    }

    /// Appends PostgreSQL's text form.
    pub(crate) fn put_text(self, out: &mut Vec<u8>) {
        let Self::Number { negative, coefficient, scale } = self else {
            out.extend_from_slice(b"NaN");
            return;
        };
        if negative && coefficient != 0 {
            out.push(b'-');
        }
        let mut digits = [b'0'; 40];
        let mut start = digits.len();
        let mut rest = coefficient;
        let length_min = (scale as usize + 1).min(digits.len());
        while rest > 0 || digits.len() - start < length_min {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        let point = digits.len().saturating_sub(scale as usize).max(start);
        out.extend_from_slice(&digits[start..point]);
        if scale > 0 {
            out.push(b'.');
            out.extend_from_slice(&digits[point..]);
        }
    }

    /// Appends PostgreSQL's binary form: groups of four digits, weight of the first, sign, display scale.
    pub(crate) fn put_binary(self, out: &mut Vec<u8>) {
        let Self::Number { negative, coefficient, scale } = self else {
            for word in [0u16, 0, 0xc000, 0] {
                out.extend_from_slice(&word.to_be_bytes());
            }
            return;
        };
        let padding = (4 - scale % 4) % 4;
        // A coefficient near u128's end cannot be padded; such a number is never stored, see `stored`.
        let mut rest = coefficient.saturating_mul(10u128.pow(padding));
        let mut groups = [0u16; 12];
        let mut count = 0;
        while rest > 0 {
            groups[count] = (rest % 10_000) as u16;
            rest /= 10_000;
            count += 1;
        }
        let weight = count as i32 - 1 - ((scale + padding) / 4) as i32;
        let dropped = groups[..count].iter().take_while(|group| **group == 0).count();
        let sign: u16 = if negative && coefficient != 0 { 0x4000 } else { 0 };
        out.extend_from_slice(&((count - dropped) as u16).to_be_bytes());
        out.extend_from_slice(&(if count == 0 { 0 } else { weight as i16 }).to_be_bytes());
        out.extend_from_slice(&sign.to_be_bytes());
        out.extend_from_slice(&(scale as u16).to_be_bytes());
        for group in groups[dropped..count].iter().rev() {
            out.extend_from_slice(&group.to_be_bytes());
        }
    }

    /// Reads PostgreSQL's binary form.
    pub(crate) fn from_binary(bytes: &[u8]) -> SqlResult<Self> {
        let invalid = || SqlError::new("22P03", "invalid binary numeric");
        let (header, groups) = bytes.split_at_checked(8).ok_or_else(invalid)?;
        let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let (count, weight, sign, display_scale) = (word(0), word(2) as i16, word(4), word(6));
        if groups.len() != 2 * usize::from(count) {
            return Err(invalid());
        }
        let negative = match sign {
            0 => false,
            0x4000 => true,
            0xc000 => return Ok(Self::NaN),
            _ => return Err(SqlError::out_of_range("numeric")),
        };
        let mut coefficient = 0u128;
        for group in groups.chunks_exact(2) {
            let digits = u16::from_be_bytes([group[0], group[1]]);
            if digits > 9999 {
                return Err(invalid());
            }
            coefficient = coefficient
                .checked_mul(10_000)
                .and_then(|shifted| shifted.checked_add(u128::from(digits)))
                .ok_or_else(too_many_digits)?;
        }
        let scale = 4 * (i32::from(count) - 1 - i32::from(weight));
        Self::from_parts(negative, coefficient, scale)?.rescale(u32::from(display_scale))
    }
}

fn too_many_digits() -> SqlError {
    SqlError::new(
        "22003",
        "numeric value has more digits than this server stores (15 with a fraction, 64 bits without)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(decimal: Decimal) -> String {
        let mut out = Vec::new();
        decimal.put_text(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_keeps_its_digits_and_exponents_are_resolved() {
        for (given, wanted) in [
            ("12.50", "12.50"),
            ("-0.05", "-0.05"),
            ("1e3", "1000"),
            ("1.5e-3", "0.0015"),
            (".5", "0.5"),
            ("-0", "0"),
            ("NaN", "NaN"),
        ] {
            assert_eq!(text(Decimal::parse(given).unwrap()), wanted);
        }
        assert_eq!(Decimal::parse("1.2.3").unwrap_err().sqlstate, "22P02");
        assert_eq!(Decimal::parse("").unwrap_err().sqlstate, "22P02");
    }

    #[test]
    fn digits_that_a_double_would_lose_are_refused() {
        let stored = |text| Decimal::parse(text).unwrap().stored();
        assert_eq!(stored("9223372036854775807").unwrap(), StoredDecimal::Integer(i64::MAX));
        assert_eq!(stored("123456789.012345").unwrap(), StoredDecimal::Real(123_456_789.012_345));
        assert_eq!(stored("1234567890.0123456").unwrap_err().sqlstate, "22003");
        assert_eq!(stored("9223372036854775808").unwrap_err().sqlstate, "22003");
    }

    #[test]
    fn rounding_is_half_away_from_zero_and_overflow_is_an_error() {
        let fit = |given: &str| Decimal::parse(given).unwrap().fit(4, 2);
        assert_eq!(text(fit("1.005").unwrap()), "1.01");
        assert_eq!(text(fit("-1.005").unwrap()), "-1.01");
        assert_eq!(text(fit("99.994").unwrap()), "99.99");
        assert_eq!(fit("99.995").unwrap_err().sqlstate, "22003");
    }

    #[test]
    fn binary_form_is_postgresqls() {
        let mut out = Vec::new();
        Decimal::parse("-12345.678").unwrap().put_binary(&mut out);
        assert_eq!(out, [0, 3, 0, 1, 0x40, 0, 0, 3, 0, 1, 9, 0x29, 0x1a, 0x7c]);
    }

    proptest! {
        #[test]
        fn what_is_written_in_binary_reads_back(coefficient in 0u64.., scale in 0u32..20, negative: bool) {
            let decimal = Decimal::Number {
                negative: negative && coefficient != 0,
                coefficient: u128::from(coefficient),
                scale,
            };
            let mut out = Vec::new();
            decimal.put_binary(&mut out);
            prop_assert_eq!(text(Decimal::from_binary(&out).unwrap()), text(decimal));
        }

        #[test]
        fn what_is_stored_as_a_double_reads_back(coefficient in 0u64..999_999_999_999_999, scale in 1u32..15) {
            let decimal = Decimal::Number { negative: false, coefficient: u128::from(coefficient), scale };
            if let StoredDecimal::Real(real) = decimal.stored().unwrap() {
                prop_assert_eq!(Decimal::of_real(real).unwrap(), decimal.without_trailing_zeros());
            }
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = Decimal::from_binary(&bytes);
        }
    }
}
