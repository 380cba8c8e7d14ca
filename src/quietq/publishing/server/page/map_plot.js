// Maps: one number at each place of two coordinates, as a colour.

import { drawAxes, frameOf } from "./axes.js";
import { canvasAndPen, shape, short } from "./elements.js";
import { colour, numberPainter, outputPainter, scale, showLegend, swatch } from "./legend.js";
import { best } from "./release.js";

const LEAST_REGION = 40; // cells that a region must have to be labelled

/** The number that a map shows at one of the drawn states. */
export function mapped({ release, mode, states, values }, index) {
  const found = values[index];
  if (mode === "best") return best(found);
  if (mode === "largest") return Math.max(...found);
  const output = Number(mode);
  return release.isWorld ? found[output] - states[index][output % release.dimensions] : found[output];
}

/** Draws the map with its legend; gives the frame. */
export function drawMap(picture, drawing, width) {
  const { release, mode, across, up, values } = drawing;
  const frame = frameOf({
    xRange: release.box[across], yRange: release.box[up], width, height: Math.min(width * 0.75, 420),
  });
  const numbers = values.map((_, index) => mapped(drawing, index));
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)];
  const paint = mode === "best" ? outputPainter() : numberPainter(least, most);
  drawAxes(picture, frame, release.coordinates[across], release.coordinates[up]);
  picture.append(shape("image", {
    href: painted(numbers, drawing, paint), x: frame.left, y: frame.top, width: frame.right - frame.left,
    height: frame.bottom - frame.top, preserveAspectRatio: "none",
  }));
  if (mode === "best") {
    labelRegions(picture, frame, drawing, numbers);
    showLegend(release.names.map((name, k) => [swatch(colour(k, false), true), `${name} is ${release.preferred}`]));
  } else {
    const text = `${release.mapName(mode)}, from ${short(least)} to ${short(most)}`;
    showLegend([[scale(paint, least, most), text]]);
  }
  return frame;
}

/** The address of a picture with one pixel a cell. */
function painted(numbers, { xs, ys }, paint) {
  const [canvas, pen] = canvasAndPen(xs.length, ys.length);
  numbers.forEach((number, k) => {
    pen.fillStyle = paint(number);
    pen.fillRect(k % xs.length, ys.length - 1 - Math.floor(k / xs.length), 1, 1);
  });
  return canvas.toDataURL();
}

/** The number of the best action on each region, so that a map can be read without its colours. */
function labelRegions(picture, frame, { xs, ys }, actions) {
  const [column, row] = [(k) => k % xs.length, (k) => Math.floor(k / xs.length)];
  for (const region of regions(actions, xs.length, ys.length)) {
    if (region.length < LEAST_REGION) continue;
    const [middle, centre] = [column, row].map((of) => region.reduce((sum, k) => sum + of(k), 0) / region.length);
    const far = (k) => Math.hypot(column(k) - middle, row(k) - centre);
    const nearest = region.reduce((one, other) => (far(other) < far(one) ? other : one));
    const [x, y] = [frame.x(xs[column(nearest)]), frame.y(ys[row(nearest)])];
    const text = String(actions[nearest]);
    picture.append(shape("text", { class: "on-map", x, y: y + 5, "text-anchor": "middle" }, text));
  }
}

/** Cells that hang together and have the same action, as lists of cells. */
function* regions(actions, columns, rows) {
  const seen = new Set();
  for (let start = 0; start < actions.length; start++) {
    if (seen.has(start)) continue;
    const region = [start];
    seen.add(start);
    for (let k = 0; k < region.length; k++) {
      const [i, j] = [region[k] % columns, Math.floor(region[k] / columns)];
      for (const [x, y] of [[i - 1, j], [i + 1, j], [i, j - 1], [i, j + 1]]) {
        const [next, inside] = [y * columns + x, x >= 0 && y >= 0 && x < columns && y < rows];
        if (!inside || seen.has(next) || actions[next] !== actions[start]) continue;
        seen.add(next);
        region.push(next);
      }
    }
    yield region;
  }
}
