"""One open page: its state, its running computations, and what is sent to the browser."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..described import counted
from ..errors import G2N2Error
from ..verdict import Verdict
from . import views
from .chain import DerivedChain, derive_chain
from .files import FileReport, inspect_file
from .jobs import JobFailed, Jobs
from .languages import EXAMPLES, OWN, Fault, Language, fragment_text, read_language
from .network import Network, network_power, plan, words_power
from .pairs import GALLERY, Drawn, PairReport, compare_pair, draw_pair, graph6_of_edges
from .state import State
from .takeaway import texts

_LOG = logging.getLogger("g2n2.workbench")
Message = dict[str, Any]

_NO_COLOURS: Message = {"g": [], "h": [], "max": 0, "round": 0, "text": ""}
LABELS = {
    "chain": "Deriving",
    "words": "Comparing the words with WL tests",
    "network": "Comparing the network with WL tests",
    "graphs": "Drawing the graphs",
    "pair": "Comparing the graphs",
    "file": "Reading the file",
}
"""What each kind of computation is called while it runs."""


@dataclass
class Session:
    """A page."""

    jobs: Jobs  # where computations run
    send: Callable[[Message], None]  # sends a message to the browser
    state: State  # what the page shows
    language: Language | None = None
    ticked: frozenset[str] = frozenset()  # operations of the last text without a fault
    chain: DerivedChain | None = None
    words: Verdict | None = None
    net: Verdict | None = None
    network: Network | None = None
    report: PairReport | None = None
    file: FileReport | None = None
    tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    def start(self) -> None:
        """Fill a fresh page."""
        self.show_inputs()
        self.read_language()
        self.draw_graphs()

    def close(self) -> None:
        """End whatever runs for this page."""
        for slot in list(self.tasks):
            self.cancel(slot, silent=True)

    def receive(self, message: Any) -> None:
        """One event of the page; what makes no sense is ignored."""
        if not isinstance(message, dict):
            return
        action, value = message.get("action"), message.get("value")
        handler = getattr(self, f"on_{str(action).replace('-', '_')}", None)
        if handler is None:
            return
        try:
            handler(value)
        except G2N2Error as fault:
            self.send({"notice": str(fault).split("\n")[0]})
        except Exception:
            _LOG.exception("the event %r failed", action)
            self.send({"notice": "a fault of the workbench; the terminal that runs it says more"})

    # Events of the left column.

    def on_language(self, text: Any) -> None:
        self.change(language=text, step=-1, case=0)
        self.read_language()

    def on_tick(self, value: Any) -> None:
        name, on = str(value[0]), bool(value[1])
        new = self.ticked | {name} if on else self.ticked - {name}
        self.change(language=fragment_text(new), step=-1, case=0)
        self.show_inputs("language", "example")
        self.read_language()

    def on_example(self, name: Any) -> None:
        text = OWN if name == "own" else EXAMPLES[name][0] if name in EXAMPLES else None
        if text is None:
            return
        self.change(language=text, step=-1, case=0)
        self.show_inputs("language")
        self.read_language()

    # Events of the middle column.

    def on_step(self, value: Any) -> None:
        self.change(step=value, case=0)
        self.show_chain()

    def on_case(self, value: Any) -> None:
        self.change(case=value)
        self.show_chain()

    def on_sizes(self, value: Any) -> None:
        before = self.state
        if isinstance(value, dict):
            self.change(**{k: v for k, v in value.items() if k in ("nodes", "width", "layers")})
        self.show_network()
        if self.state.layers != before.layers:
            self.place_network()
            self.compare()

    # Events of the right column.

    def on_pair(self, value: Any) -> None:
        if isinstance(value, dict):
            self.change(**{k: v for k, v in value.items() if k in ("g", "h")}, round=0, place=0)
        self.draw_graphs()

    def on_gallery(self, name: Any) -> None:
        if name in GALLERY:
            g, h = GALLERY[name]
            self.change(g=g, h=h, round=0, place=0)
            self.show_inputs("g", "h")
            self.draw_graphs()

    def on_drawn(self, value: Any) -> None:
        side = "h" if value["side"] == "h" else "g"
        nodes = int(value["nodes"])
        text = graph6_of_edges(nodes, value["edges"]) if nodes else ""
        text = f"graph6:{text}" if text.isalpha() else text
        self.change(**{side: text}, round=0, place=0)
        self.show_inputs(side, "gallery")
        self.draw_graphs()

    def on_test(self, value: Any) -> None:
        self.change(test=value, round=99)
        self.show_pair()

    def on_round(self, value: Any) -> None:
        self.change(round=value)
        self.show_pair()

    def on_place(self, value: Any) -> None:
        self.change(place=value)
        self.show_pair()

    # Events of the bottom, and of computations.

    def on_tab(self, value: Any) -> None:
        self.change(tab=value)
        self.show_takeaway()

    def on_cancel(self, slot: Any) -> None:
        self.cancel(str(slot))

    def on_use_file(self, _: Any) -> None:
        if self.file is None or not self.file.language:
            return
        sizes = {"layers": self.file.layers, "width": self.file.width} if self.file.layers else {}
        self.change(language=self.file.language, step=-1, case=0, **sizes)
        self.show_inputs("language", "example", "width", "layers")
        self.read_language()

    def on_close_file(self, _: Any) -> None:
        self.file = None
        self.send({"html": {"file": ""}})

    # What follows from a change.

    def change(self, **values: Any) -> None:
        self.state = self.state.changed(**values)
        self.send({"query": self.state.query()})

    def read_language(self) -> None:
        """Read the text; a right one is derived, a wrong one is explained where it is."""
        language = read_language(self.state.language)
        for slot in ("chain", "words", "network"):
            self.cancel(slot, silent=True)
        if isinstance(language, Fault):
            self.language = None
            if not self.state.language.strip():
                self.ticked = frozenset()
            fault = {"message": language.message, "start": language.start, "end": language.end}
            ticks = {"ticks": views.ticks(self.ticked)}
            self.send({"fault": fault, "stale": True, "html": ticks})
            return
        self.language, self.ticked = language, language.operations
        self.send({"fault": None, "stale": True, "html": {"ticks": views.ticks(self.ticked)}})
        self.compute("chain", self.derived, derive_chain, language.grammar)

    def derived(self, chain: DerivedChain) -> None:
        self.chain, self.words, self.net = chain, None, None
        self.send({"stale": False})
        self.show_chain()
        self.show_network()
        self.show_power()
        if self.report is not None or not self.running("graphs"):
            self.compare()
        self.compute("words", self.placed_words, words_power, chain.exhaustive, chain.reduced)
        self.place_network()

    def placed_words(self, verdict: Verdict) -> None:
        self.words = verdict
        self.show_power()

    def place_network(self) -> None:
        if self.chain is not None and self.network is not None:
            reduced = self.chain.reduced
            self.compute("network", self.placed_network, network_power, reduced, self.state.layers)

    def placed_network(self, verdict: Verdict) -> None:
        self.net = verdict
        self.show_power()

    def compare(self) -> None:
        if self.chain is not None and not self.running("chain"):
            pair = (self.state.g, self.state.h)
            self.compute(
                "pair", self.compared, compare_pair, self.chain.reduced, self.state.layers, pair
            )

    def compared(self, report: PairReport) -> None:
        self.report = report
        self.show_pair()

    def draw_graphs(self) -> None:
        """Draw the pair at once, and compare it after that."""
        self.report = None
        self.cancel("pair", silent=True)
        self.send({"colours": _NO_COLOURS, "places": {"g": [], "h": []}, "stale_pair": True})
        self.compute("graphs", self.drew, draw_pair, (self.state.g, self.state.h))

    def drew(self, graphs: tuple[Drawn, Drawn]) -> None:
        drawn = {side: vars(graph) for side, graph in zip("gh", graphs, strict=True)}
        self.send({"graphs": drawn, "html": {"graphs": ""}})
        if any(graph.fault for graph in graphs):
            self.send({"html": {"pair-report": "", "pair": ""}})
            return
        self.compare()

    def inspect(self, path: Path, name: str) -> Awaitable[None]:
        """Read a dropped file; the task ends when that is done."""
        self.compute("file", self.inspected, inspect_file, str(path), name, keep=False)
        return self.tasks["file"]

    def inspected(self, report: FileReport) -> None:
        self.file = report
        self.send({"html": {"file": views.file_report(report)}})

    # Computations.

    def compute(
        self,
        slot: str,
        done: Callable[[Any], None],
        function: Callable[..., Any],
        *arguments: Any,
        keep: bool = True,
    ) -> None:
        """Start a computation; the one that runs in this slot is cancelled."""
        self.cancel(slot, silent=True)

        def progress(share: float, text: str) -> None:
            self.send({"busy": {slot: {"share": share, "text": f"{LABELS[slot]}: {text}"}}})

        async def work() -> None:
            try:
                result = await self.jobs.run(function, *arguments, progress=progress, keep=keep)
            except JobFailed as fault:
                self.send({"busy": {slot: None}, "html": {slot: views.message(str(fault))}})
                return
            self.tasks.pop(slot, None)
            self.send({"busy": {slot: None}})
            done(result)

        self.send({"busy": {slot: {"share": 0, "text": f"{LABELS[slot]} …"}}})
        self.tasks[slot] = asyncio.create_task(work())

    def running(self, slot: str) -> bool:
        task = self.tasks.get(slot)
        return task is not None and not task.done()

    def cancel(self, slot: str, silent: bool = False) -> None:
        task = self.tasks.pop(slot, None)
        if task is None or task.done():
            return
        task.cancel()
        self.send({"busy": {slot: None}})
        if not silent:
            if slot == "chain":
                self.send({"stale": True})
            text = f"{LABELS[slot]} was cancelled. Change an input to start again."
            self.send({"html": {slot: views.message(text)}})

    # What is shown.

    def show_inputs(self, *names: str) -> None:
        """Set inputs to the state, all where none is named: others may be under the user's hand."""
        state = self.state
        example = next((n for n, (t, _) in EXAMPLES.items() if t == state.language), "own")
        gallery = next((n for n, p in GALLERY.items() if p == (state.g, state.h)), "")
        shown = ("language", "nodes", "width", "layers", "g", "h", "test")
        values = {"example": example, "gallery": gallery}
        values |= {name: getattr(state, name) for name in shown}
        if names:
            self.send({"values": {name: values[name] for name in names}})
        else:
            self.send({"values": values, "tab": state.tab})

    def show_chain(self) -> None:
        chain = self.chain
        if chain is None:
            return
        step = chain.shown_step(self.state.step)
        html = {
            "exhaustive": views.exhaustive(chain, step),
            "proof": views.proof(chain, step, self.state.case),
            "obligations": views.obligations(chain),
            "reduced": views.reduced(chain),
            "chain": "",
        }
        slider = {"value": step, "max": len(chain.removals)}
        self.send({"html": html, "step": slider})
        self.show_takeaway()

    def show_network(self) -> None:
        if self.chain is None:
            return
        state = self.state
        try:
            layer_plan = plan(self.chain.reduced, state.nodes, state.width, state.layers)
        except G2N2Error as fault:
            self.network = None
            self.send({"html": {"layer": views.message(str(fault)), "network": ""}})
            return
        self.network = layer_plan
        self.send({"html": {"layer": views.network(layer_plan, state.nodes), "network": ""}})
        self.show_takeaway()

    def show_power(self) -> None:
        html = views.power(self.words, self.net, self.state.layers)
        self.send({"html": {"power": html, "words": ""}})

    def show_pair(self) -> None:
        report, state = self.report, self.state
        if report is None:
            return
        self.send(
            {
                "html": {"pair-report": views.pair(report, state.place), "pair": ""},
                "stale_pair": False,
                "colours": self.colours(report),
                "places": {
                    side: found[state.place % len(found)] if found else []
                    for side, found in zip("gh", report.places, strict=True)
                },
            }
        )

    def colours(self, report: PairReport) -> Message:
        """The colours of the chosen test after the chosen round, and a line about them."""
        rounds = report.rounds.get(self.state.test)
        if rounds is None or not rounds.colours:
            note = rounds.note if rounds is not None else ""
            if rounds is not None and not note:
                note = "no colours: with marks a node has another colour in each marked copy"
            return {**_NO_COLOURS, "text": note}
        last = len(rounds.colours) - 1
        at = min(self.state.round, last)
        colours = rounds.colours[at]
        separated = rounds.separated_at is not None and rounds.separated_at <= at
        counts = len({colour for part in colours for colour in part})
        sentence = "the counts differ" if separated else "the graphs look alike"
        when = f"round {at} of {last}" if last else "no round splits a colour"
        text = f"{when}: {counted(counts, 'colour')}, {sentence}"
        g, h = colours
        return {"g": g, "h": h, "max": last, "round": at, "text": text, "apart": separated}

    def show_takeaway(self) -> None:
        if self.chain is None or self.language is None:
            return
        drawing = self.network.drawing if self.network else ""
        contents = texts(self.state, self.language, self.chain, drawing)
        self.send({"takeaway": {"tab": self.state.tab, "text": contents[self.state.tab]}})


def script(message: Message) -> str:
    """The call that hands a message to the page."""
    return f"workbench.update({json.dumps(message, ensure_ascii=False)})"
