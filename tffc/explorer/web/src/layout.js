// Places boxes and draws edges between them.

import dagre from "@dagrejs/dagre";
import { s } from "./dom.js";

/**
 * Places nodes of `{id, width, height, rank?}` and edges of `{from, to, label?}`; with ranks, in
 * columns of these.  A label of `{width, height}` gets room of its own, so that nothing crosses it.
 * Returns the size, nodes with x and y of their centres, and edges with points and, where they have
 * a label, its left upper corner.
 */
export function place(nodes, edges, { direction = "LR", ranksep = 60, nodesep = 18 } = {}) {
  const graph = new dagre.graphlib.Graph();
  const given = new Map(nodes.map((node) => [node.id, node]));
  const ranked = nodes.length > 0 && nodes[0].rank !== undefined;
  const options = { rankdir: direction, ranksep, nodesep, edgesep: 10, marginx: ranked ? 12 : 30, marginy: 16 };
  options.ranker = ranked
    ? (g) => {
        // Twice, for dagre keeps every other rank for labels.
        for (const id of g.nodes()) g.node(id).rank = 2 * (given.get(id)?.rank ?? 0);
      }
    : "network-simplex";
  graph.setGraph(options);
  graph.setDefaultEdgeLabel(() => ({}));
  for (const { id, width, height } of nodes) graph.setNode(id, { width, height });
  const drawn = edges.filter(({ from, to }) => from !== to && given.has(from) && given.has(to));
  for (const { from, to, isLoose, label } of drawn) {
    if (isLoose) continue;
    const room = label ? { ...roomOf(label, direction === "LR"), labelpos: "c" } : {};
    if (!ranked || given.get(from).rank < given.get(to).rank) graph.setEdge(from, to, room);
  }
  if (ranked) bridge(graph, nodes);
  dagre.layout(graph);
  const isRight = direction === "LR";
  const column = ({ x, y }) => Math.round(isRight ? x : y);
  const pick = ({ x, y }) => ({ x, y, column: column({ x, y }) });
  const placed = nodes.map((node) => ({ ...node, ...pick(graph.node(node.id)) }));
  const at = new Map(placed.map((node) => [node.id, node]));
  const lines = drawn.map((edge) => {
    const { points = [], x, y } = graph.edge(edge.from, edge.to) ?? {};
    return { ...edge, points: points.slice(1, -1).map(pick), ...(edge.label && x !== undefined ? { room: pick({ x, y }), corner: {} } : {}) };
  });
  const columns = ranked ? widths(placed, lines, isRight) : null;
  for (const { room, label, corner } of lines) if (room) Object.assign(corner, { x: room.x - label.width / 2, y: room.y - label.height / (isRight ? 1 : 2) });
  enclose(placed, lines);
  connect(lines, at, isRight);
  if (columns) for (const edge of lines) straighten(edge, columns, at, isRight);
  const { width, height } = extent(placed, lines);
  return { width, height, nodes: placed, edges: lines };
}

/** Returns half of the widths of columns, or of the heights of rows. */
function widths(nodes, edges, isRight) {
  const found = new Map();
  const note = (column, { width, height }) => found.set(column, Math.max(found.get(column) ?? 0, (isRight ? width : height) / 2));
  for (const node of nodes) note(node.column, node);
  for (const { room, label } of edges) if (room) note(room.column, label);
  return found;
}

/** Returns the room of a label: above its edge where that runs to the right, else in a gap of it. */
function roomOf({ width, height }, isRight) {
  return { width, height: isRight ? 2 * height : height };
}

/** Lets an edge run straight through each column that it crosses, and bend only between columns. */
function straighten(edge, columns, at, isRight) {
  const along = isRight ? "x" : "y";
  const half = (column) => columns.get(column) ?? 0;
  const points = [];
  const from = at.get(edge.from);
  const to = at.get(edge.to);
  if (from.column === to.column) return;
  points.push({ ...edge.start, [along]: from[along] + half(from.column) });
  for (const point of edge.points) {
    const side = half(point.column);
    points.push({ ...point, [along]: point[along] - side });
    if (!isRight && edge.room?.column === point.column) {
      const { height } = edge.label;
      points.push({ ...point, y: point.y - height / 2 }, { ...point, y: point.y + height / 2, isGap: true });
    }
    points.push({ ...point, [along]: point[along] + side });
  }
  points.push({ ...edge.end, [along]: to[along] - half(to.column) });
  edge.points = points;
}

/** Adds an edge that is not drawn between columns that none crosses, which dagre asks for. */
function bridge(graph, nodes) {
  const columns = [];
  for (const node of nodes) columns[node.rank] ??= node;
  const ends = new Map(nodes.map((node) => [node.id, node.rank]));
  const crossed = columns.map(() => false);
  for (const { v, w } of graph.edges()) crossed.fill(true, ends.get(v), ends.get(w));
  for (let rank = 0; rank + 1 < columns.length; rank += 1) {
    if (!crossed[rank]) graph.setEdge(columns[rank].id, columns[rank + 1].id, { weight: 0 });
  }
}

const MARGIN = 16;

/** Moves everything so far that no edge runs outside, for dagre only counts the boxes. */
function enclose(nodes, edges) {
  const corners = edges.flatMap((edge) => edge.corner ?? []);
  const bends = [...edges.flatMap((edge) => edge.points), ...corners];
  const left = Math.min(MARGIN, ...bends.map((point) => point.x));
  const top = Math.min(MARGIN, ...bends.map((point) => point.y));
  for (const each of [...nodes, ...bends]) {
    each.x += MARGIN - left;
    each.y += MARGIN - top;
  }
}

function extent(nodes, edges) {
  const ends = edges.flatMap(({ corner, label }) => (corner ? { x: corner.x + label.width, y: corner.y + label.height } : []));
  const bends = [...edges.flatMap((edge) => edge.points), ...ends];
  const right = [...nodes.map((node) => node.x + node.width / 2), ...bends.map((point) => point.x)];
  const bottom = [...nodes.map((node) => node.y + node.height / 2), ...bends.map((point) => point.y)];
  return { width: Math.max(1, ...right) + MARGIN, height: Math.max(1, ...bottom) + MARGIN };
}

/** Lets edges leave and reach their boxes side by side, in the order of where they lead. */
function connect(edges, at, isRight) {
  const along = isRight ? "y" : "x";
  for (const [end, other, first] of [["from", "to", true], ["to", "from", false]]) {
    const groups = new Map();
    for (const edge of edges) {
      if (!groups.has(edge[end])) groups.set(edge[end], []);
      groups.get(edge[end]).push(edge);
    }
    for (const [id, group] of groups) {
      const node = at.get(id);
      const target = (edge) => {
        const inner = first ? edge.points[0] : edge.points.at(-1);
        return (inner ?? at.get(edge[other]))[along];
      };
      group.sort((one, two) => target(one) - target(two));
      const room = (isRight ? node.height : node.width) * 0.7;
      const step = Math.min(12, room / group.length);
      group.forEach((edge, index) => {
        const shift = (index - (group.length - 1) / 2) * step;
        const half = (isRight ? node.width : node.height) / 2;
        const side = first ? half : -half;
        edge[first ? "start" : "end"] = isRight
          ? { x: node.x + side, y: node.y + shift }
          : { x: node.x + shift, y: node.y + side };
      });
    }
  }
}

/** Returns the line of an edge. */
export function line(edge, isRight) {
  const points = [edge.start, ...edge.points, edge.end];
  let text = `M${round(points[0].x)},${round(points[0].y)}`;
  for (let index = 1; index < points.length; index += 1) {
    const [one, two] = [points[index - 1], points[index]];
    if (two.isGap) {
      text += `M${round(two.x)},${round(two.y)}`;
      continue;
    }
    const bend = isRight
      ? [(one.x + two.x) / 2, one.y, (one.x + two.x) / 2, two.y]
      : [one.x, (one.y + two.y) / 2, two.x, (one.y + two.y) / 2];
    text += `C${bend.map(round).join(",")},${round(two.x)},${round(two.y)}`;
  }
  return text;
}

function round(number) {
  return Math.round(number * 10) / 10;
}

let markers = 0;

/** Returns an arrow head for the edges of a picture, and the reference to it. */
export function arrow() {
  const id = `arrow-${(markers += 1)}`;
  const marker = s(
    "marker",
    { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, orient: "auto", markerUnits: "userSpaceOnUse" },
    s("path", { d: "M0,0.5L7,4L0,7.5z", class: "head" }),
  );
  return { marker, url: `url(#${id})` };
}
