// What the audit and the derivation of privacy are laid out in: banners, entries, facts, lists.

import { h, name } from "./dom.js";

export function banner(kind, mark, title, text) {
  return h("section", { class: `verdict ${kind}` }, h("span", { class: "mark", "aria-hidden": "true" }, mark),
    h("div", {}, h("h2", {}, title), text ? h("p", {}, text) : null));
}

export function entry(kind, head, rows) {
  return h("article", { class: `entry ${kind}` }, head, h("dl", {}, rows.filter(Boolean).map(([label, value]) => fact(label, value))));
}

export function fact(label, value) {
  return h("div", {}, h("dt", {}, label), h("dd", {}, value));
}

export function listed(values) {
  return values.length ? values.map((each, index) => [index ? ", " : "", name(each)]) : "nothing";
}
