//! Services: what several remedies need, and that knows none of them.
//!
//! `flights` runs ahead what remedies propose. `shadow` verifies answers from memory. `unseen` has the unnamed objects that the
//! server has not seen. `inquiries` are the questions to the server. `raised` notices what may never end. `own`, `arrived` and
//! `said` are what they and the remedies do alike with messages.

mod arrived;
pub(crate) mod flights;
pub(crate) mod inquiries;
mod own;
mod raised;
mod said;
mod shadow;
mod unseen;

pub(crate) use self::arrived::Arrived;
pub(crate) use self::flights::Flights;
pub(crate) use self::inquiries::Inquiries;
pub(crate) use self::own::{NO_LIMIT, put_answer, put_close, put_own_statement, read_only_text};
pub use self::raised::Endless;
pub(crate) use self::raised::Raised;
pub(crate) use self::said::{Own, Said};
pub(crate) use self::shadow::Shadow;
pub(crate) use self::unseen::Unseen;
