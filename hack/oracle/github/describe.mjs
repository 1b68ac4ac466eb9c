// Takes the operations that crates/forge uses out of GitHub's description of its API, without its texts:
//
//   npm pack @octokit/openapi@23.0.2 && tar xzf octokit-openapi-23.0.2.tgz
//   node hack/oracle/github/describe.mjs package/generated/api.github.com.json > crates/forge/testdata/github.json
//
// The description is GitHub's (MIT); the package brings it to where it can be reached.
import { readFileSync } from "node:fs";

const REPOSITORY = "/repos/{owner}/{repo}";
const OPERATIONS = [
  ["get", "/pulls"],
  ["post", "/pulls"],
  ["patch", "/pulls/{pull_number}"],
  ["put", "/pulls/{pull_number}/merge"],
  ["post", "/pulls/{pull_number}/requested_reviewers"],
  ["post", "/issues/{issue_number}/labels"],
  ["post", "/issues/{issue_number}/comments"],
  ["get", "/commits/{ref}/status"],
  ["get", "/commits/{ref}/statuses"],
  ["get", "/commits/{ref}/check-runs"],
  ["post", "/statuses/{sha}"],
  ["post", "/check-runs"],
  ["get", "/compare/{basehead}"],
];
// Objects of an answer within each other; what is deeper is not read.
const DEPTH = 4;

const api = JSON.parse(readFileSync(process.argv[2], "utf8"));

function resolved(node) {
  let found = node;
  while (found?.$ref) {
    found = found.$ref.split("/").slice(1).reduce((at, key) => at[key], api);
  }
  return found;
}

// A JSON Schema with what can be checked, and no more.
function schema(node, depth, keepsRequired) {
  node = resolved(node);
  if (!node || depth < 0) return {};
  const own = {};
  if (node.type) own.type = node.nullable ? [].concat(node.type, "null") : node.type;
  if (node.enum) own.enum = node.nullable ? [...node.enum, null] : node.enum;
  for (const key of ["anyOf", "oneOf", "allOf"]) {
    // One of several is as good as any here: without what is required they overlap.
    if (node[key] && !node.nullable) {
      own[key === "oneOf" ? "anyOf" : key] = node[key].map((one) => schema(one, depth, keepsRequired));
    }
  }
  if (node.properties) {
    const each = Object.entries(node.properties).sort(([a], [b]) => (a < b ? -1 : 1));
    own.properties = Object.fromEntries(each.map(([name, value]) => [name, schema(value, depth - 1, keepsRequired)]));
    if (!node.additionalProperties) own.additionalProperties = false;
  }
  if (node.items) own.items = schema(node.items, depth, keepsRequired);
  if (keepsRequired && node.required?.length) own.required = node.required;
  return own;
}

const content = (node) => resolved(node)?.content?.["application/json"]?.schema;
const found = {};
for (const [method, path] of OPERATIONS) {
  const item = api.paths[REPOSITORY + path];
  const operation = item[method];
  const parameters = [...(item.parameters ?? []), ...(operation.parameters ?? [])].map(resolved);
  const query = parameters.filter((one) => one.in === "query");
  const answers = Object.entries(operation.responses)
    .filter(([status, answer]) => status.startsWith("2") && content(answer))
    .map(([status, answer]) => [status, schema(content(answer), DEPTH, false)]);
  const body = content(operation.requestBody);
  found[`${method.toUpperCase()} ${path}`] = {
    query: Object.fromEntries(query.map((one) => [one.name, schema(one.schema, 1, true)])),
    ...(body && { body: schema(body, DEPTH, true) }),
    answers: Object.fromEntries(answers),
  };
}
const lines = Object.entries(found).map(([name, operation]) => `${JSON.stringify(name)}: ${JSON.stringify(operation)}`);
console.log(`{\n${lines.join(",\n")}\n}`);
