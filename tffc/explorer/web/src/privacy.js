// Differential privacy: the ε, or the steps that are missing, and the derivation.

import { code, h, name } from "./dom.js";
import { banner, entry, fact, listed } from "./entries.js";

/** Returns the answer about privacy that a report has, as a section. */
export function privacySection(privacy) {
  const [title, more] = privacy.text.split(" at \u03b4");
  return h("section", { id: "privacy" }, h("h2", {}, "Differential privacy"),
    banner(privacy.shown ? "good" : "open", privacy.shown ? "\u2713" : "\u2013", title,
      more ? `At \u03b4${more}` : "No differential privacy is claimed, because it does not follow from the program."),
    h("dl", { class: "facts wide-labels" },
      fact("Neighbours", privacy.neighbours),
      fact("Clients' data", listed(privacy.data)),
      fact("Clients of a round", privacy.sampling),
      fact("Each round", privacy.round.length ? privacy.round.map((part) => h("div", {}, part)) : "no mechanism"),
      privacy.all_rounds.length ? fact("All rounds together", privacy.all_rounds.map((part) => h("div", {}, part))) : null,
      privacy.accountant ? fact("Accountant", privacy.accountant) : null),
    privacy.missing.map(missing),
    privacy.mechanisms.map(mechanism),
    privacy.bounds.map(bound),
    privacy.releases.length ? releases(privacy.releases) : null,
    h("h3", {}, "This rests on"),
    h("ul", { class: "rules" }, privacy.rests_on.map((assumption) => h("li", {}, assumption))));
}

function missing(step) {
  return entry("none", h("div", {}, h("h3", {}, step.step), h("span", { class: "ended" }, "not shown")),
    [["of", code(step.subject)], step.at ? ["at", name(step.at)] : null, ["why", step.reason]]);
}

function mechanism({ distribution, leaves, combination, scale, drawn, added }, index) {
  return entry("", h("div", {}, h("h3", {}, `mechanism ${index + 1}`), `${distribution} noise`), [
    ["of", listed(leaves)], ["combined", combination], ["scale", scale], ["drawn", code(drawn)], ["added", code(added)],
  ]);
}

function bound({ leaves, norm, at_most: most, by }) {
  return entry("", h("div", {}, h("h3", {}, "bound of each client")), [
    ["of", listed(leaves)], [norm, `at most ${most}`], ["by", listed(by.filter(Boolean))],
  ]);
}

function releases(all) {
  const heads = ["release", "kind", "made of"];
  return h("div", { class: "wide" }, h("table", { class: "cards" },
    h("thead", {}, h("tr", {}, heads.map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", {}, all.map((release) => h("tr", {}, [h("strong", {}, name(release.name)), release.kind, parts(release)]
      .map((cell, index) => h("td", { "data-head": heads[index] }, cell)))))));
}

function parts({ mechanisms, of_earlier_rounds: earlier, without_noise: exposed }) {
  const texts = mechanisms.map((number) => `mechanism ${number + 1}`);
  if (earlier) texts.push("mechanisms of earlier rounds");
  const shown = texts.join(", ");
  if (exposed) return [shown, shown ? ", " : "", h("span", { class: "ended" }, "a sum without noise")];
  return shown || "nothing of clients";
}
