// The certificate of a release in words: what is promised, and what that stands on.

import { cell, element, find, paragraphs } from "./elements.js";
import { certificateAddress, hasToken } from "./server.js";

const PARTS = ["plain", "assumptions", "remarks", "text"];

let certificate = null;

/** Shows no certificate, for another release. */
export function clearCertificate() {
  certificate = null;
  for (const part of PARTS) find(part).replaceChildren();
}

/** Shows the certificate that the server gave for this release. */
export function showCertificate(release, given) {
  certificate = given;
  const { plain, text, assumptions, certificate: record } = given;
  find("plain").replaceChildren(...paragraphs(plain));
  find("assumptions").replaceChildren(...assumptionRows(assumptions));
  const remarks = element("ul", {}, ...record.remarks.map((remark) => element("li", { textContent: remark })));
  find("remarks").replaceChildren(...(record.remarks.length ? [element("h3", { textContent: "Notes" }), remarks] : []));
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
