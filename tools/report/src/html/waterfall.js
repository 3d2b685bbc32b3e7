/**
 * Trips by connection over time on a canvas. A lane is a connection; its spans are trips, or neighbouring trips
 * joined where there were too many. Times are in microseconds since the trace began.
 */
function startWaterfall({ lanes: packed, statements }) {
  const FIELDS = 6; // start after the span before, length, trips, busy, server, statement (-1: connecting)
  const GUTTER = 34, RULER = 22, MARGIN = 8, SHORTEST = 5; // px, the last one µs
  const canvas = element("waterfall"), readout = element("trip");
  const context = canvas.getContext("2d");

  const lanes = packed.map(({ connection, trips, spans: flat }) => {
    const spans = [];
    for (let at = 0, start = 0; at < flat.length; at += FIELDS) {
      start += flat[at];
      const [length, number, busy, server, statement] = flat.slice(at + 1, at + FIELDS);
      spans.push({ start, end: start + length, trips: number, busy, server, statement });
    }
    return { connection, trips, spans };
  });
  const first = Math.min(...lanes.map((lane) => lane.spans[0].start));
  const last = Math.max(...lanes.map((lane) => lane.spans.reduce((end, span) => Math.max(end, span.end), 0)));
  const whole = { from: first, to: Math.max(last, first + SHORTEST) };
  const pitch = clamp(Math.floor(420 / lanes.length), 11, 26);
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
    const paints = { other: color("other"), avoidable: color("avoidable"), connect: color("connect"), faint: color("faint"), ink: color("ink") };
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
    let painted = -1;
    for (let at = firstFrom(lane, view.from); at < lane.spans.length; at++) {
      const span = lane.spans[at];
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

  /** Place of the first span of a lane that does not end before a time (spans of a lane do not overlap). */
  function firstFrom(lane, time) {
    let low = 0, high = lane.spans.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lane.spans[middle].end < time) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The span nearest to a point of the canvas, at most a few pixels away. */
  function spanAt(x, y) {
    const lane = lanes[Math.floor((y - RULER) / pitch)];
    if (!lane || x < GUTTER - 4) return null;
    const from = firstFrom(lane, toTime(x - 4));
    let best = null, nearest = 5;
    for (const span of lane.spans.slice(from, from + 40)) {
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
    const where = ` · connection ${lane.connection}, at ${duration((span.start - whole.from) * 1e3)}`;
    const server = ` · server ${duration(span.server * 1e3)}, wire ${duration((span.busy - span.server) * 1e3)}`;
    const parts = [bold, where, server];
    if (span.statement >= 0) {
      const code = document.createElement("code");
      code.textContent = statements[span.statement][0];
      parts.push(many ? "; among them" : "", code);
    } else {
      parts.push(" · opening the session");
    }
    readout.replaceChildren(...parts);
  }

  /** Chooses the neighbour in the lane, or the span nearest in time in another lane, and brings it into view. */
  function step(along, across) {
    if (!chosen) {
      const lane = lanes[0];
      choose({ lane, span: lane.spans[Math.min(firstFrom(lane, view.from), lane.spans.length - 1)] });
    } else if (along !== 0) {
      const { lane, span } = chosen;
      choose({ lane, span: lane.spans[clamp(lane.spans.indexOf(span) + along, 0, lane.spans.length - 1)] });
    } else {
      const lane = lanes[clamp(lanes.indexOf(chosen.lane) + across, 0, lanes.length - 1)];
      choose({ lane, span: lane.spans[Math.min(firstFrom(lane, chosen.span.start), lane.spans.length - 1)] });
    }
    const { start, end } = chosen.span;
    if (start < view.from || end > view.to) {
      const half = Math.max(view.to - view.from, (end - start) * 1.2) / 2;
      look((start + end) / 2 - half, (start + end) / 2 + half);
    }
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
  draw();
}
if (data.waterfall) startWaterfall(data.waterfall);
