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
    let remedies = prices.rows.iter().find_map(|price| price.with_remedies.map(|_| "with remedies"));
    let none = prices.rows.iter().find_map(|price| price.without_remedies.map(|_| "no remedies"));
    // A round-trip time that is measured needs no forecast.
    let measured = prices.rows.iter().find(|price| price.measured).map(|price| duration(price.rtt_ns));
    let is_new = |price: &&Price| price.measured || Some(duration(price.rtt_ns)) != measured;
    let rows = prices.rows.iter().filter(is_new).map(|price| (numbers(price), range(price)));
    let columns = ["round trip", "as is"].into_iter().chain(remedies).chain(none);
    let columns: Vec<&str> = columns.chain(["with code fixes", "one-trip limit"]).collect();
    page.table(&Table { columns: &columns, text: "as is, from – to", rows: rows.collect() });
    if let Some(sentence) = bandwidth(prices) {
        let style = page.style;
        page.paragraph(&format!("  {sentence}"), |line| style.dim(line));
    }
}

fn numbers(price: &Price) -> Vec<String> {
    let predicted = [Some(price.as_is), price.with_remedies, price.without_remedies];
    let predicted = predicted.into_iter().chain([Some(price.fixed), Some(price.limit)]).flatten();
    let times = predicted.map(|prediction| prediction.time_ns);
    std::iter::once(price.rtt_ns).chain(times).map(duration).collect()
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
