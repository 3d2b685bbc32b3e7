use super::frame::{frame, put_c_str};
use super::tags::frontend;

/// Appends a PasswordMessage ('p'): the password as it is, or its MD5 form.
pub fn encode_password(out: &mut Vec<u8>, password: &[u8]) {
    frame(out, frontend::PASSWORD, |out| put_c_str(out, password));
}

/// Appends a SASLInitialResponse ('p'): the mechanism that was chosen and its first message.
pub fn encode_sasl_initial(out: &mut Vec<u8>, mechanism: &[u8], data: &[u8]) {
    frame(out, frontend::PASSWORD, |out| {
        put_c_str(out, mechanism);
        out.extend_from_slice(&(data.len() as u32).to_be_bytes());
        out.extend_from_slice(data);
    });
}

/// Appends a SASLResponse ('p'): a later message of the mechanism.
pub fn encode_sasl_response(out: &mut Vec<u8>, data: &[u8]) {
    frame(out, frontend::PASSWORD, |out| out.extend_from_slice(data));
}
