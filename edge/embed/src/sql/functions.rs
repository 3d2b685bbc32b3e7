//! Types of function results, and SQLite's names for PostgreSQL's functions.

use super::analysis::Typed;
use crate::types::{Base, SqlType};

/// The type that can hold both; the first one where PostgreSQL would refuse.
pub(crate) fn common_type(left: SqlType, right: SqlType) -> SqlType {
    if left == right || right.is_unknown() {
        return left;
    }
    if left.is_unknown() {
        return right;
    }
    let stronger = |rank: fn(Base) -> u8| if rank(left.base) >= rank(right.base) { left } else { right };
    if left.base.is_number() && right.base.is_number() {
        return stronger(number_rank).without_modifier();
    }
    if left.base.is_moment() && right.base.is_moment() {
        return stronger(moment_rank).without_modifier();
    }
    if left.base.is_text() && right.base.is_text() && !left.is_array {
        return SqlType::TEXT;
    }
    left.without_modifier()
}

fn number_rank(base: Base) -> u8 {
    match base {
        Base::Int2 => 1,
        Base::Int4 => 2,
        Base::Int8 => 4,
        Base::Numeric => 5,
        Base::Float4 => 6,
        Base::Float8 => 7,
        _ => 3,
    }
}

fn moment_rank(base: Base) -> u8 {
    match base {
        Base::Date => 1,
        Base::Timestamp => 2,
        _ => 3,
    }
}

/// What PostgreSQL's operators on numbers give.
pub(crate) fn arithmetic_type(left: SqlType, right: SqlType) -> SqlType {
    let common = common_type(left, right).without_modifier();
    let has_float = |ty: SqlType| matches!(ty.base, Base::Float4 | Base::Float8);
    match common.base {
        Base::Float4 if left.base != right.base => SqlType::of(Base::Float8),
        Base::Numeric if has_float(left) || has_float(right) => SqlType::of(Base::Float8),
        Base::Oid | Base::Regclass => SqlType::INT8,
        _ => common,
    }
}

/// SQLite's or this crate's function for a PostgreSQL one that differs by name only.
pub(crate) fn sqlite_name(name: &str) -> Option<&'static str> {
    Some(match name {
        "char_length" | "character_length" => "length",
        "btrim" => "trim",
        "strpos" => "instr",
        "array_agg" | "json_agg" | "jsonb_agg" => "json_group_array",
        "bool_and" | "every" => "min",
        "bool_or" => "max",
        "json_build_array" | "jsonb_build_array" => "json_array",
        "json_build_object" | "jsonb_build_object" => "json_object",
        "json_object_agg" | "jsonb_object_agg" => "json_group_object",
        "json_array_length" | "jsonb_array_length" => "json_array_length",
        "position" => "onetrip_position",
        "substring" | "substr" => "onetrip_substring",
        "extract" | "date_part" => "onetrip_extract",
        "random" => "onetrip_random",
        "greatest" => "onetrip_greatest",
        "least" => "onetrip_least",
        "replace" => "replace",
        "left" => "onetrip_left",
        "right" => "onetrip_right",
        "round" => "onetrip_round",
        _ => return None,
    })
}

/// The type of a call with arguments of these types; unknown for a function that is not known.
pub(crate) fn result_type(name: &str, args: &[Typed]) -> Typed {
    let first = args.first().copied().unwrap_or(Typed::UNKNOWN);
    let of = |base| Typed::of(SqlType::of(base));
    let has_float = matches!(first.ty.base, Base::Float4 | Base::Float8);
    let float_or_numeric = || of(if has_float { Base::Float8 } else { Base::Numeric });
    let common = || {
        let ty = args.iter().fold(SqlType::UNKNOWN, |ty, arg| common_type(ty, arg.ty));
        Typed { ty, scale: args.iter().filter_map(|arg| arg.scale).max(), not_null: false }
    };
    match name {
        "sum" => {
            let base = match first.ty.base {
                Base::Int2 | Base::Int4 => Base::Int8,
                Base::Float4 => Base::Float4,
                Base::Float8 => Base::Float8,
                _ => Base::Numeric,
            };
            Typed { scale: first.scale, ..of(base) }
        }
        "avg" | "round" | "floor" | "ceil" | "ceiling" | "trunc" | "sign" => float_or_numeric(),
        "min" | "max" | "abs" | "lag" | "lead" | "first_value" | "last_value" | "nth_value"
        | "onetrip_one_of" => Typed { ty: first.ty.without_modifier(), scale: first.scale, not_null: false },
        "mod" => Typed::of(arithmetic_type(first.ty, args.get(1).map_or(first.ty, |arg| arg.ty))),
        "coalesce" => Typed { not_null: args.iter().any(|arg| arg.not_null), ..common() },
        "greatest" | "least" | "generate_series" => common(),
        "nullif" => Typed { ty: first.ty, scale: first.scale, not_null: false },
        "date_trunc" => match args.get(1).map(|arg| arg.ty.base) {
            Some(Base::Timestamp) => of(Base::Timestamp),
            _ => of(Base::Timestamptz),
        },
        "unnest" => Typed::of(first.ty.element()),
        "array_agg" | "array" => Typed::of(SqlType { is_array: true, ..first.ty.without_modifier() }),
        "current_schemas" => Typed::of(SqlType::array_of(Base::Name)),
        "string_to_array" | "array_append" | "get_lines" => Typed::of(SqlType::array_of(Base::Text)),
        _ => match fixed_type(name) {
            Some(Base::Int8) => Typed { not_null: true, ..of(Base::Int8) },
            Some(base) => of(base),
            None => Typed::UNKNOWN,
        },
    }
}

/// The type of a function that gives the same one whatever its arguments are.
fn fixed_type(name: &str) -> Option<Base> {
    let found = FIXED_TYPES.iter().find(|(_, names)| names.contains(&name));
    let is_visible = name.starts_with("pg_") && name.ends_with("_is_visible");
    found.map(|(base, _)| *base).or(is_visible.then_some(Base::Bool))
}

/// Functions by the type that they give. Those of bigint never give NULL.
const FIXED_TYPES: &[(Base, &[&str])] = &[
    (
        Base::Int8,
        &[
            "count",
            "row_number",
            "rank",
            "dense_rank",
            "txid_current",
            "nextval",
            "currval",
            "lastval",
            "setval",
            "pg_table_size",
            "pg_total_relation_size",
            "pg_relation_size",
            "pg_database_size",
        ],
    ),
    (
        Base::Int4,
        &[
            "length",
            "char_length",
            "character_length",
            "octet_length",
            "bit_length",
            "position",
            "strpos",
            "ascii",
            "ntile",
            "pg_backend_pid",
            "json_array_length",
            "jsonb_array_length",
            "array_length",
            "array_upper",
            "array_lower",
            "cardinality",
            "onetrip_days_between",
        ],
    ),
    (
        Base::Float8,
        &[
            "sqrt",
            "power",
            "pow",
            "exp",
            "ln",
            "log",
            "random",
            "pi",
            "sin",
            "cos",
            "tan",
            "date_part",
            "degrees",
            "radians",
            "stddev",
            "variance",
        ],
    ),
    (Base::Numeric, &["extract"]),
    (
        Base::Timestamptz,
        &[
            "now",
            "current_timestamp",
            "transaction_timestamp",
            "statement_timestamp",
            "clock_timestamp",
            "to_timestamp",
            "pg_postmaster_start_time",
            "pg_conf_load_time",
        ],
    ),
    (Base::Timestamp, &["localtimestamp"]),
    (Base::Date, &["current_date"]),
    (Base::Time, &["current_time", "localtime"]),
    (
        Base::Bool,
        &[
            "bool_and",
            "bool_or",
            "every",
            "starts_with",
            "json_valid",
            "pg_try_advisory_lock",
            "has_table_privilege",
            "has_schema_privilege",
            "has_database_privilege",
            "pg_is_in_recovery",
            "pg_is_other_temp_schema",
            "has_column_privilege",
            "pg_relation_is_publishable",
            "row_security_active",
        ],
    ),
    (Base::Uuid, &["gen_random_uuid"]),
    (
        Base::Json,
        &["json_agg", "json_build_array", "json_build_object", "json_object_agg", "to_json", "row_to_json"],
    ),
    (Base::Jsonb, &["jsonb_agg", "jsonb_build_array", "jsonb_build_object", "jsonb_object_agg", "to_jsonb"]),
    (
        Base::Name,
        &[
            "current_user",
            "session_user",
            "user",
            "current_role",
            "current_schema",
            "current_catalog",
            "current_database",
            "pg_get_userbyid",
            "pg_encoding_to_char",
            "getpgusername",
        ],
    ),
    (Base::Void, &["pg_sleep", "pg_advisory_unlock_all", "pg_advisory_lock", "put_line"]),
    (Base::Oid, &["pg_my_temp_schema"]),
    (Base::Regclass, &["to_regclass"]),
    (Base::Regtype, &["to_regtype"]),
    (Base::Bytea, &["decode", "sha256", "convert_to"]),
    (Base::Text, TEXT_FUNCTIONS),
];

const TEXT_FUNCTIONS: &[&str] = &[
    "array_to_string",
    "btrim",
    "chr",
    "col_description",
    "concat",
    "concat_ws",
    "convert_from",
    "current_setting",
    "encode",
    "format",
    "get_line",
    "format_type",
    "inet_client_addr",
    "inet_server_addr",
    "initcap",
    "left",
    "lower",
    "lpad",
    "ltrim",
    "md5",
    "obj_description",
    "overlay",
    "pg_get_constraintdef",
    "pg_get_expr",
    "pg_get_function_arguments",
    "pg_get_function_identity_arguments",
    "pg_get_function_result",
    "pg_get_indexdef",
    "pg_get_keywords",
    "pg_get_partkeydef",
    "pg_get_ruledef",
    "pg_get_serial_sequence",
    "pg_get_statisticsobjdef_columns",
    "pg_get_triggerdef",
    "pg_get_viewdef",
    "pg_size_pretty",
    "pg_tablespace_location",
    "pg_typeof",
    "quote_ident",
    "quote_literal",
    "regexp_replace",
    "repeat",
    "replace",
    "reverse",
    "right",
    "rpad",
    "rtrim",
    "set_config",
    "shobj_description",
    "split_part",
    "string_agg",
    "substr",
    "substring",
    "to_char",
    "to_hex",
    "translate",
    "trim",
    "typeof",
    "upper",
    "version",
];
