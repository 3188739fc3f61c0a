// The picture of a round: stages from left to right, calls as boxes, values as edges.

import { bytes, counted, exactBytes, fill, h, s, short } from "./dom.js";
import { arrow, line, place } from "./layout.js";
import { width, wrapped } from "./measure.js";

const MOST = 60; // boxes that are shown before calls are folded
const BESIDE = 3; // boxes of a stage that fit beside each other on a phone
const GROUP = 30; // calls of one fold that are opened at once
const SIZES = { title: "650 13px", small: "11px", badge: "600 11px" }; // of texts in the picture
const WIDEST = { title: 150, small: 132, label: 96 }; // of their lines, before they are broken
const NARROW = { title: 98, small: 92, label: 78 }; // the same on a phone
const LINE = 13; // from line to line of a label
const LEAST = 0.9; // the smallest scale that a picture is fitted to, so that labels can be read
const HEAD = 24; // the height of the name of a stage, where stages follow downwards

export const PROTECTION = {
  secure: { mark: "●", word: "secure sum", brief: "secure sum" },
  system: { mark: "◐", word: "plain, by the system", brief: "by the system" },
  program: { mark: "◔", word: "plain, by the program", brief: "by the program" },
  none: { mark: "○", word: "released by itself", brief: "by itself" },
};
const SERVER_STAGES = new Set(["prepare", "result"]);

export function shownOperator(call) {
  const name = call.operator.replace(/^federated_/, "");
  return call.function && call.function !== call.title ? `${name} ${call.function}` : name;
}

/** Returns the boxes of a round; calls are folded where there are many, or the screen is narrow. */
function boxes(round, open, isNarrow) {
  const calls = round.calls.filter((call) => !call.plumbing);
  const all = calls.length <= MOST;
  const found = [];
  const fold = (key, title, members) => {
    if (members.length === 1 || open.has(key)) {
      if (members.length <= GROUP) for (const each of members) found.push({ call: each });
      else
        for (let start = 0; start < members.length; start += GROUP) {
          const part = members.slice(start, start + GROUP);
          fold(`${key}/${start}`, `${title} ${start + 1}–${start + part.length}`, part);
        }
    } else found.push({ key, title, members });
  };
  for (const { key: stage } of round.stages) {
    const own = calls.filter((call) => call.stage === stage);
    if (all && isNarrow && own.length > BESIDE) {
      for (const [key, members] of grouped(own, (call) => call.protection ?? call.operator)) {
        fold(`${stage} ${key}`, PROTECTION[key]?.brief ?? key.replace(/^federated_/, ""), members);
      }
    } else if (all) for (const call of own) found.push({ call });
    else
      for (const [key, members] of grouped(own)) {
        fold(`${stage} ${key}`, members[0].operator.replace(/^federated_/, ""), members);
      }
  }
  return found;
}

/** Groups calls by operator and line, or by operator alone where that leaves many. */
function grouped(calls, alone = null) {
  const by = (key) => {
    const groups = new Map();
    for (const call of calls) {
      const name = key(call);
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(call);
    }
    return groups;
  };
  if (alone) return by(alone);
  const fine = by((call) => `${call.operator} ${call.place?.file} ${call.place?.line}`);
  return fine.size <= 12 ? fine : by((call) => call.operator);
}

export class RoundPicture {
  constructor(explorer) {
    this.explorer = explorer;
    this.round = explorer.data.round;
    this.open = new Set();
    this.zoom = null;
    this.canvas = h("div", { class: "canvas", tabindex: "0", role: "group", "aria-label": "The round, from left to right" });
    this.element = h("div", { class: "picture" }, this.toolbar(), this.canvas, this.legend());
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.calls = new Map(this.round.calls.map((call) => [call.name, call]));
    this.draw();
  }

  toolbar() {
    const button = (label, text, action) =>
      h("button", { type: "button", class: "small", "aria-label": label, title: label, onclick: action }, text);
    this.foldButton = h("button", { type: "button", class: "small", hidden: true, onclick: () => this.foldAll() }, "Fold again");
    return h(
      "div",
      { class: "toolbar", role: "toolbar", "aria-label": "Picture" },
      this.foldButton,
      this.wideButton(),
      button("Smaller", "−", () => this.scale(this.zoom / 1.2)),
      button("Larger", "+", () => this.scale(this.zoom * 1.2)),
      button("Fit the width", "Fit", () => this.fit()),
    );
  }

  /** Returns the button that gives the picture all of the width, with the source below. */
  wideButton() {
    const button = h("button", { type: "button", class: "small for-desks", "aria-pressed": "false", onclick: () => {
      this.isWhole = document.querySelector(".workbench").classList.toggle("whole");
      button.setAttribute("aria-pressed", this.isWhole);
      this.fit();
    } }, "Whole width");
    this.wide = button;
    return button;
  }

  legend() {
    const used = new Set([...this.round.calls, ...this.round.outputs].map((each) => each.protection));
    const entries = Object.entries(this.round.protections).filter(([name]) => used.has(name));
    if (!entries.length) return null;
    return h(
      "dl",
      { class: "legend", "aria-label": "How what leaves the clients is protected" },
      entries.map(([name, { title, means }]) =>
        h("div", {}, h("dt", { class: `protection ${name}` }, `${PROTECTION[name].mark} ${title}`), h("dd", {}, means)),
      ),
    );
  }

  foldAll() {
    this.open.clear();
    this.draw();
  }

  /** Opens the folds that calls are in, so that they are boxes of their own. */
  reveal(names) {
    for (let tries = 0; tries < 4; tries += 1) {
      const folded = this.boxes.filter((box) => box.members?.some((call) => names.has(call.name)));
      if (!folded.length || names.size > 12) return;
      for (const box of folded) this.open.add(box.key);
      this.draw();
    }
  }

  draw() {
    const { round } = this;
    this.isRight = window.innerWidth >= 720;
    this.widest = this.isRight ? WIDEST : NARROW;
    this.boxes = boxes(round, this.open, !this.isRight);
    this.foldButton.hidden = !this.open.size;
    const home = new Map();
    for (const box of this.boxes) {
      box.id = box.call ? box.call.name : `fold ${box.key}`;
      for (const call of box.members ?? [box.call]) home.set(call.name, box.id);
    }
    const nodes = this.nodes();
    const edges = this.edges(home, new Set(nodes.map((node) => node.id)));
    this.rank(nodes, edges);
    const columns = Math.max(...nodes.map((node) => node.rank)) + 1;
    const ranksep = columns > 7 ? 28 : columns > 5 ? 36 : 64;
    const options = this.isRight ? { ranksep, nodesep: 22 } : { direction: "TB", ranksep: 34, nodesep: 10 };
    let placed = place(nodes, edges, options);
    if (placed.width * LEAST > window.innerWidth - 44) {
      // The box that an edge leaves names what all of its value is.
      for (const edge of edges) if (edge.parts.every((part) => !part.path) && !edge.protection) edge.label = null;
      placed = place(nodes, edges, options);
    }
    this.home = home;
    this.show(placed);
  }

  nodes() {
    const { round } = this;
    const [state, data] = round.inputs;
    const pill = (value, id, stage, kind) =>
      sized({ id, stage, kind, value, title: [value.title], lines: [value.where ?? "", size(value.bytes)].filter(Boolean), data: id === "data" ? listedLines(dataNames, this.widest.small, 3) : [] }, 28);
    const dataNames = [...new Set(round.edges.filter((edge) => edge.from === "data").flatMap((edge) => edge.parts.flatMap((part) => part.data)))];
    const made = [];
    if (!empty(state)) made.push(pill(state, "state", "prepare", "input"));
    made.push(pill(data, "data", "work", "input"));
    for (const box of this.boxes) {
      const call = box.call ?? box.members[0];
      const title = box.call ? call.title.replace(/^federated_/, "") : `${box.members.length} × ${box.title}`;
      const sub = box.call ? shownOperator(call) : "open";
      const names = [...new Set((box.members ?? [call]).flatMap(dataOf))];
      made.push(sized({
        id: box.id, box, stage: call.stage, kind: box.call ? "call" : "fold", protection: call.protection,
        title: wrapped(title, this.widest.title, SIZES.title, 3), lines: wrapped(sub, this.widest.small, SIZES.small, 2),
        data: listedLines(names, this.widest.small, 3),
        badge: call.protection ? `${PROTECTION[call.protection].mark} ${this.isRight ? PROTECTION[call.protection].word : PROTECTION[call.protection].brief}` : "",
      }, 22));
    }
    for (const output of round.outputs) {
      if (empty(output)) continue;
      made.push({ ...pill(output, output.name, output.stage, "output"), protection: output.protection });
    }
    for (const { key } of round.stages) {
      if (made.some((node) => node.stage === key)) continue;
      made.push({ id: `nothing ${key}`, stage: key, kind: "nothing", width: 92, height: 30 });
    }
    return made;
  }

  edges(home, there) {
    const found = new Map();
    for (const edge of this.round.edges) {
      const from = home.get(edge.from) ?? edge.from;
      const to = home.get(edge.to) ?? edge.to;
      if (from === to || !there.has(from) || !there.has(to)) continue;
      const key = JSON.stringify([from, to]);
      if (!found.has(key)) found.set(key, { from, to, parts: [], wires: 0 });
      const one = found.get(key);
      one.parts.push(...edge.parts);
      one.wires += 1;
      // A zero or a bound is the server's; what clients give has no role, or is a weight.
      const isGiven = edge.parts.some((part) => part.role === "" || part.role === "weight");
      if (isGiven) one.protection ??= this.calls.get(edge.to)?.protection;
    }
    for (const edge of found.values()) edge.label = label(edge, this.widest.label);
    return [...found.values()];
  }

  /** Gives boxes their columns: those of a stage follow those of the stage before. */
  rank(nodes, edges) {
    const order = new Map(this.round.stages.map(({ key }, index) => [key, index]));
    const at = new Map(nodes.map((node) => [node.id, node]));
    const into = new Map();
    for (const edge of edges) {
      if (!into.has(edge.to)) into.set(edge.to, []);
      into.get(edge.to).push(edge.from);
    }
    const depth = new Map();
    for (const node of [...nodes].sort((one, two) => order.get(one.stage) - order.get(two.stage))) {
      const before = (into.get(node.id) ?? []).filter((id) => at.get(id).stage === node.stage && depth.has(id));
      depth.set(node.id, Math.max(-1, ...before.map((id) => depth.get(id))) + 1);
    }
    for (const node of nodes) {
      if (node.kind !== "output") continue;
      const own = nodes.filter((each) => each.stage === node.stage && each.kind !== "output");
      depth.set(node.id, Math.max(-1, ...own.map((each) => depth.get(each.id))) + 1);
    }
    let offset = 0;
    for (const { key } of this.round.stages) {
      const own = nodes.filter((node) => node.stage === key);
      for (const node of own) node.rank = offset + depth.get(node.id);
      offset += Math.max(...own.map((node) => depth.get(node.id))) + 1;
    }
  }

  show(placed) {
    const { marker, url } = arrow();
    const spans = this.spans(placed);
    if (!this.isRight) this.moveDown(placed, spans);
    this.placed = placed;
    this.at = new Map(placed.nodes.map((node) => [node.id, node]));
    const lines = placed.edges.map((edge) => this.edge(edge, url));
    this.lines = lines;
    const head = this.isRight ? 52 : 0;
    this.size = { width: placed.width, height: placed.height + head };
    const drawing = s(
      "svg",
      { width: placed.width, height: placed.height, class: "edges", "aria-hidden": "true" },
      s("defs", {}, marker),
      lines.map((each) => each.group),
      lines.map((each) => each.label),
    );
    const buttons = placed.nodes.map((node) => this.button(node));
    const world = h("div", { class: "world", style: { top: `${head}px` } }, drawing, buttons);
    this.world = world;
    this.stage = h("div", { class: "stage" }, this.bands(spans), world, this.heads(spans));
    Object.assign(this.stage.style, { width: `${this.size.width}px`, height: `${this.size.height}px` });
    this.frame = h("div", { class: "frame" }, this.stage);
    fill(this.canvas, this.frame);
    if (this.zoom === null) requestAnimationFrame(() => this.settle());
    else this.scale(this.zoom);
    this.mark();
  }

  /** Returns where each stage begins and ends: before its first column, with that of its labels. */
  spans(placed) {
    const { isRight } = this;
    const gap = 8;
    const low = (node) => (isRight ? node.x - node.width / 2 : node.y - node.height / 2);
    const starts = this.round.stages.map(({ key }, index) => {
      const own = placed.nodes.filter((node) => node.stage === key);
      const first = own.filter((node) => node.rank === Math.min(...own.map((each) => each.rank)));
      return index ? Math.min(...first.map(low)) - gap : 0;
    });
    const end = isRight ? placed.width : placed.height;
    return this.round.stages.map((stage, index) => ({ stage, start: starts[index], stop: starts[index + 1] ?? end }));
  }

  /** Makes room for the name of each stage above its first row. */
  moveDown(placed, spans) {
    const down = (y) => y + HEAD * spans.filter(({ start }) => start <= y).length;
    for (const node of placed.nodes) node.y = down(node.y);
    for (const edge of placed.edges) {
      for (const point of [edge.start, edge.end, ...edge.points]) point.y = down(point.y);
      if (edge.corner) edge.corner.y = down(edge.corner.y);
    }
    placed.height = down(placed.height);
    spans.forEach((span, index) => {
      span.start += HEAD * index;
      span.stop += HEAD * (index + 1);
    });
  }

  bands(spans) {
    return spans.map(({ stage, start, stop }) => {
      const style = this.isRight
        ? { left: `${start}px`, width: `${stop - start}px`, top: "0", height: `${this.size.height}px` }
        : { top: `${start}px`, height: `${stop - start}px`, left: "0", width: "100%" };
      return h("div", { class: `band ${sideOf(stage)}`, style });
    });
  }

  /** Returns the names of the stages, which stand over the edges. */
  heads(spans) {
    return spans.map(({ stage, start, stop }, index) =>
      h("div", { class: `band-head ${sideOf(stage)}`, style: this.isRight ? { left: `${start}px`, width: `${stop - start}px`, top: "0" } : { top: `${start}px`, left: "0" } },
        h("strong", {}, `${index + 1} ${stage.title}`), " ", h("span", {}, stage.where)));
  }

  edge(edge, url) {
    const target = this.at.get(edge.to);
    const { corner } = edge;
    const whole = edge.parts.slice(0, 12).map((part) =>
      `${part.path || "all"}${part.role ? ` as ${part.role}` : ""}: ${short(part.type, 300)}, ${exactBytes(part.bytes)}\n${part.data.slice(0, 40).join(", ")}`);
    const path = s("path", { d: line(edge, this.isRight), "marker-end": url });
    const group = s("g", { class: `edge ${target.protection && edge.protection ? `protected ${edge.protection}` : ""}` }, path);
    const x = corner && corner.x + edge.label.width / 2;
    const label = corner
      ? s(
          "text",
          { class: "edge-label", x, y: corner.y },
          s("title", {}, whole.join("\n")),
          edge.label.lines.map(({ text, kind }) => s("tspan", { x, dy: LINE, class: kind }, text)),
        )
      : null;
    return { edge, group, label };
  }

  button(node) {
    const style = {
      left: `${node.x - node.width / 2}px`, top: `${node.y - node.height / 2}px`,
      width: `${node.width}px`, height: `${node.height}px`,
    };
    if (node.kind === "nothing") return h("div", { class: "box nothing", style }, "nothing");
    const value = node.value ?? node.box.call;
    const where = this.round.stages.find(({ key }) => key === node.stage);
    const said = [
      "", `in ${where.title}, ${where.where}`,
      value ? `${value.type && short(value.type, 200)}, ${bytes(value.bytes)}` : "",
      node.box?.call?.place ? `line ${node.box.call.place.line}` : "",
    ].filter((each, index) => each || !index);
    const element = h(
      "button",
      {
        type: "button", class: `box ${node.kind} ${node.protection ? `protected ${node.protection}` : ""}`, style,
        data: { id: node.id }, tabindex: "-1",
        onclick: () => this.choose(node), onfocus: () => this.hover(node),
        onmouseenter: () => this.hover(node), onmouseleave: () => this.hover(null),
      },
      h("span", { class: "box-title" }, node.title.map((text, index) => (index ? [h("br"), text] : text))), " ",
      node.lines.map((text) => [h("span", { class: "box-sub" }, text), " "]),
      node.data?.map((text) => [h("span", { class: "box-data" }, text), " "]),
      node.badge ? h("span", { class: "badge" }, node.badge) : null,
      h("span", { class: "sr" }, said.join(", ")),
    );
    return element;
  }

  names(node) {
    if (!node) return [];
    if (node.box) return (node.box.members ?? [node.box.call]).map((call) => call.name);
    return [node.id];
  }

  choose(node) {
    if (node.kind === "fold") {
      this.open.add(node.box.key);
      this.draw();
      this.element.querySelector(`[data-id="${CSS.escape(node.box.members[0].name)}"]`)?.focus();
      return;
    }
    this.explorer.select({ calls: this.names(node) });
  }

  hover(node) {
    this.explorer.hover(this.names(node));
    const id = node?.id;
    for (const { edge, group, label } of this.lines) {
      const lit = id !== undefined && (edge.from === id || edge.to === id);
      group.classList.toggle("lit", lit);
      label?.classList.toggle("lit", lit);
    }
  }

  /** Shows which boxes are chosen, and which a line under the pointer is of. */
  mark() {
    const chosen = new Set([...this.explorer.selected].map((name) => this.home.get(name) ?? name));
    const hovered = new Set([...this.explorer.hovered].map((name) => this.home.get(name) ?? name));
    const buttons = [...this.canvas.querySelectorAll("button.box")];
    for (const each of buttons) {
      each.classList.toggle("chosen", chosen.has(each.dataset.id));
      each.classList.toggle("hovered", hovered.has(each.dataset.id));
      each.setAttribute("aria-pressed", chosen.has(each.dataset.id));
      each.tabIndex = -1;
    }
    const entry = buttons.find((each) => chosen.has(each.dataset.id)) ?? buttons[0];
    if (entry) entry.tabIndex = 0;
  }

  show_in_view(id) {
    const box = this.canvas.querySelector(`[data-id="${CSS.escape(this.home.get(id) ?? id)}"]`);
    box?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  key(event) {
    const id = document.activeElement?.dataset?.id;
    const node = id && this.at.get(id);
    const moves = this.isRight
      ? { ArrowRight: "out", ArrowLeft: "in", ArrowUp: -1, ArrowDown: 1 }
      : { ArrowDown: "out", ArrowUp: "in", ArrowLeft: -1, ArrowRight: 1 };
    const move = moves[event.key];
    if (event.key === "+" || event.key === "=") this.scale(this.zoom * 1.2);
    else if (event.key === "-") this.scale(this.zoom / 1.2);
    else if (event.key === "0") this.fit();
    else if (move !== undefined && node) {
      const along = this.isRight ? "y" : "x";
      const nodes = [...this.at.values()].filter((each) => each.kind !== "nothing");
      let next;
      if (move === "out" || move === "in") {
        const ids = this.placed.edges
          .filter((edge) => (move === "out" ? edge.from : edge.to) === id)
          .map((edge) => (move === "out" ? edge.to : edge.from));
        next = nodes.filter((each) => ids.includes(each.id));
        next.sort((one, two) => Math.abs(one[along] - node[along]) - Math.abs(two[along] - node[along]));
      } else {
        next = nodes.filter((each) => each.rank === node.rank && Math.sign(each[along] - node[along]) === move);
        next.sort((one, two) => move * (one[along] - two[along]));
      }
      if (!next.length) return;
      this.canvas.querySelector(`[data-id="${CSS.escape(next[0].id)}"]`).focus();
    } else return;
    event.preventDefault();
  }

  /** Gives the picture all of the width where it would be small beside the source. */
  settle() {
    const bench = document.querySelector(".workbench");
    if (bench && this.isWhole === undefined) {
      bench.classList.remove("whole");
      bench.classList.toggle("whole", this.size.width * LEAST > this.canvas.clientWidth);
      if (!this.explorer.selected.size) this.explorer.source.home();
      this.wide.setAttribute("aria-pressed", bench.classList.contains("whole"));
    }
    this.fit();
  }

  fit() {
    const room = this.canvas.clientWidth - 2;
    this.scale(room > 0 ? Math.min(1.25, room / this.size.width) : 1, true);
  }

  scale(zoom, isFit = false) {
    this.zoom = Math.min(2.5, Math.max(isFit ? LEAST : 0.2, zoom));
    const spare = Math.max(0, (this.canvas.clientWidth - 2) / this.zoom - this.size.width);
    const whole = this.isRight ? this.size.width : this.size.width + spare;
    this.world.style.left = `${(whole - this.size.width) / 2}px`;
    this.stage.style.width = `${whole}px`;
    this.stage.style.transform = `scale(${this.zoom})`;
    this.frame.style.width = `${whole * this.zoom}px`;
    this.frame.style.height = `${this.size.height * this.zoom}px`;
  }

  resized() {
    if (this.isRight === (window.innerWidth >= 720)) this.settle();
    else {
      this.zoom = null;
      this.draw();
    }
  }
}

function sideOf({ key }) {
  return SERVER_STAGES.has(key) ? "server" : key === "work" ? "clients" : "between";
}

function empty(value) {
  return value.type === "<>";
}

function size(count) {
  return count === null || count === undefined ? "any size" : bytes(count);
}

/** Returns a box with its size, for the texts in it. */
function sized(node, padding) {
  const { title, lines, data = [], badge = "" } = node;
  const widths = [
    ...title.map((text) => width(text, SIZES.title)),
    ...[...lines, ...data].map((text) => width(text, SIZES.small)),
    width(badge, SIZES.badge),
  ];
  const height = 12 + title.length * 17 + (lines.length + data.length + (badge ? 1 : 0)) * 15;
  return { ...node, width: Math.ceil(Math.max(70, ...widths)) + padding, height };
}

/** Returns the elements of the clients' data that a call takes or gives. */
export function dataOf(call) {
  return call.data;
}

/** Returns names as lines, each whole where it fits, and how many more there are. */
function listedLines(names, widest, most) {
  const lines = [];
  for (const [index, name] of names.entries()) {
    const text = index + 1 < names.length ? `${name},` : name;
    const joined = lines.length ? `${lines.at(-1)} ${text}` : text;
    const next = lines.length && width(joined, SIZES.small) <= widest
      ? [...lines.slice(0, -1), joined]
      : [...lines, ...wrapped(text, widest, SIZES.small, most)];
    const left = names.length - index;
    if (next.length > most || (next.length === most && left > 1 && !fits(names.slice(index + 1), next.at(-1), widest))) {
      if (lines.length) return [...lines.slice(0, most - 1), `and ${left} more`];
      return left > 1 ? [...wrapped(name, widest, SIZES.small, most - 1), `and ${left - 1} more`] : next.slice(0, most);
    }
    lines.splice(0, lines.length, ...next);
  }
  return lines;
}

function fits(names, last, widest) {
  return width(`${last} ${names.join(", ")}`, SIZES.small) <= widest;
}

/** Returns the label of an edge: the data that flows, and its type and size. */
function label(edge, widest) {
  const names = edge.wires > 1 ? [`${edge.wires} values`] : [...new Set(edge.parts.flatMap((part) => part.data))];
  const sizes = edge.parts.map((part) => part.bytes);
  const many = size(sizes.includes(null) ? null : sizes.reduce((sum, each) => sum + each, 0));
  const brief = edge.wires > 1 || edge.parts.length > 1 ? "" : edge.parts[0].brief;
  const both = brief && `${brief} · ${many}`;
  const last = both && width(both, SIZES.small) <= widest ? both : many;
  const lines = [
    ...listedLines(names, widest, 4).map((text) => ({ text, kind: "" })),
    { text: last, kind: "size" },
  ];
  const longest = Math.max(...lines.map(({ text }) => width(text, SIZES.small)));
  return { lines, width: Math.ceil(longest) + 8, height: lines.length * LINE + 6 };
}

/** Returns what leaves the clients and what they are sent, in words. */
export function summary(explorer) {
  const { round } = explorer.data;
  const leaving = round.calls.filter((call) => call.protection);
  const sent = round.calls.filter((call) => call.operator === "federated_broadcast" || call.stage === "broadcast");
  const names = (calls) => {
    const all = [...new Set(calls.flatMap(dataOf))];
    return all.length > 3 ? `${all.slice(0, 2).join(", ")} and ${all.length - 2} more` : all.join(", ") || "constant";
  };
  const chip = (calls, text, kind) =>
    h("button", { type: "button", class: `chip ${kind ? `protection ${kind}` : ""}`,
      onclick: () => explorer.select({ calls: calls.map((call) => call.name), show: true }) },
      kind ? `${PROTECTION[kind].mark} ${text} · ${PROTECTION[kind].word}` : text);
  const released = round.outputs.filter((output) => output.protection);
  return h(
    "div",
    { class: "summary" },
    h("div", {}, h("span", { class: "summary-label" }, "To each client"), h("div", {},
      sent.length ? sent.slice(0, 12).map((call) => chip([call], `${call.title} · ${names([call])} · ${size(call.bytes)}`)) : "nothing",
      sent.length > 12 ? ` and ${counted(sent.length - 12, "more value")}` : null)),
    h("div", {}, h("span", { class: "summary-label" }, "From each client"), h("div", {},
      leaving.length <= 8
        ? leaving.map((call) => chip([call], `${call.title} · ${names([call])} · ${size(call.gives)}`, call.protection))
        : Object.keys(PROTECTION).reverse().map((kind) => {
            const own = leaving.filter((call) => call.protection === kind);
            const total = own.some((call) => call.gives === null) ? null : own.reduce((sum, call) => sum + call.gives, 0);
            return own.length ? chip(own, `${counted(own.length, "value")} · ${names(own)} · ${size(total)}`, kind) : null;
          }),
      released.map((output) => chip([output], `${output.title} stays with each client`, output.protection)),
      leaving.length || released.length ? null : "nothing")),
  );
}
