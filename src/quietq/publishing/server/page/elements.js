// Small helpers for the document. Names and certificates come from outside: they become text only, never markup.

/** The element of index.html with this id. */
export const find = (id) => document.getElementById(id);

/** An HTML element with these properties; children that are strings become text. */
export function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** An SVG element with these attributes. */
export function shape(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** An empty canvas and the pen that draws on it. */
export function canvasAndPen(width, height) {
  const canvas = element("canvas", { width, height });
  return [canvas, canvas.getContext("2d")];
}

/** A cell of a table. */
export const cell = (text, properties = {}) => element("td", { textContent: text, ...properties });

/** A heading of a table; its scope is "row" or "col". */
export const heading = (text, scope) => element("th", { textContent: text, scope });

/** A row of a table: its heading, and one cell for each text. */
export function row(title, texts) {
  return element("tr", {}, heading(title, "row"), ...texts.map((text) => cell(text)));
}

/** Fills a table: the titles of its columns, and its rows. */
export function fillTable(table, titles, rows) {
  const head = element("tr", {}, ...titles.map((title) => heading(title, "col")));
  table.replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
}

/** One paragraph for each text. */
export const paragraphs = (texts) => texts.map((text) => element("p", { textContent: text }));

/** An input or a selection under its label. */
export function labelled(text, control) {
  return element("div", {}, element("label", { htmlFor: control.id, textContent: text }), control);
}

/** A number with as many digits as are read easily. */
export const short = (number) => String(Number(number.toPrecision(6)));
