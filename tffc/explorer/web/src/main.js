// The explorer of a round: reads what the page holds, and shows it.

import { auditTab, unproved } from "./audit.js";
import { Details } from "./details.js";
import { arrows, counted, fill, h } from "./dom.js";
import { GraphsTab } from "./graphs.js";
import { RoundPicture, summary } from "./round.js";
import { SourcePanel } from "./source.js";
import { PassesTab, TextTab, changes } from "./texts.js";

class Explorer {
  constructor(data) {
    this.data = data;
    this.selected = new Set();
    this.hovered = new Set();
    this.calls = new Map((data.round?.calls ?? []).map((call) => [call.name, call]));
  }

  call(name) {
    return this.calls.get(name);
  }

  title(name) {
    const { inputs, outputs } = this.data.round;
    return this.call(name)?.title ?? [...inputs, ...outputs].find((each) => each.name === name)?.title ?? name;
  }

  start() {
    const { data } = this;
    this.source = new SourcePanel(this);
    this.details = data.round ? new Details(this) : null;
    this.picture = data.round ? new RoundPicture(this) : null;
    this.graphs = data.components ? new GraphsTab(this) : null;
    this.text = new TextTab(this);
    const tabs = [
      ["round", "Round", this.round(), null],
      data.passes.length ? ["passes", "Passes", (this.passes = new PassesTab(this)).element, this.passes] : null,
      this.graphs ? ["graphs", "Graphs", this.graphs.element, this.graphs] : null,
      data.texts.length ? ["text", "Text", this.text.element, this.text] : null,
      data.report ? ["audit", "Audit", auditTab(this), null] : null,
      data.changes ? ["changes", "Changes", h("div", { class: "changed" }, changes(this)), null] : null,
    ].filter(Boolean);
    document.body.append(
      h("a", { class: "skip", href: "#main" }, "Skip to the round"),
      this.header(),
      this.tabs(tabs),
      h("main", { id: "main", tabindex: "-1" }, tabs.map(([key, title, content]) =>
        h("section", { id: `panel-${key}`, class: `panel ${key}`, role: "tabpanel", "aria-labelledby": `tab-${key}`, hidden: key !== "round" },
          h("h2", { class: "print-title" }, title), content))),
      this.help(),
    );
    this.graphs?.readAhead();
    this.panels = new Map(tabs.map(([key, , , panel]) => [key, panel]));
    document.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("resize", () => this.picture?.resized());
    window.addEventListener("beforeprint", () => this.picture?.fit());
    const wanted = location.hash.slice(1);
    if (this.panels.has(wanted)) this.open(wanted);
  }

  header() {
    const { data } = this;
    const [file, name] = split(data.title);
    return h("header", { class: "top" },
      h("div", { class: "brand" }, "tffc"),
      h("h1", {}, name ?? file, name ? h("small", {}, file) : null),
      data.form ? h("span", { class: "tag" }, data.form) : null,
      h("div", { class: "spacer" }),
      h("button", { type: "button", class: "small", "aria-label": "Keys", title: "Keys (?)", onclick: () => this.dialog.showModal() }, "?"),
      this.themeButton());
  }

  themeButton() {
    const order = { auto: "light", light: "dark", dark: "auto" };
    let now = "auto";
    const button = h("button", { type: "button", class: "small", onclick: () => {
      now = order[now];
      document.documentElement.dataset.theme = now;
      button.textContent = `Theme: ${now}`;
    } }, "Theme: auto");
    return button;
  }

  tabs(tabs) {
    const list = h("div", { class: "tabs", role: "tablist", "aria-label": "Views of the round" }, tabs.map(([key, title], index) =>
      h("button", { type: "button", id: `tab-${key}`, role: "tab", "aria-selected": index === 0, "aria-controls": `panel-${key}`,
        tabindex: index ? "-1" : "0", onclick: () => this.open(key) }, title,
      key === "changes" ? h("span", { class: "count" }, String(this.data.changes.breaking.length)) : null)));
    arrows(list, '[role="tab"]', "ArrowRight", "ArrowLeft");
    this.tabList = list;
    return h("nav", { "aria-label": "Views" }, list);
  }

  open(key) {
    for (const tab of this.tabList.children) {
      const isIt = tab.id === `tab-${key}`;
      tab.setAttribute("aria-selected", isIt);
      tab.tabIndex = isIt ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = !isIt;
    }
    this.panels.get(key)?.shown();
    if (key === "round") this.picture?.resized();
  }

  round() {
    const { data } = this;
    const left = data.round
      ? [unproved(data.report), this.verdict(), summary(this), this.picture.element, this.details.element]
      : h("p", { class: "hint" }, "There is no picture of a program that cannot be compiled.");
    return h("div", { class: "workbench" },
      h("div", { class: "left" }, data.error ? this.error(data.error) : null, left),
      this.source.element);
  }

  /** Returns the verdict of the policy in a line that leads to it, or null. */
  verdict() {
    const { report } = this.data;
    if (!report?.policy) return null;
    const [kind, mark] = report.verdict.word === "passes" ? ["good", "\u2713"] : ["bad", "\u2715"];
    return h("div", { class: "judged" }, h("button", { type: "button", class: `state ${kind}`, onclick: () => this.open("audit") },
      `${mark} ${report.verdict.text}`));
  }

  error(error) {
    const link = (place) => h("button", { type: "button", class: "link", onclick: () => this.source.show(place) }, this.placeText(place));
    return h("section", { class: "callout error", role: "alert", "aria-label": "Error" },
      h("h2", {}, `This program is refused`, h("small", {}, error.code)),
      h("p", {}, ticks(error.message)),
      error.place ? h("p", {}, "at ", link(error.place)) : null,
      error.notes.length ? h("ol", { class: "chain" }, error.notes.map((note) =>
        h("li", {}, ticks(note.text), note.place ? [" at ", link(note.place)] : null))) : null,
      error.help ? h("p", {}, h("strong", {}, "What to do: "), ticks(error.help)) : null,
      h("p", { class: "hint" }, "More about it: ", h("code", {}, `tffc explain ${error.code}`)));
  }

  placeText(place) {
    return `${this.data.sources[place.file]?.path ?? ""}:${place.line}`;
  }

  placeLink({ file, line }) {
    const index = this.data.sources.findIndex((each) => each.path === file);
    // Two files outside the working directory may have one name.
    const isUnclear = this.data.sources.findLastIndex((each) => each.path === file) !== index;
    if (index < 0 || isUnclear) return `${file}:${line}`;
    return h("button", { type: "button", class: "link", onclick: () => this.showLine({ file: index, line, end: line }) }, `${file}:${line}`);
  }

  placeButton(place) {
    return h("button", { type: "button", class: "link", onclick: () => this.showLine(place) }, `line ${place.line}`);
  }

  /** Chooses calls; `line` says that a line of the source was, and `show` that it is scrolled to. */
  select({ calls, line = null, show = false }) {
    this.selected = new Set(calls);
    if (this.picture) {
      if (!document.getElementById("panel-round").hidden || show) this.picture.reveal(this.selected);
      this.picture.mark();
      if (show || line) this.picture.show_in_view(calls.find((name) => !this.call(name)?.plumbing) ?? calls[0]);
    }
    this.source.mark(!line);
    this.details?.show(calls, line);
  }

  /** Lights what calls are; the source follows, unless the pointer is over it. */
  hover(names, isFollowed = true) {
    this.hovered = new Set(names);
    this.picture?.mark();
    this.source.mark(isFollowed && names.length > 0);
  }

  showLine(place) {
    this.open("round");
    this.source.show(place);
  }

  showText(name) {
    this.open("text");
    this.text.reveal(name);
  }

  showGraph(number, title) {
    this.open("graphs");
    this.graphs.open(number, title);
  }

  graphSize(number) {
    return this.graphs.size(number);
  }

  help() {
    const keys = [["Tab", "to the next part"], ["← → ↑ ↓", "from box to box, along edges, and from view to view"], ["Enter", "chooses a box, a line, a fold"],
      ["1 … 6", "views"], ["/", "search"], ["+ − 0", "larger, smaller, fit"], ["Esc", "chooses nothing"], ["?", "these keys"]];
    this.dialog = h("dialog", { "aria-label": "Keys" }, h("h2", {}, "Keys"),
      h("dl", { class: "keys" }, keys.map(([key, does]) => h("div", {}, h("dt", {}, h("kbd", {}, key)), h("dd", {}, does)))),
      h("form", { method: "dialog" }, h("button", { class: "button" }, "Close")),
      h("p", { class: "hint" }, `Made by tffc ${this.data.tffc}. The picture is laid out by dagre (MIT).`));
    return this.dialog;
  }

  key(event) {
    const target = event.target;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (target.matches("input, select, textarea")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if (event.key === "?") this.dialog.showModal();
    else if (event.key === "Escape") this.select({ calls: [] });
    else if (event.key === "/") {
      let field = document.querySelector(".panel:not([hidden]) input[type=search]");
      if (!field && this.panels.has("text")) {
        this.open("text");
        field = this.text.search;
      }
      field?.focus();
      event.preventDefault();
    } else if (/^[1-9]$/.test(event.key)) this.tabList.children[Number(event.key) - 1]?.click();
  }
}

function split(title) {
  const at = title.lastIndexOf(":");
  return at > 0 ? [title.slice(0, at), title.slice(at + 1)] : [title];
}

/** Shows what stands between backticks as code. */
function ticks(text) {
  return text.split("`").map((part, index) => (index % 2 ? h("code", {}, part) : part));
}

const explorer = new Explorer(JSON.parse(document.getElementById("description").textContent));
explorer.start();
