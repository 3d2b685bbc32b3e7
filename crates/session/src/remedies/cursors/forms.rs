//! Results that no setting shapes (rule R2): what was read ahead is what would be read later.

use onetrip_sql::purity::{Needs, Operand};
use onetrip_wire::pg::{Format, Oid};

use crate::statements::ResultFormats;

/// Whether each column is written alike under all settings but `client_encoding`.
pub(crate) fn is_free(columns: &[Oid], formats: &ResultFormats) -> bool {
    columns.iter().enumerate().all(|(position, oid)| {
        TEXT_FREE.binary_search(oid).is_ok()
            || (formats.of(position) == Format::Binary && BINARY_FREE.binary_search(oid).is_ok())
    })
}

/// Whether a statement that only reads computes alike under all settings: it uses functions, operators and casts that
/// look at none. Two columns may be a date and a `timestamptz`, whose comparison looks at the time zone.
pub(crate) fn computes_free(needs: &Needs) -> bool {
    !needs.facts.reads_settings
        && !needs.has_function_in_from
        && needs.fields.iter().all(|name| ROW_FUNCTIONS.binary_search(&&**name).is_err())
        && needs.functions.iter().all(|name| FUNCTIONS.binary_search(&&*name.name).is_ok())
        && needs.types.iter().all(|name| TYPES.binary_search(&&*name.name).is_ok())
        && needs.operators.iter().all(|used| {
            let is_one_type = used.left == Operand::Untyped || used.right == Operand::Untyped;
            let name = &*used.operator.name;
            OPERATORS.contains(&name) || (COMPARISONS.contains(&name) && is_one_type)
        })
}

/// Immutable where both sides have one type.
const COMPARISONS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

/// Immutable for each built-in type that has them.
const OPERATORS: [&str; 10] = ["*", "/", "%", "~~", "!~~", "~~*", "!~~*", "~", "&", "|"];

/// Functions of whole rows, which `t.f` may stand for. Sorted.
const ROW_FUNCTIONS: [&str; 11] = [
    "concat",
    "json_agg",
    "json_build_array",
    "jsonb_agg",
    "jsonb_build_array",
    "quote_literal",
    "quote_nullable",
    "row_to_json",
    "string_agg",
    "to_json",
    "to_jsonb",
];

/// Immutable in each overload. Sorted.
const FUNCTIONS: [&str; 22] = [
    "abs",
    "avg",
    "bool_and",
    "bool_or",
    "btrim",
    "ceil",
    "char_length",
    "count",
    "dense_rank",
    "floor",
    "length",
    "lower",
    "ltrim",
    "max",
    "min",
    "rank",
    "replace",
    "row_number",
    "rtrim",
    "substring",
    "sum",
    "upper",
];

/// Casts to these look at no setting, whatever they come from. Sorted.
const TYPES: [&str; 6] = ["bool", "float8", "int2", "int4", "int8", "uuid"];

/// Types whose text looks at no setting. Sorted.
const TEXT_FREE: [Oid; 39] = [
    16, 18, 19, 20, 21, 23, 25, 26, 27, 28, 114, 199, 650, 651, 774, 829, 869, 1000, 1002, 1005, 1007, 1009,
    1014, 1015, 1016, 1028, 1040, 1041, 1042, 1043, 1231, 1560, 1562, 1700, 2950, 2951, 3802, 3807, 3904,
];

/// Types whose binary form looks at none. Sorted.
const BINARY_FREE: [Oid; 18] =
    [17, 700, 701, 790, 1001, 1021, 1022, 1082, 1083, 1114, 1115, 1182, 1183, 1184, 1185, 1186, 1187, 1266];

#[cfg(test)]
mod tests {
    use onetrip_sql::purity::read;

    use super::*;

    #[test]
    fn lists_are_sorted_and_a_type_is_free_as_text_or_as_binary() {
        assert!(
            TEXT_FREE.is_sorted() && BINARY_FREE.is_sorted() && FUNCTIONS.is_sorted() && TYPES.is_sorted()
        );
        assert!(ROW_FUNCTIONS.is_sorted());
        let text = ResultFormats::default();
        let binary = ResultFormats::new(&[0, 1]);
        assert!(is_free(&[23, 25, 1700], &text) && is_free(&[23, 1184], &binary));
        for shaped in [1184, 1082, 701, 17, 2205, 16_500] {
            assert!(!is_free(&[23, shaped], &text), "{shaped}");
        }
        assert!(!is_free(&[2205, 16_500], &binary), "unknown types are not free");
    }

    #[test]
    fn what_looks_at_settings_is_not_free() {
        let free = |text: &str| computes_free(&read(text).expect("it only reads"));
        for text in [
            "SELECT id, v FROM t WHERE id > 5 ORDER BY id",
            "SELECT count(*), max(t.v) FROM t WHERE v LIKE 'a%'",
            "SELECT id FROM t WHERE v = $1 LIMIT 10",
        ] {
            assert!(free(text), "{text}");
        }
        for text in [
            "SELECT current_user FROM t",
            "SELECT to_char(at, 'YYYY') FROM t",
            "SELECT at::text FROM t",
            "SELECT v || 'x' FROM t",
            "SELECT id FROM t WHERE day < at",
            "SELECT id FROM t JOIN u ON t.day = u.at",
            "SELECT t.to_json FROM t",
        ] {
            assert!(!free(text), "{text}");
        }
    }
}
