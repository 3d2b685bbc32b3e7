//! Days as numbers, as PostgreSQL's binary dates are, and as dates of the proleptic Gregorian calendar.
//!
//! PostgreSQL's dates reach from 4713 BC to 5874897 AD, which is more than the calendar libraries hold.

/// Days from 1970-01-01, where Unix counts from, to 2000-01-01, where PostgreSQL does.
pub const POSTGRES_EPOCH_DAYS: i64 = 10_957;

/// Days of 400 years, after which the calendar repeats.
const DAYS_PER_ERA: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const UNIX_EPOCH_DAYS: i64 = 719_468;

/// Days since 1970-01-01 of a date; month and day count from one, and the year before year 1 is year 0.
///
/// Years are counted from March, so that leap days end them (Howard Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms").
pub fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * DAYS_PER_ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - UNIX_EPOCH_DAYS
}

/// Year, month and day of a number of days since 1970-01-01.
pub fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + UNIX_EPOCH_DAYS;
    let (era, of_era) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / (DAYS_PER_ERA - 1)) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year + era * 400 + i64::from(month <= 2), month, of_year - (153 * from_march + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days_have_their_dates() {
        let dates = [0, 58, 59, POSTGRES_EPOCH_DAYS, 11_016, 19_782, 47_540].map(date_of);
        let expected = [
            (1970, 1, 1),
            (1970, 2, 28),
            (1970, 3, 1),
            (2000, 1, 1),
            (2000, 2, 29),
            (2024, 2, 29),
            (2100, 2, 28),
        ];
        assert_eq!(dates, expected);
        // The first and the last day that PostgreSQL has: Julian day 0 and 5874897-12-31.
        assert_eq!(days_of(-4713, 11, 24), -2_440_588);
        assert_eq!(days_of(5_874_897, 12, 31) - POSTGRES_EPOCH_DAYS, 2_145_031_948);
    }

    #[test]
    fn each_day_is_the_day_after_the_one_before() {
        let mut before = date_of(-200_001);
        for day in -200_000..200_000 {
            let date @ (year, month, of_month) = date_of(day);
            assert_eq!(days_of(year, month, of_month), day);
            let follows = date == (before.0, before.1, before.2 + 1)
                || date == (before.0, before.1 + 1, 1)
                || date == (before.0 + 1, 1, 1);
            assert!(follows, "{before:?} {date:?}");
            before = date;
        }
    }
}
