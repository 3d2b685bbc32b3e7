//! Random queries over the live catalogue, in SQLsmith's manner: whatever functions, operators, types and tables the server
//! says that it has are put together by their types. The list is the server's, so a new version brings its own.

use super::random::Random;
use crate::common::server::Server;

/// Types that expressions are made of, each with a few literals; the last ones are the schema's own.
const TYPES: [(&str, &[&str]); 22] = [
    ("boolean", &["true", "false"]),
    ("smallint", &["2::smallint", "(-3)::smallint"]),
    ("integer", &["1", "7", "0", "id_"]),
    ("bigint", &["5::bigint", "(-9)::bigint", "3000000000"]),
    ("numeric", &["1.5", "-0.25", "100.00"]),
    ("real", &["0.5::real", "3::real"]),
    ("double precision", &["0.1::float8", "2e3::float8"]),
    ("text", &["'abc'::text", "''::text", "'x_%'::text", "'12'::text"]),
    ("character varying", &["'vc'::varchar"]),
    ("name", &["'public'::name"]),
    ("bytea", &["'\\x0102'::bytea", "'ab'::bytea"]),
    ("date", &["'2024-02-03'::date", "'01/02/2024'::date", "date '2020-12-31'"]),
    ("time without time zone", &["'04:05:06'::time"]),
    ("timestamp without time zone", &["'2024-02-03 04:05'::timestamp"]),
    ("timestamp with time zone", &["'2024-02-03 04:05+00'::timestamptz", "'2024-07-03 04:05'::timestamptz"]),
    ("interval", &["'1 day'::interval", "'2 hours 3 minutes'::interval"]),
    ("json", &["'{\"a\": [1, 2]}'::json"]),
    ("jsonb", &["'{\"a\": 1}'::jsonb", "'[1, 2, 3]'::jsonb"]),
    ("uuid", &["'00000000-0000-0000-0000-000000000001'::uuid"]),
    ("integer[]", &["ARRAY[1, 2, 3]", "'{}'::int[]"]),
    ("text[]", &["ARRAY['a', 'b']"]),
    ("mood", &["'ok'::mood"]),
];

/// Functions that do more than compute, that tell what no two runs share, or that want what is not at hand.
const LEFT_OUT: &str = "^(pg_|lo_|lo(read|write)|be_lo|binary_upgrade|brin|gin_|gist_|spg_|txid|set_config|query_to|table_to|\
    schema_to|database_to|cursor_to|clock_|timeofday|now$|statement_|transaction_|random|gen_random|uuid|setseed|nextval|currval|\
    lastval|setval|inet_(client|server)|version|ts_|current_|session_|suppress|system_user|side|dangling|zone|noisy|\
    repeat|lpad|rpad|generate|numeric_fac|factorial|power|pow|exp|dexp|dpow|xid|test|icu_|unicode|sleep|getpg|amvalid|\
    hashnumeric_ext|satisfies_|ri_|row_security|trigger|convert|float8_|int[248]_(accum|sum|avg)|interval_(accum|comb|avg)|numeric_(accum|avg|sum|poly)|normal_rand|erf|gamma|lgamma)";

#[derive(Debug)]
struct Function {
    name: String,
    arguments: Vec<usize>,
    result: usize,
}

#[derive(Debug)]
struct Operator {
    name: String,
    left: usize,
    right: usize,
    result: usize,
}

#[derive(Debug)]
struct Table {
    name: String,
    columns: Vec<(String, usize)>,
}

/// What a server has.
#[derive(Debug)]
pub(crate) struct Smith {
    functions: Vec<Function>,
    operators: Vec<Operator>,
    tables: Vec<Table>,
}

impl Smith {
    /// Reads the catalogue of a database that has the rig's tables.
    pub(crate) fn of(server: &Server, database: &str) -> Self {
        let rows = |text: &str| -> Vec<Vec<String>> {
            let lines = server.psql(database, text);
            lines.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect()
        };
        let functions = rows(&format!(
            "SELECT n.nspname || '.' || quote_ident(p.proname), coalesce((SELECT string_agg(format_type(t, NULL), ',' ORDER BY o) \
             FROM unnest(p.proargtypes) WITH ORDINALITY a(t, o)), ''), format_type(p.prorettype, NULL) \
             FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
             WHERE p.prokind = 'f' AND NOT p.proretset AND p.pronargs BETWEEN 1 AND 3 AND p.provariadic = 0 \
             AND n.nspname IN ('pg_catalog', 'public') AND p.proname !~ '{LEFT_OUT}' AND (n.nspname = 'public' OR p.provolatile <> 'v') \
             ORDER BY 1, 2"
        ));
        let operators = rows(
            "SELECT o.oprname, format_type(o.oprleft, NULL), format_type(o.oprright, NULL), format_type(o.oprresult, NULL) \
             FROM pg_operator o WHERE o.oprleft <> 0 AND o.oprnamespace = 'pg_catalog'::regnamespace AND o.oprname !~ '[|^@!]' ORDER BY 1, 2, 3",
        );
        let columns = rows(
            "SELECT c.relname, a.attname, format_type(a.atttypid, NULL) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid \
             WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v') AND a.attnum > 0 AND NOT a.attisdropped \
             AND c.relname NOT IN ('effects') ORDER BY c.relname, a.attnum",
        );
        let kind = |name: &str| TYPES.iter().position(|(known, _)| *known == name);
        let function = |row: &Vec<String>| {
            let arguments: Option<Vec<usize>> = row[1].split(',').map(kind).collect();
            Some(Function { name: row[0].clone(), arguments: arguments?, result: kind(&row[2])? })
        };
        let operator = |row: &Vec<String>| {
            let name = row[0].clone();
            Some(Operator { name, left: kind(&row[1])?, right: kind(&row[2])?, result: kind(&row[3])? })
        };
        let mut tables: Vec<Table> = Vec::new();
        for row in columns {
            let Some(kind) = kind(&row[2]) else { continue };
            match tables.last_mut() {
                Some(table) if table.name == row[0] => table.columns.push((row[1].clone(), kind)),
                _ => tables.push(Table { name: row[0].clone(), columns: vec![(row[1].clone(), kind)] }),
            }
        }
        let smith = Self {
            functions: functions.iter().filter_map(function).collect(),
            operators: operators.iter().filter_map(operator).collect(),
            tables,
        };
        assert!(
            smith.functions.len() > 300 && smith.operators.len() > 200 && smith.tables.len() > 10,
            "the catalogue is known: {} functions, {} operators, {} tables",
            smith.functions.len(),
            smith.operators.len(),
            smith.tables.len()
        );
        smith
    }

    /// How much there is.
    pub(crate) fn size(&self) -> (usize, usize, usize) {
        (self.functions.len(), self.operators.len(), self.tables.len())
    }

    /// A query; with `$1`, an int, if `is_parameterised`.
    pub(crate) fn query(&self, random: &mut Random, is_parameterised: bool) -> String {
        let tables: Vec<(String, &Table)> = (0..random.pick(&[1, 1, 1, 2]))
            .map(|number| (format!("t{number}"), &self.tables[random.below(self.tables.len())]))
            .collect();
        let scope: Vec<(String, usize)> = tables
            .iter()
            .flat_map(|(alias, table)| {
                table.columns.iter().map(move |(name, kind)| (format!("{alias}.\"{name}\""), *kind))
            })
            .collect();
        let mut build = Build { smith: self, random, scope, is_parameterised };
        let count = build.random.within(1..4);
        let columns: Vec<String> = (0..count)
            .map(|number| {
                let kind = build.random.below(TYPES.len());
                let depth = build.random.below(3);
                format!("{} AS c{number}", build.expression(kind, depth))
            })
            .collect();
        let from: Vec<String> =
            tables.iter().map(|(alias, table)| format!("public.{} {alias}", table.name)).collect();
        let mut conditions = Vec::new();
        if is_parameterised {
            let key = build.scope.iter().find(|(_, kind)| matches!(TYPES[*kind].0, "integer" | "bigint"));
            let key = key.map_or("1".to_owned(), |(name, _)| name.clone());
            conditions.push(format!("{key} {} $1", build.random.pick(&["=", "=", ">", "<>"])));
        }
        if build.random.one_in(3) {
            conditions.push(build.expression(0, 1));
        }
        let condition = if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        };
        let order = match build.random.below(4) {
            0 => String::new(),
            1 => format!(" ORDER BY {}, {}", build.scope[0].0, build.scope[build.scope.len() - 1].0),
            _ => format!(" ORDER BY {}", build.scope[0].0),
        };
        let limit = if build.random.one_in(4) { " LIMIT 30" } else { "" };
        format!("SELECT {} FROM {}{condition}{order}{limit}", columns.join(", "), from.join(", "))
    }
}

struct Build<'a> {
    smith: &'a Smith,
    random: &'a mut Random,
    /// Columns and their types.
    scope: Vec<(String, usize)>,
    is_parameterised: bool,
}

impl Build<'_> {
    fn expression(&mut self, kind: usize, depth: usize) -> String {
        let columns: Vec<String> =
            self.scope.iter().filter(|(_, of)| *of == kind).map(|(name, _)| name.clone()).collect();
        if depth == 0 {
            return match columns.is_empty() || self.random.one_in(4) {
                true => self.literal(kind),
                false => columns[self.random.below(columns.len())].clone(),
            };
        }
        match self.random.below(10) {
            0..=3 => self.call(kind, depth),
            4..=6 => self.operation(kind, depth),
            7 => {
                let (condition, one, two) = (
                    self.expression(0, depth - 1),
                    self.expression(kind, depth - 1),
                    self.expression(kind, 0),
                );
                format!("CASE WHEN {condition} THEN {one} ELSE {two} END")
            }
            8 => format!("coalesce({}, {})", self.expression(kind, depth - 1), self.literal(kind)),
            _ => {
                let table = &self.smith.tables[self.random.below(self.smith.tables.len())];
                let of_kind: Vec<&String> =
                    table.columns.iter().filter(|(_, of)| *of == kind).map(|(name, _)| name).collect();
                match of_kind.first() {
                    None => self.expression(kind, depth - 1),
                    Some(name) => format!(
                        "(SELECT max(x.\"{name}\"::text)::{} FROM public.{} x)",
                        TYPES[kind].0, table.name
                    ),
                }
            }
        }
    }

    fn literal(&mut self, kind: usize) -> String {
        match self.random.pick(TYPES[kind].1) {
            "id_" if self.is_parameterised => "$1".to_owned(),
            "id_" => "3".to_owned(),
            text => text.to_owned(),
        }
    }

    fn call(&mut self, kind: usize, depth: usize) -> String {
        let functions = &self.smith.functions;
        let start = self.random.below(functions.len());
        let found = (0..functions.len())
            .map(|offset| &functions[(start + offset) % functions.len()])
            .find(|function| function.result == kind);
        let Some(function) = found else { return self.expression(kind, depth - 1) };
        let arguments: Vec<String> =
            function.arguments.iter().map(|argument| self.expression(*argument, depth - 1)).collect();
        format!("{}({})", function.name, arguments.join(", "))
    }

    fn operation(&mut self, kind: usize, depth: usize) -> String {
        let operators = &self.smith.operators;
        let start = self.random.below(operators.len());
        let found = (0..operators.len())
            .map(|offset| &operators[(start + offset) % operators.len()])
            .find(|operator| operator.result == kind);
        let Some(operator) = found else { return self.expression(kind, depth - 1) };
        let (left, right) =
            (self.expression(operator.left, depth - 1), self.expression(operator.right, depth - 1));
        format!("({left} {} {right})", operator.name)
    }
}
