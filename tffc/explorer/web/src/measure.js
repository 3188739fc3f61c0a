// The widths of texts in the picture, and where they are broken into lines.

const pen = document.createElement("canvas").getContext("2d");
const known = new Map();

/** Returns the width of a text in the page's font, at a weight and size. */
export function width(text, size) {
  const key = `${size} ${text}`;
  if (!known.has(key)) {
    pen.font = `${size} ${getComputedStyle(document.body).fontFamily}`;
    known.set(key, pen.measureText(text).width);
  }
  return known.get(key);
}

/** Returns a text as lines: broken after signs where it can be, and three dots after the last one. */
export function wrapped(text, widest, size, most) {
  const pieces = text.match(/[^\s_./,\[]*[\s_./,\[]?/g).filter(Boolean);
  const lines = [""];
  for (const piece of pieces) {
    if (width((lines.at(-1) + piece).trim(), size) <= widest) lines[lines.length - 1] += piece;
    else if (width(piece.trim(), size) <= widest) lines.push(piece);
    else for (const letter of piece) {
      if (width(lines.at(-1) + letter, size) > widest) lines.push("");
      lines[lines.length - 1] += letter;
    }
  }
  const shown = lines.map((each) => each.trim()).filter(Boolean);
  if (shown.length <= most) return shown;
  let last = shown[most - 1];
  while (last && width(`${last}…`, size) > widest) last = last.slice(0, -1);
  return [...shown.slice(0, most - 1), `${last}…`];
}
