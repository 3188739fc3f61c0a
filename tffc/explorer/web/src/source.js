// The user's source: lines that calls come from, and lines that an error names.

import { h, fill } from "./dom.js";
import { python } from "./highlight.js";

export class SourcePanel {
  constructor(explorer) {
    this.explorer = explorer;
    this.files = explorer.data.sources;
    this.current = 0;
    this.byLine = new Map();
    for (const call of explorer.data.round?.calls ?? []) {
      if (!call.place) continue;
      const { file, line } = call.place;
      const key = `${file}:${line}`;
      if (!this.byLine.has(key)) this.byLine.set(key, []);
      this.byLine.get(key).push(call);
    }
    this.tabs = h("div", { class: "file-tabs" });
    this.body = h("div", { class: "lines", tabindex: "0", role: "group", "aria-label": "Source" });
    this.element = h("section", { class: "source", "aria-label": "Your source" }, this.tabs, this.body);
    const error = explorer.data.error;
    const first = error?.place ?? explorer.data.round?.calls.find((call) => call.place)?.place;
    this.open(first?.file ?? 0);
    this.first = first;
    requestAnimationFrame(() => this.home());
  }

  /** Shows the first line that calls come from. */
  home() {
    if (this.first?.file === this.current) this.scroll(this.first.line, true);
  }

  open(file) {
    this.current = file;
    const { files } = this;
    if (!files.length) {
      fill(this.tabs, h("span", { class: "file" }, "source"));
      fill(this.body, h("p", { class: "hint" },
        "A serialized program does not know the lines that it was written in. Explore the Python module to see them here."));
      return;
    }
    fill(
      this.tabs,
      files.map((each, index) =>
        files.length === 1
          ? h("span", { class: "file" }, each.path)
          : h("button", { type: "button", class: "file", "aria-pressed": index === file, onclick: () => this.open(index) }, each.path)),
    );
    const { lines } = files[file];
    if (!lines.length) {
      fill(this.body, h("p", { class: "hint" }, "This file cannot be read here."));
      return;
    }
    const digits = String(lines.length).length;
    const troubled = this.errorLines(file);
    fill(this.body, python(lines).map((parts, index) => this.line(index + 1, parts, digits, troubled)));
    this.mark();
  }

  errorLines(file) {
    const { error } = this.explorer.data;
    const found = new Map();
    for (const note of error?.notes ?? []) {
      if (note.place?.file === file) found.set(note.place.line, "because");
    }
    if (error?.place?.file === file) found.set(error.place.line, "wrong");
    return found;
  }

  line(number, parts, digits, troubled) {
    const calls = this.byLine.get(`${this.current}:${number}`);
    const shown = String(number).padStart(digits, " ");
    const stages = [...new Set((calls ?? []).map((call) => call.stage))];
    const head = calls
      ? h("button", {
          type: "button", class: "line-number",
          "aria-label": `Line ${number}: see what it became`,
        }, shown)
      : h("span", { class: "line-number" }, shown);
    const trouble = troubled.get(number);
    const element = h(
      "div",
      {
        class: `line ${calls ? "linked" : ""} ${trouble ?? ""}`, data: { line: number },
        onclick: calls ? () => this.explorer.select({ calls: calls.map((call) => call.name), line: { file: this.current, line: number } }) : null,
        onmouseenter: calls ? () => this.explorer.hover(calls.map((call) => call.name), false) : null,
        onmouseleave: calls ? () => this.explorer.hover([]) : null,
      },
      head,
      h("span", { class: "stripes", "aria-hidden": "true" }, stages.map((stage) => h("i", { class: `stripe ${stage}` }))),
      h("code", {}, parts.length ? parts : " "),
      trouble === "wrong" ? h("span", { class: "sr" }, " the error is here") : null,
    );
    return element;
  }

  /** Lights the lines of calls that are under the pointer or chosen. */
  mark(isFollowed = false) {
    const { round } = this.explorer.data;
    if (!round || !this.files.length) return;
    const lines = (names) => {
      const found = new Set();
      for (const name of names) {
        const { place } = this.explorer.call(name) ?? {};
        if (place?.file === this.current) for (let n = place.line; n <= place.end; n += 1) found.add(n);
      }
      return found;
    };
    const lit = lines(this.explorer.hovered);
    const chosen = lines(this.explorer.selected);
    for (const each of this.lit ?? []) each.classList.remove("lit", "chosen");
    this.lit = [];
    for (const [numbers, name] of [[lit, "lit"], [chosen, "chosen"]]) {
      for (const number of numbers) {
        const element = this.body.children[number - 1];
        element?.classList.add(name);
        if (element) this.lit.push(element);
      }
    }
    const first = Math.min(...(lit.size ? lit : chosen));
    if (isFollowed && Number.isFinite(first)) this.scroll(first);
  }

  /** Opens the file of a place and shows the line. */
  show(place) {
    if (place.file !== this.current) this.open(place.file);
    this.scroll(place.line);
    const element = this.body.children[place.line - 1];
    element?.classList.remove("flash");
    requestAnimationFrame(() => element?.classList.add("flash"));
  }

  scroll(line, isForced = false) {
    const element = this.body.children[line - 1];
    if (!element) return;
    const { body } = this;
    const top = element.offsetTop;
    if (isForced || top < body.scrollTop + 20 || top > body.scrollTop + body.clientHeight - 50) {
      body.scrollTop = Math.max(0, top - body.clientHeight / 3);
    }
  }
}
