//! Quantities as people write them: `12.9ms`, `32mbit`, `64MiB`. Parsing is exact (no floating point), and what
//! `Display` writes parses back to the same value.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A duration, written `12.9ms`, `400us`, `1s`; `0` needs no unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct HumanDuration(pub Duration);

/// A bandwidth, written `32mbit`, `1gbit`: decimal multiples of a bit per second, never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitsPerSecond(u64);

/// A number of bytes, written `64MiB`, `1.5kB`; `0` needs no unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize(pub usize);

/// Why a quantity was refused. The text says what would have been accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The text does not start with a plain decimal number.
    #[error("`{text}` does not start with a number; write for example {example}")]
    NoNumber {
        /// What was given.
        text: String,
        /// Something that would be accepted.
        example: &'static str,
    },
    /// The number is followed by nothing, or by a unit that is not one of the known ones.
    #[error("`{text}` has {}; write for example {example} (units: {units})", unit_problem(unit))]
    UnknownUnit {
        /// What was given.
        text: String,
        /// The part after the number.
        unit: String,
        /// Something that would be accepted.
        example: &'static str,
        /// Every unit that would be accepted.
        units: String,
    },
    /// The value is finer than the smallest unit, or too large to hold, or zero where that has no meaning.
    #[error("`{text}` is out of range: {reason}")]
    OutOfRange {
        /// What was given.
        text: String,
        /// Which limit it breaks.
        reason: &'static str,
    },
}

fn unit_problem(unit: &str) -> String {
    if unit.is_empty() { "no unit".to_owned() } else { format!("the unknown unit `{unit}`") }
}

/// The words of one quantity: units from largest to smallest, each a multiple of the smallest.
struct Vocabulary {
    units: &'static [(&'static str, u128)],
    /// Accepted when reading, never written.
    synonyms: &'static [(&'static str, u128)],
    example: &'static str,
    finest: &'static str,
}

const DURATION: Vocabulary = Vocabulary {
    units: &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)],
    synonyms: &[("sec", 1_000_000_000), ("µs", 1_000), ("μs", 1_000)],
    example: "12.9ms",
    finest: "finer than a nanosecond",
};

const BANDWIDTH: Vocabulary = Vocabulary {
    units: &[("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)],
    synonyms: &[],
    example: "32mbit",
    finest: "finer than one bit per second",
};

const BYTES: Vocabulary = Vocabulary {
    units: &[("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)],
    synonyms: &[("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)],
    example: "64MiB",
    finest: "not a whole number of bytes",
};

impl Vocabulary {
    /// Reads `text` as a multiple of the smallest unit.
    fn parse(&self, text: &str) -> Result<u128, UnitError> {
        let number_len = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (number, unit) = text.split_at(number_len);
        let unit = unit.trim();
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || fraction.contains('.') || number.ends_with('.') {
            return Err(UnitError::NoNumber { text: text.to_owned(), example: self.example });
        }
        let out_of_range = |reason| UnitError::OutOfRange { text: text.to_owned(), reason };
        let too_large = || out_of_range("too large");
        if whole.len() > 30 || fraction.len() > 30 {
            return Err(out_of_range("more than 30 digits"));
        }
        let digits: u128 =
            [whole, fraction].concat().parse().map_err(|_: std::num::ParseIntError| too_large())?;
        if digits == 0 && unit.is_empty() {
            return Ok(0);
        }
        let factor = self.factor(text, unit)?;
        let scaled = digits.checked_mul(factor).ok_or_else(too_large)?;
        let divisor = 10u128.checked_pow(fraction.len() as u32).ok_or_else(too_large)?;
        if scaled % divisor != 0 { Err(out_of_range(self.finest)) } else { Ok(scaled / divisor) }
    }

    fn factor(&self, text: &str, unit: &str) -> Result<u128, UnitError> {
        let known = || self.units.iter().chain(self.synonyms);
        known()
            .find(|(name, _)| *name == unit)
            .or_else(|| known().find(|(name, _)| name.eq_ignore_ascii_case(unit)))
            .map(|(_, factor)| *factor)
            .ok_or_else(|| UnitError::UnknownUnit {
                text: text.to_owned(),
                unit: unit.to_owned(),
                example: self.example,
                units: self.units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", "),
            })
    }

    /// Writes `value` in the largest unit not above it, with as many decimals as it needs.
    fn write_decimal(&self, value: u128, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let smallest = self.units[self.units.len() - 1];
        let (name, factor) = *self.units.iter().find(|(_, factor)| value >= *factor).unwrap_or(&smallest);
        let decimals = factor.ilog10() as usize;
        let fraction = format!("{:0decimals$}", value % factor);
        let fraction = fraction.trim_end_matches('0');
        let whole = value / factor;
        let text =
            if fraction.is_empty() { format!("{whole}{name}") } else { format!("{whole}.{fraction}{name}") };
        out.pad(&text)
    }
}

impl FromStr for HumanDuration {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let nanos = DURATION.parse(text.trim())?;
        match u64::try_from(nanos) {
            Ok(nanos) => Ok(Self(Duration::from_nanos(nanos))),
            Err(_) => Err(UnitError::OutOfRange { text: text.to_owned(), reason: "beyond 584 years" }),
        }
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        DURATION.write_decimal(self.0.as_nanos(), out)
    }
}

impl From<HumanDuration> for Duration {
    fn from(value: HumanDuration) -> Self {
        value.0
    }
}

impl BitsPerSecond {
    /// `None` for zero: a path without bandwidth carries nothing.
    pub const fn new(bits: u64) -> Option<Self> {
        if bits == 0 { None } else { Some(Self(bits)) }
    }

    /// Bits in one second; never zero.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// How long `bytes` occupy the path, rounded up to a nanosecond.
    pub fn time_for(self, bytes: u64) -> Duration {
        let nanos = (u128::from(bytes) * 8 * 1_000_000_000).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl FromStr for BitsPerSecond {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let trimmed = text.trim();
        // `32mbit/s` and `32mbits` mean nothing else; `mbps` is bytes to some tools and bits to others.
        let word = trimmed.strip_suffix("/s").unwrap_or(trimmed);
        let bits = BANDWIDTH.parse(word)?;
        let refuse = |reason| UnitError::OutOfRange { text: text.to_owned(), reason };
        let bits = u64::try_from(bits).map_err(|_| refuse("too large"))?;
        Self::new(bits).ok_or_else(|| refuse("a link needs some bandwidth; leave it out for no limit"))
    }
}

impl fmt::Display for BitsPerSecond {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        BANDWIDTH.write_decimal(u128::from(self.0), out)
    }
}

impl FromStr for ByteSize {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let bytes = BYTES.parse(text.trim())?;
        match usize::try_from(bytes) {
            Ok(bytes) => Ok(Self(bytes)),
            Err(_) => Err(UnitError::OutOfRange { text: text.to_owned(), reason: "too large" }),
        }
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as u128;
        let exact = |(_, factor): &&(&str, u128)| bytes != 0 && bytes % *factor == 0;
        let (name, factor) = BYTES.units.iter().find(exact).copied().unwrap_or(("B", 1));
        out.pad(&format!("{}{name}", bytes / factor))
    }
}

impl From<ByteSize> for usize {
    fn from(value: ByteSize) -> Self {
        value.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn duration(text: &str) -> Result<Duration, UnitError> {
        text.parse::<HumanDuration>().map(|human| human.0)
    }

    #[test]
    fn durations_are_read_exactly() {
        assert_eq!(duration("12.9ms"), Ok(Duration::from_micros(12_900)));
        assert_eq!(duration("400us"), Ok(Duration::from_micros(400)));
        assert_eq!(duration("0.389ms"), Ok(Duration::from_nanos(389_000)));
        assert_eq!(duration("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(duration(" 5 MS "), Ok(Duration::from_millis(5)));
        assert_eq!(duration("7µs"), Ok(Duration::from_micros(7)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
    }

    #[test]
    fn bandwidths_are_decimal_bits() {
        assert_eq!("32mbit".parse::<BitsPerSecond>().map(BitsPerSecond::get), Ok(32_000_000));
        assert_eq!("1gbit".parse::<BitsPerSecond>().map(BitsPerSecond::get), Ok(1_000_000_000));
        assert_eq!("1.5Gbit/s".parse::<BitsPerSecond>().map(BitsPerSecond::get), Ok(1_500_000_000));
    }

    #[test]
    fn byte_sizes_know_binary_and_decimal_units() {
        assert_eq!("64MiB".parse(), Ok(ByteSize(64 << 20)));
        assert_eq!("1.5kB".parse(), Ok(ByteSize(1500)));
        assert_eq!("0".parse(), Ok(ByteSize(0)));
    }

    #[test]
    fn a_refusal_says_what_would_be_accepted() {
        let message = |error: UnitError| error.to_string();
        assert_eq!(
            message(duration("12").unwrap_err()),
            "`12` has no unit; write for example 12.9ms (units: s, ms, us, ns)"
        );
        assert_eq!(
            message("32mbps".parse::<BitsPerSecond>().unwrap_err()),
            "`32mbps` has the unknown unit `mbps`; write for example 32mbit (units: gbit, mbit, kbit, bit)"
        );
        assert_eq!(
            message(duration("fast").unwrap_err()),
            "`fast` does not start with a number; write for example 12.9ms"
        );
        assert!(message(duration("-5ms").unwrap_err()).contains("does not start with a number"));
        assert!(message(duration("1..5ms").unwrap_err()).contains("does not start with a number"));
        assert!(message(duration("0.1ns").unwrap_err()).contains("finer than a nanosecond"));
        assert!(message(duration("999999999999999999s").unwrap_err()).contains("out of range"));
        assert!(message("0mbit".parse::<BitsPerSecond>().unwrap_err()).contains("needs some bandwidth"));
        assert!(message("0.5B".parse::<ByteSize>().unwrap_err()).contains("whole number of bytes"));
    }

    #[test]
    fn quantities_are_written_as_people_write_them() {
        assert_eq!(HumanDuration(Duration::from_micros(12_900)).to_string(), "12.9ms");
        assert_eq!(HumanDuration(Duration::ZERO).to_string(), "0ns");
        assert_eq!(BitsPerSecond(32_000_000).to_string(), "32mbit");
        assert_eq!(BitsPerSecond(1_234_567).to_string(), "1.234567mbit");
        assert_eq!(ByteSize(64 << 20).to_string(), "64MiB");
        assert_eq!(ByteSize(1500).to_string(), "1500B");
    }

    #[test]
    fn serialisation_time_rounds_up() {
        assert_eq!(BitsPerSecond(32_000_000).time_for(4), Duration::from_micros(1));
        assert_eq!(BitsPerSecond(3).time_for(1), Duration::from_nanos(2_666_666_667));
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_as_the_same_value(value in 1u64..) {
            let duration = HumanDuration(Duration::from_nanos(value));
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
            let bandwidth = BitsPerSecond(value);
            prop_assert_eq!(bandwidth.to_string().parse(), Ok(bandwidth));
            let size = ByteSize(value as usize);
            prop_assert_eq!(size.to_string().parse(), Ok(size));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<HumanDuration>();
            let _ = text.parse::<BitsPerSecond>();
            let _ = text.parse::<ByteSize>();
        }
    }
}
