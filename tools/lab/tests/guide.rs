//! The guide for application developers: what it shows is what workloads draw.

use std::collections::BTreeSet;

use onetrip_lab::workload::all;

/// Names behind `lab/` in the guide's links that end so.
fn links(ending: &str) -> BTreeSet<String> {
    let guide = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/round-trips.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let targets = guide.split("](lab/").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter_map(|target| target.strip_suffix(ending)).map(str::to_owned).collect()
}

#[test]
fn every_chart_and_page_that_the_guide_links_to_is_written_by_a_workload() {
    let workloads = all().unwrap();
    let mut pages: BTreeSet<String> = workloads.iter().map(|workload| workload.name.clone()).collect();
    pages.insert("README".to_owned());
    let charts: BTreeSet<String> = workloads
        .iter()
        .flat_map(|workload| workload.charts.iter().map(|chart| format!("{}-{}", workload.name, chart.name)))
        .collect();
    let (shown, read) = (links(".svg"), links(".md"));
    assert!(shown.len() > 10 && shown.is_subset(&charts), "{:?}", shown.difference(&charts));
    assert_eq!(read, pages, "each workload has something to say in the guide");
}
