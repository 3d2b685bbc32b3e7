use super::frame::{frame, put_c_str};
use super::tags::backend;
use crate::{Reader, WireError};

/// `NotificationResponse` ('A'): somebody used NOTIFY on a channel that this session listens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotificationResponse<'a> {
    /// Process id of the backend that notified.
    pub process_id: u32,
    /// The channel.
    pub channel: &'a [u8],
    /// What was passed along; empty where nothing was.
    pub payload: &'a [u8],
}

impl<'a> NotificationResponse<'a> {
    /// Decodes the body.
    pub fn decode(body: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(body);
        let notification =
            Self { process_id: reader.u32()?, channel: reader.c_str()?, payload: reader.c_str()? };
        reader.finish().map(|()| notification)
    }

    /// Appends this message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        frame(out, backend::NOTIFICATION_RESPONSE, |out| {
            out.extend_from_slice(&self.process_id.to_be_bytes());
            put_c_str(out, self.channel);
            put_c_str(out, self.payload);
        });
    }
}
