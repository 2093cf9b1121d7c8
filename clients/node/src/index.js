// SPDX-License-Identifier: Apache-2.0
// Publish to an outbox, and consume each message once, in the database transaction that is yours already.
export { NoTransaction } from "./connection.js";
export { accept, once } from "./inbox.js";
export { InvalidMessage, handling } from "./message.js";
export { publish, publishAll } from "./publish.js";
export { published } from "./testing.js";
export { InvalidSignature, verify } from "./webhook.js";
