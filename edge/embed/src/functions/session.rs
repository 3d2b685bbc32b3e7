//! What a session says of itself, and PostgreSQL's administrative functions.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Outcome, Registry, or_null, real_arg, text_arg};
use crate::error::{SqlError, SqlResult};
use crate::session::settings::Settings;
use crate::types::{SqlType, declared_type};
use crate::value::{Stored, now_micros, uuid_text};
use crate::watch::Watch;

/// What functions know of the session that calls them.
pub(crate) struct SessionFacts {
    /// Microseconds since 2000-01-01.
    transaction_start: AtomicI64,
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) process_id: u32,
    pub(crate) watch: Arc<Watch>,
    settings: Mutex<Settings>,
}

impl SessionFacts {
    pub(crate) fn new(
        user: String,
        database: String,
        process_id: u32,
        settings: Settings,
        watch: Arc<Watch>,
    ) -> Self {
        Self {
            transaction_start: AtomicI64::new(now_micros()),
            user,
            database,
            process_id,
            watch,
            settings: Mutex::new(settings),
        }
    }

    pub(crate) fn transaction_start(&self) -> i64 {
        let start = self.transaction_start.load(Ordering::Relaxed);
        if start != 0 {
            return start;
        }
        let now = now_micros();
        self.transaction_start.store(now, Ordering::Relaxed);
        now
    }

    /// The next question for the time starts a new transaction's clock.
    pub(crate) fn forget_transaction_start(&self) {
        self.transaction_start.store(0, Ordering::Relaxed);
    }

    pub(crate) fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Longer than anyone waits.
const SLEEP_SECONDS_MAX: f64 = 1e9;

/// What `version()` says.
pub(crate) const VERSION: &str =
    concat!("PostgreSQL 15.0 compatible onetrip ", env!("CARGO_PKG_VERSION"), " over SQLite");

pub(super) fn register(registry: &Registry<'_>, facts: &Arc<SessionFacts>) -> rusqlite::Result<()> {
    register_names(registry, facts)?;
    register_settings(registry, facts)?;
    register_constants(registry)?;
    registry.pure("format_type", 2, format_type)?;
    register_types(registry)?;
    let session = Arc::clone(facts);
    registry.volatile("onetrip_settings", 0, move |_| {
        let settings = session.settings();
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let pairs: Vec<_> = settings
            .all()
            .map(|(name, value)| format!("\"{}\":\"{}\"", escaped(name), escaped(value)))
            .collect();
        Ok(Stored::OwnedText(format!("{{{}}}", pairs.join(","))))
    })?;
    registry.volatile("gen_random_uuid", 0, |_| {
        let mut bytes = [0u8; 16];
        getrandom::fill(&mut bytes).map_err(|_| SqlError::new("58000", "the system gave no random bytes"))?;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Ok(Stored::Short(uuid_text(bytes)))
    })?;
    let session = Arc::clone(facts);
    registry.volatile("pg_sleep", 1, move |context| {
        let seconds = or_null!(real_arg(context, 0)).clamp(0.0, SLEEP_SECONDS_MAX);
        if session.watch.sleep(Duration::try_from_secs_f64(seconds).unwrap_or_default()) {
            Ok(Stored::Text(""))
        } else {
            Err(SqlError::cancelled())
        }
    })
}

fn register_names(registry: &Registry<'_>, facts: &Arc<SessionFacts>) -> rusqlite::Result<()> {
    let session = Arc::clone(facts);
    registry.volatile("onetrip_session", 1, move |context| {
        Ok(Stored::OwnedText(match &*or_null!(text_arg(context, 0)) {
            "current_catalog" => session.database.clone(),
            "current_schema" => "public".to_owned(),
            _ => session.user.clone(),
        }))
    })?;
    let session = Arc::clone(facts);
    registry.volatile("current_database", 0, move |_| Ok(Stored::OwnedText(session.database.clone())))?;
    let session = Arc::clone(facts);
    registry.volatile("pg_get_userbyid", 1, move |_| Ok(Stored::OwnedText(session.user.clone())))?;
    let session = Arc::clone(facts);
    registry.volatile("pg_backend_pid", 0, move |_| Ok(Stored::Integer(i64::from(session.process_id))))
}

fn register_settings(registry: &Registry<'_>, facts: &Arc<SessionFacts>) -> rusqlite::Result<()> {
    for arity in [1, 2] {
        let session = Arc::clone(facts);
        registry.volatile("current_setting", arity, move |context| {
            let name = or_null!(text_arg(context, 0));
            let is_missing_ok = context.len() > 1 && context.get::<i64>(1).unwrap_or(0) != 0;
            match session.settings().get(&name) {
                Ok(value) => Ok(Stored::OwnedText(value.to_owned())),
                Err(_) if is_missing_ok => Ok(Stored::Null),
                Err(error) => Err(error),
            }
        })?;
    }
    let session = Arc::clone(facts);
    registry.volatile("set_config", 3, move |context| {
        let (name, value) = (or_null!(text_arg(context, 0)), or_null!(text_arg(context, 1)));
        let is_local = context.get::<i64>(2).unwrap_or(0) != 0;
        session.settings().set(&name, Some(&value), is_local)?;
        Ok(Stored::OwnedText(value.into_owned()))
    })
}

/// Functions that have one answer here.
fn register_constants(registry: &Registry<'_>) -> rusqlite::Result<()> {
    let constant = |name: &str, value: fn() -> Stored<'static>| registry.pure(name, -1, move |_| Ok(value()));
    constant("version", || Stored::Text(VERSION))?;
    for name in ALWAYS_TRUE {
        constant(name, || Stored::Integer(1))?;
    }
    for name in ALWAYS_FALSE {
        constant(name, || Stored::Integer(0))?;
    }
    for name in ALWAYS_NULL {
        constant(name, || Stored::Null)?;
    }
    for name in ["pg_advisory_unlock_all", "pg_advisory_lock"] {
        constant(name, || Stored::Text(""))?;
    }
    constant("pg_encoding_to_char", || Stored::Text("UTF8"))?;
    constant("pg_my_temp_schema", || Stored::Integer(0))?;
    constant("txid_current", || Stored::Integer(1))?;
    constant("current_schemas", || Stored::Text("[\"pg_catalog\",\"public\"]"))?;
    // A default's text is kept as it is: what PostgreSQL would have to print is there already.
    for arity in [2, 3] {
        registry.pure("pg_get_expr", arity, |context| {
            Ok(Stored::OwnedText(or_null!(text_arg(context, 0)).into_owned()))
        })?;
    }
    registry.pure("pg_size_pretty", 1, |context| {
        let bytes = or_null!(real_arg(context, 0));
        Ok(Stored::OwnedText(match bytes {
            small if small < 10_240.0 => format!("{small} bytes"),
            kilo if kilo < 10_485_760.0 => format!("{:.0} kB", kilo / 1024.0),
            mega => format!("{:.0} MB", mega / 1_048_576.0),
        }))
    })
}

const ALWAYS_TRUE: [&str; 11] = [
    "pg_table_is_visible",
    "pg_type_is_visible",
    "pg_function_is_visible",
    "pg_operator_is_visible",
    "pg_collation_is_visible",
    "pg_statistics_obj_is_visible",
    "has_table_privilege",
    "has_schema_privilege",
    "has_database_privilege",
    "has_column_privilege",
    "pg_try_advisory_lock",
];

const ALWAYS_FALSE: [&str; 4] =
    ["pg_is_in_recovery", "pg_is_other_temp_schema", "pg_relation_is_publishable", "row_security_active"];

const ALWAYS_NULL: [&str; 19] = [
    "obj_description",
    "col_description",
    "shobj_description",
    "pg_get_partkeydef",
    "pg_get_statisticsobjdef_columns",
    "pg_get_function_result",
    "pg_get_function_arguments",
    "pg_get_ruledef",
    "pg_get_triggerdef",
    "pg_get_serial_sequence",
    "inet_server_addr",
    "inet_client_addr",
    "pg_tablespace_location",
    "pg_partition_ancestors",
    "pg_partition_root",
    "pg_table_size",
    "pg_total_relation_size",
    "pg_relation_size",
    "pg_database_size",
];

/// Types of declared columns, for the catalogue's views.
fn register_types(registry: &Registry<'_>) -> rusqlite::Result<()> {
    let declared = |context: &rusqlite::functions::Context<'_>| -> SqlResult<SqlType> {
        let declaration = text_arg(context, 0)?.unwrap_or_default();
        Ok(declared_type(&declaration).unwrap_or(SqlType::TEXT))
    };
    registry.pure("onetrip_type_oid", 2, move |context| {
        let is_int4 = context.get::<i64>(1).unwrap_or(0) != 0;
        let ty = if is_int4 { SqlType::INT4 } else { declared(context)? };
        Ok(Stored::Integer(i64::from(ty.oid())))
    })?;
    registry.pure("onetrip_type_modifier", 1, move |context| {
        Ok(Stored::Integer(i64::from(declared(context)?.modifier)))
    })?;
    registry.pure("onetrip_type_len", 1, |context| {
        let oid = or_null!(super::integer_arg(context, 0));
        let ty = u32::try_from(oid).ok().and_then(SqlType::of_oid).unwrap_or(SqlType::TEXT);
        Ok(Stored::Integer(i64::from(ty.len())))
    })?;
    registry.pure("onetrip_action", 1, |context| {
        Ok(Stored::Text(match &*or_null!(text_arg(context, 0)) {
            "CASCADE" => "c",
            "RESTRICT" => "r",
            "SET NULL" => "n",
            "SET DEFAULT" => "d",
            _ => "a",
        }))
    })
}

fn format_type(context: &rusqlite::functions::Context<'_>) -> Outcome {
    let oid = or_null!(super::integer_arg(context, 0));
    let modifier =
        super::integer_arg(context, 1)?.and_then(|modifier| i32::try_from(modifier).ok()).unwrap_or(-1);
    let ty: SqlResult<Option<SqlType>> = Ok(u32::try_from(oid).ok().and_then(SqlType::of_oid));
    Ok(Stored::OwnedText(match ty? {
        Some(ty) => SqlType { modifier, ..ty }.sql_name(),
        None if oid == 0 => "-".to_owned(),
        None => "???".to_owned(),
    }))
}
