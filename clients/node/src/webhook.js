// SPDX-License-Identifier: Apache-2.0
// Who sent this webhook, and did nobody change it? Standard Webhooks, v1 (HMAC-SHA256) and v1a (Ed25519).
import { createHmac, createPublicKey, timingSafeEqual, verify as verifySignature } from "node:crypto";

const ED25519 = Buffer.from("302a300506032b6570032100", "hex"); // what stands before the key in its DER form

/** The request is not from the holder of a key, was changed, or is too old. */
export class InvalidSignature extends Error {
  constructor(problem) {
    super(problem);
    this.name = "InvalidSignature";
  }
}

/**
 * Throws InvalidSignature unless one of the keys has signed the request, at most `tolerance` seconds ago. Keys: whsec_...
 * (v1) and whpk_... (v1a); give the former one as well while the sender changes its own.
 */
export function verify(keys, headers, body, { tolerance = 300, now = Date.now() / 1000 } = {}) {
  const entries = typeof headers.entries === "function" ? [...headers.entries()] : Object.entries(headers);
  const values = Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), value]));
  const [id, sent, signatures] = ["id", "timestamp", "signature"].map((name) => values[`webhook-${name}`] || "");
  if (!id || id.includes(".") || !/^[0-9]{1,12}$/.test(sent) || !signatures) {
    throw new InvalidSignature("webhook-id, webhook-timestamp or webhook-signature is missing, or is none");
  }
  if (Math.abs(now - Number(sent)) > tolerance) {
    throw new InvalidSignature(`webhook-timestamp ${sent} is too far from now; are both clocks right?`);
  }
  const signed = Buffer.concat([Buffer.from(`${id}.${sent}.`), Buffer.from(body)]);
  const given = signatures.split(" ").map((signature) => signature.split(",", 2));
  const right = [keys].flat().map((key) => signedBy(key, signed, given));
  if (!right.includes(true)) throw new InvalidSignature("no signature was made with one of the keys");
}

function signedBy(key, signed, given) {
  const [, kind, text] = /^(whsec|whpk)_([A-Za-z0-9+/]+=*)$/.exec(key) ?? [];
  const secret = Buffer.from(text ?? "", "base64");
  const of = (version) => given.filter(([name]) => name === version).map(([, text]) => Buffer.from(text ?? "", "base64"));
  if (kind === "whsec" && secret.length >= 24) {
    const wanted = createHmac("sha256", secret).update(signed).digest();
    return of("v1").map((one) => one.length === wanted.length && timingSafeEqual(one, wanted)).includes(true);
  }
  if (kind === "whpk" && secret.length === 32) {
    const publicKey = createPublicKey({ key: Buffer.concat([ED25519, secret]), format: "der", type: "spki" });
    return of("v1a").map((one) => verifySignature(null, signed, publicKey, one)).includes(true);
  }
  throw new TypeError("a key is neither whsec_ and base64 of 24 bytes or more, nor whpk_ and base64 of 32 bytes");
}
