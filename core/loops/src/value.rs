//! What goes in and out: templates, parameter values, columns.

/// A statement's text with its values lifted, as one session knows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Template {
    /// The session's number for it.
    pub id: u32,
    /// A hash of everything that makes it the same statement in any session (text, parameter types, result formats):
    /// what is learnt about loops is kept under it. Two templates that share one by accident cost wrong guesses only.
    pub key: u64,
    /// A hash of the text alone, which is the same for all forms of the statement.
    pub kin: u64,
}

/// A statement on its way to the server, or a guess at one. Tickets of one predictor increase and are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// How a parameter's value is written in its statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// A bound parameter in text format.
    Text,
    /// A bound parameter in binary format, with its type's oid; zero if that is not known.
    Binary(u32),
    /// A number in the statement's text, with its sign if the template does not have it.
    Number,
    /// A string literal `'…'` in the statement's text: the bytes between the quotes, quotes inside still doubled.
    Quoted,
}

/// A parameter's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value<'a> {
    /// The bytes as they travel; `None` is NULL.
    pub bytes: Option<&'a [u8]>,
    /// How they are written.
    pub form: Form,
}

/// A statement that the program sends.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// Which statement.
    pub template: Template,
    /// Its values, in the order of the template's places.
    pub values: &'a [Value<'a>],
}

/// How a result's column travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// As text.
    Text,
    /// In the type's binary form.
    Binary,
}

/// A column of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Column {
    /// Its type's oid.
    pub oid: u32,
    /// How its values travel.
    pub format: Format,
}
