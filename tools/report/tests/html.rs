//! The page: everything in it, nothing from elsewhere, nothing too large, nothing that runs.

mod common;

use common::page::{story_prices, story_timeline, worst};
use common::{calm, crowded, rules, story, template};
use onetrip_forecast::Prices;
use onetrip_ledger::Summary;
use onetrip_ledger::timeline::Timeline;
use onetrip_report::{Report, RunInfo, html};

/// The text between two marks.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let start = text.find(from).unwrap_or_else(|| panic!("{from} is missing")) + from.len();
    &text[start..start + text[start..].find(to).unwrap()]
}

#[test]
fn the_page_says_what_the_terminal_says() {
    let summary = crowded();
    let judgement = rules(&story()).judge(&summary);
    let report =
        Report { judgement: Some(&judgement), prices: Some(&story_prices()), ..Report::new(&summary) };
    let page = html(&report, &story_timeline(3));
    for id in [
        "time",
        "distance",
        "findings",
        "trips",
        "histogram",
        "statements",
        "scopes",
        "budgets",
        "comparison",
    ] {
        assert!(page.contains(&format!("<section id=\"{id}\">")), "{id}");
        assert!(page.contains(&format!("<a href=\"#{id}\">")), "{id}");
    }
    assert!(
        between(&page, "<h1 class=\"worth\">", "</h1>").contains("≈ 31,734 round trips, 26,439 avoidable")
    );
    for finding in &summary.findings {
        assert!(
            page.contains(finding.code.as_str())
                && page.contains(&finding.code.title().replace('/', "&#x2f;"))
        );
    }
    assert!(page.contains("rows 2–10,000, in the longest of 12 loops"));
    assert!(page.contains("<tr class=\"failed\"><td class=\"text\">31,734 trips, 200 allowed"));
}

#[test]
fn a_calm_page_has_no_empty_sections() {
    let summary = calm();
    let page = html(&Report::new(&summary), &Timeline::default());
    assert!(page.contains("<h1 class=\"calm\">23 round trips; nothing worth doing here.</h1>"));
    for id in ["distance", "findings", "trips", "histogram", "scopes", "budgets", "comparison"] {
        assert!(!page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    assert!(!page.contains("id=\"data\""));
}

#[test]
fn the_page_tells_latency_from_bandwidth_where_a_bandwidth_was_given() {
    let summary = story();
    let given = story_prices();
    let page = |prices| html(&Report { prices: Some(prices), ..Report::new(&summary) }, &story_timeline(1));
    let section = page(&given);
    let sentence = between(&section, "<p class=\"more\">Bandwidth used", "</p>").replace('\u{a0}', " ");
    assert_eq!(sentence, " at 12.9 ms: &lt;1 % of 32.0 Mbit&#x2f;s; this is latency, not bandwidth.");
    assert!(!page(&Prices { bandwidth: None, ..given.clone() }).contains("andwidth used"));
}

#[test]
fn a_program_that_never_came_is_told_how_to_on_the_page_too() {
    let run = RunInfo { command: vec!["./app".into()], exit_code: Some(3), ..RunInfo::default() };
    let summary = Summary::default();
    let report = Report { run: Some(&run), how_to_connect: "Set:\n  PGHOST=<here>", ..Report::new(&summary) };
    let page = html(&report, &Timeline::default());
    assert!(page.contains(
        "<h1 class=\"unreached\">The program failed (exit code 3). No connection reached the gateway.</h1>"
    ));
    assert_eq!(between(&page, "<pre class=\"how\">", "</pre>"), "Set:\n  PGHOST=&lt;here&gt;");
}

#[test]
fn the_page_asks_for_nothing() {
    let summary = crowded();
    let page = html(&Report { prices: Some(&story_prices()), ..Report::new(&summary) }, &story_timeline(3));
    for way in ["http:", "https:", "src=", "@import", "url(", "<link", "<img", "<iframe", "fetch(", "import("]
    {
        assert!(!page.contains(way), "{way}");
    }
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"");
    assert!(policy.starts_with("default-src 'none'; ") && policy.contains("script-src 'sha256-"), "{policy}");
}

#[test]
fn the_page_of_ten_million_trips_stays_below_three_megabytes_and_nothing_in_it_runs() {
    let (summary, timeline) = worst(10_000_000, |text, trips| template(text, trips, 1, 1));
    let judgement = rules(&Summary::default()).judge(&summary);
    let run = RunInfo { command: vec!["<b>".repeat(9_000)], ..RunInfo::default() };
    let report = Report {
        run: Some(&run),
        judgement: Some(&judgement),
        prices: Some(&story_prices()),
        ..Report::new(&summary)
    };
    let page = html(&report, &timeline);
    assert!(page.len() <= 3_000_000, "{} bytes", page.len());
    assert!(page.len() > 800_000, "{} bytes: trips are missing", page.len());
    assert_eq!(page.matches("<script").count(), 2, "the data and the page's own");
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(!page.contains('\u{202e}') && !page.contains("<b>\""));
    let data: serde_json::Value = serde_json::from_str(between(&page, "id=\"data\">", "</script>")).unwrap();
    let lanes = data["waterfall"]["lanes"].as_array().unwrap();
    assert_eq!(lanes.len(), 60, "of 64 connections");
    let trips: u64 = lanes
        .iter()
        .map(|lane| {
            let spans: Vec<u64> =
                lane["spans"].as_array().unwrap().iter().map(|number| number.as_u64().unwrap()).collect();
            assert_eq!(spans.len() % 7, 0);
            assert_eq!(spans.chunks(7).map(|span| span[2]).sum::<u64>(), lane["trips"].as_u64().unwrap());
            lane["trips"].as_u64().unwrap()
        })
        .sum();
    assert!(trips > 9_000_000);
}
