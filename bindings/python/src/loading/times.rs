//! Dates, times of day, timestamps and intervals.

use onetrip_client::types::Type;
use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyNotImplementedError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDate, PyDateTime, PyDelta, PyDeltaAccess, PyTime, PyType, PyTzInfo};

use crate::binary::{DAY, HOUR, MINUTE, SECOND, date_of, interval_of, parts_of};
use crate::errors::misuse;

/// What of a session's settings says how times are written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Session {
    /// `DateStyle`, as the server reports it; `None` counts as ISO.
    pub(crate) date_style: Option<String>,
    /// `TimeZone`. Without it, times with a zone have the offset that the server sends.
    pub(crate) time_zone: Option<String>,
    /// `IntervalStyle`; `None` counts as `postgres`.
    pub(crate) interval_style: Option<String>,
    /// Whether text is in no encoding that anybody knows, and stays bytes.
    pub(crate) is_raw: bool,
}

impl Session {
    /// Reads what it needs from where the session's settings are.
    pub(crate) fn of(setting: impl Fn(&str) -> Option<String>) -> Self {
        Self {
            date_style: setting("DateStyle"),
            time_zone: setting("TimeZone"),
            interval_style: setting("IntervalStyle"),
            is_raw: false,
        }
    }

    /// The same session, but for the styles of dates and intervals: those of text that is made here.
    pub(super) fn with_plain_styles(&self) -> Self {
        Self { date_style: None, interval_style: None, ..self.clone() }
    }
}

/// Whether the loader of a type depends on the session's settings.
pub(crate) fn needs_session(ty: &Type) -> bool {
    Kind::of(ty).is_some()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Date,
    Time,
    TimeTz,
    Timestamp,
    TimestampTz,
    Interval,
}

impl Kind {
    fn of(ty: &Type) -> Option<Self> {
        Some(match *ty {
            Type::DATE => Self::Date,
            Type::TIME => Self::Time,
            Type::TIMETZ => Self::TimeTz,
            Type::TIMESTAMP => Self::Timestamp,
            Type::TIMESTAMPTZ => Self::TimestampTz,
            Type::INTERVAL => Self::Interval,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Date => "date",
            Self::Time => "time",
            Self::TimeTz => "timetz",
            Self::Timestamp => "timestamp",
            Self::TimestampTz => "timestamptz",
            Self::Interval => "interval",
        }
    }
}

/// How a session writes days: the manual's "Date/Time Output". The flag says whether the day goes before the month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Iso,
    Sql(bool),
    Postgres(bool),
    German,
}

impl Style {
    fn of(setting: Option<&str>) -> Self {
        let Some(setting) = setting else { return Self::Iso };
        let is_day_first = setting.ends_with("DMY");
        match setting.split(',').next() {
            Some("SQL") => Self::Sql(is_day_first),
            Some("Postgres") => Self::Postgres(is_day_first),
            Some("German") => Self::German,
            _ => Self::Iso,
        }
    }
}

/// The loader of one of these types.
#[derive(Debug)]
pub(crate) struct Times {
    kind: Kind,
    style: Style,
    /// The session's zone; `None` for one that Python does not know, and where nobody has said it.
    zone: Option<Zone>,
    /// Whether intervals are written as `IntervalStyle` postgres has it.
    is_plain_interval: bool,
}

#[derive(Debug)]
struct Zone {
    info: Py<PyTzInfo>,
    is_utc: bool,
}

type Day = (i32, u8, u8);
type Clock = (u8, u8, u8, u32);

impl Times {
    pub(super) fn of(py: Python<'_>, ty: &Type, session: &Session) -> Self {
        let kind = Kind::of(ty).unwrap_or(Kind::Date);
        let zone = match &session.time_zone {
            Some(name) if kind == Kind::TimestampTz => zone(py, name),
            _ => None,
        };
        let style = Style::of(session.date_style.as_deref());
        let is_plain_interval = session.interval_style.as_deref().is_none_or(|style| style == "postgres");
        Self { kind, style, zone, is_plain_interval }
    }

    /// Of text as the session writes it.
    #[inline]
    pub(super) fn load<'py>(&self, py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        self.load_styled(py, text, self.style, self.is_plain_interval)
    }

    /// Of text as this package writes it.
    pub(super) fn load_plain<'py>(&self, py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        self.load_styled(py, text, Style::Iso, true)
    }

    #[inline]
    fn load_styled<'py>(
        &self,
        py: Python<'py>,
        text: &[u8],
        style: Style,
        is_plain_interval: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let made = match self.kind {
            Kind::Date => day_in(style, text).map(|day| date(py, day)),
            Kind::Timestamp => moment_in(style, text).map(|(day, clock)| timestamp(py, day, clock, None)),
            Kind::TimestampTz if style == Style::Iso => self.zoned(py, text),
            Kind::Time => clock_of(text)
                .filter(|(clock, rest)| clock.0 < 24 && rest.is_empty())
                .map(|(clock, _)| time(py, clock, None)),
            Kind::TimeTz => clock_of(text).and_then(|(clock, rest)| {
                let offset = offset_of(rest)?;
                Some(fixed(py, offset).and_then(|info| time(py, clock, Some(&info)))).filter(|_| clock.0 < 24)
            }),
            Kind::Interval if is_plain_interval => {
                interval_of(text).map(|(months, days, micros)| delta(py, months, days, micros))
            }
            Kind::TimestampTz | Kind::Interval => None,
        };
        match made {
            Some(Ok(value)) => Ok(value),
            // What the parts of a date can be is Python's to say.
            Some(Err(error)) if is_range(py, &error) => Err(self.refused(py, text, style)),
            Some(Err(error)) => Err(error),
            None => Err(self.refused(py, text, style)),
        }
    }

    /// `None` for bytes that are not of the type.
    pub(super) fn load_binary<'py>(
        &self,
        py: Python<'py>,
        bytes: &[u8],
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let made = match self.kind {
            Kind::Date => match bytes.try_into().map(i32::from_be_bytes) {
                Ok(days) if days != i32::MAX && days != i32::MIN => {
                    day_of(days.into()).map(|day| date(py, day))
                }
                _ => None,
            },
            Kind::Time => match bytes.try_into().map(i64::from_be_bytes) {
                Ok(micros) if (0..DAY).contains(&micros) => Some(time(py, clock_at(micros), None)),
                _ => None,
            },
            Kind::Timestamp | Kind::TimestampTz => match bytes.try_into().map(i64::from_be_bytes) {
                Ok(micros) if micros != i64::MAX && micros != i64::MIN => self.at(py, micros),
                _ => None,
            },
            Kind::Interval => parts_of(bytes).map(|(months, days, micros)| delta(py, months, days, micros)),
            Kind::TimeTz => None,
        };
        match made {
            Some(Err(error)) if is_range(py, &error) => Ok(None),
            made => made.transpose(),
        }
    }

    /// Of microseconds since 2000, in UTC where it has a zone.
    fn at<'py>(&self, py: Python<'py>, micros: i64) -> Option<PyResult<Bound<'py, PyAny>>> {
        let (day, clock) = (day_of(micros.div_euclid(DAY))?, clock_at(micros.rem_euclid(DAY)));
        if let (Kind::TimestampTz, Some(zone), false) = (self.kind, &self.zone, YEARS.contains(&day.0)) {
            return at_the_edge(py, micros, day.0, zone).transpose();
        }
        if self.kind == Kind::Timestamp {
            return Some(timestamp(py, day, clock, None));
        }
        let in_zone = || match &self.zone {
            Some(zone) if zone.is_utc => timestamp(py, day, clock, Some(zone.info.bind(py))),
            Some(zone) => {
                let made = timestamp(py, day, clock, Some(&PyTzInfo::utc(py)?.to_owned()))?;
                made.call_method1(pyo3::intern!(py, "astimezone"), (zone.info.bind(py),))
            }
            None => timestamp(py, day, clock, Some(&PyTzInfo::utc(py)?.to_owned())),
        };
        Some(in_zone())
    }

    /// A timestamp with an offset, in the session's zone.
    fn zoned<'py>(&self, py: Python<'py>, text: &[u8]) -> Option<PyResult<Bound<'py, PyAny>>> {
        let (day, rest) = text.split_at_checked(10)?;
        let (clock, rest) = clock_of(rest.strip_prefix(b" ")?)?;
        let (day, offset) = (iso_day(day)?, offset_of(rest)?);
        Some(in_zone(py, day, clock, offset, self.zone.as_ref()))
    }

    fn refused(&self, py: Python<'_>, text: &[u8], style: Style) -> PyErr {
        let (name, text) = (self.kind.name(), String::from_utf8_lossy(text));
        if self.kind == Kind::TimestampTz && style != Style::Iso {
            let problem = format!("cannot read timestamptz '{text}': set DateStyle to ISO");
            return PyNotImplementedError::new_err(problem);
        }
        if let (Kind::Date | Kind::Timestamp | Kind::TimestampTz, Some((size, why))) =
            (self.kind, beyond(&text))
        {
            let name = if self.kind == Kind::Date { "date" } else { "timestamp" };
            return misuse(py, "data", &format!("{name} too {size} for Python, {why}: '{text}'"));
        }
        if self.kind == Kind::Interval && !self.is_plain_interval {
            let problem = format!("cannot read interval {text:?}: set IntervalStyle to postgres");
            return PyNotImplementedError::new_err(problem);
        }
        let problem = format!(
            "{name} '{text}' is beyond what Python's type can hold, or is written in an unusual style"
        );
        misuse(py, "data", &problem)
    }
}

/// A day in a style.
fn day_in(style: Style, text: &[u8]) -> Option<Day> {
    match (style, text) {
        (Style::Iso, _) => iso_day(text),
        (Style::Sql(is_day_first), &[_, _, b'/', _, _, b'/', _, _, _, _])
        | (Style::Postgres(is_day_first), &[_, _, b'-', _, _, b'-', _, _, _, _]) => {
            let (first, second, year) = (two(text)?, two(&text[3..])?, four(&text[6..])?);
            Some(if is_day_first { (year, second, first) } else { (year, first, second) })
        }
        (Style::German, &[_, _, b'.', _, _, b'.', _, _, _, _]) => {
            Some((four(&text[6..])?, two(&text[3..])?, two(text)?))
        }
        _ => None,
    }
}

/// A day and a time of day in a style.
fn moment_in(style: Style, text: &[u8]) -> Option<(Day, Clock)> {
    if let Style::Postgres(is_day_first) = style {
        return named_moment(text, is_day_first);
    }
    let (day, rest) = text.split_at_checked(10)?;
    let (clock, rest) = clock_of(rest.strip_prefix(b" ")?)?;
    Some((day_in(style, day)?, clock)).filter(|_| rest.is_empty())
}

/// The moment of a local time and its offset, in a zone. The server writes local times of the session's own zone, so that
/// most often only the offset has to be compared.
fn in_zone<'py>(
    py: Python<'py>,
    day: Day,
    clock: Clock,
    offset: i32,
    zone: Option<&Zone>,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(zone) = zone else { return timestamp(py, day, clock, Some(&fixed(py, offset)?)) };
    let info = zone.info.bind(py);
    if zone.is_utc && offset == 0 {
        return timestamp(py, day, clock, Some(info));
    }
    for fold in [false, true] {
        let made = folded(py, day, clock, info, fold)?;
        let found = info.call_method1(pyo3::intern!(py, "utcoffset"), (&made,))?;
        let is_right = found.cast::<PyDelta>().is_ok_and(|found| {
            found.get_days() * 86_400 + found.get_seconds() == offset && found.get_microseconds() == 0
        });
        if is_right {
            return Ok(made.into_any());
        }
    }
    // The two know different rules for the zone: the moment is what counts.
    timestamp(py, day, clock, Some(&fixed(py, offset)?))?.call_method1("astimezone", (info,))
}

/// On which side a day is beyond Python's years, which are 1 to 9999, and why.
fn beyond(text: &str) -> Option<(&'static str, &'static str)> {
    match text {
        "infinity" => return Some(("large", "which has no infinite ones")),
        "-infinity" => return Some(("small", "which has no infinite ones")),
        _ if text.ends_with("BC") => return Some(("small", "whose years begin with 1")),
        _ => {}
    }
    // Times of day have colons, and a fraction may be as long.
    let mut numbers = text
        .split(' ')
        .filter(|word| !word.contains(':'))
        .flat_map(|word| word.split(|sign: char| !sign.is_ascii_digit()).filter(|number| number.len() > 4));
    numbers.next().map(|_| ("large", "whose years end with 9999"))
}

/// The years that Python has.
const YEARS: std::ops::RangeInclusive<i32> = 1..=9999;

/// A moment that is beyond Python's years in UTC, and perhaps not in a zone.
fn at_the_edge<'py>(
    py: Python<'py>,
    micros: i64,
    year: i32,
    zone: &Zone,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let info = zone.info.bind(py);
    let class = PyDateTime::type_object(py);
    let last = class.getattr(if year < 1 { "min" } else { "max" })?;
    let offset = info.call_method1(pyo3::intern!(py, "utcoffset"), (last,))?;
    let Ok(offset) = offset.cast::<PyDelta>() else { return Ok(None) };
    let seconds = i64::from(offset.get_days()) * 86_400 + i64::from(offset.get_seconds());
    let local = micros + seconds * SECOND;
    match day_of(local.div_euclid(DAY)) {
        Some(day) if YEARS.contains(&day.0) => {
            timestamp(py, day, clock_at(local.rem_euclid(DAY)), Some(info)).map(Some)
        }
        _ => Ok(None),
    }
}

fn zone(py: Python<'_>, name: &str) -> Option<Zone> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let class = CLASS.import(py, "zoneinfo", "ZoneInfo").ok()?;
    let info = class.call1((name,)).ok()?.cast_into::<PyTzInfo>().ok()?;
    Some(Zone { info: info.unbind(), is_utc: matches!(name, "UTC" | "Etc/UTC" | "GMT" | "Etc/GMT") })
}

/// The zone of an offset in seconds.
fn fixed(py: Python<'_>, offset: i32) -> PyResult<Bound<'_, PyTzInfo>> {
    if offset == 0 {
        return Ok(PyTzInfo::utc(py)?.to_owned());
    }
    PyTzInfo::fixed_offset(py, PyDelta::new(py, 0, offset, 0, true)?)
}

fn date(py: Python<'_>, (year, month, day): Day) -> PyResult<Bound<'_, PyAny>> {
    Ok(PyDate::new(py, year, month, day)?.into_any())
}

fn time<'py>(
    py: Python<'py>,
    clock: Clock,
    zone: Option<&Bound<'py, PyTzInfo>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (hour, minute, second, micros) = clock;
    Ok(PyTime::new(py, hour, minute, second, micros, zone)?.into_any())
}

fn timestamp<'py>(
    py: Python<'py>,
    (year, month, day): Day,
    (hour, minute, second, micros): Clock,
    zone: Option<&Bound<'py, PyTzInfo>>,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(PyDateTime::new(py, year, month, day, hour, minute, second, micros, zone)?.into_any())
}

fn folded<'py>(
    py: Python<'py>,
    (year, month, day): Day,
    (hour, minute, second, micros): Clock,
    zone: &Bound<'py, PyTzInfo>,
    fold: bool,
) -> PyResult<Bound<'py, PyDateTime>> {
    if !fold {
        return PyDateTime::new(py, year, month, day, hour, minute, second, micros, Some(zone));
    }
    PyDateTime::new_with_fold(py, year, month, day, hour, minute, second, micros, Some(zone), fold)
}

/// A month counts 30 days and a year 365, as they do for psycopg.
fn delta(py: Python<'_>, months: i32, days: i32, micros: i64) -> PyResult<Bound<'_, PyAny>> {
    let of_months = i64::from(months / 12) * 365 + i64::from(months % 12) * 30;
    let all = of_months + i64::from(days) + micros.div_euclid(DAY);
    let micros = micros.rem_euclid(DAY);
    let all = i32::try_from(all).map_err(|_| PyOverflowError::new_err("an interval that is too long"))?;
    // Both are less than a day, so that there is nothing to carry.
    let (seconds, micros) = ((micros / SECOND) as i32, (micros % SECOND) as i32);
    Ok(PyDelta::new(py, all, seconds, micros, false)?.into_any())
}

fn is_range(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<pyo3::exceptions::PyValueError>(py) || error.is_instance_of::<PyOverflowError>(py)
}

fn day_of(days: i64) -> Option<Day> {
    let (year, month, day) = date_of(days);
    Some((i32::try_from(year).ok()?, month as u8, day as u8))
}

fn clock_at(micros: i64) -> Clock {
    let (hours, minutes, seconds) = (micros / HOUR, micros / MINUTE % 60, micros / SECOND % 60);
    (hours as u8, minutes as u8, seconds as u8, (micros % SECOND) as u32)
}

#[inline]
fn digit(sign: u8) -> Option<u8> {
    let digit = sign.wrapping_sub(b'0');
    (digit < 10).then_some(digit)
}

#[inline]
fn two(text: &[u8]) -> Option<u8> {
    match text {
        [a, b, ..] => Some(digit(*a)? * 10 + digit(*b)?),
        _ => None,
    }
}

#[inline]
fn four(text: &[u8]) -> Option<i32> {
    match text {
        [_, _, rest @ ..] => Some(i32::from(two(text)?) * 100 + i32::from(two(rest)?)),
        _ => None,
    }
}

#[inline]
fn iso_day(text: &[u8]) -> Option<Day> {
    match text {
        [_, _, _, _, b'-', _, _, b'-', _, _] => Some((four(text)?, two(&text[5..])?, two(&text[8..])?)),
        _ => None,
    }
}

/// `HH:MM:SS[.ffffff]`, and what follows.
#[inline]
fn clock_of(text: &[u8]) -> Option<(Clock, &[u8])> {
    let [_, _, b':', _, _, b':', _, _, rest @ ..] = text else { return None };
    let (hour, minute, second) = (two(text)?, two(&text[3..])?, two(&text[6..])?);
    let Some(mut rest) = rest.strip_prefix(b".") else { return Some(((hour, minute, second, 0), rest)) };
    let (mut micros, mut digits) = (0_u32, 0);
    while let [sign, after @ ..] = rest {
        let Some(digit) = digit(*sign) else { break };
        micros = micros * 10 + u32::from(digit);
        digits += 1;
        rest = after;
        if digits > 6 {
            return None;
        }
    }
    Some(((hour, minute, second, micros * 10_u32.pow(6 - digits)), rest))
}

/// Seconds to the east of `±HH[:MM[:SS]]`.
#[inline]
fn offset_of(text: &[u8]) -> Option<i32> {
    let (sign, mut rest) = match text {
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let mut seconds = i32::from(two(rest)?) * 3600;
    rest = &rest[2..];
    for unit in [60, 1] {
        if let Some(after) = rest.strip_prefix(b":") {
            seconds += i32::from(two(after)?) * unit;
            rest = &after[2..];
        }
    }
    rest.is_empty().then_some(sign * seconds)
}

/// `Wed Dec 17 07:37:16 1997`, or with the day before the month.
fn named_moment(text: &[u8], is_day_first: bool) -> Option<(Day, Clock)> {
    let mut words = std::str::from_utf8(text).ok()?.split(' ').skip(1);
    let (first, second, clock, year) = (words.next()?, words.next()?, words.next()?, words.next()?);
    if words.next().is_some() {
        return None;
    }
    let (day, month) = if is_day_first { (first, second) } else { (second, first) };
    let month = MONTHS.iter().position(|name| *name == month)? as u8 + 1;
    let (clock, rest) = clock_of(clock.as_bytes())?;
    let year = if year.len() == 4 { four(year.as_bytes())? } else { return None };
    Some(((year, month, day.parse().ok()?), clock)).filter(|_| rest.is_empty())
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
