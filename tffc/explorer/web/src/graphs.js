// Graphs of compiled sections: functions are folded, and large graphs are opened where one looks.

import { arrows, counted, fill, h, s, short } from "./dom.js";
import { arrow, line, place } from "./layout.js";

const MOST = 70; // nodes of a graph that is shown whole
const FIRST = 24; // nodes that are shown first of a larger one
const STEP = 10; // nodes that are opened at once
const HUB = 4; // edges from one node that the layout makes room for
const LISTED = 200; // nodes that a search lists

const CONSTANTS = new Set(["Const", "constant"]);

/** A graph or function that has been read from the page: nodes and who uses them. */
class Scope {
  constructor(words, { name, rows, results }) {
    this.name = name;
    this.nodes = rows.map(([op, label, attributes, inputs, after, functions], index) => ({
      index, op: words[op], name: words[label], attributes: words[attributes],
      inputs: inputs.map((each) => (typeof each === "number" ? each : Number(each.split(":")[0]))),
      after, functions, uses: [],
    }));
    this.results = results.map((each) => (typeof each === "number" ? each : Number(each.split(":")[0])));
    for (const node of this.nodes) {
      for (const inputs of [node.inputs, node.after]) {
        for (const input of inputs) {
          const uses = this.nodes[input]?.uses;
          if (uses && uses.at(-1) !== node.index) uses.push(node.index);
        }
      }
    }
    // A constant that one node takes stands in its box.
    const given = new Set(this.results);
    this.drawn = 0;
    for (const node of this.nodes) {
      node.isInline = CONSTANTS.has(node.op) && node.uses.length === 1 && !given.has(node.index);
      if (!node.isInline) this.drawn += 1;
    }
  }

  near(index) {
    const node = this.nodes[index];
    return [...node.inputs, ...node.after, ...node.uses].filter((each) => this.nodes[each] && !this.nodes[each].isInline);
  }
}

export class GraphsTab {
  constructor(explorer) {
    this.explorer = explorer;
    this.cache = new Map();
    const { data } = explorer;
    const entries = (data.components ?? []).flatMap((component) =>
      component.graphs.map((graph) => ({
        ...graph, side: component.side, type: component.type,
        label: component.graphs.length > 1 || component.text ? `${component.name} · ${graph.title}` : component.name,
      })));
    this.entries = entries;
    this.list = h("ul", { class: "graph-list" }, entries.map((entry) => h("li", {},
      h("button", { type: "button", "aria-pressed": "false", data: { graph: entry.number, label: entry.label }, onclick: () => this.open(entry.number, entry.label) },
        h("strong", {}, entry.label), h("span", {}, entry.side.split(",")[0] === "once" ? entry.side : entry.side.split(",")[0]), h("span", { class: "hint" }, entry.nodes ? counted(entry.nodes, "node") : "nothing to do")))));
    arrows(this.list, "button", "ArrowDown", "ArrowUp");
    this.crumbs = h("nav", { class: "crumbs", "aria-label": "Functions" });
    this.search = h("input", { type: "search", placeholder: "Find a node", "aria-label": "Find a node by operation or name", oninput: () => this.find() });
    this.hits = h("div", { class: "hits" });
    this.note = h("p", { class: "hint", "aria-live": "polite" });
    this.canvas = h("div", { class: "canvas graph", tabindex: "0", role: "group", "aria-label": "Graph" });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.info = h("div", { class: "node-info", "aria-live": "polite" });
    this.element = h("div", { class: "split graphs" },
      h("nav", { "aria-label": "Components" }, this.list),
      h("div", {}, h("div", { class: "toolbar" }, this.crumbs, this.search,
        h("button", { type: "button", class: "small", onclick: () => this.restart() }, "Start again"),
        h("button", { type: "button", class: "small", "aria-label": "Smaller", onclick: () => this.scale(this.zoom / 1.2) }, "−"),
        h("button", { type: "button", class: "small", "aria-label": "Larger", onclick: () => this.scale(this.zoom * 1.2) }, "+"),
        h("button", { type: "button", class: "small", "aria-label": "Fit the width", onclick: () => this.fit() }, "Fit")),
      this.hits, this.note, this.canvas, this.info));
  }

  get largest() {
    return this.entries.reduce((one, two) => (two.nodes > one.nodes ? two : one));
  }

  /** Reads the largest graph while nobody waits for it. */
  readAhead() {
    const wait = window.requestIdleCallback ?? ((work) => setTimeout(work, 300));
    if (this.entries.length) wait(() => this.read(this.largest.number));
  }

  shown() {
    if (this.stack || !this.entries.length) return;
    this.open(this.largest.number, this.largest.label);
  }

  read(number) {
    if (!this.cache.has(number)) {
      const { words, scopes, unreadable } = JSON.parse(document.getElementById(`graph-${number}`).textContent);
      this.cache.set(number, { scopes: scopes.map((scope) => new Scope(words, scope)), unreadable });
    }
    return this.cache.get(number);
  }

  size(number) {
    const known = this.entries.find((entry) => entry.number === number);
    if (known) return known.nodes;
    return this.read(number).scopes.reduce((sum, scope) => sum + scope.nodes.length, 0);
  }

  open(number, title) {
    this.number = number;
    for (const each of this.list.querySelectorAll("button")) {
      each.setAttribute("aria-pressed", each.dataset.graph === String(number) && each.dataset.label === title);
    }
    const { scopes, unreadable } = this.read(number);
    if (unreadable || !scopes.length) {
      this.stack = [];
      fill(this.canvas, h("p", { class: "hint" }, unreadable ?? "This graph is empty."));
      return;
    }
    this.scopes = scopes;
    this.stack = [{ title, scope: scopes[0] }];
    this.restart();
  }

  enter(number, title) {
    this.stack.push({ title, scope: this.scopes[number] });
    this.restart();
  }

  get scope() {
    return this.stack.at(-1).scope;
  }

  restart() {
    if (!this.stack?.length) return;
    const { scope } = this;
    this.visible = new Set();
    this.chosen = null;
    if (scope.drawn <= MOST) {
      for (const node of scope.nodes) if (!node.isInline) this.visible.add(node.index);
    } else {
      const waiting = [...new Set(scope.results)];
      for (let at = 0; at < waiting.length && this.visible.size < FIRST; at += 1) {
        if (this.visible.has(waiting[at])) continue;
        this.visible.add(waiting[at]);
        const node = scope.nodes[waiting[at]];
        waiting.push(...[...node.inputs, ...node.after].filter((each) => !scope.nodes[each].isInline));
      }
    }
    this.search.value = "";
    fill(this.hits);
    fill(this.info);
    fill(this.crumbs, this.stack.map(({ title }, index) => [
      index ? h("span", { "aria-hidden": "true" }, " ▸ ") : null,
      index + 1 === this.stack.length ? h("strong", {}, short(title, 40)) : h("button", { type: "button", class: "link", onclick: () => {
        this.stack.length = index + 1;
        this.restart();
      } }, short(title, 40)),
    ]));
    this.draw();
  }

  draw() {
    const { scope, visible } = this;
    const isWhole = visible.size >= scope.drawn;
    fill(this.note, isWhole
      ? `${counted(scope.nodes.length, "node")}; constants stand in the boxes that take them`
      : `${visible.size.toLocaleString("en-US")} of ${counted(scope.drawn, "node")} are open, from the results; + opens what is next to a box`);
    const nodes = [...visible].map((index) => this.node(scope.nodes[index]));
    const edges = [];
    const results = scope.results.filter((each) => visible.has(each));
    const taken = new Map(); // how often a box is taken here: after a few, edges go straight to it
    for (const index of visible) {
      const node = scope.nodes[index];
      const seen = new Set();
      for (const [inputs, kind] of [[node.inputs, ""], [node.after, "control"]]) {
        for (const input of inputs) {
          if (!visible.has(input) || seen.has(input)) continue;
          seen.add(input);
          taken.set(input, (taken.get(input) ?? 0) + 1);
          edges.push({ from: input, to: index, kind, isLoose: taken.get(input) > HUB });
        }
      }
    }
    if (results.length) {
      nodes.push({ id: "result", kind: "output", title: "result", sub: "", width: 70, height: 30 });
      for (const each of new Set(results)) edges.push({ from: each, to: "result", kind: "" });
    }
    this.placed = place(nodes, edges, { direction: "TB", ranksep: 34, nodesep: 16 });
    const { marker, url } = arrow();
    const drawing = s("svg", { width: this.placed.width, height: this.placed.height, class: "edges", "aria-hidden": "true" },
      s("defs", {}, marker),
      this.placed.edges.map((edge) => s("g", { class: `edge ${edge.kind} ${edge.isLoose ? "loose" : ""}` }, s("path", { d: line(edge, false), "marker-end": url }))));
    const world = h("div", { class: "world" }, drawing, this.placed.nodes.map((node) => this.box(node)));
    Object.assign(world.style, { width: `${this.placed.width}px`, height: `${this.placed.height}px` });
    this.world = world;
    this.frame = h("div", { class: "frame" }, world);
    fill(this.canvas, this.frame);
    this.fit();
    this.canvas.scrollLeft = (this.canvas.scrollWidth - this.canvas.clientWidth) / 2;
    this.enterable();
  }

  fit() {
    const room = this.canvas.clientWidth - 2;
    this.scale(Math.max(0.6, Math.min(1, room / this.placed.width)));
  }

  scale(zoom) {
    if (!this.world) return;
    this.zoom = Math.min(2, Math.max(0.2, zoom));
    this.world.style.transform = `scale(${this.zoom})`;
    this.frame.style.width = `${this.placed.width * this.zoom}px`;
    this.frame.style.height = `${this.placed.height * this.zoom}px`;
  }

  node(node) {
    const call = node.functions.length ? `▸ ${counted(this.inner(node), "node")}` : "";
    const inline = node.inputs.map((each) => this.scope.nodes[each]).filter((each) => each?.isInline);
    const constants = inline.map((each) => short(value(each), 22));
    const title = node.op === "argument" ? ending(node.name, 22) : short(node.op, 26);
    const sub = node.op === "argument" ? "argument" : constants.length ? short(constants.join(", "), 28) : short(node.name.split("/").at(-1), 24);
    const hidden = this.hidden(node.index);
    const width = Math.max(64, Math.ceil(Math.max(title.length * 7.3, sub.length * 6.3, call.length * 6.4)) + 22 + (hidden ? 26 : 0));
    return { id: node.index, node, title, sub, call, hidden, kind: node.op === "argument" ? "input" : node.functions.length ? "calls" : "", width, height: call ? 58 : 42 };
  }

  /** Returns how many nodes next to one are not open. */
  hidden(index) {
    const near = this.scope.near(index);
    return near.length > 1000 ? near.length - this.visible.size : new Set(near.filter((each) => !this.visible.has(each))).size;
  }

  inner(node) {
    return node.functions.reduce((sum, each) => sum + (this.scopes[each]?.nodes.length ?? 0), 0);
  }

  box({ id, node, title, sub, call, hidden, kind, x, y, width, height }) {
    const style = { left: `${x - width / 2}px`, top: `${y - height / 2}px`, width: `${width}px`, height: `${height}px` };
    if (!node) return h("div", { class: "box output", style }, h("span", { class: "box-title" }, title));
    return h("div", { class: "cell", style },
      h("button", { type: "button", class: `box ${kind}`, tabindex: "-1", title: node.name, data: { node: id }, onclick: () => this.choose(id) },
        h("span", { class: "box-title" }, title), " ", h("span", { class: "box-sub" }, sub), " ", call ? h("span", { class: "badge" }, call) : null),
      hidden ? h("button", { type: "button", class: "more", tabindex: "-1", "aria-label": `Open ${counted(hidden, "node")} next to ${node.name}`, onclick: () => this.expand(id) }, `+${hidden}`) : null);
  }

  enterable() {
    const first = this.canvas.querySelector(`[data-node="${this.chosen}"]`) ?? this.canvas.querySelector("button.box");
    if (first) first.tabIndex = 0;
  }

  expand(index) {
    const next = this.scope.near(index).filter((each) => !this.visible.has(each));
    for (const each of next.slice(0, STEP)) this.visible.add(each);
    this.redraw(index);
  }

  redraw(index) {
    if (this.visible.size > MOST) this.shrink(index);
    this.draw();
    this.choose(index);
    this.canvas.querySelector(`[data-node="${index}"]`)?.scrollIntoView({ block: "nearest", inline: "center" });
  }

  /** Keeps the nodes that are nearest to one, so that there are never more than can be read. */
  shrink(index) {
    const kept = new Set([index]);
    for (const each of kept) {
      for (const near of this.scope.near(each)) if (kept.size < MOST && this.visible.has(near)) kept.add(near);
      if (kept.size >= MOST) break;
    }
    this.visible = kept;
  }

  choose(index) {
    this.chosen = index;
    const node = this.scope.nodes[index];
    for (const each of this.canvas.querySelectorAll("button.box")) {
      const isIt = each.dataset.node === String(index);
      each.classList.toggle("chosen", isIt);
      each.setAttribute("aria-pressed", isIt);
      each.tabIndex = isIt ? 0 : -1;
    }
    const link = (each) => h("button", { type: "button", class: "link", onclick: () => this.jump(each) }, `${this.scope.nodes[each].op} ${short(this.scope.nodes[each].name, 60)}`);
    const some = (all) => (all.length ? [all.slice(0, 30).map((each) => h("li", {}, this.scope.nodes[each].isInline ? value(this.scope.nodes[each]) : link(each))), all.length > 30 ? h("li", {}, `and ${all.length - 30} more`) : null] : h("li", {}, "nothing"));
    fill(this.info,
      h("h3", {}, node.op, h("small", {}, node.name)),
      node.functions.length ? h("p", {}, node.functions.map((each) => h("button", { type: "button", class: "button", onclick: () => this.enter(each, this.scopes[each].name || "function") },
        `Open ${short(this.scopes[each].name || "function", 50)} · ${counted(this.scopes[each].nodes.length, "node")}`))) : null,
      node.attributes ? h("pre", { class: "block", tabindex: "0" }, node.attributes) : null,
      h("div", { class: "columns" },
        h("div", {}, h("h4", {}, "takes"), h("ul", {}, some(node.inputs))),
        node.after.length ? h("div", {}, h("h4", {}, "runs after"), h("ul", {}, some(node.after))) : null,
        h("div", {}, h("h4", {}, "is taken by"), h("ul", {}, some(node.uses)))));
  }

  jump(index) {
    if (!this.visible.has(index)) {
      this.visible.add(index);
      for (const each of this.scope.near(index).slice(0, STEP)) this.visible.add(each);
    }
    this.redraw(index);
  }

  find() {
    const wanted = this.search.value.toLowerCase();
    if (!this.stack?.length) return;
    if (!wanted) {
      fill(this.hits);
      return;
    }
    const found = [];
    let count = 0;
    for (const node of this.scope.nodes) {
      if (!node.op.toLowerCase().includes(wanted) && !node.name.toLowerCase().includes(wanted)) continue;
      count += 1;
      if (found.length < LISTED) found.push(node);
    }
    const shown = found.slice(0, 12);
    fill(this.hits, h("p", { class: "hint" }, count ? counted(count, "node") : "nothing found", count > shown.length ? `, the first ${shown.length}:` : ""),
      h("ul", {}, shown.map((node) => h("li", {}, h("button", { type: "button", class: "link", onclick: () => this.jump(node.index) }, `${node.op} ${short(node.name, 80)}`)))));
  }

  key(event) {
    const index = Number(document.activeElement?.dataset?.node);
    const node = this.scope?.nodes[index];
    if (!node) return;
    let next;
    if (event.key === "ArrowUp") next = [...node.inputs, ...node.after].find((each) => this.visible.has(each));
    else if (event.key === "ArrowDown") next = node.uses.find((each) => this.visible.has(each));
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const at = this.placed.nodes.find((each) => each.id === index);
      const sign = event.key === "ArrowRight" ? 1 : -1;
      const row = this.placed.nodes.filter((each) => each.node && Math.abs(each.y - at.y) < 12 && Math.sign(each.x - at.x) === sign);
      next = row.sort((one, two) => sign * (one.x - two.x))[0]?.id;
    } else if (event.key === "+") this.expand(index);
    else if (event.key === "-") this.scale(this.zoom / 1.2);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
    if (next !== undefined) this.canvas.querySelector(`[data-node="${next}"]`)?.focus();
  }
}

/** Returns the end of a text, which tells the names of arguments apart. */
function ending(text, longest) {
  return text.length <= longest ? text : `…${text.slice(text.length - longest + 1)}`;
}

function value(node) {
  const line = node.attributes.split("\n").find((each) => /^(value|literal) = /.test(each));
  return line ? line.replace(/^\w+ = /, "") : node.name;
}
