// How a tour is told: a line for each step, and the row of the client in the
// table of docs/reference/clients.md.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

// eventually waits for what takes a moment, and says what did not come. On a
// machine that has much to do a moment is long.
export async function eventually(what, holds) {
  for (const end = Date.now() + 60_000; Date.now() < end; await sleep(5)) {
    const value = await holds();
    if (value) return value;
  }
  assert.fail(`waited a minute for ${what}`);
}

// report takes the steps in their order. One that is a string instead of a
// function is not offered by the client, for that reason. close ends the tour.
export async function report({ client, transport, revision }, steps, close) {
  const who = `${client}, ${transport}, ${revision}`;
  const cells = [];
  for (const [name, step] of Object.entries(steps)) {
    if (typeof step === "string") {
      console.error(`${who}: ${name} is NOT OFFERED BY THIS CLIENT: ${step}`);
      cells.push("not offered");
      continue;
    }
    try {
      await step();
    } catch (error) {
      console.error(`${who}: ${name} FAILED`);
      throw error;
    }
    cells.push("yes");
  }
  await close();
  console.error(`${who}: ok`);
  console.log(`| ${[client, transport, revision, ...cells].join(" | ")} |`);
}
