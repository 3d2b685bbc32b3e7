//! Times as PostgreSQL's settings write them: a number and a unit, milliseconds without one.

use std::time::Duration;

/// Units by PostgreSQL's names, in microseconds, the largest first.
const UNITS: [(&str, f64); 6] =
    [("d", 86_400e6), ("h", 3_600e6), ("min", 60e6), ("s", 1e6), ("ms", 1e3), ("us", 1.0)];

/// PostgreSQL's limit, in milliseconds.
const MILLISECONDS_MAX: f64 = 2_147_483_647.0;

/// The time that a setting's value means; `None` where it means none or is out of range.
pub(super) fn parse(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|character: char| !(character.is_ascii_digit() || character == '.'));
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let unit_us = match unit.trim() {
        "" => 1e3,
        unit => UNITS.iter().find(|(name, _)| *name == unit)?.1,
    };
    let milliseconds = (number.parse::<f64>().ok()? * unit_us / 1e3).round();
    (milliseconds <= MILLISECONDS_MAX).then(|| Duration::from_millis(milliseconds as u64))
}

/// The shortest way to write it: with the largest unit that leaves a whole number.
pub(super) fn shown(time: Duration) -> String {
    let milliseconds = time.as_millis() as u64;
    if milliseconds == 0 {
        return "0".to_owned();
    }
    let whole = UNITS.iter().find_map(|(name, us)| {
        let unit = (us / 1e3) as u64;
        (unit > 0 && milliseconds % unit == 0).then(|| format!("{}{name}", milliseconds / unit))
    });
    whole.unwrap_or_else(|| format!("{milliseconds}ms"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_shown_as_postgresql_does() {
        for (text, wanted) in [
            ("0", "0"),
            ("250", "250ms"),
            (" 5000 ", "5s"),
            ("1.5 s", "1500ms"),
            ("90s", "90s"),
            ("120s", "2min"),
            ("36h", "36h"),
            ("2147483647", "2147483647ms"),
        ] {
            assert_eq!(parse(text).map(shown).as_deref(), Some(wanted), "{text}");
        }
        for text in ["", "s", "-1", "1 week", "2147483648", "1e3", "x", "1..2"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
