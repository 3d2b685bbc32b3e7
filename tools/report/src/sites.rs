//! The lines of the program that sent a finding's statements.

use onetrip_ledger::{Finding, Site};

use crate::clean::{clean, cut};
use crate::number::percent;

/// Columns of one frame.
const FRAME_MAX: usize = 120;

/// The lines, most first, each with its callers: `shop/views.py:41 in orders, called at shop/urls.py:9`.
pub(crate) fn lines(finding: &Finding) -> Vec<String> {
    let all: u64 = finding.sites.iter().map(|site| site.spots).sum();
    let share = |site: &Site| match finding.sites.len() {
        1 => String::new(),
        _ => format!(" ({})", percent(site.spots, all)),
    };
    finding.sites.iter().map(|site| format!("{}{}", line(site), share(site))).collect()
}

fn line(site: &Site) -> String {
    let frames: Vec<String> = site.frames.iter().map(|frame| cut(&clean(frame), FRAME_MAX)).collect();
    match frames.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [first, callers @ ..] => format!("{first}, called at {}", callers.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use onetrip_ledger::{Code, Driver, Evidence};

    use super::*;

    fn found(sites: &[(&[&str], u64)]) -> Finding {
        let site = |(frames, spots): &(&[&str], u64)| Site {
            frames: frames.iter().map(|frame| (*frame).to_owned()).collect(),
            spots: *spots,
        };
        Finding {
            code: Code::Loop,
            statements: Vec::new(),
            driver: Driver::UNKNOWN,
            scopes: Vec::new(),
            occurrences: 1,
            trips: 10,
            avoidable: 9,
            removed: 0,
            would: Default::default(),
            left: [].into(),
            impure: None,
            waited_ns: 0,
            wire_ns: 0,
            evidence: Evidence::Pairs { pairs: 1 },
            spots: Vec::new(),
            sites: sites.iter().map(site).collect(),
            fix: String::new(),
        }
    }

    #[test]
    fn a_line_has_its_callers_and_its_share_if_there_are_others() {
        assert_eq!(lines(&found(&[])), [] as [String; 0]);
        let one = found(&[(&["app.py:12 in orders", "app.py:40"], 9)]);
        assert_eq!(lines(&one), ["app.py:12 in orders, called at app.py:40"]);
        let two = found(&[(&["a.py:1"], 3), (&["b.py:2\u{1b}[0m"], 1)]);
        assert_eq!(lines(&two), ["a.py:1 (75 %)", "b.py:2\\u{1b}[0m (25 %)"]);
    }
}
