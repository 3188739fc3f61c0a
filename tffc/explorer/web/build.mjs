// Makes ../built from the sources here: the same bytes wherever it runs.
//
//     npm ci && npm run build

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const out = "../built";
const sources = ["package-lock.json", ...readdirSync("src").sort().map((name) => `src/${name}`)];
const hash = createHash("sha256");
for (const name of sources) hash.update(`${name}\n`).update(readFileSync(name));
const made = `/* made from tffc/explorer/web ${hash.digest("hex")} */`;

async function bundle(entry, options) {
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    charset: "ascii",
    legalComments: "none",
    target: ["chrome123", "firefox121", "safari17.5"],
    ...options,
  });
  const text = result.outputFiles[0].text.trimEnd();
  if (/<\/(script|style)|<!--/i.test(text)) throw new Error(`${entry} would end its element`);
  return text;
}

const licences = ["dagre", "graphlib"].map((name) => {
  const folder = `node_modules/@dagrejs/${name}`;
  const { version, homepage } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const text = readFileSync(`${folder}/LICENSE`, "utf8").trim();
  return `@dagrejs/${name} ${version}${homepage ? ` (${homepage})` : ""}\n\n${text}\n`;
});
const notice = "/* holds @dagrejs/dagre and @dagrejs/graphlib, (c) Chris Pettitt, MIT license */";

mkdirSync(out, { recursive: true });
writeFileSync(`${out}/explorer.js`, `${made}\n${notice}\n${await bundle("src/main.js", { format: "iife" })}\n`);
writeFileSync(`${out}/explorer.css`, `${made}\n${await bundle("src/style.css", {})}\n`);
writeFileSync(`${out}/LICENSES.txt`, `What explorer.js holds besides tffc's own.\n\n${licences.join("\n\n")}`);
