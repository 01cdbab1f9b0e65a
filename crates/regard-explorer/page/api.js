// What the server is asked. An answer that was overtaken is null.

/** A refusal of the server, in its own words. */
export class Refusal extends Error {
  /** @param {string} sentence @param {number} status */
  constructor(sentence, status) {
    super(sentence);
    this.status = status;
  }
}

// Two windows of the same page must not overtake each other.
const WINDOW = Math.random().toString(36).slice(2);

/** @type {Map<string, {serial: number, abort: AbortController}>} */
const latest = new Map();

/** @param {Response} response */
async function told(response) {
  const body = await response.json().catch(() => null);
  if (response.ok && body) return body;
  if (response.status === 409 && body?.overtaken) return null;
  throw new Refusal(body?.error || `${response.status} ${response.statusText}`, response.status);
}

/** @param {unknown} error */
function refused(error) {
  if (error instanceof Refusal) throw error;
  if (/** @type {any} */ (error)?.name === "AbortError") return null;
  throw new Refusal("", 0); // the server does not answer
}

/** @param {string} path @returns {Promise<any>} */
export async function get(path) {
  try {
    return await told(await fetch(path, { headers: { Accept: "application/json" } }));
  } catch (error) {
    return refused(error);
  }
}

/**
 * Posts JSON. A newer request of the same pane ends the one before.
 * @param {string} path @param {object} body @param {string} [pane]
 * @returns {Promise<any>}
 */
export async function post(path, body, pane) {
  const abort = new AbortController();
  let sent = body;
  if (pane) {
    const before = latest.get(pane);
    before?.abort.abort();
    const serial = (before?.serial || 0) + 1;
    latest.set(pane, { serial, abort });
    sent = { ...body, view: `${WINDOW}-${pane}`, serial };
  }
  try {
    const response = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(sent),
      signal: abort.signal,
    });
    const answer = await told(response);
    return abort.signal.aborted ? null : answer;
  } catch (error) {
    return refused(error);
  }
}

/** A file that the server makes: its bytes and its name. @param {object} body */
export async function save(body) {
  let response;
  try {
    response = await fetch("/api/save", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
  } catch {
    throw new Refusal("", 0);
  }
  if (!response.ok) await told(response);
  const name = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") || "");
  return { blob: await response.blob(), name: name ? name[1] : "attention" };
}

/** Numbers that came as base64 of little-endian f32. @param {string | number[]} text @returns {Float32Array} */
export function numbers(text) {
  if (typeof text !== "string") return Float32Array.from(text || [], (value) => (value === null ? NaN : value));
  const native = /** @type {any} */ (Uint8Array).fromBase64;
  if (native) return new Float32Array(native.call(Uint8Array, text).buffer);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new Float32Array(bytes.buffer);
}

/**
 * Makes the numbers of an answer's scenes numbers.
 * @param {any[]} scenes
 * @returns {any[]}
 */
export function decoded(scenes) {
  const flags = (text) => text && Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const map = (one) => ({ ...one, weights: numbers(one.weights), masked: flags(one.masked) });
  return scenes.map(({ scene, rollout, ...rest }) => {
    const plain = { ...scene };
    for (const key of ["pixels", "spectrogram"]) if (key in plain) plain[key] = numbers(plain[key]);
    if (plain.maps) plain.maps = plain.maps.map(map);
    if (plain.weights) plain.weights = { ...plain.weights, maps: plain.weights.maps.map(map) };
    return { ...rest, scene: plain, rollout: rollout ? map(rollout) : null };
  });
}
