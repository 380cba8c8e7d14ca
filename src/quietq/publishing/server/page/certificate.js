// The certificate of a release in words: what is promised, what that stands on, what is possible, what an audit found.

import { cell, element, find, heading, paragraphs, short } from "./elements.js";
import { certificateAddress, hasToken } from "./server.js";

const PARTS = ["plain", "assumptions", "remarks", "cap", "audit", "text"];
const AUDIT_TITLES = {
  certified_epsilon: "ε promised", claimed_epsilon: "ε claimed", epsilon: "ε promised",
  epsilon_lower: "ε measured, at least",
  certified_mu: "μ promised", claimed_mu: "μ claimed", mu: "μ promised", mu_lower: "μ measured, at least",
  runs: "releases of each of two rewards", confidence: "confidence", verdict: "verdict",
};
const VERDICTS = {
  consistent: "An attack tried to break the promise and did not. A lower bound cannot prove a promise; it can only " +
    "fail to break it.",
  refuted: "An attack measured more than was promised: the promise is broken.",
};

let certificate = null;

/** Shows no certificate, for another release. */
export function clearCertificate() {
  certificate = null;
  for (const part of PARTS) find(part).replaceChildren();
}

/** Shows the certificate that the server gave for this release. */
export function showCertificate(release, given) {
  certificate = given;
  const { plain, text, cap, audit, certificate: record } = given;
  find("plain").replaceChildren(...paragraphs(plain));
  find("assumptions").replaceChildren(...assumptionRows(record.assumptions));
  const remarks = element("ul", {}, ...record.remarks.map((remark) => element("li", { textContent: remark })));
  find("remarks").replaceChildren(...(record.remarks.length ? [element("h3", { textContent: "Notes" }), remarks] : []));
  const without = release.isPrivate
    ? "There is no cap to state, because the promise counts no people who learn a policy together."
    : "Nothing is promised here, so there is no cap to state.";
  find("cap").textContent = cap ? cap.sentence : without;
  find("audit").replaceChildren(...(audit ? findings(audit) : paragraphs(["No audit result came with this release."])));
  find("text").textContent = text;
  find("raw").href = certificateAddress(release);
}

function assumptionRows(assumptions) {
  if (!assumptions.length) return [element("tr", {}, cell("None is stated."), cell(""))];
  return assumptions.map((each) => {
    const by = each.enforced
      ? cell("enforced", { title: "the code makes sure of it" })
      : cell("trusted", { className: "trusted", title: "somebody has to vouch for it" });
    return element("tr", {}, cell(each.text), by);
  });
}

/** What an audit found: the verdict in words, the fields that are known under titles, the others folded away. */
function findings(audit) {
  const row = ([title, value]) => {
    const text = typeof value === "number" ? short(value) : String(value);
    return element("tr", {}, heading(title, "row"), cell(text, { className: value === "refuted" ? "refuted" : "" }));
  };
  const table = (rows) => element("table", { className: "findings" }, element("tbody", {}, ...rows.map(row)));
  const stated = Object.entries(audit).filter(([key, value]) => value !== null && key !== "release");
  const titles = Object.entries(AUDIT_TITLES).filter(([key]) => stated.some(([name]) => name === key));
  const others = stated.filter(([key]) => !Object.hasOwn(AUDIT_TITLES, key));
  const told = Object.hasOwn(VERDICTS, audit.verdict) ? paragraphs([VERDICTS[audit.verdict]]) : [];
  const how = element("details", {}, element("summary", { textContent: "How it was attacked" }), table(others));
  const known = table(titles.map(([key, title]) => [title, audit[key]]));
  return [...told, known, ...(others.length ? [how] : [])];
}

/** Saves the certificate from here where there is a token: a plain link carries none. */
export function listenForSaving() {
  find("raw").addEventListener("click", (event) => {
    if (!hasToken()) return;
    event.preventDefault();
    const content = new Blob([JSON.stringify(certificate, null, 2)], { type: "application/json" });
    const link = element("a", { href: URL.createObjectURL(content), download: "certificate.json" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}
