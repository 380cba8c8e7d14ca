// An episode as one small plot for each coordinate, for the action and for the reward: all of it pale, what has been
// played in colour.

import { drawAxes, frameOf, paddedRange } from "./axes.js";
import { element, find, heading, row, shape, short } from "./elements.js";
import { colour } from "./legend.js";

const HEIGHT = 110;

let panels = []; // what moves: { frame, numbers, path, dot, first }
let shown = null; // the release and the episode on screen

/** Draws an episode, nothing of it played yet, and its table. */
export function drawEpisode(release, episode) {
  shown = { release, episode };
  const { states, actions, rewards } = episode;
  const acted = actions.map((action) => [action].flat());
  const tracks = states[0].map((_, axis) => [release.stateName(axis), states.map((state) => state[axis]), 0]);
  const names = release.actionNames(acted[0].length);
  names.forEach((name, k) => tracks.push([name, acted.map((action) => action[k]), 1]));
  if (rewards !== null) tracks.push(["expected reward", rewards, 1]);
  find("episode").replaceChildren();
  panels = tracks.map((track, k) => panel(track, k, episode));
  showTable(tracks);
}

/** Plays an episode as far as this step. */
export function moveEpisode(step) {
  for (const { frame, numbers, path, dot, first } of panels) {
    const played = numbers.slice(0, step + 1 - first);
    path.setAttribute("d", played.length ? line(frame, played, first) : "");
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

const line = (frame, numbers, first) =>
  `M${numbers.map((number, i) => `${frame.x(i + first).toFixed(2)},${frame.y(number).toFixed(2)}`).join("L")}`;

function panel([name, numbers, first], k, episode) {
  const holder = element("div", {});
  find("episode").append(holder);
  const width = Math.max(holder.clientWidth, 240);
  const last = episode.actions.length;
  const frame = frameOf({
    xRange: [0, last], yRange: paddedRange(numbers.map((number) => [number])), width, height: HEIGHT, rows: 4,
  });
  const picture = shape("svg", { viewBox: `0 0 ${width} ${frame.whole}`, height: frame.whole, role: "img" });
  picture.setAttribute("aria-label", `${name} by step, from ${short(numbers[0])} to ${short(numbers.at(-1))}`);
  drawAxes(picture, frame, "step", name);
  const kind = colour(k, false);
  const path = shape("path", { class: `line ${kind}`, d: "" });
  const dot = shape("circle", { class: `dot ${kind}`, r: 4.5, visibility: "hidden" });
  picture.append(shape("path", { class: `line pale ${kind}`, d: line(frame, numbers, first) }), path);
  if (episode.ending !== "steps") {
    picture.append(
      shape("line", { class: "asked", x1: frame.x(last), x2: frame.x(last), y1: frame.top, y2: frame.bottom }),
      shape("text", { class: "quiet-text", x: frame.right, y: frame.top - 9, "text-anchor": "end" }, episode.ending),
    );
  }
  picture.append(dot);
  holder.append(picture);
  return { frame, numbers, path, dot, first };
}

function showTable(tracks) {
  const head = element("tr", {}, ...["step", ...tracks.map(([name]) => name)].map((title) => heading(title, "col")));
  const rows = tracks[0][1].map((_, step) => row(String(step), tracks.map(([, numbers, first]) => {
    return step < first ? "" : short(numbers[step - first]);
  })));
  find("episode-table").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
}
