// Makes elements.  Texts are only ever put in as text: nothing here reads markup.

const SVG = "http://www.w3.org/2000/svg";

function put(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

/** Returns an element: `on...` are listeners, `style` is an object, the rest are attributes. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("aria-")) element.setAttribute(name, String(value));
    else if (value === false) continue;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "data") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  return put(element, children);
}

export function s(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  return put(element, children);
}

/** Replaces all that an element holds. */
export function fill(element, ...children) {
  element.replaceChildren();
  return put(element, children);
}

export function code(text) {
  return h("code", {}, text);
}

/** Returns a name that a narrow column can break where its parts end. */
export function name(text) {
  const parts = text.split(/(?<=[a-z0-9][._/,])(?=\w)/);
  return h("code", {}, parts.map((part, index) => (index ? [h("wbr"), part] : part)));
}

export function bytes(count) {
  if (count === null || count === undefined) return "size not fixed";
  if (count < 1000) return `${count} B`;
  for (const [unit, size] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (count >= size) return `${(count / size).toFixed(count / size < 100 ? 1 : 0)} ${unit}`;
  }
  return "";
}

export function exactBytes(count) {
  return count === null || count === undefined
    ? "size not fixed"
    : `${count.toLocaleString("en-US")} bytes`;
}

export function counted(number, noun) {
  return `${number.toLocaleString("en-US")} ${noun}${number === 1 ? "" : "s"}`;
}

export function short(text, longest) {
  return text.length <= longest ? text : `${text.slice(0, longest - 1)}…`;
}

/** Lets the arrow keys move between the parts of a list that matches a selector. */
export function arrows(list, selector, next, previous) {
  list.addEventListener("keydown", (event) => {
    const step = event.key === next ? 1 : event.key === previous ? -1 : 0;
    if (!step) return;
    const all = [...list.querySelectorAll(selector)];
    const at = all.indexOf(document.activeElement);
    if (at < 0) return;
    event.preventDefault();
    const other = all[(at + step + all.length) % all.length];
    other.focus();
    if (other.getAttribute("role") === "tab") other.click();
  });
}
