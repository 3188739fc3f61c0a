// The text of the program at every step, with search, and what each pass changed in it.

import { code, counted, fill, h } from "./dom.js";
import { notation, python } from "./highlight.js";

const CHUNK = 50; // lines that are made together, when they come into view
const MOST_HITS = 2000;

/** Lines of a text, of which those are made that come into view. */
class LazyLines {
  constructor(makers) {
    this.rows = new Array(makers.length);
    this.makers = makers;
    const watcher = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        watcher.unobserve(target);
        this.make(this.chunks.indexOf(target));
      }
    }, { rootMargin: "300px" });
    this.chunks = [];
    for (let start = 0; start < makers.length; start += CHUNK) {
      const height = Math.min(CHUNK, makers.length - start) * 20;
      const chunk = h("div", { style: { minHeight: `${height}px` } });
      watcher.observe(chunk);
      this.chunks.push(chunk);
    }
  }

  make(number) {
    const chunk = this.chunks[number];
    if (chunk.firstChild) return;
    const start = number * CHUNK;
    const rows = this.makers.slice(start, start + CHUNK).map((make) => make());
    rows.forEach((row, index) => (this.rows[start + index] = row));
    chunk.style.minHeight = "";
    fill(chunk, rows);
  }

  row(index) {
    this.make(Math.floor(index / CHUNK));
    return this.rows[index];
  }
}

export class TextTab {
  constructor(explorer) {
    this.explorer = explorer;
    const { data } = explorer;
    this.texts = data.texts.map((text) => ({ ...text, isProgram: true }));
    for (const component of data.components ?? []) {
      if (component.text) this.texts.push({ title: component.name, typed: component.text, formatted: component.text });
    }
    this.current = this.texts.length ? data.texts.length - 1 : 0;
    this.style = "formatted";
    this.stage = "all";
    this.picker = h("select", { "aria-label": "Which text", onchange: (event) => this.open(Number(event.target.value)) },
      this.texts.map((text, index) => h("option", { value: index, selected: index === this.current }, text.title)));
    this.stagePicker = h("select", { "aria-label": "Which stage", onchange: (event) => this.filter(event.target.value) },
      h("option", { value: "all" }, "all stages"),
      (data.round?.stages ?? []).map((stage) => h("option", { value: stage.key }, stage.title)));
    this.types = h("input", { type: "checkbox", onchange: (event) => this.restyle(event.target.checked) });
    this.search = h("input", { type: "search", placeholder: "Search the text", "aria-label": "Search the text",
      oninput: () => this.find(), onkeydown: (event) => {
        if (event.key !== "Enter") return;
        event.preventDefault();
        this.step(event.shiftKey ? -1 : 1);
      } });
    this.found = h("output", { class: "hint", "aria-live": "polite" });
    this.body = h("div", { class: "code-text", tabindex: "0", role: "group", "aria-label": "Text" });
    this.element = h("div", {},
      h("div", { class: "toolbar" }, this.picker, this.stagePicker, h("label", {}, this.types, " types"), this.search,
        h("button", { type: "button", class: "small", "aria-label": "Hit before", onclick: () => this.step(-1) }, "↑"),
        h("button", { type: "button", class: "small", "aria-label": "Next hit", onclick: () => this.step(1) }, "↓"),
        this.found),
      this.body);
  }

  /** Draws the text when it is first looked at. */
  shown() {
    if (!this.isDrawn) this.draw();
    this.isDrawn = true;
  }

  open(index) {
    this.current = index;
    this.picker.value = index;
    this.draw();
  }

  restyle(isTyped) {
    this.style = isTyped ? "typed" : "formatted";
    this.draw();
  }

  filter(stage) {
    this.stage = stage;
    this.draw();
  }

  draw() {
    const text = this.texts[this.current];
    if (!text) {
      fill(this.body, h("p", { class: "hint" }, "There is no text: the program could not be traced."));
      return;
    }
    const isFlat = this.current === this.explorer.data.texts.length - 1 && this.explorer.data.bindings;
    this.stagePicker.disabled = !isFlat;
    const owners = isFlat ? this.owners(text[this.style].length) : [];
    this.lines = text[this.style];
    this.shownLines = [];
    for (let index = 0; index < this.lines.length; index += 1) {
      if (!isFlat || this.stage === "all" || owners[index]?.stage === this.stage) this.shownLines.push(index);
    }
    this.rows = new LazyLines(this.shownLines.map((index, at) => () => this.line(index, at, owners[index])));
    fill(this.body, this.rows.chunks);
    this.find();
  }

  line(index, at, call) {
    const mark = this.hitSet?.has(at) ? "hit" : "";
    return h("div", {
      class: `text-line ${mark} ${call ? `owned ${call.stage}` : ""}`,
      onclick: call ? () => this.explorer.select({ calls: [call.name] }) : null,
    }, h("span", { class: "line-number" }, String(index + 1)), h("code", {}, notation(this.lines[index])));
  }

  /** Returns for each line of the flat program the call that it belongs to. */
  owners(count) {
    const starts = Object.entries(this.explorer.data.bindings[this.style]).sort((one, two) => one[1] - two[1]);
    const end = this.texts[this.current][this.style].findIndex((line) => line.startsWith(" in "));
    const owners = new Array(count);
    starts.forEach(([name, start], index) => {
      const stop = starts[index + 1]?.[1] ?? (end < 0 ? count + 1 : end + 1);
      for (let line = start; line < stop; line += 1) owners[line - 1] = this.explorer.call(name);
    });
    return owners;
  }

  find() {
    const wanted = this.search.value.toLowerCase();
    for (const at of this.hits ?? []) this.rows.rows[at]?.classList.remove("hit", "now");
    this.hits = [];
    this.at = -1;
    if (wanted && this.lines) {
      for (let at = 0; at < this.shownLines.length && this.hits.length < MOST_HITS; at += 1) {
        if (this.lines[this.shownLines[at]].toLowerCase().includes(wanted)) this.hits.push(at);
      }
    }
    this.hitSet = new Set(this.hits);
    for (const at of this.hits) this.rows.rows[at]?.classList.add("hit");
    const many = this.hits.length === MOST_HITS ? "at least " : "";
    fill(this.found, wanted ? (this.hits.length ? `${many}${counted(this.hits.length, "line")}` : "nothing found") : "");
    this.step(1);
  }

  step(by) {
    if (!this.hits?.length) return;
    if (this.at >= 0) this.rows.row(this.hits[this.at]).classList.remove("now");
    this.at = (this.at + by + this.hits.length) % this.hits.length;
    const row = this.rows.row(this.hits[this.at]);
    row.classList.add("hit", "now");
    this.scroll(row);
  }

  scroll(row) {
    this.body.scrollTop += row.getBoundingClientRect().top - this.body.getBoundingClientRect().top - this.body.clientHeight / 3;
  }

  /** Shows where a call of the flat program stands. */
  reveal(name) {
    this.stage = this.stagePicker.value = "all";
    this.isDrawn = true;
    this.open(this.explorer.data.texts.length - 1);
    const line = this.explorer.data.bindings?.[this.style][name];
    if (!line) return;
    const row = this.rows.row(line - 1);
    this.scroll(row);
    row.classList.add("flash");
  }
}

export class PassesTab {
  constructor(explorer) {
    this.data = explorer.data;
    this.style = "formatted";
    const first = this.data.passes.findIndex((pass) => pass.before !== pass.after);
    this.current = Math.max(0, first);
    this.list = h("ol", { class: "stepper" }, this.data.passes.map((pass, index) => {
      const changed = pass.before !== pass.after;
      const [removed, added] = changed ? count(pass.diff.formatted) : [0, 0];
      return h("li", {}, h("button", { type: "button", "aria-pressed": index === this.current, onclick: () => this.open(index) },
        h("strong", {}, pass.name),
        h("span", {}, pass.summary),
        changed
          ? h("span", { class: "change" }, h("ins", {}, `+${added}`), " ", h("del", {}, `−${removed}`), " lines")
          : h("span", { class: "hint" }, "changes nothing here")));
    }));
    this.types = h("input", { type: "checkbox", onchange: (event) => {
      this.style = event.target.checked ? "typed" : "formatted";
      this.draw();
    } });
    this.body = h("div", { class: "diff-pane" });
    this.element = h("div", { class: "split passes" },
      h("nav", { "aria-label": "Passes" }, this.list),
      h("div", {}, h("div", { class: "toolbar" }, h("label", {}, this.types, " types")), this.body));
  }

  shown() {
    if (!this.isDrawn) this.draw();
    this.isDrawn = true;
  }

  open(index) {
    this.current = index;
    [...this.list.querySelectorAll("button")].forEach((each, at) => each.setAttribute("aria-pressed", at === index));
    this.draw();
  }

  draw() {
    const pass = this.data.passes[this.current];
    if (!pass) {
      fill(this.body, h("p", { class: "hint" }, "No pass has run."));
      return;
    }
    const head = [h("h2", {}, pass.name), h("p", {}, pass.summary, pass.details ? h("details", {}, h("summary", {}, "more"), h("p", { class: "prose" }, pass.details)) : null),
      h("p", { class: "hint" }, "Holds now: ", pass.holds.map((each, index) => [index ? ", " : "", code(each)]))];
    if (pass.before === pass.after) {
      fill(this.body, head, h("p", {}, "The program is the same before and after."));
      return;
    }
    const before = this.data.texts[pass.before][this.style];
    const after = this.data.texts[pass.after][this.style];
    fill(this.body, head, h("div", { class: "code-text diff", tabindex: "0", role: "group", "aria-label": "What changed" }, diff(before, after, pass.diff[this.style])));
  }
}

function count(hunks) {
  return [hunks.reduce((sum, hunk) => sum + hunk[0], 0), hunks.reduce((sum, hunk) => sum + hunk[1], 0)];
}

const AROUND = 3; // lines that are the same, shown around those that are not

function diff(before, after, hunks, show = notation) {
  const rows = [];
  let [first, start] = [0, 0];
  const row = (kind, sign, text) => () => changedLine(kind, sign, text, show);
  hunks.forEach(([removed, added, kept], index) => {
    for (let n = 0; n < removed; n += 1) rows.push(row("removed", "−", before[first + n]));
    for (let n = 0; n < added; n += 1) rows.push(row("added", "+", after[start + n]));
    first += removed;
    start += added;
    const isChange = removed + added > 0;
    const head = isChange ? AROUND : 0;
    const tail = index + 1 < hunks.length ? AROUND : 0;
    if (kept > head + tail + 2) {
      for (let n = 0; n < head; n += 1) rows.push(row("same", " ", after[start + n]));
      const from = start + head;
      const hidden = kept - head - tail;
      rows.push(() => {
        const gap = h("button", { type: "button", class: "gap", onclick: () => {
          const same = Array.from({ length: hidden }, (_, n) => row("same", " ", after[from + n]));
          gap.replaceWith(...new LazyLines(same).chunks);
        } }, `${counted(hidden, "line")} the same`);
        return gap;
      });
      for (let n = kept - tail; n < kept; n += 1) rows.push(row("same", " ", after[start + n]));
    } else for (let n = 0; n < kept; n += 1) rows.push(row("same", " ", after[start + n]));
    first += kept;
    start += kept;
  });
  return new LazyLines(rows).chunks;
}

function changedLine(kind, sign, text, show = notation) {
  const tag = { added: "ins", removed: "del" }[kind] ?? "code";
  return h("div", { class: `text-line ${kind}` },
    h("span", { class: "sign" }, sign), h(tag, { class: "code" }, show(text)));
}

const GRAVE = { STATE: "bad", DATA: "bad", WIRE: "bad", PRIVACY: "bad", RESULT: "doubtful", INSIDE: "good" };

/** Shows what the changes break, as `tffc diff --breaking` does. */
function breaking(explorer) {
  const { breaking: all, unknown, since, doubt } = explorer.data.changes;
  const warning = doubt ? h("section", { class: "verdict doubtful" }, h("span", { class: "mark", "aria-hidden": "true" }, "!"),
    h("div", {}, h("h2", {}, "The older version is read from the components"), h("p", {}, doubt))) : null;
  if (unknown) return h("section", { class: "callout error" }, h("h2", {}, "What the changes break cannot be told"), h("p", {}, unknown));
  const rows = all.map((each) => h("li", {},
    h("div", {}, h("strong", {}, each.subject), ` ${each.message}`, each.span ? [h("br"), explorer.placeLink(each.span)] : null,
      h("br"), h("span", { class: "soft" }, each.means)),
    h("span", { class: `state ${GRAVE[each.breaks.toUpperCase()] ?? "open"}` }, each.breaks.toUpperCase())));
  return h("section", {}, warning, h("h2", {}, "What the changes break", since ? h("small", {}, `since ${since}`) : null),
    rows.length ? h("ul", { class: "rules" }, rows) : h("p", {}, "Nothing: the two compute the same."));
}

/** Shows what has changed since an older version, as `tffc diff` does. */
export function changes(explorer) {
  const { parts, sources } = explorer.data.changes;
  const pane = (label, rows) => h("div", { class: "code-text diff", tabindex: "0", role: "group", "aria-label": label }, rows);
  const files = sources.map(({ before, after, diff: hunks }) => h("section", {},
    h("h2", {}, "Your source", h("small", {}, before.path === after.path ? after.path : `${before.path} → ${after.path}`)),
    pane(`Changes in ${after.path}`, diff(before.lines, after.lines, hunks, (text) => python([text])[0]))));
  if (!parts.length) return [breaking(explorer), files];
  return [breaking(explorer), files, parts.map((each) => h("section", {},
    h("h2", {}, "The program"),
    each.sections.length ? [h("h3", {}, "Inside compiled functions"), h("pre", { class: "block", tabindex: "0" }, each.sections.join("\n"))] : null,
    pane("Changes in the program", each.lines.map((text) => {
      const kind = { "+": "added", "-": "removed" }[text[0]] ?? "same";
      const row = changedLine(kind, kind === "removed" ? "−" : text[0], text.slice(1));
      const call = kind === "removed" ? null : explorer.call(text.slice(1).split(":")[0]);
      if (call?.place) row.append(explorer.placeButton(call.place));
      return row;
    }))))];
}
