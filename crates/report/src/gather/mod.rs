//! What the page draws and a summary does not keep: gathered trip by trip, in memory that does not grow with them.

mod curve;
mod histogram;
mod waterfall;

pub use curve::{Curve, CurveLine, CurvePoint};
pub use histogram::{Bar, Histogram};
pub use waterfall::{Lane, Span, TripSample, Waterfall};
