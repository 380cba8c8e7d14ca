// The cursor on the plot: moved by pointer and by key, said in words, and drawn over the plot with the asked state.

import { element, find, shape, short } from "./elements.js";
import { colour } from "./legend.js";
import { best } from "./release.js";

let drawing = null; // the states and values on screen
let frame = null; // where they lie
let overlay = null; // the part of the picture that is drawn here
let cursor = null; // indices into the drawn states
let asked = null; // the last state that was asked for, with its values

const index = ({ i, j }) => j * drawing.xs.length + i;

/** The plot is empty from now on. */
export function forgetPlot() {
  [drawing, frame, overlay, cursor, asked] = [null, null, null, null, null];
}

/** There is no cursor until the next move. */
export function forgetCursor() {
  cursor = null;
}

/** Marks a state that was asked for, `{ state, values }`; null takes the mark away. */
export function markAsked(question) {
  asked = question;
  drawMarks();
}

/** Draws cursor and marks over a picture that was drawn anew. */
export function layOver(picture, drawn, place) {
  [drawing, frame, overlay] = [drawn, place, shape("g", {})];
  picture.append(overlay);
  drawMarks();
}

/** Tells the values at the cursor again, because other values are drawn. */
export function tellAgain() {
  if (cursor !== null) moveTo(cursor.i, cursor.j);
  else find("readout").textContent = "";
}

function moveTo(i, j) {
  const { release, xs, ys } = drawing;
  cursor = { i: Math.min(Math.max(i, 0), xs.length - 1), j: Math.min(Math.max(j, 0), ys.length - 1) };
  const [state, values] = [drawing.states[index(cursor)], drawing.values[index(cursor)]];
  const where = state.map((number, axis) => `${release.coordinates[axis]} ${short(number)}`).join(", ");
  const told = release.names.map((name, k) => `${name}: ${short(values[k])}`);
  if (release.chooses) told.push(`${release.preferred}: ${release.names[best(values)]}`);
  find("readout").replaceChildren(where, ...told.flatMap((text) => [" ", element("b", { textContent: text })]));
  drawMarks();
}

function drawMarks() {
  if (overlay === null) return;
  const upright = (kind, x) => shape("line", { class: kind, x1: x, x2: x, y1: frame.top, y2: frame.bottom });
  const level = (kind, y) => shape("line", { class: kind, x1: frame.left, x2: frame.right, y1: y, y2: y });
  const dots = (x, values) => values.map((value, k) => {
    return shape("circle", { class: `dot ${colour(k, false)}`, cx: x, cy: frame.y(value), r: 4.5 });
  });
  const marks = [];
  if (asked !== null && drawing.release.dimensions === 1) {
    const x = frame.x(asked.state[0]);
    marks.push(upright("asked", x), ...dots(x, asked.values));
  }
  if (cursor !== null) {
    const x = frame.x(drawing.xs[cursor.i]);
    if (drawing.lines) marks.push(upright("cursor", x), ...dots(x, drawing.values[cursor.i]));
    else {
      const y = frame.y(drawing.ys[cursor.j]);
      marks.push(upright("halo", x), level("halo", y), upright("cursor", x), level("cursor", y)); // on any colour
    }
  }
  overlay.replaceChildren(...marks);
}

function point(event) {
  const { lines, xs, ys } = drawing;
  const area = find("plot").querySelector("svg").getBoundingClientRect();
  const share = (event.clientX - area.left - frame.left) / (frame.right - frame.left);
  const height = (frame.bottom - (event.clientY - area.top)) / (frame.bottom - frame.top);
  if (lines) moveTo(Math.round(share * (xs.length - 1)), 0);
  else moveTo(Math.floor(share * xs.length), Math.floor(height * ys.length));
}

/** Where a key leads from the cursor; undefined if it leads nowhere. */
function destination(key) {
  const { i, j } = cursor;
  const { lines, xs } = drawing;
  const up = (steps) => (lines ? [i + steps, j] : [i, j + steps]);
  const far = lines ? 25 : 8;
  const moves = new Map([
    ["ArrowLeft", [i - 1, j]], ["ArrowRight", [i + 1, j]], ["Home", [0, j]], ["End", [xs.length - 1, j]],
    ["ArrowDown", up(-1)], ["ArrowUp", up(1)], ["PageDown", up(-far)], ["PageUp", up(far)],
  ]);
  return moves.get(key);
}

/** Follows pointer and keys; `askFor` is called with a state on a click or the Enter key. */
export function followCursor(askFor) {
  const ask = () => askFor(drawing.states[index(cursor)]);
  const listen = (kind, act) => find("plot").addEventListener(kind, (event) => {
    if (drawing !== null) act(event);
  });
  listen("pointermove", point);
  listen("click", (event) => {
    point(event);
    ask();
  });
  listen("focus", () => {
    if (cursor === null) moveTo(Math.floor(drawing.xs.length / 2), Math.floor(drawing.ys.length / 2));
  });
  listen("keydown", (event) => {
    if (cursor === null || event.ctrlKey || event.altKey || event.metaKey) return;
    const where = destination(event.key);
    if (where !== undefined) moveTo(...where);
    else if (event.key === "Enter") ask();
    else return;
    event.preventDefault();
  });
}
