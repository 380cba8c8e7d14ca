// An episode as one small plot for each coordinate, for the action and for the reward: all of it pale, what has been
// played in colour.

import { drawAxes, frameOf, paddedRange } from "./axes.js";
import { brief, element, find, heading, row, shape, short } from "./elements.js";
import { colour } from "./legend.js";

const HEIGHT = 110;
const LONGEST_TITLE = 40; // letters, over a plot

let panels = []; // what moves: { frame, track, path, dot }
let shown = null; // the release and the episode on screen

/** Draws an episode, nothing of it played yet, and its table. */
export function drawEpisode(release, episode) {
  shown = { release, episode };
  const { states, actions, rewards } = episode;
  const column = (rows, k) => rows.map((row) => row[k]);
  const tracks = states[0].map((_, k) => ({ name: release.stateName(k), numbers: column(states, k), first: 0 }));
  const { choices, stage } = release;
  if (choices) tracks.push({ name: "action", numbers: actions, first: 1, choices });
  else stage.action_names.forEach((name, k) => tracks.push({ name, numbers: column(actions, k), first: 1 }));
  if (rewards !== null) tracks.push({ name: "expected reward", numbers: rewards, first: 1 });
  find("episode").replaceChildren();
  panels = tracks.map((track, k) => panel(track, k, episode));
  showTable(tracks);
}

/** Plays an episode as far as this step. */
export function moveEpisode(step) {
  for (const { frame, track, path, dot } of panels) {
    const { numbers, first } = track;
    const played = numbers.slice(0, step + 1 - first);
    path.setAttribute("d", played.length ? line(frame, track, played) : "");
    dot.setAttribute("visibility", played.length ? "visible" : "hidden");
    if (!played.length) continue;
    dot.setAttribute("cx", frame.x(played.length - 1 + first));
    dot.setAttribute("cy", frame.y(played[played.length - 1]));
  }
}

/** Draws again for another width. */
export function redrawEpisode(step) {
  drawEpisode(shown.release, shown.episode);
  moveEpisode(step);
}

/** From number to number; an action of a list is taken for a whole step, and nothing lies between two of them. */
function line(frame, { first, choices }, numbers) {
  const [x, y] = [(i) => frame.x(i).toFixed(2), (number) => frame.y(number).toFixed(2)];
  if (choices) return `M${x(0)},${y(numbers[0])}${numbers.map((number, i) => `V${y(number)}H${x(i + 1)}`).join("")}`;
  return `M${numbers.map((number, i) => `${x(i + first)},${y(number)}`).join("L")}`;
}

/** A number of a track in words. */
const told = ({ choices }, number) => (choices ? choices[number] : short(number));

function panel(track, k, episode) {
  const { name, numbers, choices } = track;
  const holder = element("div", {});
  find("episode").append(holder);
  const width = Math.max(holder.clientWidth, 240);
  const last = episode.actions.length;
  const frame = frameOf({
    xRange: [0, last], yRange: choices ? [-0.25, choices.length - 0.75] : paddedRange([numbers]),
    width, height: HEIGHT, rows: 4, yNames: choices,
  });
  const picture = shape("svg", { viewBox: `0 0 ${width} ${frame.whole}`, height: frame.whole, role: "img" });
  const [from, to] = [numbers[0], numbers.at(-1)].map((number) => told(track, number));
  picture.setAttribute("aria-label", `${name} by step, from ${from} to ${to}`);
  drawAxes(picture, frame, "step", brief(name, LONGEST_TITLE));
  const kind = colour(k, false);
  const path = shape("path", { class: `line ${kind}`, d: "" });
  const dot = shape("circle", { class: `dot ${kind}`, r: 4.5, visibility: "hidden" });
  picture.append(shape("path", { class: `line pale ${kind}`, d: line(frame, track, numbers) }), path);
  if (episode.ending !== "steps") {
    picture.append(
      shape("line", { class: "asked", x1: frame.x(last), x2: frame.x(last), y1: frame.top, y2: frame.bottom }),
      shape("text", { class: "quiet-text", x: frame.right, y: frame.top - 9, "text-anchor": "end" }, episode.ending),
    );
  }
  picture.append(dot);
  holder.append(picture);
  return { frame, track, path, dot };
}

function showTable(tracks) {
  const head = element("tr", {}, ...["step", ...tracks.map(({ name }) => name)].map((title) => heading(title, "col")));
  const rows = tracks[0].numbers.map((_, step) => row(String(step), tracks.map((track) => {
    return step < track.first ? "" : told(track, track.numbers[step - track.first]);
  })));
  find("episode-table").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
}
