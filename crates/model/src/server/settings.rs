//! Settings of a session that are undone with its transaction.

use super::failure::Failure;

/// Name, first value, and whether the client is told of changes.
const SETTINGS: [(&str, &str, bool); 9] = [
    ("application_name", "", true),
    ("timezone", "UTC", true),
    ("default_transaction_isolation", "read committed", false),
    ("lock_timeout", "0", false),
    ("statement_timeout", "0", false),
    ("work_mem", "4MB", false),
    ("enable_hashjoin", "on", false),
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
        Self { kept: values.clone(), told: values.clone(), values }
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
        let value = value.unwrap_or(SETTINGS[place].1);
        self.values[place] = value.to_owned();
        if !is_local {
            self.kept[place] = value.to_owned();
        }
        Ok(())
    }

    pub(crate) fn reset_all(&mut self) {
        let fresh = Self::default();
        let own = SETTINGS.iter().position(|(name, ..)| *name == "transaction_isolation");
        for place in 0..own.unwrap_or(SETTINGS.len()) {
            self.values[place] = fresh.values[place].clone();
            self.kept[place] = fresh.values[place].clone();
        }
    }

    pub(crate) fn before(&self) -> Before {
        Before { values: self.values.clone(), kept: self.kept.clone() }
    }

    pub(crate) fn take_back(&mut self, before: &Before) {
        self.values.clone_from(&before.values);
        self.kept.clone_from(&before.kept);
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
        let text = self.get("lock_timeout").ok()?.trim_end_matches("ms");
        text.parse::<u64>().ok().filter(|ms| *ms > 0).map(|ms| ms * 1_000_000)
    }

    pub(crate) fn all(&self) -> String {
        self.values.join("|")
    }
}
