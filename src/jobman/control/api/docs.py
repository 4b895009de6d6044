"""A page that shows the description of the API. It needs nothing from anywhere else."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>jobman API</title>
<style>
:root { color-scheme: light dark; --line: #8884; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
details { border: 1px solid var(--line); border-radius: 6px; margin: .4rem 0; padding: .3rem .8rem; }
summary { cursor: pointer; }
code, pre { font: 13px/1.45 ui-monospace, monospace; }
pre { background: var(--soft); border-radius: 6px; overflow: auto; padding: .6rem; }
b.method { display: inline-block; min-width: 4.2rem; }
table { border-collapse: collapse; width: 100%; }
td { border-top: 1px solid var(--line); padding: .25rem .6rem .25rem 0; vertical-align: top; }
</style>
</head>
<body>
<h1>jobman API</h1>
<main>Loading the description…</main>
<script>
const make = (tag, text, ...children) => {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  element.append(...children);
  return element;
};
const table = rows => {
  const body = make("table");
  for (const row of rows) body.append(make("tr", "", ...row.map(cell => make("td", cell))));
  return body;
};
const kind = schema => {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  return schema.enum ? schema.enum.join(" | ") : schema.type || "";
};
const operation = (path, method, about) => {
  const title = make("b", method.toUpperCase());
  title.className = "method";
  const summary = make("summary", "", title, make("code", path), ` ${about.summary}`);
  const box = make("details", "", summary, make("p", about.description));
  if (about.parameters.length)
    box.append(table(about.parameters.map(p => [`${p.name} (${p.in})`, kind(p.schema), p.description])));
  if (about.requestBody)
    box.append(make("p", `Body: ${kind(about.requestBody.content["application/json"].schema)}`));
  box.append(table(Object.entries(about.responses).map(([status, answer]) => [
    status,
    Object.entries(answer.content || {}).map(([media, c]) => kind(c.schema) + ` (${media})`).join(", "),
    answer.description,
  ])));
  return box;
};
fetch("openapi.json").then(answer => answer.json()).then(description => {
  const main = document.querySelector("main");
  main.replaceChildren(make("p", description.info.description));
  const tags = {};
  for (const [path, methods] of Object.entries(description.paths))
    for (const [method, about] of Object.entries(methods))
      (tags[about.tags[0]] ||= []).push(operation(path, method, about));
  for (const [tag, operations] of Object.entries(tags)) main.append(make("h2", tag), ...operations);
  main.append(make("h2", "bodies"));
  for (const [name, schema] of Object.entries(description.components.schemas))
    main.append(make("details", "", make("summary", name), make("pre", JSON.stringify(schema, null, 2))));
});
</script>
</body>
</html>
"""
