// Signing in and out with an OpenID Connect issuer: Authorization Code with PKCE (RFC 7636), all in the browser.
// `issuer` is what GET /ai/sign-in tells of it.

const BEGUN = "ctrlb-sign-in"; // what was made for the sign-in under way, till its answer comes

/** Go to the issuer to sign in. It comes back to this page with a code. */
export async function leaveToSignIn(issuer) {
  if (!crypto.subtle) throw new Error("To sign in, open this page over https, or on the machine that serves it.");
  const begun = { state: random(), nonce: random(), verifier: random() };
  sessionStorage.setItem(BEGUN, JSON.stringify(begun));
  leave(issuer.authorization_endpoint, {
    response_type: "code",
    client_id: issuer.client_id,
    redirect_uri: here(),
    scope: issuer.scope,
    state: begun.state,
    nonce: begun.nonce,
    code_challenge: base64url(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(begun.verifier))),
    code_challenge_method: "S256",
  });
}

/** Go to where the issuer ends its own session; false where it has no such place. */
export function leaveToSignOut(issuer) {
  if (!issuer.end_session_endpoint) return false;
  leave(issuer.end_session_endpoint, { client_id: issuer.client_id, [issuer.end_session_return]: here() });
  return true;
}

/** What the issuer sent the person back with, taken out of the address; null when they come from elsewhere. */
export function takeAnswer() {
  const answer = new URLSearchParams(location.search);
  if (!answer.has("code") && !answer.has("error")) return null;
  history.replaceState(null, "", here());
  const begun = JSON.parse(sessionStorage.getItem(BEGUN) ?? "{}");
  sessionStorage.removeItem(BEGUN);
  return { answer, begun };
}

/** The ID token that the answer's code is good for, and whom it names. Throws an Error that says why there is none. */
export async function signedIn({ answer, begun }, issuer) {
  const iss = answer.get("iss") ?? issuer.issuer; // of RFC 9207, where the issuer sends it
  if (answer.get("state") !== begun.state || iss !== issuer.issuer)
    throw new Error("This answer is to no sign-in that was begun in this tab. Sign in again.");
  if (answer.has("error")) throw new Error(`The issuer did not sign you in: ${told(Object.fromEntries(answer))}.`);
  const token = await exchanged(answer.get("code"), begun.verifier, issuer);
  const claims = claimsOf(token);
  if (claims.nonce !== begun.nonce) throw new Error("The issuer's token belongs to another sign-in. Sign in again.");
  return { token, name: claims.email ?? claims.sub };
}

async function exchanged(code, verifier, issuer) {
  const fields = { grant_type: "authorization_code", client_id: issuer.client_id, redirect_uri: here() };
  const body = new URLSearchParams({ ...fields, code, code_verifier: verifier });
  const sent = { method: "POST", body, credentials: "omit", redirect: "error" };
  const response = await fetch(issuer.token_endpoint, sent).catch(() => {
    throw new Error("The issuer cannot be reached from this page for a token. Sign in again.");
  });
  const tokens = (await response.json().catch(() => null)) ?? {};
  if (!response.ok) throw new Error(`The issuer gave no token: ${told(tokens)}. Sign in again.`);
  return tokens.id_token ?? "";
}

// The server checks the signature and all that stands in the token, at each call. What only this page knows is the nonce.
function claimsOf(token) {
  try {
    const payload = atob(token.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"));
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(payload, (character) => character.charCodeAt(0)))) ?? {};
  } catch {
    throw new Error("The issuer sent no ID token. Sign in again, or ask whoever registered this console with it.");
  }
}

const told = ({ error, error_description }) => [error ?? "an error", error_description].filter(Boolean).join(": ");

const here = () => new URL(".", location.href).href;

function leave(place, parameters) {
  const address = new URL(place);
  for (const [name, value] of Object.entries(parameters)) address.searchParams.append(name, value);
  location.assign(address);
}

const random = () => base64url(crypto.getRandomValues(new Uint8Array(32)));

function base64url(bytes) {
  const text = btoa(String.fromCharCode(...new Uint8Array(bytes)));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
