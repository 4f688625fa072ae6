// The console: runs, settings and keys, by the public HTTP API. No library, and no build step.

import { Forbidden, SignInEnded, call, canKeepToken, dropToken, isOfALink, keepToken, signedInAs, token } from "./session.js";
import { leaveToSignIn, leaveToSignOut, signedIn, takeAnswer } from "./sign-in.js";
import { forgetUnsaved, isSaved, keepUnsaved, putBackUnsaved } from "./unsaved.js";

const SETTINGS = "/ai/relay/settings";
const BY_LINK =
  "Open the sign-in link that the server printed, or run `python -m ctrlb sign-in --data <its folder>` for a new one.";
const NO_STORAGE =
  "The browser does not let this page keep a sign-in for the tab (its session storage). Allow it for this site, and load the page again.";
const find = (selector) => document.querySelector(selector);

function say(text, isError = false) {
  find("#message").textContent = text;
  find("#message").classList.toggle("error", isError);
}

// What came from the API is only ever set as text, so no name or note can become markup.
function row(...cells) {
  const line = document.createElement("tr");
  for (const cell of cells) line.insertCell().append(cell);
  return line;
}

const when = (us) => (us === null ? "never" : new Date(us / 1000).toLocaleString());

async function showRuns(dataset, cursor = "") {
  const { runs, next_cursor } = await call("GET", `/ai/relay/${dataset}/runs?cursor=${encodeURIComponent(cursor)}`);
  if (!cursor) find("#runs").replaceChildren();
  find("#runs").append(...runs.map((run) => row(run.run_id, run.status, run.agents, run.held, run.events, when(run.last))));
  const more = find("#more-runs");
  more.hidden = next_cursor === null;
  more.onclick = doing(() => showRuns(dataset, next_cursor));
}

async function showKeys() {
  const { keys } = await call("GET", "/ai/keys");
  find("#keys").replaceChildren(...keys.map((key) => row(key.key_id, key.name, goodUntil(key), when(key.last_used), ending(key))));
}

function goodUntil({ expires, stale }) {
  if (expires !== null && expires <= Date.now() * 1000) return `expired ${when(expires)}`;
  return stale ? "stale: what you may do has changed since it was made" : when(expires);
}

function ending(key) {
  if (key.revoked) return `revoked ${when(key.revoked)}`;
  const button = document.createElement("button");
  button.textContent = "Revoke";
  button.onclick = doing(async () => {
    await call("DELETE", `/ai/keys/${key.key_id}`);
    await showKeys();
    return `The key ${key.key_id} is refused from now on.`;
  });
  return button;
}

// A change that names nothing writes nothing and answers what is stored: who may change settings is let do that, too.
async function showSettings() {
  const mayChange = await call("PUT", SETTINGS, {}).catch((error) => {
    if (!(error instanceof Forbidden)) throw error;
  });
  const settings = mayChange ?? (await call("GET", SETTINGS));
  fillIn(settings);
  find("#settings fieldset").disabled = !mayChange;
  find("#settings-read-only").hidden = Boolean(mayChange);
  return settings;
}

function fillIn(settings) {
  for (const field of find("#settings").elements) {
    if (field.type === "checkbox") field.checked = settings[field.name];
    else if (field.name) field.value = settings[field.name];
  }
  isSaved(find("#settings"));
}

function changedSettings(form) {
  const { enforce, leaseSeconds, waitMs, silentAfterSeconds, writeTools } = form.elements;
  return {
    enforce: enforce.value,
    leaseSeconds: leaseSeconds.valueAsNumber,
    waitMs: waitMs.valueAsNumber,
    silentAfterSeconds: silentAfterSeconds.valueAsNumber,
    writeTools: writeTools.checked,
  };
}

// An event handler that says how the work ended, if there is anything to say. Asked twice meanwhile, it works once.
function doing(work) {
  let isAtIt = false;
  return async (event) => {
    event.preventDefault();
    if (isAtIt) return;
    isAtIt = true;
    try {
      say((await work(event.currentTarget)) ?? "");
    } catch (error) {
      await tell(error);
    } finally {
      isAtIt = false;
    }
  };
}

async function tell(error) {
  say(error.message, true);
  if (token()) return;
  const hint = await offerSignIn().catch((fault) => fault.message);
  if (!(error instanceof SignInEnded)) return;
  const kept = keepUnsaved() ? " What you have entered is kept." : "";
  say(`Your sign-in has ended.${kept} ${hint}`, true);
}

// Let the person sign in, with the issuer where there is one. Returns how, in words.
async function offerSignIn() {
  find("#sign-out").hidden = true;
  find("#sign-in").hidden = false; // also while the issuer does not answer, to try again
  const { how } = await call("GET", "/ai/sign-in");
  find("#sign-in").hidden = how === "link";
  return how === "link" ? BY_LINK : "Sign in to go on.";
}

async function start() {
  if (!canKeepToken()) return say(NO_STORAGE, true); // and a one-time code is still good
  let name;
  try {
    name = await arrive();
    if (!token()) return say(await offerSignIn());
    find("#sign-out").hidden = false;
    await show();
  } catch (error) {
    if (name && error instanceof SignInEnded) return turnAway(name);
    await tell(error);
  }
}

// Take what a sign-in link or the issuer brought here. Returns whom the issuer named, if it did.
async function arrive() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  const answer = takeAnswer();
  if (code || answer) dropToken(); // whoever comes anew is nobody until they are let in
  if (code) {
    history.replaceState(null, "", location.pathname); // a used code is of no use in the history
    const opened = await call("POST", "/ai/sign-in", { code });
    keepToken(opened.token, opened.user_name);
  } else if (answer) {
    const arrived = await signedIn(answer, await call("GET", "/ai/sign-in"));
    keepToken(arrived.token, arrived.name);
    return arrived.name;
  }
}

// The issuer knows who it is, and nobody here does: they may come back as somebody else.
function turnAway(name) {
  find("#sign-in").hidden = false;
  say(`The issuer signed you in as ${name}, who is no active member here: ask an Admin to add you.`, true);
}

async function show() {
  const settings = await showSettings();
  await Promise.all([showRuns(settings.sessionsDataset), showKeys()]);
  find("main").hidden = false;
  find("#who").textContent = `Signed in as ${signedInAs() ?? "before"}. Sessions go to ${settings.sessionsDataset}.`;
  if (putBackUnsaved()) say("What you had entered is here again. It is not saved yet.");
}

find("#settings").onsubmit = doing(async (form) => {
  try {
    fillIn(await call("PUT", SETTINGS, changedSettings(form)));
  } catch (error) {
    if (error instanceof Forbidden) await showSettings(); // they might when the page was opened
    throw error;
  }
  return "The settings are saved.";
});

find("#new-key").onsubmit = doing(async (form) => {
  const { name, expires_days } = form.elements;
  const { key } = await call("POST", "/ai/keys", { name: name.value, expires_days: Number(expires_days.value) });
  find("#made code").textContent = key;
  find("#made").hidden = false;
  form.reset();
  await showKeys();
  return "The key is made.";
});

find("#sign-in").onclick = doing(async () => {
  const where = await call("GET", "/ai/sign-in");
  if (where.how === "link") return BY_LINK;
  keepUnsaved();
  await leaveToSignIn(where);
  return "Going to the issuer …";
});

find("#sign-out").onclick = doing(async () => {
  forgetUnsaved();
  if (isOfALink()) {
    await call("POST", "/ai/sign-out", {});
    dropToken();
  } else {
    dropToken(); // first: whoever wants to leave is let go, whether the issuer answers or not
    if (leaveToSignOut(await call("GET", "/ai/sign-in").catch(() => ({})))) return "Going to the issuer …";
  }
  location.reload();
  return "Signed out.";
});

// A sign-in link that is opened where the console is already changes nothing but what follows the #.
addEventListener("hashchange", () => {
  keepUnsaved();
  location.reload();
});

// A page that the browser brings back from its memory would show what somebody who has signed out was shown.
addEventListener("pageshow", (event) => event.persisted && location.reload());

start();
