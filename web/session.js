// The person's token, in this tab's session storage alone, and the calls to the public HTTP API that carry it.

const TOKEN = "ctrlb-token";
const NAME = "ctrlb-name";
const PROBE = "ctrlb-probe";
const OF_A_LINK = "ctrlbs_"; // how a token begins that a sign-in link gave; an issuer's has a form of its own

/** The token is refused: the person has to sign in again. */
export class SignInEnded extends Error {}

/** The person may not do this. */
export class Forbidden extends Error {}

/** Whether the browser lets the page keep a token: it may block the storage, or have none left. */
export function canKeepToken() {
  try {
    sessionStorage.setItem(PROBE, "");
    sessionStorage.removeItem(PROBE);
    return true;
  } catch {
    return false;
  }
}

export const token = () => sessionStorage.getItem(TOKEN);
export const signedInAs = () => sessionStorage.getItem(NAME);
export const isOfALink = () => token()?.startsWith(OF_A_LINK) ?? false;

/** Keep the token, and whose it is: a link that somebody else sent signs in as whom they chose, which is to be seen. */
export function keepToken(given, name) {
  sessionStorage.setItem(NAME, name);
  sessionStorage.setItem(TOKEN, given);
}

export function dropToken() {
  sessionStorage.removeItem(TOKEN);
  sessionStorage.removeItem(NAME);
}

/** The answer of an operation. Throws SignInEnded, Forbidden, or another Error, with what the API says is wrong. */
export async function call(method, path, fields) {
  const sent = token();
  const response = await fetch(new URL(`..${path}`, document.baseURI), {
    method,
    headers: { "Content-Type": "application/json", ...(sent && { Authorization: `Bearer ${sent}` }) },
    body: fields && JSON.stringify(fields),
  });
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const fault = answer.error ?? answer.message ?? `The server answered ${response.status}.`;
  if (response.status === 401 && sent) {
    dropToken();
    throw new SignInEnded(fault);
  }
  throw new (response.status === 403 ? Forbidden : Error)(fault);
}
