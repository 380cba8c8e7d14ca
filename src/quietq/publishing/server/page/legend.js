// Colours of outputs and of numbers, and the legend that explains them. The colours themselves are in page.css.

import { canvasAndPen, element, find, shape } from "./elements.js";

const COLOURS = 8;

/** The classes of an output's line or area: a colour, and dashes that differ where colours are used again. */
export function colour(output, dashed = true) {
  const dash = (output % COLOURS) + Math.floor(output / COLOURS);
  return `a${output % COLOURS}${dashed ? ` d${dash % COLOURS}` : ""}`;
}

function partsOf(variable) {
  const written = getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
  return [1, 3, 5].map((i) => parseInt(written.slice(i, i + 2), 16));
}

/** What paints the number of an output. */
export function outputPainter() {
  const painted = Array.from({ length: COLOURS }, (_, k) => `rgb(${partsOf(`--a${k}`)})`);
  return (output) => painted[output % COLOURS];
}

/** What paints a number between the least and the most. */
export function numberPainter(least, most) {
  const stops = ["--low", "--middle", "--high"].map(partsOf);
  return (number) => {
    const share = most > least ? (2 * (number - least)) / (most - least) : 1;
    const k = Math.min(Math.floor(share), 1);
    return `rgb(${stops[k].map((part, i) => Math.round(part + (share - k) * (stops[k + 1][i] - part)))})`;
  };
}

/** A piece of an output's line, or of its area. */
export function swatch(className, filled = false) {
  const mark = filled
    ? shape("rect", { class: className, width: 16, height: 12 })
    : shape("line", { class: `line ${className}`, x1: 0, x2: 34, y1: 6, y2: 6 });
  return shape("svg", { width: filled ? 16 : 34, height: 12, "aria-hidden": "true" }, mark);
}

/** A strip with all colours from the least to the most. */
export function scale(paint, least, most) {
  const [canvas, pen] = canvasAndPen(120, 12);
  for (let x = 0; x < 120; x++) {
    pen.fillStyle = paint(least + ((most - least) * x) / 119);
    pen.fillRect(x, 0, 1, 12);
  }
  return canvas;
}

/** Shows a legend of [mark, text] pairs. */
export function showLegend(entries) {
  find("legend").replaceChildren(...entries.map(([mark, text]) => element("li", {}, mark, text)));
}
