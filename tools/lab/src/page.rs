//! Samples as files: charts and a page that needs nothing else, and a page for `docs/lab`.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use onetrip_report::markup;
use onetrip_wire::calendar;

use crate::LabError;
use crate::chart::{Theme, png, svg};
use crate::samples::Samples;
use crate::table::Table;
use crate::workload::{Extent, Workload};

/// Style of the page; the charts bring their own.
const STYLE: &str = ":root{color-scheme:light dark;--paper:#fdfcfb;--ink:#1c1917;--soft:#57534e;--rule:#e7e5e4}\
    @media(prefers-color-scheme:dark){:root{--paper:#161412;--ink:#f5f5f4;--soft:#c4beb9;--rule:#38332f}}\
    body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,'DejaVu Sans',sans-serif;\
    font-variant-numeric:tabular-nums}main{max-width:62rem;margin:0 auto;padding:2rem 1.25rem}\
    .soft{color:var(--soft)}.scroll{overflow-x:auto}svg{max-width:100%;height:auto;margin:1rem 0}\
    table{border-collapse:collapse;font-size:13px}td,th{padding:.25rem .6rem;border-bottom:1px solid var(--rule);\
    text-align:right;white-space:nowrap}.name{text-align:left}";

/// Writes samples, charts (SVG and PNG, light and dark) and a self-contained HTML page into a folder.
///
/// # Errors
///
/// A file cannot be written, or a chart cannot be rendered.
pub fn write_files(folder: &Path, samples: &Samples) -> Result<(), LabError> {
    fs::create_dir_all(folder).map_err(LabError::file(folder))?;
    let name = &samples.workload;
    samples.write(&folder.join(format!("{name}.json")))?;
    for chart in &samples.charts {
        let Some(drawing) = svg(chart, samples, Theme::Auto) else { continue };
        write(&folder.join(format!("{name}-{}.svg", chart.name)), drawing.as_bytes())?;
        for (theme, end) in [(Theme::Light, ""), (Theme::Dark, "-dark")] {
            if let Some(picture) = png(chart, samples, theme)? {
                write(&folder.join(format!("{name}-{}{end}.png", chart.name)), &picture)?;
            }
        }
    }
    write(&folder.join(format!("{name}.html")), html(samples).as_bytes())
}

/// Writes a workload's page, its charts and its samples into the folder of such pages.
///
/// # Errors
///
/// A file cannot be written.
pub fn write_page(folder: &Path, workload: &Workload, samples: &Samples) -> Result<(), LabError> {
    fs::create_dir_all(folder).map_err(LabError::file(folder))?;
    let name = &samples.workload;
    samples.write(&folder.join(format!("{name}.json")))?;
    let mut pictures = String::new();
    for chart in &samples.charts {
        let Some(drawing) = svg(chart, samples, Theme::Auto) else { continue };
        let file = format!("{name}-{}.svg", chart.name);
        write(&folder.join(&file), drawing.as_bytes())?;
        let _ = writeln!(pictures, "![{}]({file})\n", chart.title);
    }
    write(&folder.join(format!("{name}.md")), markdown(workload, samples, &pictures).as_bytes())
}

fn markdown(workload: &Workload, samples: &Samples, pictures: &str) -> String {
    let mut out = format!("# {}\n\n", workload.title);
    let _ = writeln!(out, "**Question.** {}\n", workload.question.trim());
    let _ = writeln!(out, "**Answer.** {}\n", samples.verdict);
    out.push_str(pictures);
    let _ = writeln!(out, "**Where it comes from.** {}\n", workload.origin.trim());
    let _ = writeln!(out, "**Method.** {}\n", workload.method.trim());
    out.push_str("**Bias.**\n\n");
    for bias in &workload.bias {
        let _ = writeln!(out, "- {}", bias.trim());
    }
    let _ = writeln!(out, "\n**Run.** {}\n", conditions(samples));
    let table = Table::of(samples);
    out.push_str(
        "Times are of rounds. Trips and bytes are of one round, counted by the gateway. CPU is that of the clients, where it is \
         not called the server's.",
    );
    if table.compares_sessions() {
        out.push_str(
            " op/s is what all sessions did in a second. time/op is what one of them took for an operation: a statement's \
             latency where each is waited for.",
        );
    }
    out.push_str("\n\n");
    out.push_str(&table.markdown());
    if !samples.left_out.is_empty() {
        out.push_str("\nLeft out:\n\n");
        for left_out in &samples.left_out {
            let _ = writeln!(out, "- {left_out}");
        }
    }
    let _ = writeln!(
        out,
        "\n**Again.** `scripts/lab {name}`; only the charts, from the samples: \
         `onetrip lab chart docs/lab/{name}.json`.",
        name = samples.workload
    );
    out
}

fn html(samples: &Samples) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style></head><body><main>\n\
         <h1>{title}</h1>\n<p>{verdict}</p>\n",
        title = markup(&samples.title),
        verdict = markup(&samples.verdict)
    );
    for drawing in samples.charts.iter().filter_map(|chart| svg(chart, samples, Theme::Auto)) {
        out.push_str(&drawing);
    }
    let table = Table::of(samples);
    out.push_str("<div class=\"scroll\"><table>\n");
    write_row(&mut out, &table, "th", &table.head);
    for row in &table.rows {
        write_row(&mut out, &table, "td", row);
    }
    out.push_str("</table></div>\n");
    for left_out in &samples.left_out {
        let _ = writeln!(out, "<p class=\"soft\">Left out: {}</p>", markup(left_out));
    }
    let _ = writeln!(out, "<p class=\"soft\">{}</p>\n</main></body></html>", markup(&conditions(samples)));
    out
}

fn write_row(out: &mut String, table: &Table, tag: &str, row: &[String]) {
    out.push_str("<tr>");
    for (column, cell) in row.iter().enumerate() {
        let class = if column < table.names { " class=\"name\"" } else { "" };
        let _ = write!(out, "<{tag}{class}>{}</{tag}>", markup(cell));
    }
    out.push_str("</tr>\n");
}

/// When and on what a run was.
fn conditions(samples: &Samples) -> String {
    let machine = &samples.machine;
    let extent = match samples.extent {
        Extent::Short => ", the short form that tests run: its times mean nothing",
        Extent::Normal => "",
        Extent::Full => ", in full",
    };
    format!(
        "{date}{extent}; onetrip {onetrip}; {engines}; {cores} × {processor}, {memory:.0} GiB, kernel {kernel}, load \
         average {load} at the start.",
        date = date(samples.began),
        onetrip = samples.onetrip,
        engines = samples.engines.join("; "),
        cores = machine.cores,
        processor = machine.processor,
        memory = machine.memory_mib as f64 / 1024.0,
        kernel = machine.kernel,
        load = machine.load,
    )
}

/// The day of a time as `2026-11-21`, by the Gregorian calendar in UTC.
fn date(seconds: u64) -> String {
    let (year, month, day) = calendar::date_of((seconds / 86_400) as i64);
    format!("{year}-{month:02}-{day:02}")
}

fn write(path: &Path, content: &[u8]) -> Result<(), LabError> {
    fs::write(path, content).map_err(LabError::file(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::spec::{ChartKind, ChartSpec};
    use crate::measure::Measure;
    use crate::samples::samples_of;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!([0, 951_782_400, 1_795_219_200].map(date), ["1970-01-01", "2000-02-29", "2026-11-21"]);
    }

    #[test]
    fn files_are_drawn_from_samples_alone_and_need_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let mut samples = samples_of(&[("1", "slow & <old>", 900), ("2", "slow & <old>", 1_800)]);
        for (name, kind) in [("lines", ChartKind::Lines), ("dots", ChartKind::Dots)] {
            samples.charts.push(ChartSpec {
                name: name.into(),
                title: "Time".into(),
                kind,
                x: "n".into(),
                y: Measure::Time,
                series: "way".into(),
                only: Default::default(),
                relative: false,
            });
        }
        write_files(directory.path(), &samples).unwrap();
        let read = |name: &str| fs::read(directory.path().join(name)).unwrap();
        for name in ["example-lines.png", "example-lines-dark.png", "example-dots.png"] {
            assert!(read(name).starts_with(b"\x89PNG"), "{name}");
        }
        let page = String::from_utf8(read("example.html")).unwrap();
        assert!(page.contains("slow &amp; &lt;old&gt;") && !page.contains("<old>"));
        assert!(page.contains("Said.") && !page.contains("src=") && !page.contains("href="));
        assert_eq!(page.matches("<svg ").count(), 2);
        assert_eq!(Samples::read(&directory.path().join("example.json")).unwrap(), samples);
    }
}
