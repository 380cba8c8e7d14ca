// Watching somebody act in a released world: who acts, from where, and the episode that the server drew, step by step.

import { element, find, labelled, short } from "./elements.js";
import { drawEpisode, moveEpisode, redrawEpisode } from "./episode_plot.js";
import { complain, Refusal, rolloutOf } from "./server.js";

const NOT_IN_FILE = "was declared as known when this world was made, so it is not in the file";
const NOTES = {
  reward: `What a step is worth ${NOT_IN_FILE}, and no reward is shown.`,
  end: `When an episode ends ${NOT_IN_FILE}, and none ends by itself here.`,
  start: `Where people begin ${NOT_IN_FILE}: episodes begin at the mean of people's states.`,
  moves: `How some coordinates move ${NOT_IN_FILE}: nobody can act in this world here. Load it in Python and give ` +
    "the functions by with_known.",
};
const WHOLE = 10_000; // milliseconds that a long episode is played in

let release = null;
let episode = null; // the one on screen
let at = 0; // the step that it has come to
let timer = null; // while it is played
let turn = 0; // answers that come too late are dropped

/** Shows the controls of a world, and a first episode; nothing for any other release. */
export async function showStage(chosen, releases) {
  pause();
  [release, episode] = [chosen, null];
  turn++;
  const { stage } = chosen;
  find("rollout").hidden = stage === null;
  find("playback").hidden = true;
  find("rollout-error").textContent = "";
  if (stage === null) return;
  const playable = !stage.unknown.includes("moves");
  const notes = playable ? stage.unknown : ["moves"];
  find("rollout-notes").replaceChildren(...notes.map((name) => element("p", { textContent: NOTES[name] })));
  find("rollout-form").hidden = !playable;
  if (!playable) return;
  fillForm(releases);
  await draw();
}

function fillForm(releases) {
  const { stage, box } = release;
  const named = stage.policies.map((id) => [id, `the policy ${releases.find((each) => each.id === id).name}`]);
  const policies = [...named, ["random", "random actions"], ["constant", "the same action at every step"]];
  const select = (id, options) => element("select", { id }, ...options.map(([value, text]) => new Option(text, value)));
  const number = (id, limits) => element("input", { id, type: "number", autocomplete: "off", ...limits });
  const sides = stage.action_box ? stage.action_box.low.map((low, k) => [low, stage.action_box.high[k]]) : null;
  const actions = sides
    ? sides.map(([low, high], k) => field(`rollout-action-${k}`, stage.action_names[k], low, high, (low + high) / 2))
    : [labelled("action", select("rollout-action-0", release.choices.map((name, k) => [String(k), name])))];
  const starts = box.map(([low, high], axis) =>
    field(`rollout-start-${axis}`, `first ${release.stateName(axis)}`, low, high, stage.start[axis]));
  const places = [["drawn", "where people begin, drawn"], ["typed", "at a state that is typed"]];
  find("rollout-fields").replaceChildren(
    labelled("Who acts", select("rollout-policy", policies)),
    ...actions.map((each) => group("constant", each)),
    labelled("Begin", select("rollout-begin", places)),
    ...starts.map((each) => group("typed", each)),
    labelled("Steps at most (1 to 500)", number("rollout-steps", { min: 1, max: 500, step: 1, value: 200 })),
    labelled("Number of the draw", number("rollout-seed", { min: 0, max: 2 ** 32 - 1, step: 1, value: 0 })),
  );
  for (const id of ["rollout-policy", "rollout-begin"]) find(id).addEventListener("change", showGroups);
  showGroups();
}

function field(id, name, low, high, value) {
  const limits = { min: low, max: high, step: "any", value };
  const input = element("input", { id, type: "number", autocomplete: "off", ...limits });
  return labelled(`${name}, from ${short(low)} to ${short(high)}`, input);
}

function group(name, control) {
  control.dataset.group = name;
  return control;
}

/** Fields of a constant action, and of a typed start, only where they are used. */
function showGroups() {
  const shown = [find("rollout-policy").value, find("rollout-begin").value];
  for (const each of find("rollout-fields").querySelectorAll("[data-group]")) {
    each.hidden = !shown.includes(each.dataset.group);
  }
}

/** What is asked of the server; a field that is no number is refused here. */
function question() {
  const typed = (name) => [...find("rollout-fields").querySelectorAll(`[id^="rollout-${name}"]`)].map((input) => {
    const value = input.value === "" ? NaN : Number(input.value);
    if (!Number.isFinite(value)) {
      const [label] = input.labels;
      throw new Refusal(422, `${label.textContent} must be a number: type one.`);
    }
    return value;
  });
  const { stage } = release;
  const who = find("rollout-policy").value;
  const policy = who !== "constant" ? who : stage.action_box ? typed("action-") : typed("action-")[0];
  const start = find("rollout-begin").value === "typed" ? typed("start-") : null;
  return { policy, start, steps: typed("steps")[0], seed: typed("seed")[0] };
}

async function draw() {
  const mine = ++turn;
  pause();
  let [found, problem] = [null, ""];
  try {
    found = await rolloutOf(release, question());
  } catch (error) {
    if (mine === turn && (!(error instanceof Refusal) || error.status === 401)) complain(error);
    problem = error.message;
  }
  if (mine !== turn) return;
  find("rollout-error").textContent = problem;
  find("playback").hidden = found === null;
  episode = found;
  if (found === null) return;
  find("moment").max = found.actions.length;
  drawEpisode(release, found);
  moveTo(0);
}

function moveTo(step) {
  at = Math.min(Math.max(step, 0), episode.actions.length);
  const { states, actions, rewards, reason, privacy } = episode;
  find("moment").value = at;
  find("moment").setAttribute("aria-valuetext", `step ${at} of ${actions.length}`);
  moveEpisode(at);
  const told = states[at].map((number, axis) => `${release.stateName(axis)}: ${short(number)}`);
  if (at > 0) {
    const action = actions[at - 1];
    const { choices, stage } = release;
    if (choices) told.push(`action: ${choices[action]}`);
    else told.push(...stage.action_names.map((name, k) => `${name}: ${short(action[k])}`));
    if (rewards !== null) {
      const sum = rewards.slice(0, at).reduce((one, other) => one + other, 0);
      told.push(`reward: ${short(rewards[at - 1])}`, `rewards so far: ${short(sum)}`);
    }
  }
  const warning = privacy === "certified" ? [] : [element("b", { className: "refuted", textContent: "NOT PRIVATE" })];
  const parts = told.flatMap((text) => [" ", element("b", { textContent: text })]);
  find("moment-readout").replaceChildren(`Step ${at} of ${actions.length}`, ...warning, ...parts);
  find("ending").textContent = at === actions.length ? reason : "";
  find("play").textContent = timer !== null ? "Pause" : at === actions.length ? "Play again" : "Play";
}

function pause() {
  clearInterval(timer);
  timer = null;
  find("moment-readout").setAttribute("aria-live", "polite");
}

function play() {
  if (at === episode.actions.length) at = 0;
  find("moment-readout").setAttribute("aria-live", "off"); // nobody can listen to that many numbers
  timer = setInterval(() => {
    if (at + 1 >= episode.actions.length) pause();
    moveTo(at + 1);
  }, Math.min(Math.max(WHOLE / episode.actions.length, 40), 400));
  moveTo(at);
}

/** Follows the buttons, the slider and the form. */
export function listenForPlaying() {
  const step = (move) => () => {
    pause();
    moveTo(move());
  };
  find("to-start").addEventListener("click", step(() => 0));
  find("back").addEventListener("click", step(() => at - 1));
  find("forward").addEventListener("click", step(() => at + 1));
  find("moment").addEventListener("input", step(() => Number(find("moment").value)));
  find("play").addEventListener("click", () => {
    if (timer === null) return play();
    pause();
    moveTo(at);
  });
  addEventListener("resize", () => { if (episode !== null) redrawEpisode(at); });
  find("rollout-form").addEventListener("submit", (event) => {
    event.preventDefault();
    draw();
  });
  find("another").addEventListener("click", () => {
    find("rollout-seed").value = (Number(find("rollout-seed").value) || 0) + 1;
    draw();
  });
}
