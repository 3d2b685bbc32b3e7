//! `onetrip_cast` and what goes with it.

use rusqlite::types::ValueRef;

use super::{Outcome, Registry, owned, text_arg};
use crate::error::SqlError;
use crate::types::{Base, SqlType};
use crate::value::{
    Decimal, Moment, Stored, date_text, put_text_form, read_text, stored_decimal, time_text, timestamp_text,
};

pub(super) fn register(registry: &Registry<'_>) -> rusqlite::Result<()> {
    registry.pure("onetrip_cast", 5, |context| {
        let ty =
            |index| context.get::<i64>(index).ok().and_then(|oid| SqlType::of_oid(u32::try_from(oid).ok()?));
        let modifier = context.get::<i32>(2).unwrap_or(-1);
        let to = ty(1).map(|ty| SqlType { modifier, ..ty }).unwrap_or(SqlType::TEXT);
        let from = ty(3).unwrap_or(SqlType::UNKNOWN);
        let is_explicit = context.get::<i64>(4).unwrap_or(0) != 0;
        cast(context.get_raw(0), from, to, is_explicit)
    })?;
    registry.pure("onetrip_divisor", 1, |context| match context.get_raw(0) {
        ValueRef::Integer(0) => Err(SqlError::new("22012", "division by zero")),
        ValueRef::Real(0.0) => Err(SqlError::new("22012", "division by zero")),
        other => Ok(owned(other)),
    })?;
    registry.volatile("onetrip_relation", 2, |context| match context.get_raw(0) {
        ValueRef::Null => {
            let name = text_arg(context, 1)?.unwrap_or_default();
            Err(SqlError::new("42P01", format!("relation \"{name}\" does not exist")))
        }
        other => Ok(owned(other)),
    })
}

/// Converts a stored value between types; the result is in `to`'s stored form.
fn cast(value: ValueRef<'_>, from: SqlType, to: SqlType, is_explicit: bool) -> Outcome {
    if value == ValueRef::Null {
        return Ok(Stored::Null);
    }
    let from = if from.is_unknown() { type_of_storage(value) } else { from };
    if from.is_array || to.is_array {
        return cast_array(value, from, to);
    }
    let cannot = || {
        let (from, to) = (from.base.facts().sql_name, to.base.facts().sql_name);
        SqlError::new("42846", format!("cannot cast type {from} to {to}"))
    };
    match (from.base, to.base) {
        (Base::Bool, Base::Int4 | Base::Int2 | Base::Int8) => Ok(owned(value)),
        (Base::Bool, base) if base.is_text() => {
            let mut out = Vec::new();
            put_text_form(&mut out, from, None, value)?;
            Ok(Stored::Text(if out == b"t" { "true" } else { "false" }))
        }
        (base, Base::Bool) if base.is_integer() => {
            Ok(Stored::Integer(i64::from(value != ValueRef::Integer(0))))
        }
        (base, _) if base.is_number() && to.base.is_number() => cast_number(value, from.base, to),
        (base, _) if base.is_moment() && (to.base.is_moment() || to.base == Base::Time) => {
            cast_moment(value, from, to)
        }
        (_, Base::Bytea) if matches!(value, ValueRef::Blob(_)) => Ok(owned(value)),
        (base, _) if base.is_text() => read_owned(to, &text_form(value, from)?, is_explicit),
        (_, base) if base.is_text() => read_owned(to, &text_form(value, from)?, is_explicit),
        (a, b) if a == b => read_owned(to, &text_form(value, from)?, is_explicit),
        _ => Err(cannot()),
    }
}

fn type_of_storage(value: ValueRef<'_>) -> SqlType {
    SqlType::of(match value {
        ValueRef::Integer(_) => Base::Int8,
        ValueRef::Real(_) => Base::Float8,
        ValueRef::Blob(_) => Base::Bytea,
        _ => Base::Text,
    })
}

fn text_form(value: ValueRef<'_>, ty: SqlType) -> Result<String, SqlError> {
    let mut out = Vec::new();
    put_text_form(&mut out, ty, None, value)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Reads text; an explicit cast cuts what is too long for the type, an assignment refuses it.
fn read_owned(to: SqlType, text: &str, is_explicit: bool) -> Outcome {
    if let (true, Base::Varchar | Base::Bpchar, Some((length, _))) = (is_explicit, to.base, to.limits()) {
        return Ok(Stored::OwnedText(text.chars().take(length as usize).collect()));
    }
    Ok(owned(read_text(to, text)?.as_ref()))
}

fn cast_array(value: ValueRef<'_>, from: SqlType, to: SqlType) -> Outcome {
    let text = text_form(value, from)?;
    if to.is_array {
        return Ok(owned(read_text(to, &text)?.as_ref()));
    }
    Ok(Stored::OwnedText(text))
}

fn cast_number(value: ValueRef<'_>, from: Base, to: SqlType) -> Outcome {
    if to.base.is_integer() {
        let integer = match value {
            ValueRef::Integer(integer) => integer,
            ValueRef::Real(real) => {
                // Floats round half to even, numerics half away from zero.
                let rounded = if from == Base::Numeric { real.round() } else { real.round_ties_even() };
                if rounded.abs() >= 9.223_372_036_854_775e18 || rounded.is_nan() {
                    return Err(SqlError::out_of_range(to.base.facts().sql_name));
                }
                rounded as i64
            }
            other => return Ok(owned(read_text(to, &text_form(other, SqlType::of(from))?)?.as_ref())),
        };
        return Ok(Stored::Integer(crate::value::check_integer(to.base, integer)?));
    }
    if to.base == Base::Numeric {
        let decimal = match value {
            ValueRef::Integer(integer) => Decimal::of_integer(integer),
            ValueRef::Real(real) => Decimal::of_real(real)?,
            other => Decimal::parse(&text_form(other, SqlType::of(from))?)?,
        };
        return stored_decimal(to, decimal);
    }
    Ok(match value {
        ValueRef::Integer(integer) => Stored::Real(integer as f64),
        ValueRef::Real(real) if to.base == Base::Float4 => Stored::Real(f64::from(real as f32)),
        other => owned(other),
    })
}

fn cast_moment(value: ValueRef<'_>, from: SqlType, to: SqlType) -> Outcome {
    let text = text_form(value, from)?;
    let moment = Moment::parse(&text, to.base.facts().sql_name)?;
    // The session's zone is UTC: with and without zone are the same clock.
    let micros = if from.base == Base::Timestamptz { moment.utc_micros() } else { moment.local_micros() };
    let short = match to.base {
        Base::Date => date_text(micros.div_euclid(crate::value::DAY_MICROS)),
        Base::Time => time_text(micros.rem_euclid(crate::value::DAY_MICROS)),
        Base::Timestamptz => timestamp_text(micros, "+00"),
        _ => timestamp_text(micros, ""),
    };
    // Once more through the type's own input, which rounds to its digits.
    Ok(owned(read_text(to, short.as_str())?.as_ref()))
}
