//! Numbers as people read them.

use onetrip_ledger::Summary;

/// `12,345`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 trip`, `12 trips`; `many` is the plural.
pub(crate) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// `+12`, `−12`, `0`.
pub(crate) fn difference(number: i64) -> String {
    let sign = match number {
        0 => "",
        1.. => "+",
        _ => "−",
    };
    format!("{sign}{}", count(number.unsigned_abs()))
}

/// Three digits and a unit: `850 ns`, `12.9 ms`, `5.13 s`; from a minute on `2 min 36 s`, `1 h 02 min`.
pub fn duration(nanoseconds: u64) -> String {
    let scaled = nanoseconds as f64;
    if nanoseconds < 1_000 {
        format!("{nanoseconds} ns")
    } else if scaled < 999.5e3 {
        format!("{} µs", three_digits(scaled / 1e3))
    } else if scaled < 999.5e6 {
        format!("{} ms", three_digits(scaled / 1e6))
    } else if scaled < 59.95e9 {
        format!("{} s", three_digits(scaled / 1e9))
    } else if scaled < 3599.5e9 {
        let seconds = (scaled / 1e9).round() as u64;
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    } else {
        let minutes = (scaled / 60e9).round() as u64;
        format!("{} h {:02} min", count(minutes / 60), minutes % 60)
    }
}

/// Three digits and a decimal unit: `912 B`, `12.3 kB`, `1.20 GB`.
pub(crate) fn bytes(number: u64) -> String {
    if number < 1000 {
        return format!("{number} B");
    }
    let mut scaled = number as f64 / 1e3;
    for unit in ["kB", "MB", "GB"] {
        if scaled < 999.5 {
            return format!("{} {unit}", three_digits(scaled));
        }
        scaled /= 1e3;
    }
    format!("{} TB", three_digits(scaled))
}

/// A rate in three digits and a decimal unit: `912 bit/s`, `1.20 Mbit/s`.
pub(crate) fn bits(per_second: u64) -> String {
    let scaled = per_second as f64;
    match per_second {
        0..1_000 => format!("{per_second} bit/s"),
        1_000..1_000_000 => format!("{} kbit/s", three_digits(scaled / 1e3)),
        1_000_000..1_000_000_000 => format!("{} Mbit/s", three_digits(scaled / 1e6)),
        _ => format!("{} Gbit/s", three_digits(scaled / 1e9)),
    }
}

/// A share in whole per cent; what is neither nothing nor all never looks like it.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 || part == 0 {
        return "0 %".into();
    }
    let share = part as f64 * 100.0 / whole as f64;
    if share < 1.0 {
        "<1 %".into()
    } else if part < whole && share > 99.0 {
        ">99 %".into()
    } else {
        format!("{share:.0} %")
    }
}

/// The mark of counts that are bounds: `≤ ` where trips may have been one, `≥ ` where records were lost.
pub(crate) fn bound(summary: &Summary) -> &'static str {
    match (summary.trips.may_share > 0, summary.gaps.has_loss()) {
        (false, false) => "",
        (true, false) => "≤ ",
        (false, true) => "≥ ",
        (true, true) => "≈ ",
    }
}

fn three_digits(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_decimal_units() {
        let shown = [0, 999, 1_000, 120_400, 32_000_000, 2_500_000_000].map(bits);
        let expected = ["0 bit/s", "999 bit/s", "1.00 kbit/s", "120 kbit/s", "32.0 Mbit/s", "2.50 Gbit/s"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn counts_are_grouped_by_thousands() {
        let shown = [0, 999, 1_000, 12_345, 123_456, u64::MAX].map(count);
        assert_eq!(shown, ["0", "999", "1,000", "12,345", "123,456", "18,446,744,073,709,551,615"]);
        assert_eq!([0, 7, -1234, i64::MIN].map(difference)[..3], ["0", "+7", "−1,234"]);
    }

    #[test]
    fn times_have_three_digits_and_the_unit_that_fits() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 µs"),
            (9_996, "10.0 µs"),
            (999_499, "999 µs"),
            (999_500, "1.00 ms"),
            (12_900_000, "12.9 ms"),
            (999_500_000, "1.00 s"),
            (59_940_000_000, "59.9 s"),
            (59_960_000_000, "1 min 00 s"),
            (156_000_000_000, "2 min 36 s"),
            (3_599_600_000_000, "1 h 00 min"),
            (3_720_000_000_000, "1 h 02 min"),
        ];
        for (nanoseconds, shown) in cases {
            assert_eq!(duration(nanoseconds), shown);
        }
        assert!(duration(u64::MAX).ends_with(" min"));
    }

    #[test]
    fn shares_never_round_to_nothing_or_all() {
        assert_eq!(percent(1, 1_000_000), "<1 %");
        assert_eq!(percent(999_999, 1_000_000), ">99 %");
        assert_eq!(percent(400, 412), "97 %");
        assert_eq!(percent(7, 7), "100 %");
        assert_eq!(percent(0, 0), "0 %");
    }

    #[test]
    fn sizes_are_decimal() {
        assert_eq!(
            [999, 1_000, 12_345, 999_600, u64::MAX].map(bytes)[..4],
            ["999 B", "1.00 kB", "12.3 kB", "1.00 MB"]
        );
    }
}
