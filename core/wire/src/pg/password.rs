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

/// More rounds of hashing than this are refused: they would keep a client busy for longer than any wait.
const SCRAM_ITERATIONS_MAX: u32 = 5_000_000;

/// Checks the number of rounds (`i=` of RFC 5802's server-first-message), before a client hashes as often.
///
/// # Errors
///
/// What is wrong with the message: no number, or one that would only keep the client busy.
pub fn check_scram_iterations(server_first: &[u8]) -> Result<(), &'static str> {
    let rounds = server_first.split(|byte| *byte == b',').find_map(|part| part.strip_prefix(b"i="));
    let rounds = rounds.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u32>().ok());
    match rounds {
        Some(rounds) if rounds <= SCRAM_ITERATIONS_MAX => Ok(()),
        _ => Err("a SCRAM message with no number of iterations, or with more than five million"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_cannot_keep_us_hashing() {
        assert_eq!(check_scram_iterations(b"r=abc,s=c2FsdA==,i=4096"), Ok(()));
        assert!(check_scram_iterations(b"r=abc,s=c2FsdA==,i=4294967295").is_err());
        assert!(check_scram_iterations(b"r=abc,s=c2FsdA==").is_err());
    }
}
