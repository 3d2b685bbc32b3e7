//! Services: what several remedies need, and that knows none of them.
//!
//! `flights` runs ahead what remedies propose, `shadow` verifies answers from memory, `unseen` has the unnamed objects that the
//! server has not seen; `own`, `arrived` and `said` are what they and the remedies do alike with messages.

mod arrived;
pub(crate) mod flights;
mod own;
mod said;
mod shadow;
mod unseen;

pub(crate) use self::arrived::Arrived;
pub(crate) use self::flights::Flights;
pub(crate) use self::own::{NO_LIMIT, put_answer, put_closes, put_own, put_own_statement, read_only_text};
pub(crate) use self::said::{Own, Said};
pub(crate) use self::shadow::Shadow;
pub(crate) use self::unseen::Unseen;
