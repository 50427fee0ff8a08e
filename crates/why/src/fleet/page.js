// The page of many hosts: causes, each phase over all hosts, and a map of hosts and phases.
(() => {
  const heading = (scope) => (title) => element("th", { scope }, title);
  const cell = (text) => element("td", {}, text);

  const group = (found) => element("article", { className: "finding" },
    headOfFinding(found),
    element("p", {}, found.hosts.length + " hosts: " + found.hosts.map((host) => host.host + " (" + time(host.cost_us) + ")").join(", ")),
    element("p", {}, element("code", {}, found.file), ":"),
    element("pre", {}, found.line));

  const spread = (title, of) => element("tr", {}, heading("row")(title),
    ...[of.p50_us, of.p90_us, of.p99_us, of.max_us].map((us) => cell(time(us))), cell(of.slowest));
  const phases = () => element("div", { className: "scroll" }, element("table", { className: "heat" },
    element("thead", {}, element("tr", {}, ...["phase", "p50", "p90", "p99", "max", "slowest"].map(heading("col")))),
    element("tbody", {}, ...data.phases.map((phase) => spread(phase.title, phase.over_hosts)),
      ...(data.total ? [spread("the whole login", data.total)] : []))));

  // A cell is as warm as its phase takes longer there than in the middle of all hosts, the network aside.
  const usual = new Map();
  for (const phase of data.phases) {
    const own = data.hosts.flatMap((host) => host.phases.filter((known) => known.phase === phase.phase).map((known) => known.us - known.network_us));
    own.sort((one, other) => one - other);
    usual.set(phase.phase, own[Math.floor((own.length - 1) / 2)]);
  }
  const beyond = (phase) => Math.max(0, phase.us - phase.network_us - usual.get(phase.phase) - 5000);
  const warmest = Math.max(1, ...data.hosts.flatMap((host) => host.phases.map(beyond)));
  const mapped = (host, name) => {
    const phase = host.phases.find((known) => known.phase === name.phase);
    if (!phase) return cell("-");
    const made = cell(time(phase.us));
    const words = host.host + "\n" + name.title + " " + time(phase.us) + ", network " + time(phase.network_us) + "\n" + host.causes.join(", ");
    // By logarithm: else one host of ten seconds has all others look cold.
    made.style.setProperty("--heat", (60 * Math.log1p(beyond(phase) / 1000)) / Math.log1p(warmest / 1000));
    return withTip(made, words);
  };
  const hostRow = (host) => {
    const made = element("tr", {}, heading("row")(host.host), cell(time(host.total_us)), ...data.phases.map((phase) => mapped(host, phase)));
    made.dataset.words = (host.host + " " + host.causes.join(" ")).toLowerCase();
    return made;
  };
  const map = () => element("div", { className: "scroll" }, element("table", { className: "heat" },
    element("thead", {}, element("tr", {}, ...["host", "login", ...data.phases.map((phase) => phase.title)].map(heading("col")))),
    element("tbody", {}, ...data.hosts.map(hostRow))));

  main.append(
    element("h1", {}, "Logins to " + data.hosts.length + " hosts"),
    element("h2", {}, data.groups.length === 0 ? "Nothing found" : "Found"),
    ...data.groups.map(group),
    element("h2", {}, "Phases over all hosts"), phases(),
    element("h2", {}, "Hosts"), element("div", { className: "tools" }, searchField("host, cause", "search hosts and causes")), map(),
    ...data.unmeasured.map((host) => element("p", {}, "Not measured: " + host.host + ": " + host.reason)),
  );
})();
