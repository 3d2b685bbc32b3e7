//! Settings of a session that are undone with its transaction.

use super::failure::Failure;

/// Name, first value, and whether the client is told of changes.
const SETTINGS: [(&str, &str, bool); 18] = [
    ("application_name", "", true),
    ("timezone", "UTC", true),
    ("default_transaction_isolation", "read committed", false),
    ("lock_timeout", "0", false),
    ("idle_in_transaction_session_timeout", "0", false),
    ("statement_timeout", "0", false),
    ("exit_on_error", "off", false),
    ("work_mem", "4MB", false),
    ("search_path", "public", false),
    ("enable_hashjoin", "on", false),
    ("enable_indexscan", "on", false),
    ("enable_seqscan", "on", false),
    ("enable_nestloop", "on", false),
    ("enable_bitmapscan", "on", false),
    ("max_parallel_workers_per_gather", "2", false),
    ("jit", "on", false),
    ("transaction_isolation", "read committed", false),
    ("transaction_read_only", "off", false),
];

/// The values of one session, in the order of [`SETTINGS`].
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    values: [String; SETTINGS.len()],
    /// As the session goes on with after its transaction.
    kept: [String; SETTINGS.len()],
    told: [String; SETTINGS.len()],
    /// What the server's configuration has said in place of the first values, the last of them last.
    configured: Vec<(usize, String)>,
    /// When the session has read it last.
    configured_at: u64,
}

/// Settings as they were.
#[derive(Debug, Clone)]
pub(crate) struct Before {
    values: [String; SETTINGS.len()],
    kept: [String; SETTINGS.len()],
}

impl Default for Settings {
    fn default() -> Self {
        let values = SETTINGS.map(|(_, value, _)| value.to_owned());
        Self { kept: values.clone(), told: values.clone(), values, configured: Vec::new(), configured_at: 0 }
    }
}

/// How the server writes the names of those that it tells.
pub(crate) fn shown(name: &str) -> &str {
    if name == "timezone" { "TimeZone" } else { name }
}

fn place(name: &str) -> Result<usize, Failure> {
    let name = name.to_lowercase();
    SETTINGS
        .iter()
        .position(|(one, ..)| *one == name)
        .ok_or_else(|| Failure::new("42704", format!("unrecognized configuration parameter \"{name}\"")))
}

impl Settings {
    pub(crate) fn get(&self, name: &str) -> Result<&str, Failure> {
        Ok(&self.values[place(name)?])
    }

    /// Sets, or resets with `None`; what is local lasts until the transaction ends.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>, is_local: bool) -> Result<(), Failure> {
        let place = place(name)?;
        let value = value.unwrap_or(self.first(place)).to_owned();
        if !is_local {
            self.kept[place].clone_from(&value);
        }
        self.values[place] = value;
        Ok(())
    }

    /// The server has read its configuration anew: it has another value for sessions that have set none.
    pub(crate) fn configure(&mut self, name: &str, value: &str, now: u64) {
        self.configured_at = now;
        if let Ok(place) = place(name) {
            self.configured.push((place, value.to_owned()));
            self.follow_configuration();
        }
    }

    /// When the session has read the configuration last.
    pub(crate) fn configured_at(&self) -> u64 {
        self.configured_at
    }

    /// Values that are no session's own are those of the configuration.
    fn follow_configuration(&mut self) {
        for (place, _) in &self.configured {
            let first = self.first(*place).to_owned();
            let is_old = |value: &String| {
                *value == SETTINGS[*place].1
                    || self.configured.iter().any(|(other, old)| other == place && old == value)
            };
            for values in [&mut self.values, &mut self.kept] {
                if is_old(&values[*place]) {
                    values[*place].clone_from(&first);
                }
            }
        }
    }

    /// The value of a session that has set none.
    fn first(&self, place: usize) -> &str {
        let configured = self.configured.iter().rev().find(|(other, _)| *other == place);
        configured.map_or(SETTINGS[place].1, |(_, value)| value)
    }

    /// How many hours east the session's times are written.
    pub(crate) fn zone_hours(&self) -> i64 {
        match self.get("timezone") {
            Ok("Europe/Paris") => 1,
            Ok("Asia/Karachi") => 5,
            Ok("Asia/Tokyo") => 9,
            _ => 0,
        }
    }

    pub(crate) fn reset_all(&mut self) {
        let own = SETTINGS.iter().position(|(name, ..)| *name == "transaction_isolation");
        for place in 0..own.unwrap_or(SETTINGS.len()) {
            let first = self.first(place).to_owned();
            self.kept[place].clone_from(&first);
            self.values[place] = first;
        }
    }

    pub(crate) fn before(&self) -> Before {
        Before { values: self.values.clone(), kept: self.kept.clone() }
    }

    pub(crate) fn take_back(&mut self, before: &Before) {
        self.values.clone_from(&before.values);
        self.kept.clone_from(&before.kept);
        self.follow_configuration();
    }

    /// The transaction is over: what was local is gone.
    pub(crate) fn transaction_over(&mut self) {
        self.values.clone_from(&self.kept);
    }

    /// What the client is to be told of: names and values.
    pub(crate) fn changes(&mut self) -> Vec<(&'static str, String)> {
        let mut out = Vec::new();
        for (place, (name, _, is_told)) in SETTINGS.iter().enumerate() {
            if *is_told && self.told[place] != self.values[place] {
                self.told[place].clone_from(&self.values[place]);
                out.push((shown(name), self.values[place].clone()));
            }
        }
        out
    }

    /// Longest wait for a lock, in nanoseconds.
    pub(crate) fn lock_timeout(&self) -> Option<u64> {
        self.limit("lock_timeout")
    }

    /// Longest time between two messages in a transaction, in nanoseconds.
    pub(crate) fn idle_timeout(&self) -> Option<u64> {
        self.limit("idle_in_transaction_session_timeout")
    }

    /// What a pooler's one session has been left with by another client.
    pub(crate) fn go_on_as(&mut self, other: &Self) {
        self.values.clone_from(&other.values);
        self.kept.clone_from(&other.kept);
    }

    /// Whether the server's own functions hide those of users.
    pub(crate) fn has_builtins_first(&self) -> bool {
        !self.get("search_path").is_ok_and(|path| path.starts_with("other"))
    }

    /// Whether another one has the same values, but for what is local.
    pub(crate) fn is_kept_in(&self, other: &Self) -> bool {
        self.kept == other.kept
    }

    fn limit(&self, name: &str) -> Option<u64> {
        let text = self.get(name).ok()?.trim_end_matches("ms");
        text.parse::<u64>().ok().filter(|ms| *ms > 0).map(|ms| ms * 1_000_000)
    }

    /// Those that an answer to a Parse may depend on.
    pub(crate) fn digest(&self) -> String {
        const SHAPING: [&str; 1] = ["timezone"];
        SHAPING.into_iter().filter_map(|name| self.get(name).ok()).collect::<Vec<_>>().join("|")
    }

    pub(crate) fn all(&self) -> String {
        self.values.join("|")
    }
}
