//! The key under which clients without TLS send passwords to the gateway, where it speaks TLS with a MySQL server.

use std::sync::{Arc, OnceLock};
use std::thread;

use onetrip_target::tls::PasswordKey;

/// One for the whole gateway, made when it is first needed: that takes a while.
#[derive(Debug, Default)]
pub(crate) struct GatewayKey(OnceLock<Option<PasswordKey>>);

impl GatewayKey {
    /// Makes it ahead, on a thread of its own.
    pub(crate) fn make_ahead(self: &Arc<Self>) {
        if self.0.get().is_none() {
            let own = Arc::clone(self);
            // Without that thread it is made by whoever needs it.
            let _ = thread::Builder::new().name("onetrip-key".to_owned()).spawn(move || own.get().is_some());
        }
    }

    fn get(&self) -> Option<&PasswordKey> {
        self.0.get_or_init(PasswordKey::generate).as_ref()
    }
}

impl onetrip_session::PasswordKey for GatewayKey {
    fn public_pem(&self) -> Option<&[u8]> {
        self.get().map(PasswordKey::public_pem)
    }

    fn decrypt(&self, encrypted: &[u8]) -> Option<Vec<u8>> {
        self.get()?.decrypt(encrypted)
    }
}
