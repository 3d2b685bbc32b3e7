//! Programs on PostgreSQL itself.
