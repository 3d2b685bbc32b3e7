//! The page in Debian's headless Chromium: slider, zoom, filters, tables, keys and narrow screens. Skipped where there is none.
//!
//! `ONETRIP_SCREENSHOTS=DIR` writes pictures to look at.

#![cfg(unix)]

mod common;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use common::page::{story_prices, story_timeline, worst};
use common::{calm, crowded, rules, story, template};
use onetrip_ledger::Summary;
use onetrip_ledger::timeline::Timeline;
use onetrip_report::{Report, RunInfo, html};
use serde_json::{Value, json};

const CHROMIUM: &str = "/usr/bin/chromium";
/// A browser that hangs is ended, and the test with it.
const SECONDS_MAX: u32 = 300;

/// One browser with one page, spoken to over pipes with its own remote-debugging protocol.
struct Browser {
    process: Child,
    directory: tempfile::TempDir,
    requests: File,
    replies: BufReader<File>,
    session: Option<String>,
    number: u64,
    /// Everything that the page asked for or complained about.
    complaints: Vec<String>,
}

impl Browser {
    /// `None` where Chromium is not installed.
    fn start() -> Option<Self> {
        if !Path::new(CHROMIUM).exists() {
            eprintln!("skipped: no {CHROMIUM}");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let pipe = |name: &str| {
            let path = directory.path().join(name);
            assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            path
        };
        let (requests, replies) = (pipe("requests"), pipe("replies"));
        let flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
            --disable-background-networking --disable-component-update --disable-sync --remote-debugging-pipe";
        let process = Command::new("sh")
            .arg("-c")
            .arg(format!("exec timeout -k 5 {SECONDS_MAX} {CHROMIUM} {flags} --user-data-dir=\"$2\" about:blank 3<\"$0\" 4>\"$1\""))
            .args([&requests, &replies, &directory.path().join("profile")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let requests = File::create(&requests).unwrap();
        let replies = BufReader::new(File::open(&replies).unwrap());
        let mut browser =
            Self { process, directory, requests, replies, session: None, number: 0, complaints: Vec::new() };
        let target = browser.ask("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.ask("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = Some(attached["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let mut request = json!({"id": self.number, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            request["sessionId"] = session.clone().into();
        }
        write!(self.requests, "{request}\0").unwrap();
        loop {
            let message = self.next();
            if message["id"] == self.number {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
        }
    }

    /// The next message; what must not happen is remembered.
    fn next(&mut self) -> Value {
        let mut message = Vec::new();
        self.replies.read_until(0, &mut message).unwrap();
        message.pop();
        let message: Value = serde_json::from_slice(&message).unwrap();
        match message["method"].as_str() {
            Some("Network.requestWillBeSent") => {
                let url = message["params"]["request"]["url"].as_str().unwrap();
                if !url.starts_with("file:") && !url.starts_with("about:") {
                    self.complaints.push(format!("asked for {url}"));
                }
            }
            Some("Log.entryAdded" | "Runtime.exceptionThrown" | "Page.javascriptDialogOpening") => {
                self.complaints.push(message.to_string());
            }
            _ => {}
        }
        message
    }

    fn open(&mut self, page: &str, width: u32, height: u32, scheme: &str) {
        let file = self.directory.path().join("page.html");
        std::fs::write(&file, page).unwrap();
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}),
        );
        self.media("", scheme);
        let url = format!("file://{}", file.display());
        self.number += 1;
        let session = self.session.clone();
        let request = json!({"id": self.number, "method": "Page.navigate", "params": {"url": url}, "sessionId": session});
        write!(self.requests, "{request}\0").unwrap();
        while self.next()["method"] != "Page.loadEventFired" {}
        self.settle();
    }

    fn media(&mut self, media: &str, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.ask("Emulation.setEmulatedMedia", json!({"media": media, "features": features}));
    }

    /// Waits until what was changed is drawn.
    fn settle(&mut self) {
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))");
    }

    /// The value of a JavaScript expression.
    fn run(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.ask("Runtime.evaluate", parameters);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    fn text(&mut self, selector: &str) -> String {
        let value = self.run(&format!("document.querySelector({selector:?}).textContent"));
        value.as_str().unwrap().replace('\u{a0}', " ")
    }

    fn key(&mut self, key: &str, code: u32) {
        // Characters come with their text, as from a keyboard.
        let text = match key {
            "Enter" => json!("\r"),
            key if key.chars().count() == 1 => json!(key),
            _ => json!(""),
        };
        for kind in ["keyDown", "keyUp"] {
            let parameters = json!({"type": kind, "key": key, "windowsVirtualKeyCode": code, "text": if kind == "keyDown" { text.clone() } else { json!("") }});
            self.ask("Input.dispatchKeyEvent", parameters);
        }
        self.settle();
    }

    /// The part of the run that the waterfall shows, in microseconds.
    fn view(&mut self) -> (i64, i64) {
        let view = self.run("document.getElementById('waterfall').dataset.view");
        let (from, to) = view.as_str().unwrap().split_once(' ').unwrap();
        (from.parse().unwrap(), to.parse().unwrap())
    }

    fn mouse(&mut self, kind: &str, at: (f64, f64), more: Value) {
        let mut parameters = json!({"type": kind, "x": at.0, "y": at.1});
        for (name, value) in more.as_object().unwrap() {
            parameters[name] = value.clone();
        }
        self.ask("Input.dispatchMouseEvent", parameters);
    }

    /// Where a part of the canvas is on the screen, after scrolling there.
    fn on_canvas(&mut self, x: f64, y: f64) -> (f64, f64) {
        let place = self.run(
            "(() => { const c = document.getElementById('waterfall'); c.scrollIntoView({block: 'center'}); \
             const r = c.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()",
        );
        let number = |at: usize| place[at].as_f64().unwrap();
        (number(0) + number(2) * x, number(1) + number(3) * y)
    }

    fn screenshot(&mut self, name: &str) {
        let Some(directory) = std::env::var_os("ONETRIP_SCREENSHOTS") else { return };
        let size = self.ask("Page.getLayoutMetrics", json!({}))["cssContentSize"].clone();
        let clip = json!({"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1});
        let picture =
            self.ask("Page.captureScreenshot", json!({"captureBeyondViewport": true, "clip": clip}));
        self.save(&PathBuf::from(directory).join(format!("{name}.png")), &picture);
    }

    fn print(&mut self, name: &str) -> usize {
        let printed = self.ask("Page.printToPDF", json!({"printBackground": false}));
        if let Some(directory) = std::env::var_os("ONETRIP_SCREENSHOTS") {
            self.save(&PathBuf::from(directory).join(format!("{name}.pdf")), &printed);
        }
        printed["data"].as_str().unwrap().len()
    }

    fn save(&self, path: &Path, encoded: &Value) {
        use base64ct::{Base64, Encoding};
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, Base64::decode_vec(encoded["data"].as_str().unwrap()).unwrap()).unwrap();
    }

    /// Nothing was asked of the network, nothing failed.
    fn assert_quiet(&self) {
        assert!(self.complaints.is_empty(), "{:#?}", self.complaints);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = write!(self.requests, "{}\0", json!({"id": 0, "method": "Browser.close"}));
        let mut rest = Vec::new();
        let _ = self.replies.read_to_end(&mut rest);
        let _ = self.process.wait();
    }
}

fn story_page(connections: u32) -> String {
    let summary = story();
    let run = RunInfo {
        command: vec!["python3".into(), "report.py".into()],
        exit_code: Some(0),
        ..RunInfo::default()
    };
    html(
        &Report { run: Some(&run), prices: Some(&story_prices()), ..Report::new(&summary) },
        &story_timeline(connections),
    )
}

fn crowded_page() -> String {
    let summary = crowded();
    let judgement = rules(&story()).judge(&summary);
    let report =
        Report { judgement: Some(&judgement), prices: Some(&story_prices()), ..Report::new(&summary) };
    html(&report, &story_timeline(36))
}

#[test]
fn the_slider_and_its_buttons_price_any_distance() {
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&story_page(1), 1100, 900, "light");
    assert_eq!(browser.text("#rtt-value"), "12.9 ms");
    assert_eq!(browser.text(".costs tbody tr:nth-child(1) [data-cost=time]"), "5.29 s");
    assert_eq!(browser.text(".costs tbody tr:nth-child(2) [data-cost=share]"), "3 %");
    browser.run("document.querySelector('.presets button:last-child').click()");
    assert_eq!(browser.text("#rtt-value"), "70.0 ms");
    assert_eq!(browser.text(".costs tbody tr:nth-child(1) [data-cost=time]"), "28.5 s");
    let cursor = "document.querySelector('svg.wide .cursor').getAttribute('transform')";
    let far = browser.run(cursor);
    browser.run("document.getElementById('rtt').focus()");
    browser.key("Home", 36);
    assert_eq!(browser.text("#rtt-value"), "50.0 µs");
    assert_eq!(browser.text(".costs tbody tr:nth-child(1) [data-cost=time]"), "73.3 ms");
    assert_ne!(browser.run(cursor), far, "the cursor goes along");
    browser.key("ArrowRight", 39);
    assert_eq!(browser.text("#rtt-value"), "50.4 µs");
    assert_eq!(browser.run("document.getElementById('rtt').getAttribute('aria-valuetext')"), "50.4 µs");
    browser.assert_quiet();
}

#[test]
fn the_waterfall_zooms_by_buttons_keys_and_wheel_and_tells_each_trip() {
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&story_page(1), 1100, 900, "light");
    let whole = browser.view();
    let length = |(from, to): (i64, i64)| to - from;
    browser.run("document.getElementById('zoom-in').click()");
    browser.settle();
    let zoomed = browser.view();
    assert!((length(zoomed) * 2 - length(whole)).abs() < 4, "{whole:?} {zoomed:?}");
    browser.run("document.getElementById('zoom-right').click()");
    browser.settle();
    assert!(browser.view().0 > zoomed.0);
    browser.run("document.getElementById('zoom-all').click()");
    browser.settle();
    assert_eq!(browser.view(), whole);

    let middle = browser.on_canvas(0.5, 0.6);
    let wheel = json!({"deltaX": 0, "deltaY": -120});
    browser.mouse("mouseWheel", middle, wheel.clone());
    browser.settle();
    assert_eq!(browser.view(), whole, "the wheel scrolls the page until the chart has the focus");
    browser.run("document.getElementById('waterfall').focus()");
    let middle = browser.on_canvas(0.5, 0.6);
    browser.mouse("mouseWheel", middle, wheel);
    browser.settle();
    assert!(length(browser.view()) < length(whole));
    browser.key("0", 48);
    assert_eq!(browser.view(), whole);
    browser.key("+", 187);
    assert!(length(browser.view()) < length(whole));
    browser.key("-", 189);

    browser.mouse("mouseMoved", (middle.0 + 20.0, middle.1), json!({}));
    browser.settle();
    assert!(browser.text("#trip").contains("SELECT salary"), "{}", browser.text("#trip"));
    browser.key("Home", 36);
    assert!(browser.text("#trip").contains("opening the session"), "{}", browser.text("#trip"));
    for _ in 0..3 {
        browser.key("ArrowRight", 39);
    }
    let told = browser.text("#trip");
    assert!(told.starts_with("13.") || told.starts_with("12."), "{told}");
    assert!(told.contains(" ms · connection 1, at ") && told.ends_with("BEGIN"), "{told}");
    for _ in 0..12 {
        browser.key("+", 187);
    }
    assert!(length(browser.view()) < 20_000, "the chosen trip is what the keys zoom to");
    browser.assert_quiet();
}

#[test]
fn the_slider_prices_findings_too() {
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&story_page(1), 1280, 900, "light");
    assert_eq!(browser.text("#finding-1 [data-price]"), "5.66 s at 12.9 ms");
    browser.run("document.querySelector('.presets button:last-child').click()");
    // 399 trips, and a tenth of 5.16 s that is not the wire's.
    assert_eq!(browser.text("#finding-1 [data-price]"), "28.4 s at 70.0 ms");
    browser.assert_quiet();
}

#[test]
fn a_finding_leads_to_its_trips_and_a_trip_to_its_finding() {
    let Some(mut browser) = Browser::start() else { return };
    for (width, scheme) in [(1280, "dark"), (360, "light")] {
        browser.open(&story_page(4), width, 900, scheme);
        // By keyboard alone: the button, then the trips.
        browser.run("document.querySelector('#finding-1 [data-finding]').focus()");
        browser.key("Enter", 13);
        browser.settle();
        assert_eq!(browser.run("document.activeElement.id"), "waterfall");
        assert_eq!(browser.run("document.getElementById('only-finding').value"), "1");
        for _ in 0..5 {
            browser.key("ArrowRight", 39);
            let told = browser.text("#trip");
            assert!(told.contains("SELECT salary") && told.ends_with("OT001 N+1 loop"), "{told}");
        }
        browser.key("ArrowDown", 40);
        assert!(browser.text("#trip").contains("connection 2 of staff@shop"), "{}", browser.text("#trip"));
        browser.screenshot(&format!("finding-{width}-{scheme}"));
        browser.run("document.querySelector('#trip a').click()");
        assert_eq!(browser.run("location.hash"), "#finding-1");
    }
    browser.assert_quiet();
}

#[test]
fn trips_are_filtered_by_connection_user_and_scope() {
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&story_page(4), 1280, 900, "light");
    let choose = |browser: &mut Browser, name: &str, value: &str| {
        browser.run(&format!(
            "(() => {{ const list = document.getElementById('only-{name}'); list.value = [...list.options].find((option) => \
             option.text === {value:?}).value; list.dispatchEvent(new Event('change')); }})()"
        ));
        browser.settle();
        browser.text("#trip")
    };
    let height = |browser: &mut Browser| browser.run("document.getElementById('waterfall').clientHeight");
    let whole = height(&mut browser);
    assert_eq!(choose(&mut browser, "user", "staff@shop"), "202 trips chosen.");
    assert_ne!(height(&mut browser), whole, "two lanes of four");
    assert_eq!(choose(&mut browser, "scope", "GET /shop"), "0 trips chosen.");
    browser.run("document.getElementById('waterfall').focus()");
    browser.key("ArrowRight", 39);
    assert_eq!(browser.text("#trip"), "0 trips chosen.", "there is nothing to step to");
    assert_eq!(
        choose(&mut browser, "scope", "GET /staff"),
        "196 trips chosen.",
        "without the trips that connect"
    );
    assert_eq!(choose(&mut browser, "connection", "4"), "98 trips chosen.");
    browser.run("document.getElementById('waterfall').focus()");
    browser.key("ArrowRight", 39);
    let told = browser.text("#trip");
    assert!(told.contains("connection 4 of staff@shop") && told.contains(", GET /staff"), "{told}");
    browser.assert_quiet();
}

#[test]
fn statements_are_sorted_and_searched() {
    let Some(mut browser) = Browser::start() else { return };
    let first = "#statements tbody tr:first-child .text";
    let heading =
        |number: u32| format!("document.querySelector('#statements th:nth-child({number}) button')");
    browser.open(&crowded_page(), 1280, 900, "light");
    assert_eq!(browser.text(first), "SELECT a1 FROM t WHERE id = ?");
    browser.run(&format!("{}.focus()", heading(1)));
    browser.key("Enter", 13);
    assert_eq!(browser.text(first), "SELECT a1 FROM t WHERE id = ?", "most first");
    browser.run(&format!("{}.click()", heading(1)));
    assert!(browser.text(first).contains("INSERT INTO audit_log"), "the same column again turns the order");
    browser.run(&format!("{}.click()", heading(4)));
    assert_eq!(browser.text(first), "SELECT a1 FROM t WHERE id = ?", "times are sorted as times");
    let sorted =
        "[...document.querySelectorAll('#statements th')].map((it) => it.getAttribute('aria-sort')).join()";
    assert_eq!(browser.run(sorted), ",,,descending,,");
    browser.run("document.querySelector('#statements input[type=search]').focus()");
    for character in ["U", "D", "I"] {
        browser.key(character, 0);
    }
    let rows = "[...document.querySelectorAll('#statements tbody tr')].filter((row) => !row.hidden).length";
    assert_eq!(browser.run(rows), 1, "audit_log");
    assert_eq!(browser.text("#statements output"), "1 of 15");

    browser.open(&crowded_page(), 360, 900, "dark");
    browser.run(
        "(() => { const list = document.querySelector('#statements select'); list.value = '5'; \
         list.dispatchEvent(new Event('change')); })()",
    );
    assert!(browser.text(first).contains("INSERT INTO audit_log"), "texts are sorted as texts");
    browser.assert_quiet();
}

#[test]
fn the_page_says_what_made_it() {
    let Some(mut browser) = Browser::start() else { return };
    let command = ["onetrip", "run", "--html", "<b>page.html</b>", "pytest"].map(String::from);
    let page = html(&Report { command: &command, ..Report::new(&story()) }, &Timeline::default());
    browser.open(&page, 360, 900, "light");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(
        browser.text("footer"),
        format!("onetrip {version} · onetrip run --html <b>page.html</b> pytest")
    );
    browser.assert_quiet();
}

#[test]
fn no_page_is_wider_than_a_telephone_or_asks_for_anything() {
    let Some(mut browser) = Browser::start() else { return };
    let (summary, timeline) = worst(10_000_000, |text, trips| template(text, trips, 1, 1));
    let unreached = Summary::default();
    let how = "Point the program at the gateway:\n  DATABASE_URL=postgres://127.0.0.1:40123/a_database_with_a_long_name";
    let pages = [
        ("story", story_page(1)),
        ("crowded", crowded_page()),
        ("calm", html(&Report::new(&calm()), &Timeline::default())),
        ("unreached", html(&Report { how_to_connect: how, ..Report::new(&unreached) }, &Timeline::default())),
        ("worst", html(&Report { prices: Some(&story_prices()), ..Report::new(&summary) }, &timeline)),
    ];
    for (name, page) in &pages {
        for (size, width, scheme) in [
            ("wide", 1280, "light"),
            ("wide", 1280, "dark"),
            ("narrow", 360, "light"),
            ("narrow", 360, "dark"),
        ] {
            browser.open(page, width, 900, scheme);
            let wide = browser.run("document.documentElement.scrollWidth").as_u64().unwrap();
            assert!(wide <= u64::from(width), "{name}: {wide} pixels on a screen of {width}");
            browser.screenshot(&format!("{name}-{size}-{scheme}"));
        }
        if *name != "worst" {
            assert!(browser.print(name) > 10_000);
        }
    }
    browser.assert_quiet();
}
