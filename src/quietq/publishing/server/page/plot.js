// The released values: those of a view are drawn as lines or as a map and written as a table, those of a list as a table.

import { forgetPlot, layOver, tellAgain } from "./cursor.js";
import { fillTable, find, row, shape, short } from "./elements.js";
import { drawLines } from "./line_plot.js";
import { drawMap, mapped } from "./map_plot.js";
import { best } from "./release.js";
import { complain, valuesAt } from "./server.js";
import { statesOf } from "./view.js";

const MOST_LISTED = 1000; // rows of a table

let drawing = null; // the states and values on screen
let updates = 0; // answers that come too late are dropped

/** Empties the plot, for another release. */
export function clearPlot(release) {
  drawing = null;
  updates++;
  find("plotted").hidden = release.listed !== null;
  find("view").hidden = true;
  if (release.listed !== null) find("as-table").open = true;
  forgetPlot();
  for (const id of ["plot", "legend", "table"]) find(id).replaceChildren();
}

/** Fetches the values of a view and shows them. */
export async function showValues(release, view) {
  const mine = ++updates;
  const states = statesOf(release, view);
  try {
    const values = await valuesAt(release, states.states);
    if (mine !== updates) return; // another view was asked for meanwhile
    drawing = { ...states, values };
    draw();
    showTable();
    tellAgain();
  } catch (error) {
    if (mine === updates) complain(error);
  }
}

/** Fetches the values of a list, of items or of policies, and shows them. */
export async function showList(release) {
  const mine = ++updates;
  const listed = release.listed.slice(0, MOST_LISTED);
  const places = release.items === null ? [release.box.map(([low]) => low)] : listed.map((_, place) => [place]);
  try {
    const values = await valuesAt(release, places);
    if (mine !== updates) return;
    const texts = (place) => (release.items === null ? [values[0][place]] : values[place]).map(short);
    const first = listed.length < release.listed.length ? `item (the first ${listed.length})` : "item";
    const titles = release.items === null ? ["policy", "value"] : [first, ...release.names];
    fillTable(find("table"), titles, listed.map((name, place) => row(name, texts(place))));
  } catch (error) {
    if (mine === updates) complain(error);
  }
}

/** Draws again whenever the size or the colours change. */
export function keepDrawn() {
  new ResizeObserver(draw).observe(find("plot"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}

function draw() {
  if (drawing === null) return;
  const { release, lines } = drawing;
  const width = Math.max(find("plot").clientWidth, 240);
  const picture = shape("svg", {});
  const frame = (lines ? drawLines : drawMap)(picture, drawing, width);
  picture.setAttribute("viewBox", `0 0 ${width} ${frame.whole}`);
  picture.setAttribute("height", frame.whole);
  find("plot").replaceChildren(picture);
  const shown = `Plot of ${lines ? release.names.join(", ") : release.mapName(drawing.mode)} over the states`;
  const warning = release.isPrivate ? "" : "NOT PRIVATE. ";
  find("plot").setAttribute("aria-label", `${warning}${shown}. Arrow keys move the cursor.`);
  layOver(picture, drawing, frame);
}

function showTable() {
  const [titles, rows] = drawing.lines ? tableOfLines(drawing) : tableOfMap(drawing);
  fillTable(find("table"), titles, rows);
}

/** So many indices, evenly spread from the first to the last. */
function picked(count, { length }) {
  return Array.from({ length: count }, (_, i) => Math.round((i * (length - 1)) / (count - 1)));
}

function tableOfLines({ release, across, xs, values }) {
  const { names, chooses } = release;
  const texts = (each) => [...each.map(short), ...(chooses ? [names[best(each)]] : [])];
  const titles = [release.coordinates[across], ...names, ...(chooses ? [release.preferred] : [])];
  return [titles, picked(11, xs).map((i) => row(short(xs[i]), texts(values[i])))];
}

function tableOfMap(drawn) {
  const { release, mode, across, up, xs, ys } = drawn;
  const columns = picked(6, xs);
  const text = (number) => (mode === "best" ? release.names[number] : short(number));
  const texts = (j) => columns.map((i) => text(mapped(drawn, j * xs.length + i)));
  const corner = `${release.coordinates[up]} ↓, ${release.coordinates[across]} →`;
  const titles = [corner, ...columns.map((i) => short(xs[i]))];
  return [titles, picked(6, ys).reverse().map((j) => row(short(ys[j]), texts(j)))];
}
