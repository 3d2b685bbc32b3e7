"use strict";
document.documentElement.classList.remove("no-script");
const element = (id) => document.getElementById(id);
const data = JSON.parse(element("data")?.textContent ?? "{}");

/** Three digits and a unit, as everywhere in the report. */
function duration(ns) {
  const three = (value) => value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
  if (ns < 1e3) return `${Math.round(ns)} ns`;
  if (ns < 999.5e3) return `${three(ns / 1e3)} µs`;
  if (ns < 999.5e6) return `${three(ns / 1e6)} ms`;
  if (ns < 59.95e9) return `${three(ns / 1e9)} s`;
  if (ns < 3599.5e9) {
    const seconds = Math.round(ns / 1e9);
    return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  }
  const minutes = Math.round(ns / 60e9);
  return `${count(Math.floor(minutes / 60))} h ${String(minutes % 60).padStart(2, "0")} min`;
}

function count(number) {
  return number.toLocaleString("en-US");
}

const clamp = (value, least, most) => Math.min(Math.max(value, least), most);
