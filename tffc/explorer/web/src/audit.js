// The audit: what leaves the clients, what they are sent, and what is kept.

import { code, exactBytes, h } from "./dom.js";
import { PROTECTION } from "./round.js";

export function auditTab(explorer) {
  const { audit } = explorer.data;
  const table = (caption, heads, rows) => [
    h("h2", {}, caption),
    rows.length
      ? h("div", { class: "wide" }, h("table", { class: "cards" }, h("caption", { class: "sr" }, caption),
          h("thead", {}, h("tr", {}, heads.map((each) => h("th", { scope: "col" }, each)))),
          h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, index) => h("td", { "data-head": heads[index] }, cell)))))))
      : h("p", {}, "Nothing."),
  ];
  const depends = (found) => {
    const parts = [["data", found.elements], ["how many", found.counts], ["shape of", found.shapes], ["state", found.state], ["channels", found.channels],
      ["draws", found.draws.map((draw) => `${draw.operation} ${draw.side}${draw.is_fresh ? "" : ", from a given seed"}`)]];
    const lines = parts.filter(([, values]) => values.length).map(([label, values]) => h("div", {}, `${label}: `, listed(values)));
    return lines.length ? lines : "nothing";
  };
  const named = (value) => [h("strong", {}, value.name), value.span ? h("div", {}, explorer.placeLink(value.span)) : null, h("div", {}, code(value.type))];
  const left = new Set(audit.channels.flatMap((channel) => channel.depends.elements));
  const never = audit.data.filter((name) => !left.has(name));
  return h("div", { class: "audit" },
    h("p", {}, "Compiled to ", code(audit.form), ". What is said of a value holds for every argument: it may name more than the value does depend on, never less."),
    table("What leaves the clients", ["channel", "protection", "bytes", "may depend on", "goes to"],
      audit.channels.map((channel) => [
        [named(channel), h("div", {}, code(channel.operator))],
        h("span", { class: `protection ${channel.protection}` }, `${PROTECTION[channel.protection].mark} ${explorer.data.round.protections[channel.protection].title}${channel.bound ? `, bound ${channel.bound}` : ""}`),
        exactBytes(channel.size), depends(channel.depends), listed(channel.goes_to)])),
    h("p", {}, "In no channel: ", listed(never), "."),
    table("What is sent to the clients", ["broadcast", "bytes", "may depend on"],
      audit.broadcasts.map((sent) => [named(sent), exactBytes(sent.size), depends(sent.depends)])),
    table("What is kept and put out", ["value", "may depend on"],
      [...audit.state, ...audit.output].map((each) => [[h("strong", {}, each.name), h("div", {}, code(each.type))], depends(each.depends)])),
    table("Effects", ["side", "kind", "operation"], audit.effects.map((each) => [each.side, each.kind, code(each.operation)])));
}

function listed(values) {
  return values.length ? values.map((each, index) => [index ? ", " : "", code(each)]) : "nothing";
}
