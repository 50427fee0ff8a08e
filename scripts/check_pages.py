#!/usr/bin/env python3
"""Opens pages of `sshoal why --html` in headless Chromium and looks whether all that they promise works.

    check_pages.py HOST_PAGE FLEET_PAGE
    check_pages.py --traced HOST_PAGE
    check_pages.py HOST_PAGE FLEET_PAGE --pictures FOLDER

Exits with 1 and says what does not. With --pictures it writes them as PNG in place of that: docs/pictures/ has them from
scripts/why_pictures.sh. Needs chromium and chromedriver.
"""

import base64
import sys
from pathlib import Path

from browser import Browser

# A laptop's window, and a phone's.
WINDOW, PHONE = (1200, 900), (360, 740)
# Least contrast of text with its ground (WCAG 2, AA).
CONTRAST = 4.5

SHOWN = "return [...document.querySelectorAll(arguments[0])].filter((item) => item.getClientRects().length > 0).length"
TIP = """const tip = document.getElementById("tip"), box = tip.getBoundingClientRect();
return tip.hidden ? null : {words: tip.textContent, inside: box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight}"""
# The widest bar there is, in per cent of its track: cut off or not.
WIDEST = """return Math.max(...[...document.querySelectorAll(".bar")].map((bar) => parseFloat(bar.style.width)))"""
FIRST_LEFT = 'return parseFloat(document.querySelector(".bar").style.left)'
FOCUSED = "return [...document.querySelectorAll('.row')].indexOf(document.activeElement)"
# The row of a process, by its name: brought into the window, and then what its focus shows, before the pointer can be said to have left another row.
NAMED = "const named = [...document.querySelectorAll('.row')].find((row) => row.querySelector('.name')?.textContent === arguments[0]);\n"
SCROLL_TO_NAMED = NAMED + "named.scrollIntoView({ block: 'center' });"
FOCUS_NAMED = NAMED + "named.focus({ preventScroll: true });\n" + TIP
# The colour of each kind of piece that the critical path has.
COLOURED = """const row = [...document.querySelectorAll(".row")].find((row) => row.querySelector(".name")?.textContent === "critical path");
return Object.fromEntries([...row.querySelectorAll(".bar")].map((bar) => [bar.className, getComputedStyle(bar).backgroundColor]))"""
OVERFLOW = "return document.documentElement.scrollWidth - innerWidth"
# The least contrast of all elements that have text of their own, with what it is of.
LEAST_CONTRAST = """
const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
const colour = (text) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
const light = ([r, g, b]) => [r, g, b].map((part) => part / 255).map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
  .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
const over = (above, below) => above.slice(0, 3).map((part, at) => (part * above[3] + below[at] * (255 - above[3])) / 255);
const ground = (item) => {
  const chain = [];
  for (let at = item; at; at = at.parentElement) chain.unshift(colour(getComputedStyle(at).backgroundColor));
  return chain.reduce((below, above) => over(above, below), matchMedia("(prefers-color-scheme: dark)").matches ? [0, 0, 0] : [255, 255, 255]);
};
let least = [99, ""];
for (const item of document.querySelectorAll("main *")) {
  const own = [...item.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
  if (!own || item.getClientRects().length === 0) continue;
  const below = ground(item), above = over(colour(getComputedStyle(item).color), below);
  const [low, high] = [light(below), light(above)].sort((one, other) => one - other);
  const contrast = (high + 0.05) / (low + 0.05);
  if (contrast < least[0]) least = [contrast, item.className + ": " + item.textContent.slice(0, 40)];
}
return least;
"""


class Checks:
    """What does not hold is noted, and the rest looked at all the same."""

    def __init__(self, browser, page):
        self.browser, self.page, self.failed = browser, page, []

    def holds(self, what, is_so, *found):
        if not is_so:
            self.failed.append(f"{self.page}: {what}: {' '.join(map(str, found))}")

    def tip(self, what, words):
        tip = self.browser.run(TIP)
        self.holds(f"{what} shows the tip", tip and words in tip["words"], tip)
        self.holds(f"{what} shows the tip within the window", tip and tip["inside"], tip)

    def no_tip(self, what):
        self.holds(f"{what} hides the tip", self.browser.run(TIP) is None)


def check_both(checks):
    """What holds for every page."""
    browser = checks.browser
    for scheme in ("light", "dark"):
        browser.dress(scheme)
        contrast, of = browser.run(LEAST_CONTRAST)
        checks.holds(f"text can be read ({scheme})", contrast >= CONTRAST, f"{contrast:.2f}", of)
    browser.dress("light")
    browser.size(*PHONE)
    checks.holds("a phone needs no scrolling sideways", browser.run(OVERFLOW) <= 0, browser.run(OVERFLOW))
    browser.size(*WINDOW)
    checks.holds("the console is silent", not (said := browser.errors()), said)


def check_host(checks):
    browser = checks.browser
    rows = browser.run(SHOWN, ".row")
    checks.holds("the waterfall has a login's phases", rows >= 10, rows)
    checks.holds("the fault is told", browser.run(SHOWN, ".finding") >= 1)
    check_tips(checks)
    check_zoom(checks)
    check_keys(checks)
    check_search(checks, ".row", "signed")


def check_tips(checks):
    checks.browser.hover(".row:last-child")
    checks.tip("pointing at a phase", "first output")
    checks.browser.hover("h1")
    checks.no_tip("pointing elsewhere")


def check_zoom(checks):
    browser = checks.browser
    whole, left = browser.run(WIDEST), browser.run(FIRST_LEFT)
    browser.click("button[aria-label='zoom in']")
    checks.holds("+ doubles the bars", abs(browser.run(WIDEST) / whole - 2) < 0.01, whole, browser.run(WIDEST))
    before = browser.run(FIRST_LEFT)
    browser.click("button[aria-label='later']")
    checks.holds("→ goes on in time", browser.run(FIRST_LEFT) < before, before, browser.run(FIRST_LEFT))
    before = browser.run(FIRST_LEFT)
    browser.drag(".row:last-child .track", 60)
    checks.holds("dragging moves the time with the pointer", browser.run(FIRST_LEFT) > before, before, browser.run(FIRST_LEFT))
    browser.click("button[aria-label='show all']")
    checks.holds("all shows all", (browser.run(WIDEST), browser.run(FIRST_LEFT)) == (whole, left))
    browser.wheel(".row:last-child .track", -120)
    checks.holds("control and the wheel zoom", browser.run(WIDEST) > whole * 1.1, whole, browser.run(WIDEST))
    browser.click("button[aria-label='show all']")


def check_keys(checks):
    browser = checks.browser
    whole = browser.run(WIDEST)
    browser.run("document.querySelector('.row').focus()")
    checks.tip("the focus", "±")
    browser.press("ArrowDown", "ArrowDown")
    checks.holds("↓ goes to the next phase", browser.run(FOCUSED) == 2, browser.run(FOCUSED))
    browser.press("ArrowUp")
    checks.holds("↑ goes back", browser.run(FOCUSED) == 1, browser.run(FOCUSED))
    browser.press("+")
    checks.holds("the key + zooms", browser.run(WIDEST) > whole * 1.9)
    browser.press("0")
    checks.holds("the key 0 shows all", browser.run(WIDEST) == whole)
    browser.press("Escape")
    checks.no_tip("Escape")
    browser.press("Tab")
    checks.holds("Tab goes to the next phase, too", browser.run(FOCUSED) == 2, browser.run(FOCUSED))


def check_search(checks, items, word):
    """What does not have the word goes, and comes back."""
    browser = checks.browser
    rows = browser.run(SHOWN, items)
    for size in (WINDOW, PHONE):
        browser.size(*size)
        browser.click("input[type=search]")
        browser.press(*word)
        left = browser.run(SHOWN, items)
        checks.holds(f"searching for {word} hides what does not have it, in a window of {size}", 0 < left < rows, left, rows)
        browser.press(*["\ue003"] * len(word))
        checks.holds("an empty search shows all again", browser.run(SHOWN, items) == rows)
    browser.size(*WINDOW)


def check_traced(checks):
    """A page of `why --trace`: a host's page, and below its phases the processes."""
    check_host(checks)
    browser = checks.browser
    trace = browser.run("return JSON.parse(document.getElementById('data').textContent).trace")
    names = browser.run("return [...document.querySelectorAll('.row .name')].map((name) => name.textContent)")
    tells_time = "time" not in trace["lacks"]
    longest = max(trace["processes"], key=lambda process: process["path_us"] or 0)
    wanted = f"{longest['name']} {longest['pid']}"
    checks.holds("the process with the longest path has a row", wanted in names, wanted, names)
    if tells_time:
        checks.holds("the critical path stands first", names and names[0] == "critical path", names)
        calls = [f"{call['module']} {call['function']}" for call in trace["calls"]]
        checks.holds("PAM's modules have rows", any(name in calls for name in names), calls[:5], names)
        parts = browser.run(COLOURED)
        checks.holds("the critical path has a bar of each kind, in colours of their own", len(parts) >= 2 and len(set(parts.values())) == len(parts), parts)
    else:
        checks.holds("there is no critical path", "critical path" not in names, names)
        words = browser.run("return document.body.textContent")
        checks.holds("what is not told is said", all(note in words for note in trace["notes"]), trace["notes"])
    browser.run(SCROLL_TO_NAMED, wanted)
    tip = browser.run(FOCUS_NAMED, wanted)
    says = tip and all(what in tip["words"] for what in (("lived", "of the login are its own") if tells_time else ("lived",)))
    checks.holds(f"the focus of {wanted} shows the tip within the window", says and tip["inside"], tip)
    browser.press("Escape")
    checks.no_tip("Escape")


def check_fleet(checks):
    browser = checks.browser
    hosts = browser.run("return JSON.parse(document.getElementById('data').textContent).hosts.map((host) => host.host)")
    cells = ".heat td[tabindex]"
    checks.holds("each host has its cells", browser.run(SHOWN, cells) >= 10 * len(hosts), hosts)
    browser.hover(cells)
    checks.tip("pointing at a cell", hosts[0])
    browser.hover("h1")
    checks.no_tip("pointing elsewhere")
    browser.run("document.querySelector(arguments[0]).focus()", cells)
    checks.tip("the focus", hosts[0])
    browser.press("Escape")
    checks.no_tip("Escape")
    check_search(checks, "tr[data-words]", hosts[0])


def check(browser, pages, kinds):
    failed = []
    for page, of_kind in zip(pages, kinds):
        browser.size(*WINDOW)
        browser.open(page)
        checks = Checks(browser, page.name)
        of_kind(checks)
        check_both(checks)
        failed += checks.failed
    return failed


def draw(browser, pages, folder):
    """Each page in the light and in the dark, and the first one as a phone has it."""
    for page, name in zip(pages, ("why-host", "why-fleet")):
        browser.size(*WINDOW)
        browser.open(page)
        for scheme in ("light", "dark"):
            browser.dress(scheme)
            keep(browser, folder / f"{name}-{scheme}.png")
    browser.dress("light")
    browser.open(pages[0])
    browser.size(*PHONE, scale=2)
    keep(browser, folder / "why-host-phone.png")


def keep(browser, path):
    path.write_bytes(base64.b64decode(browser.picture()))


def main(words):
    pictures = Path(words[words.index("--pictures") + 1]).resolve() if "--pictures" in words else None
    is_traced = words[0] == "--traced"
    pages = [Path(word).resolve() for word in (words[1:2] if is_traced else words[:2])]
    kinds = (check_traced,) if is_traced else (check_host, check_fleet)
    with Browser() as browser:
        failed = draw(browser, pages, pictures) if pictures else check(browser, pages, kinds)
    print("\n".join(failed or []))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
