//! What must not compile: a remedy that names fields of the core. `tests/layers.rs` builds it by `--cfg onetrip_peek`.

use super::remedy::Cx;

fn peek(cx: &mut Cx<'_>) {
    let _ = &cx.core.queue;
    let _ = &cx.core.units;
    let _ = &cx.core.prepared;
    let _ = &cx.core.portals;
    let _ = &cx.core.status;
    let _ = &cx.core.stream;
    let _ = &cx.core.to_client;
    let _ = &cx.core.to_server;
    let _ = &cx.core.in_group;
}
