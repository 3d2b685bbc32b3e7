//! Bodies of a server's messages: no decoder panics, and what decodes encodes back to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onetrip_wire::pg::{
    Authentication, BackendKeyData, CommandComplete, DataRow, ErrorResponse, NegotiateProtocolVersion,
    ParameterDescription, ParameterStatus, RowDescription, TransactionStatus, backend,
    encode_ready_for_query, frame,
};

fuzz_target!(|data: &[u8]| {
    let Some((&tag, body)) = data.split_first() else { return };
    let mut again = Vec::new();
    let out = &mut again;
    let decoded = match tag {
        backend::DATA_ROW => DataRow::decode(body).map(|row| row.encode(out)),
        backend::ROW_DESCRIPTION => {
            RowDescription::decode(body).map(|rows| RowDescription::encode(out, rows.columns()))
        }
        backend::PARAMETER_DESCRIPTION => ParameterDescription::decode(body).map(|types| types.encode(out)),
        backend::PARAMETER_STATUS => ParameterStatus::decode(body).map(|status| status.encode(out)),
        backend::COMMAND_COMPLETE => CommandComplete::decode(body).map(|complete| {
            let _ = complete.rows();
            complete.encode(out);
        }),
        backend::BACKEND_KEY_DATA => BackendKeyData::decode(body).map(|key| key.encode(out)),
        backend::AUTHENTICATION => Authentication::decode(body).map(|message| {
            assert!(message.mechanisms().all(|name| !name.is_empty()));
            message.encode(out);
        }),
        backend::NEGOTIATE_PROTOCOL_VERSION => {
            NegotiateProtocolVersion::decode(body).map(|negotiation| negotiation.encode(out))
        }
        backend::READY_FOR_QUERY => {
            TransactionStatus::decode(body).map(|status| encode_ready_for_query(out, status))
        }
        backend::ERROR_RESPONSE => ErrorResponse::decode(body).map(|error| {
            let _ = (error.sqlstate(), error.is_fatal(), error.message());
            frame(out, tag, |out| {
                for (code, text) in error.fields() {
                    out.push(code);
                    out.extend_from_slice(text);
                    out.push(0);
                }
                out.push(0);
            });
        }),
        _ => return,
    };
    if decoded.is_ok() {
        let mut came = Vec::new();
        frame(&mut came, tag, |out| out.extend_from_slice(body));
        assert_eq!(again, came);
    }
});
