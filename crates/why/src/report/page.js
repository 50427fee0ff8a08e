// The page of one host.
(() => {
  const parts = { network: "network", padding: "sshd's padding", own: "usual work", unexplained: "unexplained" };
  const part = (of) => (Object.hasOwn(parts, of) ? parts[of] : of);
  const kind = (of) => (Object.hasOwn(parts, of) ? of : "cause");
  const whose = { sshoal: "sshoal", ssh: "stock ssh" };

  // ---- what was found -------------------------------------------------------------------------------------------------

  const finding = (found) => element("article", { className: "finding" },
    headOfFinding(found),
    element("ul", {}, ...found.evidence.map((line) => element("li", {}, line))),
    element("p", {}, found.fix.place === "host" ? "On the host, " : "On this machine, ", element("code", {}, found.fix.file), ":"),
    element("pre", {}, found.fix.line),
    element("p", { className: "dim" }, "Back: " + found.fix.undo),
    element("p", {}, "Saves about " + time(found.saving_us) + " a login" +
      (found.ssh_cost_us === null ? "" : ", with stock ssh " + time(found.ssh_cost_us)) + "."));

  const findings = (title, list) => list.length === 0 ? [] : [element("h2", {}, title), ...list.map(finding)];

  const head = () => {
    const totals = data.logins.map((login) => (login.by === "ssh" ? "stock ssh " : "login ") + time(login.total_us));
    if (data.round_trip) totals.push("round trip " + time(data.round_trip.median_us));
    const server = [data.address, data.identification].filter(Boolean).join(", ");
    return [
      element("h1", {}, "Why is the login to " + data.host + " slow?"),
      element("p", { className: "dim" }, server),
      element("p", {}, totals.join(" · ")),
      element("p", { className: "dim" }, [data.tier + " tier", ...data.tier_notes].join("; ")),
      ...data.failures.map((failure) => element("p", {}, "A login failed: " + failure)),
    ];
  };

  // ---- the waterfall: a view of the time from `from` to `to`, and all bars placed by it -------------------------------------

  const trace = data.trace ?? null;
  const longest = Math.max(1, ...data.logins.map((login) => login.total_us), trace ? trace.wall_us : 0);
  const view = { from: 0, to: longest };
  const placed = [];
  let axis = null;

  const bars = (phase) => {
    let start = phase.start_us;
    return phase.shares.map((share) => {
      const bar = element("span", { className: "bar " + kind(share.of) });
      placed.push({ bar, start, end: start + share.us });
      start += share.us;
      return bar;
    });
  };
  const about = (phase) => [
    phase.title + ": " + time(phase.duration.median_us) + " (± " + time(phase.duration.spread_us) + ", " + phase.duration.count + " logins)",
    ...phase.shares.map((share) => part(share.of) + " " + time(share.us) + (share.round_trips === null ? "" : " (" + share.round_trips + " round trips)")),
    ...phase.details,
  ].join("\n");
  const row = (phase) => {
    const made = element("div", { className: "row" },
      element("span", {}, phase.title + (phase.requests > 1 ? " × " + phase.requests : "")),
      element("span", { className: "time" }, time(phase.duration.median_us)),
      element("span", { className: "track" }, ...bars(phase)));
    made.setAttribute("role", "listitem");
    made.dataset.words = (phase.title + " " + phase.phase + " " + phase.shares.map((share) => share.of).join(" ") + " " + phase.details.join(" ")).toLowerCase();
    return withTip(made, about(phase));
  };

  // ---- the login that was followed on the host: its critical path, calls of PAM's modules, and processes ----------------------

  const waits = {
    cpu: "works", contention: "waits for a processor", storage: "waits for a disk", timer: "waits for a timer",
    client: "waits for the client", network: "waits for the network", program: "waits for another program", unexplained: "unexplained",
  };
  // So that a browser can bear it: the data have all of them.
  const most = { pieces: 2000, processes: 100, calls: 20, files: 8 };
  const lasted = (one) => one.end_us - one.start_us;
  const largest = (list, size, count) => [...list].sort((one, other) => size(other) - size(one)).slice(0, count);

  const hostBar = (kind, start, end) => {
    const bar = element("span", { className: "bar " + kind });
    placed.push({ bar, start, end });
    return bar;
  };
  const hostRow = (name, depth, us, made, lines) => {
    const title = element("span", { className: "name" }, name);
    title.style.paddingLeft = Math.min(depth, 8) * 0.5 + "rem";
    const row = element("div", { className: "row" }, title, element("span", { className: "time" }, time(us)), element("span", { className: "track" }, ...made));
    row.setAttribute("role", "listitem");
    const words = lines.join("\n");
    row.dataset.words = words.toLowerCase();
    return withTip(row, words);
  };
  const sums = () => Object.entries(trace.shares_us).filter(([, us]) => us > 0).map(([name, us]) => waits[name] + " " + time(us));
  const shownPieces = () => largest(trace.path, lasted, most.pieces);

  // Children below who made them, each with how deep it stands. A number may be used again: the younger process has it then.
  const family = () => {
    const byPid = new Map();
    const all = trace.processes.filter((process) => process.start_us <= trace.wall_us).map((process) => {
      const above = byPid.get(process.parent) ?? null;
      const end_us = Math.min(process.end_us ?? trace.wall_us, trace.wall_us);
      const one = { ...process, end_us, above, depth: above ? above.depth + 1 : 0, children: [] };
      if (above) above.children.push(one);
      byPid.set(process.pid, one);
      return one;
    });
    const shown = new Set();
    for (const one of largest(all, (it) => Math.max(it.path_us, lasted(it)), most.processes)) {
      for (let at = one; at && !shown.has(at); at = at.above) shown.add(at);
    }
    const order = [];
    const waiting = all.filter((one) => !one.above).reverse();
    while (waiting.length > 0) {
      const one = waiting.pop();
      if (shown.has(one)) order.push(one);
      waiting.push(...one.children.toReversed());
    }
    return { order, left: all.length - order.length };
  };
  const processRow = (process, pieces) => {
    const own = pieces.filter((piece) => piece.pid === process.pid && piece.start_us >= process.start_us && piece.start_us < process.end_us);
    const bars = [hostBar("lived", process.start_us, process.end_us), ...own.map((piece) => hostBar("p-" + piece.waits_for, piece.start_us, piece.end_us))];
    return hostRow(process.name + " " + process.pid, process.depth, lasted(process), bars, [
      process.name + " " + process.pid + ": lived " + time(lasted(process)) + (process.path_us === null ? "" : ", " + time(process.path_us) + " of the login are its own and its children's"),
      ...(process.programs.length > 0 ? process.programs.map((program) => [program.file, ...program.arguments.slice(1)].join(" ")) : ["a fork that ran no program"]),
      ...(trace.lacks.includes("files") ? [] : ["opened " + process.opened + " files, asked disks for " + process.block_octets + " octets"]),
      ...process.connections.map((peer) => "connected to " + peer),
    ]);
  };
  const tellsTime = trace !== null && !trace.lacks.includes("time");
  const host = () => {
    const pieces = tellsTime ? shownPieces() : [];
    const path = hostRow("critical path", 0, trace.wall_us, pieces.map((piece) => hostBar("p-" + piece.waits_for, piece.start_us, piece.end_us)),
      ["critical path: what the first output waited for", ...sums()]);
    const calls = largest(trace.calls, lasted, most.calls).sort((one, other) => one.start_us - other.start_us).map((call) =>
      hostRow(call.module + " " + call.function, 0, lasted(call), [hostBar("call", call.start_us, call.end_us)],
        [call.module + " " + call.function + (call.about ? " " + call.about : "") + ": " + time(lasted(call)) + ", in process " + call.pid]));
    const { order, left } = family();
    const list = element("div", {}, ...(tellsTime ? [path] : []), ...calls, ...order.map((process) => processRow(process, pieces)));
    list.setAttribute("role", "list");
    return [
      element("h3", {}, "On the host: " + time(trace.wall_us) + (tellsTime ? ", " + time(trace.shares_us.unexplained) + " of it unexplained" : "") + " (" + trace.by + ")"),
      element("p", { className: "dim" }, "Of one login more, from the birth of its process: " + (tellsTime ? sums().join(" + ") : "its processes") + "."),
      ...trace.notes.map((note) => element("p", { className: "dim" }, note + ".")),
      list,
      ...(trace.files.length > 0 ? [element("p", { className: "dim" }, "Files whose opening took the longest: " +
        trace.files.slice(0, most.files).map((file) => file.path + " " + time(file.time_us) + " (" + file.times + " times)").join(", ") + ".")] : []),
      ...(left > 0 ? [element("p", { className: "dim" }, "And " + left + " shorter processes.")] : []),
    ];
  };
  const hostLegend = () => element("ul", { className: "legend" },
    ...Object.entries(waits).map(([name, title]) => element("li", {}, element("i", { className: "p-" + name }), title)),
    element("li", {}, element("i", { className: "lived" }), "a process lives, and the login waits for another"));

  const place = () => {
    const span = view.to - view.from;
    const percent = (us) => ((us - view.from) / span) * 100;
    for (const { bar, start, end } of placed) {
      bar.style.left = percent(start) + "%";
      bar.style.width = Math.max(percent(end) - percent(start), 0.15) + "%";
    }
    const rough = span / 5;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
    const ticks = [];
    for (let at = Math.ceil(view.from / step) * step; at < view.to; at += step) {
      const tick = element("span", { className: "tick" }, time(at));
      tick.style.left = percent(at) + "%";
      ticks.push(tick);
    }
    axis.replaceChildren(...ticks);
  };
  const show = (from, to) => {
    const span = Math.min(longest, Math.max(100, to - from));
    view.from = Math.min(Math.max(0, from), longest - span);
    view.to = view.from + span;
    place();
  };
  const zoom = (factor, at) => {
    const centre = view.from + (view.to - view.from) * at;
    show(centre - (centre - view.from) * factor, centre + (view.to - centre) * factor);
  };
  const pan = (part) => show(view.from + (view.to - view.from) * part, view.to + (view.to - view.from) * part);

  const waterfall = () => {
    const made = element("div", { className: "waterfall" });
    axis = element("span", { className: "track" });
    made.append(element("div", { className: "axis" }, element("span"), element("span"), axis));
    for (const login of data.logins) {
      const list = element("div", {}, ...login.phases.map(row));
      list.setAttribute("role", "list");
      made.append(element("h3", {}, whose[login.by] + ": " + time(login.total_us) + ", " + time(login.unexplained_us) + " of it unexplained"), list);
    }
    if (trace) made.append(...host());
    const within = (x) => { const box = axis.getBoundingClientRect(); return Math.min(1, Math.max(0, (x - box.left) / box.width)); };
    made.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 0.8 : 1.25, within(event.clientX));
    }, { passive: false });
    let dragged = null;
    made.addEventListener("pointerdown", (event) => { dragged = event.clientX; });
    addEventListener("pointerup", () => { dragged = null; });
    addEventListener("pointercancel", () => { dragged = null; });
    made.addEventListener("pointermove", (event) => {
      if (dragged === null) return;
      pan((dragged - event.clientX) / axis.getBoundingClientRect().width);
      dragged = event.clientX;
    });
    const keys = {
      "+": () => zoom(0.5, 0.5), "=": () => zoom(0.5, 0.5), "-": () => zoom(2, 0.5), "0": () => show(0, longest),
      ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2),
      ArrowUp: () => step(-1), ArrowDown: () => step(1),
    };
    const step = (by) => {
      const rows = [...made.querySelectorAll(".row:not([hidden])")];
      const next = rows[rows.indexOf(document.activeElement) + by];
      if (next) next.focus();
    };
    made.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
      event.preventDefault();
      keys[event.key]();
    });
    return made;
  };

  const button = (text, label, pressed) => {
    const made = element("button", { type: "button" }, text);
    made.setAttribute("aria-label", label);
    made.addEventListener("click", pressed);
    return made;
  };
  const legend = () => element("ul", { className: "legend" }, ...["cause", "unexplained", "network", "padding", "own"].map((of) =>
    element("li", {}, element("i", { className: of }), of === "cause" ? "a cause" : part(of))));

  // ---- all causes and resources --------------------------------------------------------------------------------------

  const statuses = { "found": "found", "ruled-out": "ruled out", "not-looked-at": "not looked at" };
  const line = (name, title, status, reason) => {
    const made = element("tr", {},
      element("td", {}, element("code", {}, name)),
      element("td", {}, title),
      element("td", { className: "status" + (status === "found" ? " found" : "") }, statuses[status]),
      element("td", { className: "dim" }, reason ?? ""));
    made.dataset.words = [name, title, statuses[status], reason ?? ""].join(" ").toLowerCase();
    return made;
  };
  const table = (lines) => element("div", { className: "scroll" }, element("table", { className: "causes" },
    element("thead", {}, element("tr", {}, ...["name", "what it is", "verdict", "because"].map((title) => element("th", { scope: "col" }, title)))),
    element("tbody", {}, ...lines)));

  main.append(
    ...head(),
    ...findings("Found", data.findings),
    ...(data.findings.length === 0 ? [element("p", {}, "Nothing found: no known cause costs this login anything that counts.")] : []),
    ...findings("Stock ssh alone pays for", data.ssh_findings),
    element("h2", {}, "Where the time goes"),
    element("div", { className: "tools" }, searchField("phase, cause, word", "search phases and causes"),
      button("+", "zoom in", () => zoom(0.5, 0.5)), button("−", "zoom out", () => zoom(2, 0.5)),
      button("←", "earlier", () => pan(-0.2)), button("→", "later", () => pan(0.2)),
      button("all", "show all", () => show(0, longest))),
    waterfall(), legend(), ...(trace ? [hostLegend()] : []),
    element("p", { className: "dim" }, "Keys in the waterfall: + and − zoom, ← and → move, ↑ and ↓ go from phase to phase, 0 shows all. Ctrl and the wheel zoom, too."),
    element("h2", {}, "Resources"),
    table(data.resources.map((resource) => line(resource.resource, "", resource.status, resource.reason))),
    element("h2", {}, "All causes"),
    table(data.causes.map((cause) => line(cause.cause, cause.title, cause.status, cause.reason))),
  );
  place();
})();
