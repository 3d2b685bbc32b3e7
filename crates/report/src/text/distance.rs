//! What the run costs at other distances.

use onetrip_forecast::{Price, Prices};

use super::Page;
use super::table::Table;
use crate::number::{bits, duration, percent};

/// Share of a path's bandwidth from which on it, and not the distance, is what a run waits for.
const BANDWIDTH_MATTERS: f64 = 0.5;

/// The table, and the sentence on bandwidth.
pub(super) fn show(prices: &Prices, page: &mut Page) {
    if prices.rows.len() < 2 {
        return;
    }
    page.heading("What it costs at a distance: a forecast from this run");
    let rows = prices.rows.iter().map(|price| (numbers(price), range(price)));
    page.table(&Table {
        columns: &["round trip", "as is", "with code fixes", "one-trip limit"],
        text: "as is, from – to",
        rows: rows.collect(),
    });
    if let Some(sentence) = bandwidth(prices) {
        let style = page.style;
        page.paragraph(&format!("  {sentence}"), |line| style.dim(line));
    }
}

fn numbers(price: &Price) -> Vec<String> {
    let times = [price.rtt_ns, price.as_is.time_ns, price.fixed.time_ns, price.limit.time_ns];
    times.map(duration).into()
}

fn range(price: &Price) -> String {
    if price.measured {
        "measured".into()
    } else {
        format!("{} – {}", duration(price.as_is.low_ns), duration(price.as_is.high_ns))
    }
}

/// What the run moves, and whether that is what it waits for.
pub(crate) fn bandwidth(prices: &Prices) -> Option<String> {
    let price = prices.target()?;
    let at = duration(price.rtt_ns);
    let Some(limit) = prices.bandwidth else {
        return Some(format!("bandwidth used at {at}: {}", bits(price.bits_per_second)));
    };
    let verdict = if price.share_of(limit) < BANDWIDTH_MATTERS {
        "this is latency, not bandwidth"
    } else {
        "here bandwidth matters too"
    };
    let share = percent(price.bits_per_second.min(limit), limit);
    Some(format!("bandwidth used at {at}: {share} of {}; {verdict}", bits(limit)))
}
