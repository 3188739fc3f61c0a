// What is known of the calls that are chosen: what they take and give, and what they are made of.

import { bytes, code, counted, exactBytes, fill, h, name } from "./dom.js";
import { notation, type } from "./highlight.js";
import { PROTECTION, shownOperator } from "./round.js";

export class Details {
  constructor(explorer) {
    this.explorer = explorer;
    this.element = h("section", { class: "details", "aria-label": "Details", "aria-live": "polite" });
    this.show([], null);
  }

  show(names, line) {
    const { data } = this.explorer;
    if (!names.length) {
      fill(this.element, this.overview());
      return;
    }
    const input = data.round.inputs.find((each) => each.name === names[0]);
    const output = data.round.outputs.find((each) => each.name === names[0]);
    if (input || output) {
      fill(this.element, this.value(input ?? output));
      return;
    }
    const calls = names.map((name) => this.explorer.call(name)).filter(Boolean);
    if (line || calls.length > 1) fill(this.element, this.became(calls, line));
    else fill(this.element, this.call(calls[0]));
  }

  /** Returns what leaves each client, where nothing is chosen. */
  overview() {
    const { round } = this.explorer.data;
    const channels = round.calls.filter((call) => call.protection);
    const heads = ["channel", "data", "bytes", "goes to"];
    const row = (call) => [
      [h("button", { type: "button", class: "link", onclick: () => this.explorer.select({ calls: [call.name], show: true }) }, name(call.title)),
        h("div", { class: `protection ${call.protection}` }, `${PROTECTION[call.protection].mark} ${PROTECTION[call.protection].word}`)],
      list(call.data, 4), bytes(call.gives), list(call.reaches, 3),
    ];
    return [
      channels.length ? [
        h("h2", {}, "What leaves each client"),
        h("div", { class: "wide" }, h("table", { class: "cards channels" },
          h("thead", {}, h("tr", {}, heads.map((each) => h("th", { scope: "col" }, each)))),
          h("tbody", {}, channels.slice(0, 100).map((call) => h("tr", {}, row(call).map((cell, index) =>
            h("td", { "data-head": heads[index] }, cell))))))),
        channels.length > 100 ? h("p", {}, `and ${counted(channels.length - 100, "more channel")}`) : null,
      ] : null,
      h("p", { class: "hint" },
        "Choose a box to see its types, its bytes and what it is made of; choose a line of the source to see what it became."),
    ];
  }

  value(value) {
    return [
      h("h2", {}, value.title, value.where ? h("small", {}, value.where) : null),
      h("p", {}, exactBytes(value.bytes)),
      type(value.type),
      this.wires(value.name),
    ];
  }

  became(calls, line) {
    const shown = calls.filter((call) => !call.plumbing);
    const hidden = calls.filter((call) => call.plumbing);
    const where = line ? `Line ${line.line}` : counted(calls.length, "call");
    return [
      h("h2", {}, where, h("small", {}, `became ${counted(calls.length, "call")}`)),
      h("ol", { class: "became" }, [...shown, ...hidden].slice(0, 60).map((call) =>
        h("li", { class: call.plumbing ? "plumbing" : "" },
          h("button", { type: "button", class: "link", onclick: () => this.explorer.select({ calls: [call.name], keepLine: true }) }, call.title),
          " ", code(shownOperator(call)),
          h("span", { class: "where" }, ` ${call.runs}`),
          call.protection ? badge(call) : null,
          call.plumbing ? h("span", { class: "where" }, ", only packs or selects") : null,
          this.textLink(call)))),
      calls.length > 60 ? h("p", {}, `and ${counted(calls.length - 60, "call")} more`) : null,
      shown.length === 1 ? h("div", { class: "inner" }, this.call(shown[0])) : null,
    ];
  }

  textLink(call) {
    return h("button", { type: "button", class: "link text-link", onclick: () => this.explorer.showText(call.name),
      "aria-label": `${call.name} in the text` }, call.name);
  }

  call(call) {
    const { data } = this.explorer;
    const because = call.because && this.explorer.call(call.because);
    return [
      h("h2", {}, call.title, h("small", {}, shownOperator(call))),
      h("p", { class: "facts" },
        h("span", {}, `Runs ${call.runs}`),
        call.place ? h("button", { type: "button", class: "link", onclick: () => this.explorer.showLine(call.place) },
          `${data.sources[call.place.file].path}:${call.place.line}`) : null,
        call.defined ? h("button", { type: "button", class: "link", onclick: () => this.explorer.showLine(call.defined) },
          `${call.function} is defined in line ${call.defined.line}`) : null,
        this.textLink(call)),
      this.line(call.place),
      call.protection ? this.protection(call) : null,
      because ? h("p", { class: "hint" }, "Runs no earlier: it needs ", h("button", { type: "button", class: "link",
        onclick: () => this.explorer.select({ calls: [because.name] }) }, because.title), ".") : null,
      h("h3", {}, "Gives", h("small", {}, exactBytes(call.bytes))),
      type(call.type),
      this.wires(call.name),
      call.steps?.length ? this.steps(call) : null,
      call.graphs.length ? [
        h("h3", {}, "Runs the graph", call.graphs.length > 1 ? "s" : ""),
        h("p", {}, call.graphs.map((number) => this.graphLink(number, call.function ?? call.title))),
      ] : null,
    ];
  }

  /** Returns the line of the source that a call comes from. */
  line(place) {
    const text = place && this.explorer.data.sources[place.file].lines[place.line - 1];
    return text ? h("pre", { class: "user-line" }, text.trim()) : null;
  }

  graphLink(number, title) {
    const nodes = this.explorer.graphSize(number);
    return h("button", { type: "button", class: "button", onclick: () => this.explorer.showGraph(number, title) },
      `${title} · ${counted(nodes, "node")}`);
  }

  protection(call) {
    const { title, means } = this.explorer.data.round.protections[call.protection];
    const bound = call.bound ? `, bound ${call.bound}` : "";
    return h("div", { class: `callout protection ${call.protection}` },
      h("p", {}, h("strong", {}, `${PROTECTION[call.protection].mark} ${title}${bound}`), ` ${means}`),
      h("dl", {},
        h("div", {}, h("dt", {}, "Leaves each client"), h("dd", {}, exactBytes(call.gives))),
        h("div", {}, h("dt", {}, "May depend on"), h("dd", {}, list(call.reads))),
        h("div", {}, h("dt", {}, "Reaches"), h("dd", {}, list(call.reaches)))));
  }

  wires(name) {
    const { edges } = this.explorer.data.round;
    const rows = (given, other, title) => {
      if (!given.length) return null;
      return h("div", { class: "wide" }, h("table", {}, h("caption", {}, title),
        h("thead", {}, h("tr", {}, ["value", "part", "bytes", "type"].map((each) => h("th", { scope: "col" }, each)))),
        h("tbody", {}, given.slice(0, 40).flatMap((edge) => edge.parts.slice(0, 20).map((part) => h("tr", {},
          h("td", {}, h("button", { type: "button", class: "link", onclick: () => this.explorer.select({ calls: [edge[other]] }) },
            this.explorer.title(edge[other]))),
          h("td", {}, part.path ? code(part.path) : "all", part.role ? ` as ${part.role}` : ""),
          h("td", { class: "number" }, bytes(part.bytes)),
          h("td", {}, code(part.type.length > 160 ? `${part.type.slice(0, 159)}…` : part.type))))))));
    };
    return [
      rows(edges.filter((edge) => edge.to === name), "from", "Takes"),
      rows(edges.filter((edge) => edge.from === name), "to", "Goes to"),
    ];
  }

  steps(call) {
    return [
      h("h3", {}, "Opened"),
      h("ol", { class: "steps" }, call.steps.map((step) => h("li", {},
        h("strong", {}, step.name), h("span", { class: "where" }, step.means),
        h("p", {}, step.rule),
        h("details", {}, h("summary", {}, "type"), h("code", {}, notation(step.type))),
        step.graph === null ? null : this.graphLink(step.graph, step.name)))),
    ];
  }
}

export function badge(call) {
  return h("span", { class: `badge-inline protection ${call.protection}` },
    `${PROTECTION[call.protection].mark} ${PROTECTION[call.protection].word}`);
}

function list(names, most = 12) {
  if (!names.length) return "nothing";
  const listed = (some) => some.map((each, index) => [index ? ", " : "", name(each)]);
  if (names.length <= most) return listed(names);
  return [listed(names.slice(0, most)), h("details", {}, h("summary", {}, `and ${names.length - most} more`), listed(names.slice(most)))];
}
