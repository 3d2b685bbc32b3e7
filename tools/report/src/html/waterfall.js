/**
 * Trips by connection over time on a canvas. A lane is a connection; its spans are trips, or neighbouring trips
 * joined where there were too many. Times are in microseconds since the trace began.
 */
function startWaterfall({ lanes: packed, statements, findings, users, scopes }) {
  const FIELDS = 7; // start after the span before, length, trips, busy, server, statement (-1: connecting), scope (-1: several)
  const GUTTER = 34, RULER = 22, MARGIN = 8, SHORTEST = 5; // px, the last one µs
  const canvas = element("waterfall"), readout = element("trip");
  const context = canvas.getContext("2d");

  const all = packed.map(({ connection, trips, user, spans: flat }) => {
    const spans = [];
    for (let at = 0, start = 0; at < flat.length; at += FIELDS) {
      start += flat[at];
      const [length, number, busy, server, statement, scope] = flat.slice(at + 1, at + FIELDS);
      spans.push({ start, end: start + length, trips: number, busy, server, statement, scope });
    }
    return { connection, trips, user, spans, marked: spans };
  });
  const first = Math.min(...all.map((lane) => lane.spans[0].start));
  const last = Math.max(...all.map((lane) => lane.spans.reduce((end, span) => Math.max(end, span.end), 0)));
  const whole = { from: first, to: Math.max(last, first + SHORTEST) };
  // What is drawn: the lanes of the chosen connection and user. Of these, spans of the chosen scope and finding are marked.
  let lanes = all, pitch = 0;
  const only = { connection: "", user: "", scope: "", finding: "" };
  let view = { ...whole };
  let chosen = null; // { lane, span }
  let queued = false;

  const width = () => canvas.clientWidth;
  const plot = () => Math.max(width() - GUTTER - MARGIN, 1);
  const toX = (time) => GUTTER + ((time - view.from) / (view.to - view.from)) * plot();
  const toTime = (x) => view.from + ((x - GUTTER) / plot()) * (view.to - view.from);
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

  function look(from, to) {
    const length = clamp(to - from, Math.min(SHORTEST, whole.to - whole.from), whole.to - whole.from);
    const start = clamp((from + to - length) / 2, whole.from, whole.to - length);
    view = { from: start, to: start + length };
    redraw();
  }
  function zoom(factor, around = (view.from + view.to) / 2) {
    look(around - (around - view.from) / factor, around + (view.to - around) / factor);
  }
  function move(part) {
    const by = clamp((view.to - view.from) * part, whole.from - view.from, whole.to - view.to);
    look(view.from + by, view.to + by);
  }

  function redraw() {
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => { queued = false; draw(); });
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1;
    const height = RULER + lanes.length * pitch + 4;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width() * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.dataset.view = `${Math.round(view.from)} ${Math.round(view.to)}`;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width(), height);
    context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
    drawRuler(height);
    const paints = { other: color("other"), avoidable: color("avoidable"), connect: color("connect"), faint: color("faint"), ink: color("ink"), rule: color("rule") };
    lanes.forEach((lane, row) => drawLane(lane, RULER + row * pitch, paints));
  }

  function drawRuler(height) {
    const about = ((view.to - view.from) / plot()) * 110;
    const decade = Math.pow(10, Math.floor(Math.log10(about)));
    const step = [1, 2, 5, 10].map((factor) => factor * decade).find((candidate) => candidate >= about);
    context.fillStyle = color("faint");
    context.strokeStyle = color("rule");
    context.lineWidth = 1;
    context.textAlign = "center";
    for (let time = Math.ceil((view.from - whole.from) / step) * step; time + whole.from <= view.to; time += step) {
      const x = Math.round(toX(time + whole.from)) + 0.5;
      context.beginPath();
      context.moveTo(x, RULER - 4);
      context.lineTo(x, height);
      context.stroke();
      const label = time === 0 ? "0" : duration(time * 1e3).replace(/\.0+ /, " ");
      const half = context.measureText(label).width / 2;
      context.fillText(label, clamp(x, GUTTER + half - 10, width() - half), 9);
    }
  }

  function drawLane(lane, top, paints) {
    context.globalAlpha = 1;
    context.fillStyle = color("lane");
    context.fillRect(GUTTER, top + 1, plot(), pitch - 2);
    context.fillStyle = paints.faint;
    context.textAlign = "right";
    context.fillText(String(lane.connection), GUTTER - 8, top + pitch / 2);
    // Many spans may fall on one pixel: a pixel that is already full is not painted again.
    if (lane.marked !== lane.spans) drawSpans(lane.spans, top, { other: paints.rule, avoidable: paints.rule, connect: paints.rule });
    drawSpans(lane.marked, top, paints);
  }

  function drawSpans(spans, top, paints) {
    let painted = -1;
    for (let at = firstFrom(spans, view.from); at < spans.length; at++) {
      const span = spans[at];
      if (span.start > view.to) break;
      const left = Math.max(toX(span.start), GUTTER);
      const right = Math.min(Math.max(toX(span.end), left + 1.2), GUTTER + plot());
      const isChosen = chosen && chosen.span === span;
      if (right <= painted && !isChosen) continue;
      painted = Math.max(painted, right);
      context.globalAlpha = span.trips > 1 ? 0.35 + 0.65 * Math.min(span.busy / Math.max(span.end - span.start, 1), 1) : 1;
      context.fillStyle = paints[kind(span)];
      const gap = right - left > 4 ? 0.8 : 0;
      context.fillRect(left, top + 2, right - left - gap, pitch - 4);
      if (isChosen) {
        context.globalAlpha = 1;
        context.strokeStyle = paints.ink;
        context.lineWidth = 1.5;
        context.strokeRect(left - 0.75, top + 1.25, right - left + 1.5, pitch - 2.5);
      }
    }
    context.globalAlpha = 1;
  }

  function kind(span) {
    return span.statement < 0 ? "connect" : statements[span.statement][1] ? "avoidable" : "other";
  }

  /** Place of the first span that does not end before a time (spans of a lane do not overlap). */
  function firstFrom(spans, time) {
    let low = 0, high = spans.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (spans[middle].end < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The span nearest to a point of the canvas, at most a few pixels away. */
  function spanAt(x, y) {
    const lane = lanes[Math.floor((y - RULER) / pitch)];
    if (!lane || x < GUTTER - 4) return null;
    const from = firstFrom(lane.marked, toTime(x - 4));
    let best = null, nearest = 5;
    for (const span of lane.marked.slice(from, from + 40)) {
      const distance = Math.max(toX(span.start) - x, x - Math.max(toX(span.end), toX(span.start) + 1.2), 0);
      if (distance < nearest) { nearest = distance; best = span; }
    }
    return best && { lane, span: best };
  }

  function choose(next) {
    if (chosen?.span === next?.span) return;
    chosen = next;
    describe();
    redraw();
  }

  function describe() {
    if (!chosen) return;
    const { lane, span } = chosen;
    const bold = document.createElement("b");
    const many = span.trips > 1;
    bold.textContent = many ? `${count(span.trips)} trips, ${duration(span.busy * 1e3)} together` : duration(span.busy * 1e3);
    const user = users.length > 1 ? ` of ${users[lane.user]}` : "";
    const scope = scopes.length > 2 && span.statement >= 0 ? `, ${span.scope < 0 ? "several scopes" : scopes[span.scope]}` : "";
    const where = ` · connection ${lane.connection}${user}, at ${duration((span.start - whole.from) * 1e3)}${scope}`;
    const server = ` · server ${duration(span.server * 1e3)}, wire ${duration((span.busy - span.server) * 1e3)}`;
    const parts = [bold, where, server];
    if (span.statement >= 0) {
      const code = document.createElement("code");
      const [text, finding] = statements[span.statement];
      code.textContent = text;
      parts.push(many ? "; among them" : "", code);
      if (finding) {
        const link = document.createElement("a");
        link.href = `#finding-${finding}`;
        link.textContent = findings[finding - 1];
        parts.push(link);
      }
    } else {
      parts.push(" · opening the session");
    }
    readout.replaceChildren(...parts);
  }

  /** Chooses the neighbour in the lane, or the span nearest in time in another lane, and brings it into view. */
  function step(along, across) {
    const marked = lanes.filter((lane) => lane.marked.length > 0);
    if (marked.length === 0) return;
    const nearest = (lane, time) => ({ lane, span: lane.marked[Math.min(firstFrom(lane.marked, time), lane.marked.length - 1)] });
    if (!chosen) {
      choose(nearest(marked[0], view.from));
    } else if (along !== 0) {
      const { lane, span } = chosen;
      choose({ lane, span: lane.marked[clamp(lane.marked.indexOf(span) + along, 0, lane.marked.length - 1)] });
    } else {
      choose(nearest(marked[clamp(marked.indexOf(chosen.lane) + across, 0, marked.length - 1)], chosen.span.start));
    }
    const { start, end } = chosen.span;
    if (start < view.from || end > view.to) {
      const half = Math.max(view.to - view.from, (end - start) * 1.2) / 2;
      look((start + end) / 2 - half, (start + end) / 2 + half);
    }
  }

  /** Lanes and spans that the filters leave; what is chosen stays chosen only if it is among them. */
  function filter() {
    const is = (name, value) => only[name] === "" || Number(only[name]) === value;
    const ofScope = (span) => only.scope === "" || span.scope === Number(only.scope) || span.scope < 0;
    const ofFinding = (span) => only.finding === "" || (span.statement >= 0 && is("finding", statements[span.statement][1]));
    const marksAll = only.scope === "" && only.finding === "";
    lanes = all.filter((lane) => is("connection", lane.connection) && is("user", lane.user));
    for (const lane of lanes) {
      lane.marked = marksAll ? lane.spans : lane.spans.filter((span) => ofScope(span) && ofFinding(span));
    }
    pitch = clamp(Math.floor(420 / Math.max(lanes.length, 1)), 11, 26);
    if (chosen && !(lanes.includes(chosen.lane) && chosen.lane.marked.includes(chosen.span))) chosen = null;
    const trips = lanes.reduce((sum, lane) => sum + lane.marked.reduce((own, span) => own + span.trips, 0), 0);
    const isWhole = Object.values(only).every((value) => value === "");
    if (!isWhole && !chosen) readout.textContent = `${count(trips)} ${trips === 1 ? "trip" : "trips"} chosen.`;
    for (const [name, select] of selects) select.value = only[name];
  }

  /** A list for each thing that trips differ by; a list of one thing is none. */
  const selects = new Map();
  function addFilter(name, label, options) {
    if (options.length < 2) return;
    const select = document.createElement("select");
    select.id = `only-${name}`;
    select.append(new Option("all", ""), ...options.map(([text, value]) => new Option(text, String(value))));
    select.addEventListener("change", () => { only[name] = select.value; filter(); redraw(); });
    const box = document.createElement("label");
    box.append(`${label} `, select);
    element("filters").append(box);
    selects.set(name, select);
  }
  const used = (field) => new Set(all.flatMap((lane) => lane.spans.map(field)));
  const usedScopes = used((span) => (span.statement < 0 ? -1 : span.scope));
  const usedFindings = used((span) => (span.statement < 0 ? 0 : statements[span.statement][1]));
  addFilter("connection", "Connection", all.map((lane) => [lane.connection, lane.connection]));
  addFilter("user", "User", users.map((user, place) => [user, place]));
  addFilter("scope", "Scope", scopes.map((scope, place) => [scope, place]).filter(([, place]) => usedScopes.has(place)));
  const shownFindings = findings.map((finding, place) => [`${place + 1}: ${finding}`, place + 1]);
  addFilter("finding", "Finding", [["none", 0], ...shownFindings].filter(([, number]) => number === 0 || usedFindings.has(number)));

  for (const button of document.querySelectorAll("[data-finding]")) {
    if (!usedFindings.has(Number(button.dataset.finding))) continue;
    button.hidden = false;
    button.addEventListener("click", () => {
      Object.assign(only, { connection: "", user: "", scope: "", finding: button.dataset.finding });
      chosen = null;
      filter();
      step(0, 0);
      const spans = lanes.flatMap((lane) => lane.marked);
      const from = spans.reduce((least, span) => Math.min(least, span.start), whole.to);
      const to = spans.reduce((most, span) => Math.max(most, span.end), whole.from);
      look(from - (to - from) / 20, to + (to - from) / 20);
      element("trips").scrollIntoView();
      canvas.focus({ preventScroll: true });
    });
  }

  const keys = {
    "+": () => zoom(2, middleOfChosen()), "=": () => zoom(2, middleOfChosen()), "-": () => zoom(0.5, middleOfChosen()),
    "0": () => look(whole.from, whole.to),
    ArrowLeft: (shift) => (shift ? move(-0.25) : step(-1, 0)),
    ArrowRight: (shift) => (shift ? move(0.25) : step(1, 0)),
    ArrowUp: () => step(0, -1), ArrowDown: () => step(0, 1),
    Home: () => step(-Infinity, 0), End: () => step(Infinity, 0),
  };
  function middleOfChosen() {
    const inView = chosen && chosen.span.end >= view.from && chosen.span.start <= view.to;
    return inView ? (chosen.span.start + chosen.span.end) / 2 : (view.from + view.to) / 2;
  }
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
    event.preventDefault();
    keys[event.key](event.shiftKey);
  });

  // The wheel scrolls the page until the chart has the focus: a page must not catch those who only pass.
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      move((event.deltaX || event.deltaY) / plot());
    } else {
      zoom(Math.exp(-event.deltaY / 300), toTime(event.offsetX));
    }
  }, { passive: false });

  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    drag = { x: event.clientX, from: view.from, to: view.to };
    choose(spanAt(event.offsetX, event.offsetY) ?? chosen);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) {
      if (document.activeElement !== canvas || event.pointerType === "mouse") choose(spanAt(event.offsetX, event.offsetY) ?? chosen);
      return;
    }
    if (Math.abs(event.clientX - drag.x) < 3) return;
    canvas.setPointerCapture(event.pointerId);
    const by = ((drag.x - event.clientX) / plot()) * (drag.to - drag.from);
    const kept = clamp(by, whole.from - drag.from, whole.to - drag.to);
    look(drag.from + kept, drag.to + kept);
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => { drag = null; });

  element("zoom-in").addEventListener("click", () => zoom(2, middleOfChosen()));
  element("zoom-out").addEventListener("click", () => zoom(0.5, middleOfChosen()));
  element("zoom-left").addEventListener("click", () => move(-0.5));
  element("zoom-right").addEventListener("click", () => move(0.5));
  element("zoom-all").addEventListener("click", () => look(whole.from, whole.to));

  new ResizeObserver(redraw).observe(canvas.parentElement);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  // Paper has other colours and another width; it must be drawn before the page is laid out for it.
  matchMedia("print").addEventListener("change", draw);
  addEventListener("beforeprint", draw);
  addEventListener("afterprint", redraw);
  filter();
  draw();
}
if (data.waterfall) startWaterfall(data.waterfall);
