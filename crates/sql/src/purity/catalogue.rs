//! What users have added to one database, and the verdict on a statement in it.

use std::collections::BTreeSet;

use super::builder::CatalogueBuilder;
use super::impure::Impure;
use super::needs::{Facts, Needs, ObjectName};

/// A snapshot of what users have added to one database, as one session sees it.
#[derive(Debug, Default)]
pub struct Catalogue {
    pub(super) search_path: Vec<Box<str>>,
    pub(super) current_user: Box<str>,
    pub(super) session_user: Box<str>,
    pub(super) has_temporary_schema: bool,
    pub(super) is_listening: bool,
}

/// A statement that only reads rows of the snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pure {
    /// Tables and materialised views that it reads, directly or through views; each with its schema.
    pub relations: BTreeSet<ObjectName>,
    /// Facts of the statement; the clock and the settings also through views.
    pub facts: Facts,
}

impl Catalogue {
    /// Takes the rows of [`super::CATALOGUE_QUERY`].
    pub fn builder() -> CatalogueBuilder {
        CatalogueBuilder::default()
    }

    /// Schemas in which names are looked up, in order, the implicit ones included (`current_schemas(true)`).
    pub fn search_path(&self) -> &[Box<str>] {
        &self.search_path
    }

    /// The role in force when the query ran.
    pub fn current_user(&self) -> &str {
        &self.current_user
    }

    /// The role that logged in.
    pub fn session_user(&self) -> &str {
        &self.session_user
    }

    /// Whether the session has made a temporary object since it began.
    pub fn has_temporary_schema(&self) -> bool {
        self.has_temporary_schema
    }

    /// Whether the session is LISTENing to anything.
    pub fn is_listening(&self) -> bool {
        self.is_listening
    }

    /// Whether a statement with these needs is pure.
    ///
    /// # Errors
    ///
    /// The first object found that is not known to be harmless.
    pub fn check(&self, needs: &Needs) -> Result<Pure, Impure> {
        match needs.relations.first() {
            Some(relation) => Err(Impure::UnknownRelation(relation.clone())),
            None => Err(Impure::Database("the catalogue is not known")),
        }
    }
}
