// Talking to the server: requests, the token they carry, and what is shown when one is refused.

import { find } from "./elements.js";

let token = null; // in memory only: a reload asks again

/** What the server, or the page in its place, refuses, in a sentence; the status is 0 if no answer came. */
export class Refusal extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

async function talk(path, body) {
  const options = { headers: { Accept: "application/json" } };
  if (token !== null) options.headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Refusal(0, "The server does not answer. Is it still running?");
  }
  const content = await answer.json().catch(() => null);
  if (answer.ok && content !== null) return content;
  const sentence = content !== null && typeof content.detail === "string" ? content.detail : null;
  throw new Refusal(answer.status, sentence ?? `The server answered with status ${answer.status}.`);
}

const addressOf = (release, what) => `v1/releases/${encodeURIComponent(release.id)}/${what}`;

/** What is known of each release that is served. */
export const fetchReleases = async () => (await talk("v1/releases")).releases;

/** The released values at these states, a row a state. */
export const valuesAt = async (release, states) => (await talk(addressOf(release, "values"), { states })).values;

/** Where the certificate of a release is. */
export const certificateAddress = (release) => addressOf(release, "certificate");

/** The certificate of a release, with its plain words. */
export const certificateOf = (release) => talk(certificateAddress(release));

/** Whether requests carry a token; a plain link never does. */
export const hasToken = () => token !== null;

/** Shows an error in words, or asks for the token if that is what was missing. */
export function complain(error) {
  if (error instanceof Refusal && error.status === 401) return askForToken(error.message);
  find("message").textContent = error instanceof Refusal ? error.message : `The page failed: ${error.message}`;
  find("message").hidden = false;
}

function askForToken(sentence) {
  find("content").hidden = true;
  find("token-form").hidden = false;
  find("token-error").textContent = token === null ? "" : sentence;
  token = null;
  find("token").value = "";
  find("token").focus();
}

/** Calls `given` each time a token was typed. */
export function listenForToken(given) {
  find("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const typed = find("token").value.trim();
    if (!/^[\x21-\x7e]+$/.test(typed)) {
      find("token-error").textContent = "A token has letters, digits and signs, and no spaces.";
      return;
    }
    token = typed;
    given();
  });
}
