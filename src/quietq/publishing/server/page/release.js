// A release: what it and its outputs are called, its entry in the list, and its title.

import { element, find, short } from "./elements.js";

const TITLES = {
  "expected next state": "What a step does: the expected next state",
  "log-probability": "What the policy does: how probable each action is",
  "action taken": "What the policy does: the action that it takes",
};

/** The output with the largest value; the first of equals, as on the server. */
export const best = (values) => values.indexOf(Math.max(...values));

/** One release as the server lists it, with its box as one [low, high] a coordinate. */
export class Release {
  constructor({ box, signer, signer_checked: isVouchedFor, ...listed }) {
    const { what, items, actions, names, privacy } = listed;
    Object.assign(this, listed, { isVouchedFor }); // by whoever has the key that the server was given
    this.box = box.low.map((low, axis) => [low, box.high[axis]]);
    this.dimensions = this.box.length;
    this.chooses = actions !== null; // the action of the largest value
    this.preferred = listed.measure === "log-probability" ? "most probable" : "best"; // the action that is chosen
    this.isPrivate = privacy === "certified";
    const unchecked = signer ? ", signer not checked" : ", not signed";
    this.standing = privacy + (this.isPrivate && !isVouchedFor ? unchecked : "");
    this.isWorld = what === "world";
    this.listed = what === "policy values" ? names : items; // shown entry by entry; null for a function over states
    const counted = (number, one, many) => `${number} ${number === 1 ? one : many}`;
    this.size = counted(this.dimensions, "dimension", "dimensions");
    if (items !== null) this.size = counted(items.length, "item", "items");
    else if (this.listed !== null) this.size = counted(names.length, "policy", "policies");
  }

  /** What a map shows, in words: the action, the largest value, or an output; of a world, what a step changes. */
  mapName(mode) {
    if (mode === "best") return `the ${this.preferred} action`;
    if (mode === "largest") return `the largest ${this.measure}`;
    const name = this.names[Number(mode)];
    return this.isWorld ? name.replace("next", "change of") : name;
  }

  /** The number at this share of the way through the box along one coordinate. */
  along(axis, share) {
    const [low, high] = this.box[axis];
    return Math.min(Math.max(low + (high - low) * share, low), high);
  }
}

/** Lists the releases; `choose` is called with the one that is clicked. */
export function listReleases(releases, choose) {
  find("releases").replaceChildren(...releases.map((release) => {
    const button = element(
      "button",
      { type: "button" },
      release.name,
      element("small", { textContent: `${release.what}, ${release.size}` }),
      element("small", { textContent: release.standing, className: release.isPrivate ? "" : "warn" }),
    );
    button.addEventListener("click", () => choose(release));
    button.dataset.id = release.id;
    return element("li", {}, button);
  }));
}

/** Marks the chosen release in the list. */
export function markChosen(release) {
  for (const button of find("releases").querySelectorAll("button")) {
    if (button.dataset.id === release.id) {
      button.setAttribute("aria-current", "true");
      const list = find("releases"); // which scrolls by itself on narrow screens
      list.scrollTop += button.getBoundingClientRect().top - list.getBoundingClientRect().top - 8;
    } else button.removeAttribute("aria-current");
  }
}

/** The title: the name, a badge, who signed it, a banner on what is not private, and the facts. */
export function showTitle(release) {
  const { name, isPrivate, isVouchedFor, epsilon, delta, signed } = release;
  document.title = `${isPrivate ? "" : "NOT PRIVATE: "}${name} – quietq`;
  find("name").textContent = name;
  find("not-private").hidden = isPrivate;
  find("not-private").textContent = "NOT PRIVATE: nothing is promised to the people behind this release.";
  find("release").classList.toggle("marked", !isPrivate);
  find("badge").classList.toggle("bad", !isPrivate);
  find("badge").textContent = isPrivate ? `certified (ε = ${epsilon}, δ = ${delta})` : "NOT PRIVATE";
  find("signed").textContent = signed;
  find("signed").classList.toggle("unchecked", !isVouchedFor);
  find("values-title").textContent = TITLES[release.measure] ?? "Released values";
  find("facts").replaceChildren(...facts(release).map(([term, text]) => {
    const fact = element("dd", { textContent: text, title: term === "hash" ? release.hash : "" });
    return element("div", {}, element("dt", { textContent: term }), fact);
  }));
}

function facts({ what, size, listed, isWorld, outputs, chooses, box, hash, version }) {
  const counted = `${outputs} ${chooses ? "action" : "value"}${outputs === 1 ? "" : "s"}`;
  const where = ["states in", box.map(([low, high]) => `[${short(low)}, ${short(high)}]`).join(" × ")];
  return [
    ["what", `${what}, ${listed !== null || isWorld ? size : counted}`],
    ...(listed === null ? [where] : []),
    ["hash", hash.slice(0, 16)],
    ["written by", `quietq ${version}`],
  ];
}
