//! Captures whose packets have no times: what a summary may still say.

use onetrip_ledger::network::{ConnectionPath, NetworkSummary, Place, Times};

/// Takes back all that was computed from times, as so many packets have none. Counts stay: packets, segments, turns.
pub fn without_times(network: &mut NetworkSummary, untimed_packets: u64) {
    network.capture.untimed_packets = untimed_packets;
    network.capture.place = Place::Unknown;
    network.rtts.clear();
    forget(&mut network.totals);
    network.paths.iter_mut().for_each(|named| forget(&mut named.path));
}

fn forget(path: &mut ConnectionPath) {
    (path.initial_rtt_ns, path.client_leg_min_ns, path.server_leg_min_ns) = (None, None, None);
    for times in [&mut path.first_byte, &mut path.last_byte, &mut path.next_request] {
        *times = Times::default();
    }
}
