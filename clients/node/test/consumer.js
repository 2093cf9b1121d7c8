// SPDX-License-Identifier: Apache-2.0
// One of several consumers, each in a thread: a synchronous driver cannot wait for another connection of its thread.
import { parentPort, workerData } from "node:worker_threads";
import { once, publish } from "outbox-client";
import { DRIVERS } from "./places.js";

const { driver, file, schema, name, messages } = workerData;
const options = { schema };
const one = await DRIVERS[driver](file, schema).connect();
const failed = new Set();
const handled = [];
const write = "INSERT INTO notes (note) VALUES (?)";
// every fifth handler fails the first time
const finish = ({ id }) => {
  if (id % 5 !== 0 || failed.has(id)) return id;
  failed.add(id);
  throw new Error("of the handler");
};
const onOrder = once(name, one.conn.prepare ? (conn, event) => {
  conn.prepare(write).run(name + event.id);
  publish(conn, { type: "order.billed", data: 1 }, options);
  return finish(event);
} : async (conn, event) => {
  await one.execute(write, name + event.id);
  await publish(conn, { type: "order.billed", data: 1 }, options);
  return finish(event);
}, options);

for (let n = 0; n < messages; n++) {
  for (let attempt = 0; attempt < 3; attempt++) {
    await one.begin();
    try {
      const done = await onOrder(one.conn, { id: String(n), correlationid: "all" });
      await one.end("COMMIT");
      if (done !== undefined) handled.push(done);
    } catch (error) {
      await one.end("ROLLBACK");
      if (error.message !== "of the handler") throw error;
    }
  }
}
await one.close();
parentPort.postMessage(handled);
