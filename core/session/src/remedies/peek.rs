//! What must not compile: a remedy that names fields of the core, of the facts or of a service, or another remedy.
//! `tests/layers.rs` builds it by `--cfg onetrip_peek`.

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
    let _ = &cx.facts.generation;
    let _ = &cx.flights.predictor;
    let _ = &cx.flights.buffer;
    let _ = &cx.shadow.checks;
}

fn peek_at_others(cx: &mut Cx<'_>) {
    let _ = &cx.begin;
    let _ = &cx.commit;
    let _ = &cx.chatter;
    let _ = &cx.statements;
    let _ = &cx.cursors;
    let _ = &cx.loops;
    let _ = &cx.lobs;
}
