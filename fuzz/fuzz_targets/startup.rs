//! First packets of a client: no panic, and what decodes encodes back to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onetrip_wire::pg::{Startup, encode_cancel_request, encode_ssl_request, encode_startup};

fuzz_target!(|data: &[u8]| {
    let Some(Ok(length)) = Startup::peek_len(data) else { return };
    assert!((8..=10_004).contains(&length));
    let Some(packet) = data.get(..length) else { return };
    let mut again = Vec::new();
    match Startup::decode(&packet[4..]) {
        Ok(Startup::SslRequest) => encode_ssl_request(&mut again),
        Ok(Startup::Cancel(request)) => encode_cancel_request(&mut again, request),
        Ok(Startup::Session(message)) => {
            let _ = message.parameters.get("user");
            encode_startup(&mut again, message.version, message.parameters.iter());
        }
        Ok(Startup::GssEncRequest) | Err(_) => return,
    }
    assert_eq!(again, packet);
});
