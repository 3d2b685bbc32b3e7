//! Bodies of a client's messages: no decoder panics, and what decodes encodes back to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onetrip_wire::pg::{Bind, Execute, Parse, StatementOrPortal, frame, frontend};

fuzz_target!(|data: &[u8]| {
    let Some((&tag, body)) = data.split_first() else { return };
    let mut again = Vec::new();
    let decoded = match tag {
        frontend::PARSE => Parse::decode(body).map(|parse| {
            parse.parameter_oids().count();
            parse.encode(&mut again);
        }),
        frontend::BIND => Bind::decode(body).map(|bind| {
            for position in 0..bind.parameters.len() {
                let _ = (bind.parameter_formats.of(position), bind.result_formats.of(position));
            }
            assert_eq!(bind.parameters.iter().count(), bind.parameters.len());
            bind.encode(&mut again);
        }),
        frontend::EXECUTE => Execute::decode(body).map(|execute| execute.encode(&mut again)),
        frontend::DESCRIBE | frontend::CLOSE => {
            StatementOrPortal::decode(body).map(|named| named.encode(tag, &mut again))
        }
        _ => return,
    };
    if decoded.is_ok() {
        let mut came = Vec::new();
        frame(&mut came, tag, |out| out.extend_from_slice(body));
        assert_eq!(again, came);
    }
});
