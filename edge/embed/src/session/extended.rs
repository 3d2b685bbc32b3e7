//! The extended protocol: Parse, Bind, Describe, Execute, Close.

use std::rc::Rc;

use onetrip_wire::pg::{Bind, Execute, Parse, StatementOrPortal, backend, frame};

use super::output::Output;
use super::portal::{Portal, put_description, text_columns};
use super::prepared::Prepared;
use super::{Failure, Session, ends_transaction};
use crate::error::{SqlError, SqlResult};
use crate::sql::{OutputColumn, Statement, Utility};
use crate::types::SqlType;

impl<'c> Session<'c> {
    pub(super) fn parse(&mut self, parse: &Parse<'_>, out: &mut Output<'_>) -> Result<(), Failure> {
        let text = utf8(parse.text)?;
        let given = parse
            .parameter_oids()
            .map(|oid| match SqlType::of_oid(oid) {
                _ if oid == 0 => Ok(SqlType::UNKNOWN),
                Some(ty) => Ok(ty),
                None => Err(SqlError::unsupported(format!(
                    "parameters of the type with OID {oid} are not supported"
                ))),
            })
            .collect::<SqlResult<Vec<_>>>()?;
        let prepared = self.prepare(text, &given).map_err(|error| error.positioned(text, 0))?;
        if !ends_transaction(&prepared.statement) && !matches!(prepared.statement, Statement::Empty) {
            self.transaction.check_usable()?;
        }
        self.name_statement(parse.statement, prepared)?;
        out.bare(backend::PARSE_COMPLETE);
        Ok(())
    }

    pub(super) fn prepare(&mut self, text: &str, given: &[SqlType]) -> SqlResult<Rc<Prepared<'c>>> {
        let epoch = self.schema_epoch();
        self.plans.get(&self.schema, text, given, epoch)
    }

    pub(super) fn name_statement(&mut self, name: &[u8], prepared: Rc<Prepared<'c>>) -> SqlResult<()> {
        if name.is_empty() {
            self.unnamed_statement = Some(prepared);
            return Ok(());
        }
        self.statements.insert(name, prepared)
    }

    pub(super) fn find_statement(&self, name: &[u8]) -> SqlResult<Rc<Prepared<'c>>> {
        let found = if name.is_empty() { self.unnamed_statement.as_ref() } else { self.statements.get(name) };
        found.cloned().ok_or_else(|| {
            let message = match String::from_utf8_lossy(name) {
                name if name.is_empty() => "unnamed prepared statement does not exist".to_owned(),
                name => format!("prepared statement \"{name}\" does not exist"),
            };
            SqlError::new("26000", message)
        })
    }

    pub(super) fn bind(&mut self, bind: &Bind<'_>, out: &mut Output<'_>) -> Result<(), Failure> {
        let prepared = self.find_statement(bind.statement)?;
        if !ends_transaction(&prepared.statement) {
            self.transaction.check_usable()?;
        }
        prepared.refresh(&self.schema, self.schema_epoch())?;
        if bind.portal.is_empty() {
            if let Some(portal) = self.unnamed_portal.take() {
                self.spare_formats = portal.close();
            }
        } else {
            let values: usize = bind.parameters.iter().flatten().map(<[u8]>::len).sum();
            self.check_portals(bind.portal, prepared.bytes + values)?;
        }
        let mut portal = self.open_portal(prepared)?;
        if let Err(error) = portal.bind(bind) {
            self.spare_formats = portal.close();
            return Err(error.into());
        }
        let count = match self.utility_columns(&portal.prepared.statement) {
            Ok(Some(columns)) => columns.len(),
            _ => portal.prepared.columns().len(),
        };
        let codes = bind.result_formats.codes().len() / 2;
        if codes > 1 && codes != count {
            self.spare_formats = portal.close();
            let message = format!("bind message has {codes} result formats but query has {count} columns");
            return Err(SqlError::protocol(message).into());
        }
        portal.formats.extend((0..count).map(|index| bind.result_formats.of(index)));
        if bind.portal.is_empty() {
            self.unnamed_portal = Some(portal);
        } else {
            self.portals.insert(bind.portal.to_vec(), portal);
        }
        out.bare(backend::BIND_COMPLETE);
        Ok(())
    }

    pub(super) fn execute(
        &mut self,
        execute: &Execute<'_>,
        next_is_sync: bool,
        out: &mut Output<'_>,
    ) -> Result<(), Failure> {
        let limit = execute.row_limit.map(|limit| u64::from(limit.get()));
        if execute.portal.is_empty() {
            let mut portal = self.unnamed_portal.take().ok_or_else(|| no_portal(b""))?;
            let done = self.run(&mut portal, limit, (next_is_sync, false), out);
            // A COMMIT that it ran closed all portals but this one.
            self.unnamed_portal = Some(portal);
            return done;
        }
        let (name, mut portal) =
            self.portals.remove_entry(execute.portal).ok_or_else(|| no_portal(execute.portal))?;
        let done = self.run(&mut portal, limit, (next_is_sync, false), out);
        self.portals.insert(name, portal);
        done
    }

    pub(super) fn describe(
        &mut self,
        what: StatementOrPortal<'_>,
        out: &mut Output<'_>,
    ) -> Result<(), Failure> {
        match what {
            StatementOrPortal::Statement(name) => {
                let prepared = self.find_statement(name)?;
                frame(&mut out.buffer, backend::PARAMETER_DESCRIPTION, |out| {
                    let parameters = prepared.parameters();
                    out.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
                    for ty in parameters {
                        out.extend_from_slice(&ty.oid().to_be_bytes());
                    }
                });
                self.put_columns(&prepared, &[], out)?;
            }
            StatementOrPortal::Portal(name) => {
                let portal = self.find_portal(name)?;
                let (prepared, formats) = (Rc::clone(&portal.prepared), portal.formats.clone());
                self.put_columns(&prepared, &formats, out)?;
            }
        }
        Ok(())
    }

    fn put_columns(
        &self,
        prepared: &Prepared<'c>,
        formats: &[onetrip_wire::pg::Format],
        out: &mut Output<'_>,
    ) -> SqlResult<()> {
        let utility_columns = self.utility_columns(&prepared.statement)?;
        let columns = utility_columns.as_deref().unwrap_or(prepared.columns());
        if columns.is_empty() {
            out.bare(backend::NO_DATA);
        } else {
            put_description(&mut out.buffer, columns, formats);
        }
        Ok(())
    }

    /// The columns of what the session answers itself.
    pub(super) fn utility_columns(&self, statement: &Statement) -> SqlResult<Option<Vec<OutputColumn>>> {
        let Statement::Utility(utility) = statement else { return Ok(None) };
        Ok(match utility {
            Utility::Show(name) if name == "all" => Some(text_columns(&["name", "setting", "description"])),
            Utility::Show(name) => Some(text_columns(&[name])),
            Utility::Fetch { cursor, is_move: false, .. } => {
                Some(self.find_portal(cursor.as_bytes())?.prepared.columns().to_vec())
            }
            Utility::Question(question) => Some(text_columns(&vec!["?column?"; question.column_count()])),
            Utility::Execute { name, .. } => Some(self.find_statement(name.as_bytes())?.columns().to_vec()),
            _ => None,
        })
    }

    pub(super) fn find_portal(&self, name: &[u8]) -> SqlResult<&Portal<'c>> {
        let found = if name.is_empty() { self.unnamed_portal.as_ref() } else { self.portals.get(name) };
        found.ok_or_else(|| no_portal(name))
    }

    pub(super) fn close(&mut self, what: StatementOrPortal<'_>, out: &mut Output<'_>) -> Result<(), Failure> {
        match what {
            StatementOrPortal::Statement(b"") => self.unnamed_statement = None,
            StatementOrPortal::Statement(name) => self.statements.remove(name),
            StatementOrPortal::Portal(b"") => {
                if let Some(portal) = self.unnamed_portal.take() {
                    self.spare_formats = portal.close();
                }
            }
            StatementOrPortal::Portal(name) => {
                if let Some(portal) = self.portals.remove(name) {
                    portal.close();
                }
            }
        }
        out.bare(backend::CLOSE_COMPLETE);
        Ok(())
    }
}

pub(super) fn no_portal(name: &[u8]) -> SqlError {
    let name = String::from_utf8_lossy(name);
    SqlError::new("34000", format!("portal \"{name}\" does not exist"))
}

pub(super) fn utf8(bytes: &[u8]) -> SqlResult<&str> {
    std::str::from_utf8(bytes)
        .map_err(|_| SqlError::new("22021", "invalid byte sequence for encoding \"UTF8\""))
}
