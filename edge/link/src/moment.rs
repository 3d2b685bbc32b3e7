//! Time as the schedule has it.

/// A moment on a clock whose origin the caller chose: the time since that origin.
pub type Moment = std::time::Duration;
