"use strict";
// What the pages of one host and of many have in common. All text of the data gets in as text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const main = document.querySelector("main");
const tip = document.getElementById("tip");

const element = (name, properties, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};
const time = (us) => {
  const ms = us / 1000;
  if (ms < 9.95) return ms.toFixed(1) + " ms";
  if (ms < 999.5) return ms.toFixed(0) + " ms";
  return (ms / 1000).toFixed(2) + " s";
};
const headOfFinding = (found) => element("h3", {}, element("span", { className: "cost" }, time(found.cost_us)), found.title + " ",
  element("span", { className: "tag" }, found.cause), " ", element("span", { className: "tag" }, found.certainty));

// ---- the tip, at the pointer or at what has the focus, within the window --------------------------------------------------

const showTip = (words, x, y) => {
  tip.textContent = words;
  tip.hidden = false;
  const above = y + 16 + tip.offsetHeight > innerHeight;
  tip.style.left = Math.max(4, Math.min(x, innerWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = Math.max(4, above ? y - tip.offsetHeight - 8 : y + 16) + "px";
};
const hideTip = () => { tip.hidden = true; };
const withTip = (made, words) => {
  made.tabIndex = 0;
  made.setAttribute("aria-label", words);
  made.addEventListener("pointermove", (event) => showTip(words, event.clientX, event.clientY));
  made.addEventListener("pointerleave", hideTip);
  made.addEventListener("focus", () => { const box = made.getBoundingClientRect(); showTip(words, box.left, box.bottom - 12); });
  made.addEventListener("blur", hideTip);
  return made;
};
addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });

// ---- a field that hides what does not have all its words ------------------------------------------------------------------

const searchField = (placeholder, label) => {
  const made = element("input", { type: "search", placeholder });
  made.setAttribute("aria-label", label);
  made.addEventListener("input", () => {
    const wanted = made.value.trim().toLowerCase().split(/\s+/);
    for (const item of main.querySelectorAll("[data-words]")) {
      item.hidden = !wanted.every((word) => item.dataset.words.includes(word));
    }
  });
  return made;
};
