//! The cost curve as a picture of its own.

mod common;

use common::page::story_curve;
use onetrip_forecast::{Curve, CurveLine, CurvePoint};
use onetrip_report::curve_svg;

fn numbers(path: &str) -> Vec<f64> {
    path.split(['M', 'L', 'H', 'V', 'Z', ' ']).filter_map(|number| number.parse().ok()).collect()
}

#[test]
fn the_curve_is_a_picture_that_stands_alone() {
    let svg = curve_svg(&story_curve(), "report.py <at any distance>").unwrap();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let root = document.root_element();
    let width: f64 = root.attribute("width").unwrap().parse().unwrap();
    let height: f64 = root.attribute("height").unwrap().parse().unwrap();
    let lines: Vec<_> = root
        .descendants()
        .filter(|node| node.attribute("class").is_some_and(|c| c.starts_with("line ")))
        .collect();
    assert_eq!(lines.len(), 4);
    for line in lines {
        let points = numbers(line.attribute("d").unwrap());
        assert_eq!(points.len(), 128);
        assert!(points.iter().step_by(2).all(|x| (0.0..=width).contains(x)));
        assert!(points.iter().skip(1).step_by(2).all(|y| (0.0..=height).contains(y)));
        let falls = points[1..].iter().step_by(2).collect::<Vec<_>>();
        assert!(falls.windows(2).all(|pair| pair[0] >= pair[1]), "further away is never cheaper");
    }
    let texts: Vec<_> = root.descendants().filter_map(|node| node.text()).collect();
    let names = ["as is", "with code fixes", "one-trip limit", "with remedies"];
    for text in ["report.py <at any distance>", "10 ms", "1 s"].into_iter().chain(names) {
        assert!(texts.contains(&text), "{text} of {texts:?}");
    }
    if let Some(directory) = std::env::var_os("ONETRIP_SCREENSHOTS") {
        std::fs::write(std::path::Path::new(&directory).join("curve.svg"), &svg).unwrap();
    }
}

#[test]
fn curves_without_a_range_are_not_drawn_and_extreme_ones_are() {
    let curve = |rtts: &[u64], time: u64| Curve {
        lines: vec![CurveLine {
            name: "\u{202e}<&>\u{0}".repeat(90),
            points: rtts
                .iter()
                .map(|rtt_ns| CurvePoint { rtt_ns: *rtt_ns, time_ns: time, low_ns: 0, high_ns: u64::MAX })
                .collect(),
        }],
        measured_ns: Some(0),
        target_ns: u64::MAX,
    };
    assert_eq!(curve_svg(&Curve::default(), ""), None);
    assert_eq!(curve_svg(&curve(&[5, 5], 3), ""), None);
    for rtts in [&[0, 1][..], &[0, u64::MAX], &[7, 70_000_000, u64::MAX - 1]] {
        for time in [0, 1, u64::MAX] {
            let svg = curve_svg(&curve(rtts, time), "\u{1b}[31m").unwrap();
            roxmltree::Document::parse(&svg).unwrap();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}

#[cfg(feature = "png")]
#[test]
fn the_curve_is_a_png_with_text_in_it() {
    let png = onetrip_report::curve_png(&story_curve(), "The run").unwrap().unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n"));
    let unnamed = Curve { lines: story_curve().lines, measured_ns: None, target_ns: 1 };
    assert_ne!(
        onetrip_report::curve_png(&unnamed, "The run").unwrap().unwrap(),
        onetrip_report::curve_png(&unnamed, "Another run").unwrap().unwrap()
    );
    if let Some(directory) = std::env::var_os("ONETRIP_SCREENSHOTS") {
        std::fs::write(std::path::Path::new(&directory).join("curve.png"), &png).unwrap();
    }
}
