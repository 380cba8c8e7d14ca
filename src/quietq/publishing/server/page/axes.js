// The frame of a plot: where its area lies, and the axes with round numbers around it.

import { shape, short } from "./elements.js";

const ABOUT_ROWS = 7; // lines from bottom to top

function ticks([low, high], about) {
  const rough = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((each) => each * power >= rough) * power;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) {
    found.push(Number((k * step).toPrecision(12)));
  }
  return found;
}

/**
 * Where things lie, in pixels: the area of the plot, and what turns numbers into places in it.
 * `strip` is kept free between the area and its axis, `margin` on the right of the area.
 */
export function frameOf({ xRange, yRange, width, height, strip = 0, margin = 14 }) {
  const labels = ticks(yRange, ABOUT_ROWS).map((tick) => short(tick).length);
  const [left, top, right] = [14 + 7.5 * Math.max(2, ...labels), 28, width - margin];
  const bottom = top + height;
  const under = bottom + strip;
  const share = (value, [low, high]) => (value - low) / (high - low);
  return {
    xRange, yRange, left, right, top, bottom, under,
    whole: under + 46, // the height with everything
    x: (value) => left + share(value, xRange) * (right - left),
    y: (value) => bottom - share(value, yRange) * height,
  };
}

/** The range of all numbers in some rows, with a little room around it. */
export function paddedRange(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const row of values) for (const value of row) [low, high] = [Math.min(low, value), Math.max(high, value)];
  const pad = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  return [low - pad, high + pad];
}

/** Draws the axes of a frame. */
export function drawAxes(picture, frame, xName, yName) {
  const { left, right, top, bottom, under } = frame;
  for (const tick of ticks(frame.yRange, ABOUT_ROWS)) {
    const y = frame.y(tick);
    picture.append(
      shape("line", { class: "rule", x1: left, x2: right, y1: y, y2: y }),
      shape("text", { class: "quiet-text", x: left - 8, y: y + 4, "text-anchor": "end" }, short(tick)),
    );
  }
  for (const tick of ticks(frame.xRange, Math.max(2, Math.min(10, (right - left) / 70)))) {
    const x = frame.x(tick);
    picture.append(
      shape("line", { class: "axis", x1: x, x2: x, y1: under, y2: under + 5 }),
      shape("text", { class: "quiet-text", x, y: under + 19, "text-anchor": "middle" }, short(tick)),
    );
  }
  picture.append(
    shape("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }),
    shape("text", { x: (left + right) / 2, y: under + 38, "text-anchor": "middle" }, xName),
    shape("text", { x: left - 8, y: top - 9, "text-anchor": "start" }, yName),
  );
}
