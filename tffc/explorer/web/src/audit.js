// The audit: its verdict, what leaves the clients, what they are sent, and what is kept.

import { code, counted, exactBytes, h, name } from "./dom.js";
import { banner, entry, fact, listed } from "./entries.js";
import { privacySection } from "./privacy.js";

const MARKS = { passes: ["good", "\u2713"], violates: ["bad", "\u2715"] };
const STATES = { holds: "good", "in use": "good", violated: "bad", ended: "bad" };
const HARMFUL = new Set(["files", "network", "python", "unknown"]);

export function auditTab(explorer) {
  const { report } = explorer.data;
  const { audit } = report;
  const at = (span) => (span ? h("div", { class: "at" }, explorer.placeLink(span)) : null);
  const titled = (value, ...more) => h("div", {}, h("h3", {}, name(value.name ?? value.operation)), more, at(value.span));
  const section = (title, ...entries) => h("section", {}, h("h2", {}, title), entries.flat().length ? entries : h("p", {}, "None."));
  const channel = (each) => entry(each.protection, titled(each, h("div", { class: "protection" }, each.shown_protection)), [
    ...depends(each), ["goes to", listed(each.goes_to)],
    each.single ? ["one client", `may be released: ${each.single}`] : null,
    ["as", [code(each.operator), " of ", sized(each)]], ["content", code(each.content)],
  ]);
  const effect = (each) => entry(!HARMFUL.has(each.kind) && each.side === "clients" ? "none" : "", titled(each), [
    [`at the ${each.side}`, each.kind], ...(Object.keys(each.depends.listed).length ? depends(each) : []), ["content", code(each.content)],
  ]);
  return h("div", { class: "audit" },
    verdict(report),
    facts(report),
    report.policy ? policy(report.policy) : null,
    report.violations.length ? h("section", {}, h("h2", {}, "Violations"), violations(explorer, report.violations)) : null,
    section("What leaves each client",
      h("dl", { class: "facts wide-labels" },
        fact("Seen of each client by whoever aggregates", listed(audit.seen_by_aggregator)),
        fact("In no channel", listed(audit.in_no_channel)),
        audit.only_in_effects.length ? fact(h("span", { class: "ended" }, "Of these, in effects at the clients"), listed(audit.only_in_effects)) : null),
      audit.channels.length ? audit.channels.map(channel) : h("p", {}, "Nothing.")),
    section("What each client is sent", audit.broadcasts.map((each) => entry("", titled(each), [...depends(each), ["as", sized(each)]]))),
    section("Effects outside the channels", audit.effects.map(effect)),
    section("What is kept and put out", audit.state.length + audit.output.length ? results([...audit.state, ...audit.output]) : []),
    report.privacy ? privacySection(report.privacy) : null,
    h("p", { class: "hint" }, "What is said of a value holds for every argument: it may name more than the value does depend on, never less."));
}

/** Returns the verdict of a policy, and a warning about a bundle that is not what it says. */
export function verdict(report) {
  const { text, word } = report.verdict;
  const [kind, mark] = MARKS[word] ?? ["open", "\u2013"];
  const [title, ...more] = text.split(": ");
  return [
    banner(kind, mark, title[0].toUpperCase() + title.slice(1),
      report.policy ? [code(report.policy.path ?? "a policy"), report.as_of ? `, as of ${report.as_of}` : "", `: ${more.join(": ") || "no rule is violated"}`] : "Nothing says what would be allowed: explore with --policy."),
    unproved(report),
  ];
}

/** Returns a warning about a bundle whose components are not proved to compute its program, or null. */
export function unproved(report) {
  if (!report || report.read.what === "program") return null;
  return banner("doubtful", "!", "Read from the components",
    `The components of this bundle are not proved to compute the program in it. This page is about the components, which are what runs. The prover says: ${report.read.proof?.reason ?? "nothing"}.`);
}

function facts({ program, read, policy: applied, tool }) {
  const digest = (text) => (text ? [h("span", { class: "soft" }, "SHA-256 "), code(text)] : null);
  return h("dl", { class: "facts" },
    fact(read.what === "program" ? "Program" : "Components", [digest(program.digest) ?? "not stored",
      Object.keys(program.digests).length > 1 ? h("details", {}, h("summary", {}, "of each part"),
        Object.entries(program.digests).map(([part, each]) => h("div", {}, name(part), " ", code(each)))) : null]),
    fact("Read", read.text),
    fact("Compiled to", [program.form, " ", h("details", {}, h("summary", {}, "type"), code(program.type))]),
    applied ? fact("Policy", [applied.path ?? "", " ", digest(applied.digest)]) : null,
    fact("Made by", [`${tool.name} ${tool.version} `, digest(tool.digest)]));
}

function policy({ rules, exceptions }) {
  const state = (word, text) => h("span", { class: `state ${STATES[word] ?? "open"}` }, text);
  return h("section", {}, h("h2", {}, "The policy"),
    h("ul", { class: "rules" }, rules.map((rule) => h("li", {},
      h("div", {}, h("strong", {}, rule.rule), " ", name(rule.requires), " ", h("span", { class: "soft" }, rule.means)),
      state(rule.verdict, rule.violations ? counted(rule.violations, "violation") : rule.verdict))),
    rules.length ? null : h("li", {}, "It has no rules.")),
    exceptions.length ? [h("h3", {}, "Exceptions"), h("ul", { class: "rules" }, exceptions.map((each) => h("li", {},
      h("div", {}, h("strong", {}, each.channel), " may violate ", code(each.rule), h("br"), each.reason, h("br"), h("span", { class: "soft" }, "content "), code(each.content)),
      state(each.state, each.state === "ended" ? `ended on ${each.expires}` : `${each.state}, until ${each.expires}`))))] : null);
}

function violations(explorer, all) {
  const groups = new Map();
  for (const each of all) {
    const key = JSON.stringify([each.subject, each.content]);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(each);
  }
  return [...groups.values()].map((own) => h("article", { class: `entry ${own.every((each) => each.excepted !== null) ? "excepted" : "broken"}` },
    h("div", {}, h("h3", {}, name(own[0].subject)), own[0].span ? h("div", { class: "at" }, explorer.placeLink(own[0].span)) : null),
    h("ul", { class: "broken-rules" }, own.map((each) => h("li", {},
      h("span", { class: `state ${each.excepted === null ? "bad" : "good"}` }, each.rule),
      h("span", {}, each.message,
        each.excepted !== null ? [h("br"), h("span", { class: "soft" }, `allowed: ${each.excepted}`)] : null,
        each.excepted === null && each.expired ? [h("br"), h("span", { class: "ended" }, `the exception ended on ${each.expired}`)] : null)))),
    userLine(explorer, own[0].span)));
}

function userLine(explorer, span) {
  const line = span && explorer.data.sources.find((each) => each.path === span.file)?.lines[span.line - 1];
  return line ? h("pre", { class: "user-line" }, line.trim()) : null;
}

function results(values) {
  const heads = ["value", "type", "may depend on"];
  return h("div", { class: "wide" }, h("table", { class: "cards" },
    h("thead", {}, h("tr", {}, heads.map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", {}, values.map((value) => h("tr", {}, [
      h("strong", {}, name(value.name)), code(value.type), depends(value).map(([label, names], index) => [index ? "; " : "", `${label} `, names]),
    ].map((cell, index) => h("td", { "data-head": heads[index] }, cell)))))));
}

function depends({ depends: { listed: all } }) {
  const rows = Object.entries(all).map(([label, names]) => [label, listed(names)]);
  return rows.length ? rows : [["data", "nothing: a constant"]];
}

function sized({ size, type }) {
  return [exactBytes(size), ", ", type.length <= 200 ? code(type) : h("details", {}, h("summary", {}, "type"), code(type))];
}
