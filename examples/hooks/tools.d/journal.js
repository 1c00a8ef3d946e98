// Writes one line per phase to the log of the server.
export default function (event, { log }) {
  const who = `${event.principal.id} (says it is ${event.agent.agent_id})`;
  switch (event.phase) {
    case "start":
      log.info(`${who} calls ${event.tool}`, { arguments: event.arguments });
      break;
    case "end":
      log.info(`${event.tool} returned ${JSON.stringify(event.result)} to ${who}`);
      break;
    case "error":
      log.warn(`${event.tool} failed for ${who}: ${event.error.code}: ${event.error.message}`);
      break;
  }
}
