// Which part of the box is drawn: all of it if it has one coordinate, otherwise a map or lines that can be chosen.

import { forgetCursor } from "./cursor.js";
import { element, find, labelled, short } from "./elements.js";

const LINE_STATES = 501; // every fiftieth is a round number, for the table
const MAP_CELLS = 64;

/** The view at first, with its controls; `changed` is called after each change of it. */
export function showControls(release, changed) {
  const mode = release.chooses ? "best" : "0";
  const view = {
    mode: release.dimensions === 1 ? "lines" : mode, // or "largest", or an output's number
    across: 0,
    up: Math.min(1, release.dimensions - 1),
    rest: release.box.map((_, axis) => release.along(axis, 0.5)), // where the coordinates that do not vary stand
  };
  find("view").hidden = release.dimensions === 1;
  if (release.dimensions > 1) fillControls(release, view, changed);
  return view;
}

/** The states that a view shows: `xs` from left to right and, on a map, `ys` from bottom to top. */
export function statesOf(release, view) {
  const { mode, across, up, rest } = view;
  const lines = mode === "lines";
  const count = lines ? LINE_STATES : MAP_CELLS;
  const share = (i) => (lines ? i / (count - 1) : (i + 0.5) / count);
  const xs = Array.from({ length: count }, (_, i) => release.along(across, share(i)));
  const ys = lines ? [null] : Array.from({ length: count }, (_, i) => release.along(up, share(i)));
  const placed = (x, y) => {
    const state = [...rest];
    state[across] = x;
    if (y !== null) state[up] = y;
    return state;
  };
  return { release, lines, mode, across, up, xs, ys, states: ys.flatMap((y) => xs.map((x) => placed(x, y))) };
}

function fillControls(release, view, changed) {
  const axes = release.box.map((_, axis) => [String(axis), release.coordinates[axis]]);
  const selected = (field, label, options) => selector(view, field, label, options, () => {
    forgetCursor();
    fillControls(release, view, changed);
    find(`view-${field}`)?.focus();
    changed();
  });
  const shown = [selected("mode", "Show", modes(release)), selected("across", "From left to right", axes)];
  const others = axes.filter(([axis]) => Number(axis) !== view.across);
  if (view.mode !== "lines") shown.push(selected("up", "From bottom to top", others));
  release.box.forEach((_, axis) => {
    const varies = axis === view.across || (view.mode !== "lines" && axis === view.up);
    if (!varies) shown.push(slider(release, view, axis, changed));
  });
  find("view").replaceChildren(...shown);
}

function modes(release) {
  const maps = [...(release.chooses ? ["best", "largest"] : []), ...release.names.map((_, k) => String(k))];
  const named = maps.map((mode) => [mode, `${release.mapName(mode)}, as a map`]);
  return [...named, ["lines", "lines along one coordinate"]];
}

function selector(view, field, label, options, changed) {
  const choices = options.map(([value, text]) => new Option(text, value, false, value === String(view[field])));
  const select = element("select", { id: `view-${field}` }, ...choices);
  select.addEventListener("change", () => {
    view[field] = field === "mode" ? select.value : Number(select.value);
    if (view.up === view.across) view.up = view.across === 0 ? 1 : 0;
    changed();
  });
  return labelled(label, select);
}

/** Where a coordinate that does not vary stands: a slider, and a field for any number of the box. */
function slider(release, view, axis, changed) {
  const [low, high] = release.box[axis];
  const range = element("input", { id: `view-rest-${axis}`, type: "range", min: 0, max: 100, step: "any" });
  const field = element("input", { id: `view-exact-${axis}`, type: "number", min: low, max: high, step: "any" });
  const name = `${release.coordinates[axis]}, from ${short(low)} to ${short(high)}`;
  range.setAttribute("aria-label", `${name}, as a slider`);
  const tell = () => {
    range.value = (100 * (view.rest[axis] - low)) / (high - low);
    range.setAttribute("aria-valuetext", short(view.rest[axis]));
  };
  range.addEventListener("input", () => {
    view.rest[axis] = release.along(axis, range.value / 100);
    field.value = view.rest[axis];
    field.setAttribute("aria-invalid", "false");
    range.setAttribute("aria-valuetext", short(view.rest[axis]));
    changed();
  });
  field.addEventListener("change", () => {
    const typed = field.value === "" ? NaN : Number(field.value);
    const inside = typed >= low && typed <= high;
    field.setAttribute("aria-invalid", String(!inside));
    if (!inside) return;
    view.rest[axis] = typed;
    tell();
    changed();
  });
  field.value = view.rest[axis];
  tell();
  const both = labelled(name, field);
  both.append(range);
  return both;
}
