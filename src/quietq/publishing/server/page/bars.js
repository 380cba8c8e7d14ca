// A list with a bar for each entry: the items of a catalogue, or policies that were evaluated.

import { element, find, heading, labelled, row, shape, short } from "./elements.js";
import { complain, itemsOf } from "./server.js";

const AT_ONCE = 25; // entries, until more are asked for

let release = null;
let entries = []; // of the chosen release, in the order of its list
let view = null;

/** Fetches the list of a release and shows it; `ask` is called with an entry that is clicked. */
export async function showBars(chosen, ask) {
  release = chosen;
  [entries, view] = [[], { output: 0, order: "value", wanted: "", most: AT_ONCE }];
  try {
    const found = await itemsOf(chosen);
    if (release !== chosen) return []; // another one was chosen meanwhile
    entries = found.items.map((name, place) => ({
      name, place, values: found.values[place], ends: found.low === null ? null : [found.low[place], found.high[place]],
    }));
  } catch (error) {
    if (release === chosen) complain(error);
    return [];
  }
  fillControls(ask);
  draw(ask);
  return entries;
}

/** Shows no list, for another release. */
export function clearBars() {
  release = null;
  for (const id of ["bars", "bars-count"]) find(id).replaceChildren();
  find("more").hidden = true;
}

function fillControls(ask) {
  const changed = (change) => (event) => {
    Object.assign(view, change(event.target.value), { most: AT_ONCE });
    draw(ask);
  };
  const select = (id, options, change) => {
    const made = element("select", { id }, ...options.map(([value, text]) => new Option(text, value)));
    made.addEventListener("change", changed(change));
    return made;
  };
  const orders = [["value", "the largest value first"], ["list", "as in the list"]];
  const order = select("bars-order", orders, (given) => ({ order: given }));
  const wanted = element("input", { id: "bars-wanted", type: "search", autocomplete: "off", spellcheck: false });
  wanted.addEventListener("input", changed((given) => ({ wanted: given.trim().toLowerCase() })));
  const shown = [labelled("Order", order), labelled("Find by name", wanted)];
  if (entries[0].values.length > 1) {
    const names = release.names.map((name, k) => [String(k), name]);
    shown.unshift(labelled("Show", select("bars-output", names, (given) => ({ output: Number(given) }))));
  }
  find("view").replaceChildren(...shown);
  find("view").hidden = false;
  find("more").onclick = () => {
    view.most *= 4;
    draw(ask);
    find("bars").children[view.most / 4]?.querySelector("button")?.focus();
  };
}

function draw(ask) {
  const value = (entry) => entry.values[view.output];
  const found = entries.filter((entry) => entry.name.toLowerCase().includes(view.wanted));
  if (view.order === "value") found.sort((one, other) => value(other) - value(one) || one.place - other.place);
  const numbers = entries.map(value);
  const ends = entries.flatMap((entry) => [value(entry), ...(entry.ends ?? [])]);
  const low = ends.reduce((least, end) => Math.min(least, end), 0); // bars begin at 0
  const high = ends.reduce((most, end) => Math.max(most, end), 0);
  const place = (number) => (high > low ? (100 * (number - low)) / (high - low) : 0);
  const shown = found.slice(0, view.most);
  find("bars").replaceChildren(...shown.map((entry) => element("li", {}, bar(entry, value(entry), place, ask))));
  const [least, most] = [Math.min, Math.max].map((end) => numbers.reduce((one, other) => end(one, other)));
  const all = `${release.size}, of values from ${short(least)} to ${short(most)}`;
  const part = found.length < entries.length ? `, of ${found.length} that are found` : "";
  const some = shown.length < entries.length ? ` Shown: ${shown.length}${part}.` : "";
  find("bars-count").textContent = `${all}; bars begin at 0.${some}`;
  find("more").hidden = found.length === shown.length;
  const spread = shown.some((entry) => entry.ends !== null);
  const titles = [release.items === null ? "policy" : "item", "value", ...(spread ? ["from", "to"] : [])];
  const rows = shown.map((entry) => row(entry.name, [value(entry), ...(entry.ends ?? [])].map(short)));
  const head = element("tr", {}, ...titles.map((title) => heading(title, "col")));
  find("table").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
}

function bar(entry, value, place, ask) {
  const [from, to] = [place(0), place(value)];
  const marks = [shape("rect", { class: "bar", x: Math.min(from, to), width: Math.abs(to - from), y: 2, height: 8 })];
  marks.push(shape("line", { class: "axis", x1: from, x2: from, y1: 0, y2: 12 }));
  if (entry.ends) {
    const [low, high] = entry.ends.map(place);
    marks.push(shape("line", { class: "spread", x1: low, x2: high, y1: 6, y2: 6 }));
  }
  const drawn = shape("svg", { viewBox: "0 0 100 12", preserveAspectRatio: "none", "aria-hidden": "true" }, ...marks);
  const brief = (number) => String(Number(number.toPrecision(3))); // all digits are in the table
  const told = entry.ends ? `${brief(value)} (${entry.ends.map(brief).join(" to ")})` : short(value);
  const parts = [element("span", { textContent: entry.name }), drawn, element("b", { textContent: told })];
  if (release.items === null) return element("div", { className: "entry wide" }, ...parts);
  const button = element("button", { type: "button", className: "entry" }, ...parts);
  button.addEventListener("click", () => ask([entry.place]));
  return button;
}
