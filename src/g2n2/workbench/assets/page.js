// The browser's part of the workbench: sends events, shows what the server sends, draws two graphs.
// Texts are written as text; HTML comes from the server, which escapes what users typed.
"use strict";

const workbench = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const MOST_NODES = 48;
  const ENDINGS = { python: "network.py", train: "train.sh", latex: "grammar.tex",
    certificate: "certificate.json", svg: "layer.svg", permalink: "permalink.txt" };
  const by = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const graphs = { g: empty(), h: empty() };
  const timers = {};
  let client = "";
  let tab = "python";
  let fault = null;

  function empty() {
    return { points: [], edges: [], colours: [], place: [], chosen: null, pending: false };
  }

  function send(action, value) {
    emitEvent("workbench", { action, value });
  }

  function later(key, wait, call) {
    clearTimeout(timers[key]);
    timers[key] = setTimeout(call, wait);
  }

  function every(key, wait, call) {  // at most once in so many milliseconds, the last one always
    if (timers[key]) { timers[key].call = call; return; }
    call();
    timers[key] = { call: null };
    setTimeout(() => {
      const last = timers[key].call;
      timers[key] = null;
      if (last) every(key, wait, last);
    }, wait);
  }

  // What the server sends.

  function update(message) {
    if (message.client) client = message.client;
    if (message.query !== undefined) {
      const query = message.query ? "?" + message.query : location.pathname;
      history.replaceState(null, "", query);
      if (tab === "permalink") by("takeaway").textContent = location.href;
    }
    for (const [name, html] of Object.entries(message.html || {})) {
      const place = by("r-" + name);
      if (place && place.innerHTML !== html) keepFocus(place, html);
    }
    for (const [name, value] of Object.entries(message.values || {})) setValue(name, value);
    if (message.tab) showTab(message.tab);
    if (message.fault !== undefined) { fault = message.fault; showFault(); }
    if (message.stale !== undefined)
      all(message.stale ? ".fresh" : ".fresh:not(#r-pair-report)")
        .forEach((part) => part.classList.toggle("stale", message.stale));
    if (message.stale_pair !== undefined)
      by("r-pair-report").classList.toggle("stale", message.stale_pair);
    if (message.step) showStep(message.step);
    for (const [slot, busy] of Object.entries(message.busy || {})) showBusy(slot, busy);
    for (const [side, graph] of Object.entries(message.graphs || {})) takeGraph(side, graph);
    if (message.colours) takeColours(message.colours);
    if (message.places) for (const side of "gh") graphs[side].place = message.places[side];
    if (message.graphs || message.colours || message.places) for (const side of "gh") draw(side);
    if (message.takeaway) showTakeaway(message.takeaway);
    if (message.notice) showNotice(message.notice);
  }

  function keepFocus(place, html) {
    const focus = document.activeElement;
    const inside = place.contains(focus);
    const rule = inside && focus.dataset.rule;
    const action = inside && focus.dataset.action;
    const value = inside && focus.dataset.tick;
    place.innerHTML = html;
    if (!inside) return;
    const same = all("[tabindex], button, input", place).find((item) =>
      (rule && item.dataset.rule === rule) || (value && item.dataset.tick === value) ||
      (action && item.dataset.action === action));
    if (same) same.focus({ preventScroll: true });
  }

  function setValue(name, value) {
    const input = by(name);
    if (!input) return;
    input.value = value;
    if (input.dataset.size !== undefined) showSize(input);
    if (name === "language") showFault();
  }

  function showFault() {
    const area = by("language"), backdrop = by("backdrop");
    backdrop.replaceChildren();
    const text = area.value;
    area.setAttribute("aria-invalid", fault ? "true" : "false");
    if (!fault) { by("fault").textContent = ""; return; }
    const end = Math.max(fault.end, fault.start + 1);
    const mark = document.createElement("mark");
    mark.textContent = text.slice(fault.start, end) || " ";
    backdrop.append(text.slice(0, fault.start), mark, text.slice(end));
    const before = text.slice(0, fault.start).split("\n");
    const where = text.includes("\n")
      ? `line ${before.length}, character ${before.at(-1).length + 1}`
      : `character ${fault.start + 1}`;
    by("fault").textContent = text ? `${where}: ${fault.message}` : fault.message;
    if (document.activeElement === area) by("fault").scrollIntoView({ block: "nearest" });
    backdrop.scrollTop = area.scrollTop;
  }

  function showStep({ value, max }) {
    const slider = by("step");
    slider.max = max;
    slider.value = value;
    slider.disabled = max === 0;
    by("previous").disabled = value <= 0;
    by("next").disabled = value >= max;
    by("step-text").textContent = `${value} of ${max} removed`;
    slider.setAttribute("aria-valuetext", `${value} of ${max} rules removed`);
  }

  function showBusy(slot, busy) {
    const place = by("busy-" + slot);
    if (!place) return;
    clearTimeout(timers["busy-" + slot]);
    if (!busy) { place.hidden = true; place.replaceChildren(); return; }
    if (!place.firstChild) {
      const bar = document.createElement("progress");
      bar.max = 1;
      const text = document.createElement("span");
      text.setAttribute("role", "status");
      const stop = document.createElement("button");
      stop.type = "button";
      stop.className = "chip";
      stop.dataset.action = "cancel";
      stop.dataset.value = slot;
      stop.textContent = "Cancel";
      place.append(bar, text, stop);
      // Most computations are over before anybody could read this.
      timers["busy-" + slot] = setTimeout(() => { place.hidden = false; }, 250);
    } else if (place.hidden) {
      timers["busy-" + slot] = setTimeout(() => { place.hidden = false; }, 250);
    }
    place.querySelector("progress").value = busy.share;
    place.querySelector("span").textContent = busy.text;
  }

  function showNotice(text) {
    const notice = by("notice");
    notice.textContent = text;
    notice.hidden = false;
    later("notice", 6000, () => { notice.hidden = true; });
  }

  function showTab(name) {
    tab = name;
    for (const button of all("[role=tab]")) {
      const on = button.dataset.tab === name;
      button.setAttribute("aria-selected", String(on));
      button.tabIndex = on ? 0 : -1;
    }
  }

  function showTakeaway({ tab: name, text }) {
    showTab(name);
    by("takeaway").textContent = name === "permalink" ? location.href : text;
  }

  function showSize(input) {
    document.querySelector(`output[for=${input.id}]`).textContent = input.value;
  }

  // Two graphs.

  function takeGraph(side, graph) {
    const own = graphs[side];
    const text = (edges) => JSON.stringify(edges.map((e) => [Math.min(...e), Math.max(...e)]).sort());
    const same = own.points.length === graph.points.length && text(own.edges) === text(graph.edges);
    if (own.pending && !same) return;  // it is about an earlier stage of what is being drawn
    own.pending = false;
    by("fault-" + side).textContent = graph.fault || graph.note;
    by("name-" + side).textContent = graph.fault ? "" : graph.name;
    if (graph.fault) {
      if (by(side).value.trim()) { own.points = []; own.edges = []; }
      return;
    }
    own.edges = graph.edges.map((edge) => [...edge]);
    if (!same) {  // a graph drawn here keeps the places its nodes were given
      own.points = graph.points.map(([x, y]) => [12 + 176 * x, 12 + 176 * y]);
      own.chosen = null;
    }
  }

  function takeColours(colours) {
    for (const side of "gh") graphs[side].colours = colours[side];
    const slider = by("round");
    slider.max = colours.max;
    slider.value = colours.round;
    slider.disabled = colours.max === 0;
    const text = by("round-text");
    text.textContent = colours.text;
    text.classList.toggle("apart", Boolean(colours.apart));
  }

  function node(kind, attributes, classes) {
    const made = document.createElementNS(SVG, kind);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (classes) made.setAttribute("class", classes);
    return made;
  }

  function draw(side) {
    const { points, edges, colours, place, chosen } = graphs[side];
    const picture = by("draw-" + side);
    const focus = document.activeElement && picture.contains(document.activeElement)
      ? document.activeElement.dataset.node : null;
    const lit = new Set(place.map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`));
    const touched = new Set(place.flat());
    const size = points.length > 24 ? 4.5 : points.length > 14 ? 6 : 7.5;
    const parts = [];
    for (const [a, b] of edges) {
      if (!points[a] || !points[b]) continue;
      const on = lit.has(`${Math.min(a, b)}-${Math.max(a, b)}`);
      const [[x1, y1], [x2, y2]] = [points[a], points[b]];
      parts.push(node("line", { x1, y1, x2, y2 }, on ? "edge lit" : "edge"));
    }
    points.forEach(([cx, cy], index) => {
      const hue = colours[index] === undefined ? "" : ` hue${colours[index] % 10}`;
      const classes = `node${hue}${index === chosen ? " chosen" : ""}${touched.has(index) ? " lit" : ""}`;
      const circle = node("circle", { cx, cy, r: size, tabindex: 0, role: "button", "data-node": index }, classes);
      const joined = edges.filter((e) => e.includes(index)).map((e) => 1 + (e[0] === index ? e[1] : e[0]));
      const colour = colours[index] === undefined ? "" : `, colour ${colours[index] + 1}`;
      circle.setAttribute("aria-label", `node ${index + 1}, joined to ${joined.join(", ") || "none"}${colour}`);
      parts.push(circle);
    });
    picture.replaceChildren(...parts);
    if (!points.length) {
      const text = node("text", { x: 100, y: 104 }, "empty");
      text.textContent = "click to draw";
      picture.append(text);
    }
    if (focus !== null) {
      const again = picture.querySelector(`[data-node="${focus}"]`);
      if (again) again.focus({ preventScroll: true });
    }
  }

  function edited(side) {
    const graph = graphs[side];
    graph.colours = [];
    graph.place = [];
    graph.pending = true;
    draw(side);
    later("drawn-" + side, 250, () =>
      send("drawn", { side, nodes: graph.points.length, edges: graph.edges }));
  }

  function addNode(side, point) {
    const graph = graphs[side];
    if (graph.points.length >= MOST_NODES) { showNotice(`A graph here has at most ${MOST_NODES} nodes.`); return; }
    graph.points.push(point);
    edited(side);
  }

  function freePoint(side) {
    const count = graphs[side].points.length;
    const angle = 2.4 * count, radius = 30 + 9 * Math.sqrt(count);
    return [100 + radius * Math.cos(angle), 100 + radius * Math.sin(angle)];
  }

  function choose(side, index) {
    const graph = graphs[side];
    if (graph.chosen === null) { graph.chosen = index; draw(side); return; }
    const other = graph.chosen;
    graph.chosen = null;
    if (other === index) { draw(side); return; }
    const at = graph.edges.findIndex((e) => e.includes(index) && e.includes(other));
    if (at >= 0) graph.edges.splice(at, 1);
    else graph.edges.push([other, index]);
    edited(side);
  }

  function removeNode(side, index) {
    const graph = graphs[side];
    graph.points.splice(index, 1);
    graph.edges = graph.edges.filter((e) => !e.includes(index))
      .map((e) => e.map((v) => (v > index ? v - 1 : v)));
    graph.chosen = null;
    edited(side);
  }

  function clearGraph(side) {
    Object.assign(graphs[side], empty());
    edited(side);
  }

  function pointIn(picture, event) {
    const place = new DOMPoint(event.clientX, event.clientY)
      .matrixTransform(picture.getScreenCTM().inverse());
    return [Math.min(192, Math.max(8, place.x)), Math.min(192, Math.max(8, place.y))];
  }

  // Events.

  document.addEventListener("click", (event) => {
    const target = event.target;
    const picture = target.closest("svg[id^=draw-]");
    if (picture) {
      const side = picture.id.slice(-1);
      const index = target.dataset.node;
      if (index === undefined) { if (event.detail < 2) addNode(side, pointIn(picture, event)); }
      else if (event.shiftKey) removeNode(side, Number(index));
      else choose(side, Number(index));
      return;
    }
    const button = target.closest("button");
    if (!button) return;
    const data = button.dataset;
    if (data.action) send(data.action, data.value ?? null);
    else if (data.tab) { showTab(data.tab); send("tab", data.tab); }
    else if (data.insert) insert(data.insert);
    else if (data.add) addNode(data.add, freePoint(data.add));
    else if (data.clear) clearGraph(data.clear);
    else if (button.id === "previous" || button.id === "next") {
      const slider = by("step");
      slider.value = Number(slider.value) + (button.id === "next" ? 1 : -1);
      send("step", slider.value);
    } else if (button.id === "theme") changeTheme();
    else if (button.id === "copy") copy();
    else if (button.id === "download") download();
  });

  document.addEventListener("keydown", (event) => {
    const target = event.target;
    if (target.dataset && target.dataset.node !== undefined) {
      const side = target.closest("svg").id.slice(-1);
      if (event.key === "Enter" || event.key === " ") { event.preventDefault(); choose(side, Number(target.dataset.node)); }
      if (event.key === "Delete" || event.key === "Backspace") { event.preventDefault(); removeNode(side, Number(target.dataset.node)); }
    }
    if (target.role === "tab" && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
      const tabs = all("[role=tab]");
      const next = tabs[(tabs.indexOf(target) + (event.key === "ArrowRight" ? 1 : tabs.length - 1)) % tabs.length];
      next.focus();
      next.click();
    }
  });

  document.addEventListener("input", (event) => {
    const input = event.target;
    if (input.id === "language") {
      fault = null;
      showFault();
      later("language", 150, () => send("language", input.value));
      by("example").value = "own";
    } else if (input.id === "step" || input.id === "round") {
      every(input.id, 40, () => send(input.id, input.value));
    } else if (input.dataset.size !== undefined) {
      showSize(input);
      every("sizes", 40, () => send("sizes",
        { nodes: by("nodes").value, width: by("width").value, layers: by("layers").value }));
    } else if (input.dataset.pair !== undefined) {
      by("gallery").value = "";
      graphs[input.id].pending = false;
      later("pair", 300, () => send("pair", { g: by("g").value, h: by("h").value }));
    } else if (input.dataset.tick !== undefined) {
      send("tick", [input.dataset.tick, input.checked]);
    } else if (input.tagName === "SELECT" && input.dataset.send) {
      if (input.id === "gallery") for (const side of "gh") graphs[side].pending = false;
      if (input.value) send(input.dataset.send, input.value);
    } else if (input.id === "file-input" && input.files.length) {
      upload(input.files[0]);
      input.value = "";
    }
  });

  document.addEventListener("scroll", (event) => {
    if (event.target.id === "language") by("backdrop").scrollTop = event.target.scrollTop;
  }, true);

  function insert(text) {
    const area = by("language");
    area.focus();
    area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
    area.dispatchEvent(new Event("input", { bubbles: true }));
  }

  // A rule under the pointer lights all that belongs to it.

  function light(rule) {
    const same = rule ? all("[data-rule]").filter((item) => item.dataset.rule === rule) : [];
    all(".lit-rule").forEach((item) => { if (!same.includes(item)) item.classList.remove("lit-rule"); });
    same.forEach((item) => item.classList.add("lit-rule"));
    document.body.classList.toggle("lighting", same.length > 0);
    const note = by("rule-note");
    if (!note) return;
    if (!rule) { note.textContent = ""; return; }
    const count = same.filter((item) => item.classList.contains("square")).length;
    const share = same.find((item) => item.dataset.share);
    const cost = share ? `, ${share.dataset.share} of the FLOPs` : "";
    note.textContent = `${rule}: ${count} obligation${count === 1 ? "" : "s"}${cost}`;
  }

  function lightMate(mate, root) {
    all(".mate-lit").forEach((item) => item.classList.remove("mate-lit"));
    if (mate === null) return;
    all(`[data-mate="${mate}"]`, root).forEach((item) => item.classList.add("mate-lit"));
  }

  function over(event) {
    const item = event.target.closest && event.target.closest("[data-rule]");
    light(item ? item.dataset.rule : null);
    const vertex = event.target.closest && event.target.closest("[data-mate]");
    lightMate(vertex ? vertex.dataset.mate : null, vertex ? vertex.closest("svg") : null);
  }

  document.addEventListener("pointerover", over);
  document.addEventListener("focusin", over);

  // Files, the clipboard, light and dark.

  async function upload(file) {
    const name = encodeURIComponent(file.name);
    try {
      const answer = await fetch(`/workbench-file?name=${name}`,
        { method: "POST", body: file, headers: { "X-Workbench-Client": client } });
      if (!answer.ok) showNotice((await answer.json()).error);
    } catch {
      showNotice("The file could not be sent: is the workbench still running?");
    }
  }

  for (const kind of ["dragover", "drop", "dragleave"])
    document.addEventListener(kind, (event) => {
      if (!event.dataTransfer || ![...event.dataTransfer.types].includes("Files")) return;
      event.preventDefault();
      by("drop").classList.toggle("over", kind === "dragover");
      if (kind === "drop" && event.dataTransfer.files.length) upload(event.dataTransfer.files[0]);
    });

  async function copy() {
    const text = by("takeaway").textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const range = document.createRange();
      range.selectNodeContents(by("takeaway"));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      document.execCommand("copy");
    }
    by("copy").textContent = "Copied";
    later("copy", 1500, () => { by("copy").textContent = "Copy"; });
  }

  function download() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([by("takeaway").textContent], { type: "text/plain" }));
    link.download = ENDINGS[tab];
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  function setTheme(theme) {
    document.documentElement.dataset.theme = theme;
  }

  function changeTheme() {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    localStorage.setItem("g2n2-theme", theme);
    setTheme(theme);
  }

  const dark = matchMedia("(prefers-color-scheme: dark)");
  setTheme(localStorage.getItem("g2n2-theme") || (dark.matches ? "dark" : "light"));

  const waiting = setInterval(() => {  // until NiceGUI has made the page and connected it
    if (!by("takeaway") || typeof emitEvent !== "function" || !window.did_handshake) return;
    clearInterval(waiting);
    emitEvent("workbench-ready", {});
  }, 30);

  return { update };
})();
window.workbench = workbench;
