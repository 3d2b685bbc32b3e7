//! What breaks while a program runs, and what may become of the program then.

pub(crate) mod oracle;
pub(crate) mod relay;
pub(crate) mod trial;
