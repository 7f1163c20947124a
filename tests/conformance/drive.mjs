// A host on the protocol's TypeScript client: walks a procedure through its gate and prints what it met as JSON.
// node drive.mjs PACKAGE_FOLDER legacy|modern COMMAND ARGUMENT…
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import path from "node:path";

const [folder, era, command, ...args] = process.argv.slice(2);
const require = createRequire(path.join(folder, "node_modules", "x.js"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { Client } = await load("@modelcontextprotocol/client");
const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");

const asked = [];
const options = { capabilities: { elicitation: { form: {} } } };
if (era === "modern") options.versionNegotiation = { mode: "auto" };
const client = new Client({ name: "desk", version: "1" }, options);
client.setRequestHandler("elicitation/create", async (request) => {
  asked.push(request.params.message);
  return { action: "accept", content: { decision: "approve", comment: "looks right" } };
});
await client.connect(new StdioClientTransport({ command, args, stderr: "ignore" }));

const call = async (name, given) => {
  const result = await client.callTool({ name, arguments: given });
  if (result.isError) throw new Error(JSON.stringify(result.content));
  return result.structuredContent;
};
const started = await call("sop_start", { name: "kiln-firing", inputs: { temp: 980 } });
const passed = await call("sop_approve", { gate_id: started.actions[0].gate_id });
await call("sop_advance", { run_id: started.run_id, execution_id: "1.1", status: "completed", output: "loaded" });
const ended = await call("sop_advance", { run_id: started.run_id, execution_id: "2.1", status: "completed", output: { done: true } });
const read = await client.readResource({ uri: `sop://runs/${started.run_id}/steps/2` });
const prompts = await client.listPrompts();
console.log(
  JSON.stringify({
    version: client.getNegotiatedProtocolVersion(),
    tools: (await client.listTools()).tools.length,
    started: started.status,
    asked,
    passed: passed.actions[0].execution_id,
    ended: ended.status,
    output: JSON.parse(read.contents[0].text).value,
    prompts: prompts.prompts.map((prompt) => prompt.name),
  }),
);
await client.close();
