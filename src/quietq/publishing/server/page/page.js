// The page: one release of those that are served, its values, its certificate. No library, no network but this server.

import { clearCertificate, listenForSaving, showCertificate } from "./certificate.js";
import { followCursor } from "./cursor.js";
import { find } from "./elements.js";
import { clearPlot, keepDrawn, showList, showValues } from "./plot.js";
import { askFor, listenForQuestions, showFields } from "./query.js";
import { listReleases, markChosen, Release, showTitle } from "./release.js";
import { certificateOf, complain, fetchReleases, listenForToken } from "./server.js";
import { showControls } from "./view.js";

let releases = [];
let release = null; // the chosen one
let turn = 0; // answers that come too late are dropped

const named = () => releases.find((each) => each.id === location.hash.slice(1));

async function start() {
  try {
    releases = (await fetchReleases()).map((listed) => new Release(listed));
  } catch (error) {
    return complain(error);
  }
  find("token-form").hidden = find("message").hidden = true;
  find("content").hidden = false;
  listReleases(releases, choose);
  await choose(named() ?? releases[0]);
}

async function choose(chosen) {
  const mine = ++turn;
  release = chosen;
  history.replaceState(null, "", `#${release.id}`);
  find("message").hidden = true;
  markChosen(release);
  showTitle(release);
  showFields(release);
  clearPlot(release);
  clearCertificate();
  try {
    const shown = release.listed === null ? showPlot(release) : showList(release);
    const [certificate] = await Promise.all([certificateOf(release), shown]);
    if (mine === turn) showCertificate(release, certificate);
  } catch (error) {
    if (mine === turn) complain(error);
  }
}

function showPlot(chosen) {
  const view = showControls(chosen, () => showValues(chosen, view));
  return showValues(chosen, view);
}

listenForToken(start);
listenForQuestions();
listenForSaving();
followCursor(askFor);
keepDrawn();
addEventListener("hashchange", () => {
  const chosen = named();
  if (chosen && chosen !== release) choose(chosen);
});
start();
