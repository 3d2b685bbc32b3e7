/// One column: a field of a line of JSON, of CSV's header and of Parquet's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What a value is: `string`, `int64`, `boolean`, `timestamp`, `date`, or a list.
    pub kind: &'static str,
    /// Unit of a value; empty where it has none.
    pub unit: &'static str,
    /// What it says.
    pub meaning: &'static str,
}

const fn column(name: &'static str, kind: &'static str, unit: &'static str, meaning: &'static str) -> Column {
    Column { name, kind, unit, meaning }
}

/// So many of [`COLUMNS`], the first ones, are directories of a Parquet export and not columns of its files.
pub const PARTITIONS: usize = 2;

/// The columns of an exchange, in order. `docs/rows.md` has them, too.
pub const COLUMNS: &[Column] = &[
    column("day", "date", "", "day of `sent_at` in UTC"),
    column(
        "host",
        "string",
        "",
        "address of the database, with `-` for all but letters, digits, `.` and `_`. A capture of several servers has the first one's",
    ),
    column("connection", "int64", "", "number of the connection in the trace, from 1"),
    column("exchange", "int64", "", "number of the exchange in its connection, from 1"),
    column(
        "unit",
        "string",
        "",
        "what the client sent: `connect`, `query`, `group`, `flushed-group`, `function-call` or `copy-in`",
    ),
    column(
        "sent_at",
        "timestamp",
        "microseconds",
        "when the first byte of the unit was sent, in UTC by the clock of the machine that wrote the trace",
    ),
    column("sent_at_ns", "int64", "nanoseconds since the trace began", "the same on a monotonic clock"),
    column("first_reply_at_ns", "int64", "nanoseconds since the trace began", "first byte of the reply"),
    column("last_reply_at_ns", "int64", "nanoseconds since the trace began", "last byte of the reply"),
    column("bytes_sent", "int64", "bytes", "what the client sent"),
    column("bytes_received", "int64", "bytes", "the reply"),
    column("starts_trip", "boolean", "", "nothing was unanswered when the unit was sent: it starts a trip"),
    column("may_share", "boolean", "", "the trip that it starts may be one with the trip before"),
    column("remedy", "string", "", "remedy that answered it before the server did; empty if none did"),
    column("obstacle", "string", "", "why remedies that were on did not answer it; empty if not known"),
    column("transaction", "string", "", "where the session stands after it: `idle`, `active` or `failed`"),
    column("outcome", "string", "", "`done`, `skipped`, or the SQLSTATE of the first error"),
    column("scope", "string", "", "label of the work; empty if it has none"),
    column("request", "string", "", "hash of the request, from a `traceparent`; empty if it has none"),
    column(
        "template",
        "string",
        "",
        "template of the statement that the unit was sent for: the last that is run, else the first; empty if there is none",
    ),
    column("rows", "int64", "rows", "returned or changed, by all statements"),
    column("cut_statements", "int64", "statements", "run and counted, but too many to be in `statements`"),
    column("statements", "list of statements", "", "the statements in order: see below"),
];

/// The fields of a statement, in order.
pub const STATEMENT_COLUMNS: &[Column] = &[
    column("template", "string", "", "text with its literals lifted; empty if not known"),
    column("kind", "string", "", "sort of statement by its verb, such as `select`, `insert` or `begin`"),
    column("tables", "list of strings", "", "tables after FROM and JOIN, without their schemas"),
    column(
        "compared",
        "list of parameter and column_name",
        "",
        "columns that are compared with a parameter, and the number of the parameter, from 1",
    ),
    column(
        "bounds",
        "list of int64",
        "",
        "numbers of parameters that choose a part of the rows: LIMIT, OFFSET, `<` and the like",
    ),
    column(
        "steps",
        "list of strings",
        "",
        "what happened to it here: `prepare`, `describe`, `bind`, `execute`, `close`",
    ),
    column("rows", "int64", "rows", "returned or changed"),
    column("row_limit", "int64", "rows", "most that were asked for at once; 0 for all"),
    column("outcome", "string", "", "`done`, `skipped`, or the SQLSTATE of the error"),
    column(
        "parameter_hashes",
        "list of strings",
        "",
        "keyed hash of each parameter, 16 hexadecimal digits; null for NULL and for values that are no keys",
    ),
    column(
        "parameters",
        "list of strings",
        "",
        "text of each parameter, if the trace keeps values; null for NULL",
    ),
    column("key_columns", "list of strings", "", "key-like columns of the result"),
    column(
        "key_hashes",
        "list of strings",
        "",
        "values of these columns, row after row: the last 8 digits of the hash that a parameter of this value has",
    ),
];
