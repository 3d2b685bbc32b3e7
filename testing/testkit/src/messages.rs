//! Messages of a client, encoded.

use std::num::NonZeroU32;

use onetrip_wire::pg::{
    Execute, PROTOCOL_3_0, StatementOrPortal, encode_ssl_request, encode_startup, frame, frontend,
};

/// A startup packet of the servers' superuser.
pub fn startup(dbname: &str) -> Vec<u8> {
    startup_with(&[("user", "onetrip"), ("database", dbname)])
}

/// A startup packet with these parameters.
pub fn startup_with(parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    let pairs = parameters.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    encode_startup(&mut out, PROTOCOL_3_0, pairs);
    out
}

/// SSLRequest.
pub fn ssl_request() -> Vec<u8> {
    let mut out = Vec::new();
    encode_ssl_request(&mut out);
    out
}

/// GSSENCRequest.
pub fn gssenc_request() -> Vec<u8> {
    vec![0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x30]
}

/// Whether the server answers these bytes with a single byte.
pub fn is_encryption_request(bytes: &[u8]) -> bool {
    bytes == ssl_request() || bytes == gssenc_request()
}

/// Any message.
pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame(&mut out, tag, |out| out.extend_from_slice(body));
    out
}

/// A simple query.
pub fn query(text: &str) -> Vec<u8> {
    message(frontend::QUERY, &c_str(text))
}

/// Parse without types.
pub fn parse(statement: &str, text: &str) -> Vec<u8> {
    message(frontend::PARSE, &[c_str(statement), c_str(text), vec![0, 0]].concat())
}

/// Binds text parameters; results come as text.
pub fn bind(portal: &str, statement: &str, parameters: &[&[u8]]) -> Vec<u8> {
    let mut body = [c_str(portal), c_str(statement), vec![0, 0]].concat();
    body.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
    for parameter in parameters {
        body.extend_from_slice(&(parameter.len() as u32).to_be_bytes());
        body.extend_from_slice(parameter);
    }
    body.extend_from_slice(&[0, 0]);
    message(frontend::BIND, &body)
}

/// Describe of a statement.
pub fn describe_statement(name: &str) -> Vec<u8> {
    encoded(|out| StatementOrPortal::Statement(name.as_bytes()).encode(frontend::DESCRIBE, out))
}

/// Describe of a portal.
pub fn describe_portal(name: &str) -> Vec<u8> {
    encoded(|out| StatementOrPortal::Portal(name.as_bytes()).encode(frontend::DESCRIBE, out))
}

/// Close of a statement.
pub fn close_statement(name: &str) -> Vec<u8> {
    encoded(|out| StatementOrPortal::Statement(name.as_bytes()).encode(frontend::CLOSE, out))
}

/// Close of a portal.
pub fn close_portal(name: &str) -> Vec<u8> {
    encoded(|out| StatementOrPortal::Portal(name.as_bytes()).encode(frontend::CLOSE, out))
}

/// Runs a portal; zero rows are all.
pub fn execute(portal: &str, rows: u32) -> Vec<u8> {
    encoded(|out| {
        Execute { portal: portal.as_bytes(), row_limit: NonZeroU32::new(rows) }.encode(out);
    })
}

/// Sync.
pub fn sync() -> Vec<u8> {
    message(frontend::SYNC, &[])
}

/// Flush.
pub fn flush() -> Vec<u8> {
    message(frontend::FLUSH, &[])
}

/// Terminate.
pub fn terminate() -> Vec<u8> {
    message(frontend::TERMINATE, &[])
}

/// CopyData.
pub fn copy_data(data: &[u8]) -> Vec<u8> {
    message(frontend::COPY_DATA, data)
}

/// CopyDone.
pub fn copy_done() -> Vec<u8> {
    message(frontend::COPY_DONE, &[])
}

/// CopyFail.
pub fn copy_fail(reason: &str) -> Vec<u8> {
    message(frontend::COPY_FAIL, &c_str(reason))
}

/// Calls a function by its number, with text arguments and a text result.
pub fn function_call(function: u32, arguments: &[&[u8]]) -> Vec<u8> {
    call(function, &[0, 0], arguments, [0, 0])
}

/// Calls a function by its number, everything in binary.
pub fn call_binary(function: u32, arguments: &[&[u8]]) -> Vec<u8> {
    call(function, &[0, 1, 0, 1], arguments, [0, 1])
}

/// A FunctionCall with these formats of its arguments, their count in front, and of its result.
fn call(function: u32, formats: &[u8], arguments: &[&[u8]], result_format: [u8; 2]) -> Vec<u8> {
    let mut body = function.to_be_bytes().to_vec();
    body.extend_from_slice(formats);
    body.extend_from_slice(&(arguments.len() as u16).to_be_bytes());
    for argument in arguments {
        body.extend_from_slice(&(argument.len() as u32).to_be_bytes());
        body.extend_from_slice(argument);
    }
    body.extend_from_slice(&result_format);
    message(frontend::FUNCTION_CALL, &body)
}

/// Parse, Bind, Describe, Execute of one statement.
pub fn run_unnamed(text: &str) -> Vec<u8> {
    [parse("", text), bind("", "", &[]), describe_portal(""), execute("", 0)].concat()
}

/// A text with the zero byte that ends it.
pub fn c_str(text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0"].concat()
}

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}
