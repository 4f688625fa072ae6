// The console: a person's token in the tab's session storage, and the public HTTP API. No build step.

const TOKEN = "ctrlb-token";
const find = (selector) => document.querySelector(selector);

async function call(method, path, fields) {
  const token = sessionStorage.getItem(TOKEN);
  const response = await fetch(path, {
    method,
    headers: { "Content-Type": "application/json", ...(token && { Authorization: `Bearer ${token}` }) },
    body: fields && JSON.stringify(fields),
  });
  const answer = await response.json();
  if (response.status === 401) sessionStorage.removeItem(TOKEN);
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

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

async function showRuns(dataset) {
  const { runs } = await call("GET", `/ai/relay/${dataset}/runs`);
  find("#runs").replaceChildren(
    ...runs.map((run) => row(run.run_id, run.status, run.agents, run.held, run.events, when(run.last))),
  );
}

async function showKeys() {
  const { keys } = await call("GET", "/ai/keys");
  find("#keys").replaceChildren(...keys.map((key) => row(key.key_id, key.name, when(key.expires), when(key.last_used), ending(key))));
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

function showSettings(settings) {
  for (const field of find("#settings").elements) {
    if (field.type === "checkbox") field.checked = settings[field.name];
    else if (field.name) field.value = settings[field.name];
  }
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

// An event handler that says how the work ended.
function doing(work) {
  return async (event) => {
    event.preventDefault();
    try {
      say(await work(event.currentTarget ?? event.target));
    } catch (error) {
      say(error.message, true);
    }
  };
}

async function signIn() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return;
  history.replaceState(null, "", location.pathname); // a used code is of no use in the history
  const { token } = await call("POST", "/ai/sign-in", { code });
  sessionStorage.setItem(TOKEN, token);
}

async function start() {
  await signIn();
  if (!sessionStorage.getItem(TOKEN)) {
    say("Open the sign-in link that the server printed, or run `python -m ctrlb sign-in` for a new one.");
    return;
  }
  const settings = await call("GET", "/ai/relay/settings");
  showSettings(settings);
  await Promise.all([showRuns(settings.sessionsDataset), showKeys()]);
  find("main").hidden = false;
  find("#sign-out").hidden = false;
  find("#who").textContent = `Signed in. Sessions go to ${settings.sessionsDataset}.`;
}

find("#settings").onsubmit = doing(async (form) => {
  showSettings(await call("PUT", "/ai/relay/settings", changedSettings(form)));
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

find("#sign-out").onclick = doing(async () => {
  await call("POST", "/ai/sign-out", {});
  sessionStorage.removeItem(TOKEN);
  location.reload();
});

start().catch((error) => say(error.message, true));
