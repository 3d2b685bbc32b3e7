/** The slider over the cost curve: moves the cursor in both drawings and fills the table below. */
function startCurve(lines) {
  const slider = element("rtt");
  const charts = [...document.querySelectorAll("svg.curve")].map((svg) => {
    const pair = (name) => svg.dataset[name].split(" ").map(Number);
    return { svg, x: pair("x"), y: pair("y"), rtt: pair("rtt"), time: pair("time") };
  });
  const rows = [...document.querySelectorAll(".costs tbody tr")];
  const prices = [...document.querySelectorAll("[data-price]")].map((text) => {
    const [base, trips] = text.dataset.price.split(" ").map(Number);
    return { text, base, trips };
  });
  const [least, most] = charts[0].rtt;
  const steps = Number(slider.max);

  /** The forecast at a round-trip time: linear between the points, flat beyond them. */
  function at(line, rtt) {
    const last = line.rtt.length - 1;
    const next = line.rtt.findIndex((point) => point >= rtt);
    if (next <= 0) {
      const end = next === 0 ? 0 : last;
      return { time: line.time[end], low: line.low[end], high: line.high[end] };
    }
    const part = (rtt - line.rtt[next - 1]) / Math.max(line.rtt[next] - line.rtt[next - 1], 1);
    const between = (values) => values[next - 1] + (values[next] - values[next - 1]) * part;
    return { time: between(line.time), low: between(line.low), high: between(line.high) };
  }

  function onLogScale(value, [from, to], [start, end]) {
    const part = Math.log(clamp(value, from, to) / from) / Math.log(to / from);
    return start + part * (end - start);
  }

  const tied = (text) => text.replace(/(\d) /g, "$1\u00a0");

  function show(rtt) {
    const costs = lines.map((line) => at(line, rtt));
    for (const { svg, x, y, rtt: range, time } of charts) {
      svg.querySelector(".cursor").setAttribute("transform", `translate(${onLogScale(rtt, range, x).toFixed(1)} 0)`);
      svg.querySelectorAll(".cursor circle").forEach((dot, place) => {
        dot.setAttribute("cy", onLogScale(costs[place].time, time, y).toFixed(1));
      });
    }
    rows.forEach((row, place) => {
      const cost = costs[place];
      const set = (name, text) => { row.querySelector(`[data-cost=${name}]`).textContent = tied(text); };
      set("time", duration(cost.time));
      set("spread", cost.low < cost.high ? `${duration(cost.low)} – ${duration(cost.high)}` : "");
      const share = (cost.time * 100) / Math.max(costs[0].time, 1);
      set("share", place === 0 ? "" : share < 1 ? "<1 %" : `${Math.round(share)} %`);
    });
    for (const { text, base, trips } of prices) text.textContent = tied(`${duration(base + trips * rtt)} at ${duration(rtt)}`);
    element("rtt-value").textContent = duration(rtt);
    slider.setAttribute("aria-valuetext", duration(rtt));
  }

  slider.addEventListener("input", () => show(least * Math.pow(most / least, slider.value / steps)));
  for (const button of document.querySelectorAll(".presets button")) {
    button.addEventListener("click", () => {
      const rtt = Number(button.dataset.rtt);
      slider.value = onLogScale(rtt, [least, most], [0, steps]);
      show(rtt);
    });
  }
}
if (data.curve) startCurve(data.curve);
