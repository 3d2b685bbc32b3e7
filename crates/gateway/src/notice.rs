use std::sync::atomic::{AtomicU32, Ordering};

/// Notices printed per run; a broken network must not fill a terminal.
const NOTICES_MAX: u32 = 20;

/// Prints one line about something that went wrong and did not stop the gateway.
pub(crate) fn notice(text: &str) {
    static PRINTED: AtomicU32 = AtomicU32::new(0);
    match PRINTED.fetch_add(1, Ordering::Relaxed) {
        printed if printed < NOTICES_MAX => eprintln!("onetrip: {text}"),
        NOTICES_MAX => eprintln!("onetrip: further notices are not printed"),
        _ => {}
    }
}
