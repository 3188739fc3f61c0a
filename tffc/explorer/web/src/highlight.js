// Colours for Python and for the notation.

import { h } from "./dom.js";

const PYTHON_WORDS = new Set(
  ("False None True and as assert async await break class continue def del elif else except " +
    "finally for from global if import in is lambda nonlocal not or pass raise return try while " +
    "with yield match case").split(" "),
);
const PYTHON =
  /(#.*)|([rbfuRBFU]{0,2}(?:"""|'''|"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?))|(@[\w.]+)|(\b\d[\w.]*)|([A-Za-z_]\w*)/g;

/** Returns the lines of a Python file, each as a list of texts and elements. */
export function python(lines) {
  let open = null; // the quotes of a text that goes on in the next line
  return lines.map((line) => {
    const parts = [];
    let at = 0;
    if (open) {
      const end = line.indexOf(open);
      if (end < 0) return [mark("text", line)];
      at = end + 3;
      parts.push(mark("text", line.slice(0, at)));
      open = null;
    }
    PYTHON.lastIndex = at;
    for (let match = PYTHON.exec(line); match; match = PYTHON.exec(line)) {
      if (match.index > at) parts.push(line.slice(at, match.index));
      at = PYTHON.lastIndex;
      const [all, comment, text, decorator, number, name] = match;
      const quotes = text && text.slice(-3);
      if (comment) parts.push(mark("comment", all));
      else if (text && (quotes === '"""' || quotes === "'''") && text.replace(/^\w*/, "").length === 3) {
        const end = line.indexOf(quotes, at);
        open = end < 0 ? quotes : null;
        at = end < 0 ? line.length : end + 3;
        PYTHON.lastIndex = at;
        parts.push(mark("text", line.slice(match.index, at)));
      } else if (text) parts.push(mark("text", all));
      else if (decorator) parts.push(mark("name", all));
      else if (number) parts.push(mark("number", all));
      else parts.push(PYTHON_WORDS.has(name) ? mark("word", all) : all);
    }
    if (at < line.length) parts.push(line.slice(at));
    return parts;
  });
}

const NOTATION =
  /(;.*)|((?:federated|sequence|generic)_\w+)|((?:comp|data)#[\w.-]+)|(@?\b(?:CLIENTS|SERVER)\b)|(\b(?:u?int(?:8|16|32|64)|b?float(?:16|32|64)|complex\d+|bool|str)\b(?:\[[^\]]*\])?)|(\b(?:let|in|where)\b|->)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')/g;
const KINDS = ["comment", "operator", "section", "place", "type", "word", "text"];

/** Returns one line of the notation as a list of texts and elements. */
export function notation(line) {
  if (line.length > 20000) return [line];
  const parts = [];
  let at = 0;
  for (const match of line.matchAll(NOTATION)) {
    if (match.index > at) parts.push(line.slice(at, match.index));
    const kind = match.slice(1).findIndex((group) => group !== undefined);
    parts.push(mark(KINDS[kind], match[0]));
    at = match.index + match[0].length;
  }
  if (at < line.length) parts.push(line.slice(at));
  return parts;
}

function mark(kind, text) {
  return h("span", { class: `hl-${kind}` }, text);
}

/** Returns a type with a line for each element of its outermost structs. */
export function type(text) {
  const depthful = text.length > 60;
  if (!depthful) return h("code", { class: "type" }, notation(text));
  const lines = [];
  let depth = 0;
  let line = "";
  const flush = (next) => {
    if (line.trim()) lines.push(line);
    line = "  ".repeat(Math.max(0, Math.min(next, 12)));
  };
  let brackets = 0;
  for (const letter of text) {
    if (letter === "[") brackets += 1;
    if (letter === "]") brackets -= 1;
    if (letter === "<") {
      line += letter;
      depth += 1;
      flush(depth);
    } else if (letter === ">" && !line.endsWith("-")) {
      depth -= 1;
      flush(depth);
      line += letter;
    } else if (letter === "," && !brackets) {
      line += letter;
      flush(depth);
    } else line += letter;
  }
  flush(0);
  return h("pre", { class: "type", tabindex: "0" }, lines.map((each) => [notation(each), "\n"]));
}
