// Lines: each output along one coordinate, and where which action is best.

import { drawAxes, frameOf, paddedRange } from "./axes.js";
import { shape } from "./elements.js";
import { colour, showLegend, swatch } from "./legend.js";
import { best } from "./release.js";

const WIDE = 560; // pixels from which on there is room for names at the lines
const [MOST_LABELS, LONGEST_LABEL] = [8, 10]; // others stand in the legend alone

/** Draws the lines with their legend; gives the frame. */
export function drawLines(picture, drawing, width) {
  const { release, across, xs, values } = drawing;
  const { names, chooses } = release;
  const labelled = width >= WIDE && names.length > 1 && names.length <= MOST_LABELS &&
    names.every((name) => name.length <= LONGEST_LABEL);
  const frame = frameOf({
    xRange: release.box[across], yRange: paddedRange(values), width, height: width < WIDE ? 230 : 320,
    strip: chooses ? 30 : 0, margin: labelled ? 84 : 14,
  });
  if (chooses) drawRegions(picture, frame, drawing);
  drawAxes(picture, frame, release.coordinates[across], release.measure);
  names.forEach((_, k) => {
    const points = xs.map((x, i) => `${frame.x(x).toFixed(2)},${frame.y(values[i][k]).toFixed(2)}`);
    picture.append(shape("path", { class: `line ${colour(k)}`, d: `M${points.join("L")}` }));
  });
  if (labelled) labelLines(picture, frame, names, values[values.length - 1]);
  showLegend(names.length > 1 ? names.map((name, k) => [swatch(colour(k)), name]) : []);
  return frame;
}

/** The lines' names at their right ends, pushed apart where they would collide. */
function labelLines(picture, frame, names, last) {
  const order = last.map((value, k) => ({ k, y: frame.y(value) })).sort((one, other) => one.y - other.y);
  order.forEach((label, i) => { if (i > 0) label.y = Math.max(label.y, order[i - 1].y + 16); });
  const over = order.length ? order[order.length - 1].y - frame.bottom : 0;
  for (const { k, y } of order) {
    picture.append(shape("text", { class: "name", x: frame.right + 8, y: y + 4 - Math.max(over, 0) }, names[k]));
  }
}

/** The greedy policy: which action is best where, as a strip under the lines and a shade behind them. */
function drawRegions(picture, frame, { release, xs, values }) {
  const ends = (i) => (i === 0 ? xs[0] : i === xs.length ? xs[i - 1] : (xs[i - 1] + xs[i]) / 2);
  for (let begin = 0, i = 1; i <= xs.length; i++) {
    const action = best(values[begin]);
    if (i < xs.length && best(values[i]) === action) continue;
    const [x, width] = [frame.x(ends(begin)), frame.x(ends(i)) - frame.x(ends(begin))];
    const [kind, height] = [colour(action, false), frame.bottom - frame.top];
    picture.append(
      shape("rect", { class: `shade ${kind}`, x, width, y: frame.top, height }),
      shape("rect", { class: `region ${kind}`, x, width, y: frame.bottom + 3, height: 24 }),
    );
    const name = release.names[action];
    const fits = [`${name} is ${release.preferred}`, name, String(action)].find((text) => width >= 8 * text.length + 8);
    const where = { x: x + width / 2, y: frame.bottom + 20, "text-anchor": "middle" };
    if (fits) picture.append(shape("text", where, fits));
    begin = i;
  }
}
