//! What there is of a session, in lines.

use super::Connection;

impl Connection {
    /// What the session's state is, in lines; what is private begins so.
    pub(crate) fn shown(&self, private: &str) -> Vec<String> {
        let backend = &self.backend;
        let mut out = vec![
            format!("status {}", char::from(backend.status())),
            format!("settings {}", backend.settings.all()),
        ];
        let is_own = |name: &[u8]| !name.is_empty() && !name.starts_with(private.as_bytes());
        let names = |kind: &str, name: &Vec<u8>| format!("{kind} {}", String::from_utf8_lossy(name));
        out.extend(backend.prepared.keys().filter(|name| is_own(name)).map(|name| names("statement", name)));
        out.extend(backend.portals.keys().filter(|name| is_own(name)).map(|name| names("portal", name)));
        if let Some(transaction) = &backend.transaction {
            let savepoints = transaction.savepoints.iter().map(|savepoint| &savepoint.name);
            out.extend(
                savepoints.filter(|name| !name.starts_with(private)).map(|name| format!("savepoint {name}")),
            );
            let (level, read_only) = (transaction.level, transaction.read_only);
            let (snapshot, writes) = (transaction.snapshot, transaction.xid.is_some());
            if !transaction.has_failed {
                out.push(format!("{level:?} read only {read_only} snapshot {snapshot:?} writes {writes}"));
            }
        }
        out
    }
}
