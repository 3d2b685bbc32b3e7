//! Numbers: rounding, powers, the greatest of a list.

use rusqlite::functions::Context;
use rusqlite::types::ValueRef;

use super::{Outcome, Registry, integer_arg, or_null, owned, real_arg};
use crate::error::SqlError;
use crate::value::Stored;

pub(super) fn register(registry: &Registry<'_>) -> rusqlite::Result<()> {
    for (name, function) in [
        ("floor", f64::floor as fn(f64) -> f64),
        ("ceil", f64::ceil),
        ("ceiling", f64::ceil),
        ("trunc", f64::trunc),
        ("exp", f64::exp),
        ("sin", f64::sin),
        ("cos", f64::cos),
        ("tan", f64::tan),
        ("degrees", f64::to_degrees),
        ("radians", f64::to_radians),
    ] {
        registry.pure(name, 1, move |context| match context.get_raw(0) {
            ValueRef::Integer(integer) if matches!(name, "floor" | "ceil" | "ceiling" | "trunc") => {
                Ok(Stored::Integer(integer))
            }
            _ => finite(function(or_null!(real_arg(context, 0)))),
        })?;
    }
    register_powers(registry)?;
    registry.pure("sign", 1, |context| {
        let real = or_null!(real_arg(context, 0));
        Ok(Stored::Integer(i64::from(real > 0.0) - i64::from(real < 0.0)))
    })?;
    registry.pure("pi", 0, |_| Ok(Stored::Real(std::f64::consts::PI)))?;
    registry.pure("mod", 2, modulo)?;
    registry.pure("onetrip_round", 1, |context| match context.get_raw(0) {
        ValueRef::Integer(integer) => Ok(Stored::Integer(integer)),
        _ => finite(or_null!(real_arg(context, 0)).round()),
    })?;
    registry.pure("onetrip_round", 2, |context| {
        let (real, digits) = (or_null!(real_arg(context, 0)), or_null!(integer_arg(context, 1)));
        round_to(real, digits)
    })?;
    registry.volatile("onetrip_random", 0, |_| {
        let bits = random_u64()? >> 11;
        Ok(Stored::Real(bits as f64 / (1u64 << 53) as f64))
    })?;
    for (name, wants_greatest) in [("onetrip_greatest", true), ("onetrip_least", false)] {
        registry.pure(name, -1, move |context| extreme(context, wants_greatest))?;
    }
    Ok(())
}

fn register_powers(registry: &Registry<'_>) -> rusqlite::Result<()> {
    registry.pure("sqrt", 1, |context| {
        let real = or_null!(real_arg(context, 0));
        if real < 0.0 {
            return Err(SqlError::new("22023", "cannot take square root of a negative number"));
        }
        Ok(Stored::Real(real.sqrt()))
    })?;
    for (name, function) in [("ln", f64::ln as fn(f64) -> f64), ("log", f64::log10)] {
        registry.pure(name, 1, move |context| {
            let real = or_null!(real_arg(context, 0));
            if real <= 0.0 {
                return Err(SqlError::new("22023", "cannot take logarithm of zero or a negative number"));
            }
            Ok(Stored::Real(function(real)))
        })?;
    }
    for name in ["power", "pow"] {
        registry.pure(name, 2, |context| {
            let (base, exponent) = (or_null!(real_arg(context, 0)), or_null!(real_arg(context, 1)));
            finite(base.powf(exponent))
        })?;
    }
    Ok(())
}

pub(super) fn random_u64() -> Result<u64, SqlError> {
    getrandom::u64().map_err(|_| SqlError::new("58000", "the system gave no random bytes"))
}

fn finite(real: f64) -> Outcome {
    if real.is_finite() { Ok(Stored::Real(real)) } else { Err(SqlError::out_of_range("double precision")) }
}

/// Half away from zero, in decimal: 1.005 to two digits is 1.01 as for PostgreSQL's numeric.
fn round_to(real: f64, digits: i64) -> Outcome {
    if !real.is_finite() {
        return Ok(Stored::Real(real));
    }
    if digits < 0 {
        let unit = 10f64.powi(i32::try_from(-digits).unwrap_or(i32::MAX));
        return finite((real / unit).round() * unit);
    }
    let decimal = crate::value::Decimal::of_real(real)?;
    let rounded = decimal.rescale(u32::try_from(digits).unwrap_or(30).min(30))?;
    crate::value::stored_decimal(crate::types::SqlType::of(crate::types::Base::Numeric), rounded)
}

fn modulo(context: &Context<'_>) -> Outcome {
    let by_zero = || SqlError::new("22012", "division by zero");
    match (context.get_raw(0), context.get_raw(1)) {
        (ValueRef::Null, _) | (_, ValueRef::Null) => Ok(Stored::Null),
        (ValueRef::Integer(_), ValueRef::Integer(0)) => Err(by_zero()),
        (ValueRef::Integer(left), ValueRef::Integer(right)) => Ok(Stored::Integer(left.wrapping_rem(right))),
        _ => {
            let (left, right) = (or_null!(real_arg(context, 0)), or_null!(real_arg(context, 1)));
            if right == 0.0 { Err(by_zero()) } else { finite(left % right) }
        }
    }
}

/// NULLs are passed over, as in PostgreSQL.
fn extreme(context: &Context<'_>, wants_greatest: bool) -> Outcome {
    let mut best = ValueRef::Null;
    for index in 0..context.len() {
        let value = context.get_raw(index);
        let is_better = match (best, value) {
            (_, ValueRef::Null) => false,
            (ValueRef::Null, _) => true,
            (best, value) => match compare(value, best) {
                std::cmp::Ordering::Greater => wants_greatest,
                std::cmp::Ordering::Less => !wants_greatest,
                std::cmp::Ordering::Equal => false,
            },
        };
        if is_better {
            best = value;
        }
    }
    Ok(owned(best))
}

fn compare(left: ValueRef<'_>, right: ValueRef<'_>) -> std::cmp::Ordering {
    let number = |value: ValueRef<'_>| match value {
        ValueRef::Integer(integer) => Some(integer as f64),
        ValueRef::Real(real) => Some(real),
        _ => None,
    };
    match (left, right) {
        (ValueRef::Integer(left), ValueRef::Integer(right)) => left.cmp(&right),
        (ValueRef::Text(left) | ValueRef::Blob(left), ValueRef::Text(right) | ValueRef::Blob(right)) => {
            left.cmp(right)
        }
        _ => number(left).partial_cmp(&number(right)).unwrap_or(std::cmp::Ordering::Equal),
    }
}
