// A state that is typed, or taken from the plot, and the answer to it.

import { markAsked } from "./cursor.js";
import { cell, element, find, heading, labelled, paragraphs, short } from "./elements.js";
import { best } from "./release.js";
import { complain, Refusal, valuesAt } from "./server.js";

const UNKNOWN = "There is no item of that name: type a name of the list, or a place.";

let release = null; // the one that is asked
let turn = 0; // answers that come too late are dropped

/** Empty fields, for another release. */
export function showFields(chosen) {
  release = chosen;
  turn++;
  find("asking").hidden = release.what === "policy values"; // which are the same at any state
  find("ask-title").textContent = release.items === null ? "Ask for a state" : "Ask for an item";
  find("fields").replaceChildren(...release.box.map(([low, high], axis) => {
    const limits = { type: "number", min: low, max: high, step: "any", value: release.along(axis, 0.5) };
    const byName = { type: "text", spellcheck: false, value: release.items?.[0] };
    const kind = release.items === null ? limits : byName;
    const input = element("input", { id: `state-${axis}`, autocomplete: "off", ...kind });
    input.setAttribute("aria-describedby", "ask-error");
    const how = release.items === null ? `from ${short(low)} to ${short(high)}` : `by its name or its place from 0 to ${high}`;
    return labelled(`${release.coordinates[axis]}, ${how}`, input);
  }));
  find("ask-error").textContent = "";
  find("answer").replaceChildren();
}

/** Asks whenever the form is sent. */
export function listenForQuestions() {
  find("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
}

/** Fills a state in and asks for it. */
export function askFor(state) {
  state.forEach((number, axis) => { find(`state-${axis}`).value = number; });
  ask();
}

async function ask() {
  const mine = turn;
  const state = typedState();
  let [asked, problem] = [null, ""];
  try {
    const empty = state.findIndex((number) => !Number.isFinite(number));
    if (empty >= 0) {
      const what = release.items === null ? `${release.coordinates[empty]} must be a number: type one.` : UNKNOWN;
      throw new Refusal(422, what);
    }
    const [values] = await valuesAt(release, [state]);
    asked = { state, values };
  } catch (error) {
    if (mine === turn && (!(error instanceof Refusal) || error.status === 401)) complain(error);
    problem = error.message;
  }
  if (mine !== turn) return;
  find("ask-error").textContent = problem;
  find("answer").replaceChildren(...(asked === null ? [] : answer(asked)));
  markAsked(asked);
}

/** The numbers in the fields; a field that is empty or out of its limits is marked. */
function typedState() {
  return release.box.map(([low, high], axis) => {
    const input = find(`state-${axis}`);
    const place = release.items?.indexOf(input.value.trim()) ?? -1;
    const number = place >= 0 ? place : input.value.trim() === "" ? NaN : Number(input.value);
    input.setAttribute("aria-invalid", String(!(number >= low && number <= high)));
    return number;
  });
}

/** The answer with all digits. */
function answer({ state, values }) {
  const { names, chooses, preferred, isPrivate } = release;
  const chosen = chooses ? best(values) : -1;
  const rows = values.map((value, k) => {
    const cells = [heading(names[k], "row"), cell(String(value)), cell(k === chosen ? preferred : "")];
    return element("tr", { className: k === chosen ? "best" : "" }, ...cells);
  });
  let where = state.length === 1 ? String(state[0]) : `(${state.map(String).join(", ")})`;
  if (release.items !== null) where = `${release.items[state[0]]} (place ${where})`;
  const told = chooses ? `At ${where}, the ${preferred} action is ${names[chosen]}:` : `At ${where}:`;
  const warning = isPrivate ? [] : [element("p", { className: "warn", textContent: "NOT PRIVATE" })];
  return [...warning, ...paragraphs([told]), element("table", {}, element("tbody", {}, ...rows))];
}
