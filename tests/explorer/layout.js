// Finds labels of the picture that lie on something, are cut or are small.
() => {
  const rect = (each) => each.getBoundingClientRect();
  const inner = ({ left, top, right, bottom }) =>
    ({ left: left + 2, top: top + 2, right: right - 2, bottom: bottom - 2 });
  const meet = (one, two) =>
    one.left < two.right && two.left < one.right && one.top < two.bottom && two.top < one.bottom;
  const all = (selector) => [...document.querySelectorAll(selector)];
  const labels = all(".edge-label").filter((each) => each.textContent);
  const boxes = all(".picture .box");
  const stage = rect(document.querySelector(".stage"));
  const canvas = document.querySelector(".picture .canvas");
  const isDesk = innerWidth >= 720;
  const borders = all(".band").map((each) => (isDesk ? rect(each).left : rect(each).top)).slice(1);
  const dots = all(".edges .edge path").flatMap((path) => {
    const matrix = path.getScreenCTM();
    const found = [];
    for (let at = 0; at <= path.getTotalLength(); at += 2) {
      found.push(path.getPointAtLength(at).matrixTransform(matrix));
    }
    return found;
  });
  const found = [];
  labels.forEach((label, index) => {
    const own = inner(rect(label));
    const [low, high] = isDesk ? [own.left, own.right] : [own.top, own.bottom];
    const wrong = {
      "lies on a box": boxes.some((box) => meet(own, rect(box))),
      "lies on a label": labels.slice(index + 1).some((other) => meet(own, inner(rect(other)))),
      "lies on an edge": dots.some(({ x, y }) => meet(own, { left: x, right: x, top: y, bottom: y })),
      "lies on a border": borders.some((border) => low < border - 1 && border + 1 < high),
      "is cut": own.left < stage.left || own.right > stage.right || own.bottom > stage.bottom,
      "is small": parseFloat(getComputedStyle(label).fontSize) * label.getScreenCTM().a < 9.8,
    };
    for (const [what, is] of Object.entries(wrong)) if (is) found.push(`${label.textContent} ${what}`);
  });
  for (const box of boxes) {
    for (const line of box.querySelectorAll("span:not(.sr)")) {
      if (line.scrollWidth > box.clientWidth + 1) found.push(`${line.textContent} is cut`);
    }
  }
  return { found, labels: labels.length, room: canvas.scrollWidth - canvas.clientWidth };
}
