"""Sources of entries that are made of more than one metric, and rows and columns by question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean, median
from typing import Any

from g2n2.errors import DataError

from .. import q3
from ..brec import BEYOND, TRAINED
from ..contenders import BOUND, CONTENDERS, MARKED, PAIRS, PPGN_ALIKE, SEPARATED, Contender
from ..counting import BEYOND_COUNTS, COUNTS, MERGED, NORMALISED, OTHER
from ..graph8c import MERGED_AT_RANDOM
from ..molecule_sets import SETS as MOLECULE_SETS
from ..molecule_sets import MoleculeSet
from ..molecules import CITED, CPU, GPU
from ..molecules import CONTENDERS as ON_MOLECULES
from ..molecules import SEEDS as MOLECULE_SEEDS
from ..q1 import GRAMMARS, fair_cell
from ..q2 import SECONDS
from ..q4 import BEST, MEDIAN, NETWORKS, WORST
from ..record import EARLIER, CellRecord
from . import long_runs, tu
from .tables import (
    EMPTY,
    KERNELS,
    Metric,
    Results,
    Source,
    Sources,
    TableEntry,
    Value,
    cited,
    duration,
    entry,
    markdown,
    minus,
    table,
    written,
)

FILTERS = ("low", "high", "band")
FILTER_LABELS = {
    "G2N2": "G²N²",
    "G2N2-chebyshev": "G²N², Chebyshev start",
    "G2N2-paper": "G²N², the paper's equations",
    "G2N2-slow": "G²N², a fifth of the rate",
    "G2N2-solved": "G²N², read-out solved first",
    "G2N2-projected": "G²N², read-out solved at every step",
    "G2N2-released": "G²N², as in the released script",
    "PPGN-alike": "PPGN, blocks of G²N²",
}
CATEGORIES = {
    "basic (60)": ("Basic",),
    "regular (140)": ("Regular", "4-Vertex_Condition", "Distance_Regular"),
    "extension (100)": ("Extension",),
    "CFI (100)": ("CFI",),
}
"""Columns of the published table of BREC to categories of the suite."""
MOLECULE_LABELS = {
    "forest-morgan": "forest, Morgan",
    "forest-descriptors": "forest, descriptors",
    "Chemprop": "Chemprop",
    "GINE": "GINE",
    "G2N2": "g2n2 defaults",
}
ON_CLASSES = [*CONTENDERS.values()]
"""Networks of the sets of classes and of counting."""
ON_CLASSES.insert(1 + list(CONTENDERS).index("PPGN"), PPGN_ALIKE)
PER_EPOCH = SECONDS.format("")
Network = tuple[str, int]
"""A network of Q4 and its number of layers."""


def power_label(contender: Contender) -> str:
    """`G²N², 8 layers`; `2 + 1 layers` with two of them before the marks."""
    name = "G²N²" if contender.network == "G2N2" else contender.network
    name += ", blocks of G²N²" if contender is PPGN_ALIKE else ""
    before = f"{trunk} + " if (trunk := contender.options.get("trunk")) else ""
    return f"{name}, {before}{contender.layers} layers"


def networks_by_depth() -> list[Network]:
    """All networks of Q4: G²N² first, then in the order they are run; by depth."""
    names = list(dict.fromkeys(n.name for n in NETWORKS))
    order = {name: ("G2N2" not in name, names.index(name)) for name in names}
    return sorted(((n.name, n.layers) for n in NETWORKS), key=lambda r: (order[r[0]], r[1]))


def molecule_problems() -> Iterator[tuple[MoleculeSet, str]]:
    """Every set with each of its splits."""
    return ((molecules, how) for molecules in MOLECULE_SETS for how in molecules.splits)


def molecule_score(
    results: Results, molecules: MoleculeSet, how: str, contender: str
) -> Value | None:
    cell = f"{molecules.name}/{how}/{contender}"
    return results.value("molecules", cell, f"test {molecules.metric}")


class Entries(Sources):
    """What templates call, beside the sources of all questions."""

    table = staticmethod(table)
    grammars: Mapping[str, str] = {label: name for name, label in GRAMMARS.items()}
    sets: Mapping[str, str] = {name: name for name in q3.SETS}
    filters: Mapping[str, str] = {f"{name}-pass R²": name for name in FILTERS}
    contenders: Mapping[str, str] = {power_label(c): c.name for c in ON_CLASSES}
    beyond_counts: Mapping[str, str] = {name.replace("_", " "): name for name in BEYOND_COUNTS}
    brec_columns: Mapping[str, str] = {name: name for name in cited("brec").columns}

    # Q1

    def error_of(self, grammar: str) -> TableEntry:
        return self.ours("q1", f"train/{grammar}", "test MAE r2 (bohr²)")()

    def fair_error(self, group: str) -> Source:
        """Errors at equal parameters or at equal time."""

        def error(grammar: str) -> TableEntry:
            return self.ours("q1", fair_cell(group, grammar), "test MAE r2 (bohr²)")()

        return error

    def fair_work(self, group: str) -> Source:
        return lambda grammar: self.results.work("q1", fair_cell(group, grammar))

    def exact_pairs_of_grammar(self, readout: str) -> Source:
        """Pairs of BREC by three layers and by any."""

        def pairs(grammar: str) -> str:
            record = self.results.first("q1", f"exact/{grammar}/{readout}")
            if record is None:
                return EMPTY
            metrics, layers = record.metrics, len(record.detail["by_layer"]) - 1
            limit = "" if metrics["proved"] else f" up to {layers} layers,"
            few, most = metrics["pairs separated, 3 layers"], metrics["pairs separated"]
            return f"{few:.0f} / {most:.0f}{limit} of {metrics['pairs']:.0f}"

        return pairs

    # Q2

    def targets_and_r2(self) -> dict[str, tuple[str, str]]:
        """Every target alone, and R² by its two other runs."""
        rows = {}
        for label, target in self.targets().items():
            rows[label] = target, ""
            if target == "r2":
                rows |= {f"{label}, 300 epochs": (target, "/long")}
                rows |= {f"{label}, less its extent": (target, "/extent")}
        return rows

    def long_runs(self, *recipes: str, before: str = "") -> dict[str, Source]:
        """The recorded long runs with such recipes, by target; `before` begins their labels."""
        ran = long_runs.patterns(self.results, *recipes)
        return {before + label: self.mae(pattern, work=True) for label, pattern in ran.items()}

    def timed_networks(self) -> dict[str, str]:
        """Those whose epochs were timed one after the other, to their names in metrics."""
        record = self.results.first("q2", "speed/networks")
        labels = {"G2N2": "G²N²", "G2N2, wide": "G²N², wide"}
        names = (
            m.removeprefix(PER_EPOCH) for m in (record.metrics if record else ()) if PER_EPOCH in m
        )
        return {labels.get(name, name): name for name in names}

    def of_any_target(self, metric: str, decimals: int) -> Source:
        """A last row of a table: a number of the first target its columns were run for."""

        def number(column: Metric) -> str:
            cells = (column.cell.format(target) for target in long_runs.AIMS)
            values = (self.results.value("q2", cell, metric) for cell in cells)
            return entry(next(filter(None, values), None), decimals).printed

        return number

    # Q3

    def best_other_gnn(self, name: str) -> str:
        best, _ = cited("tu").best(name, tu.NOT_OTHER_GNNS)
        return f"{cited('tu').rows[best][name].text} ({best})"

    def printed_rank(self, name: str) -> str:
        rank, among_gnns = (cited("tu-rank").rows[row][name] for row in ("all methods", "GNNs"))
        return f"{rank} ({among_gnns})"

    def by_statistic(
        self, pattern: str, models: Sequence[str] = q3.MODELS, only: Sequence[str] = q3.STATISTICS
    ) -> dict[str, Source]:
        """Our networks by each statistic, set by set; `pattern` is filled with both names."""
        return {
            pattern.format(tu.label(m), s): self._accuracy(f"{{}}/{m}", s)
            for m in models
            for s in only
        }

    def _accuracy(self, cell: str, statistic: str) -> Metric:
        return self.ours(
            "q3", cell, q3.ACCURACY.format(statistic), 1, q3.DEVIATION.format(statistic)
        )

    def counted_ranks(self) -> dict[str, Source]:
        """The rank of G²N² as counted from the printed rows."""

        def rank(without: tuple[str, ...], name: str) -> int:
            return cited("tu").rank(cited("tu").rows["G²N²"][name].number, name, without)

        chosen = {"all methods": (), "GNNs": KERNELS}
        return {f"{name}, counted": partial(rank, without) for name, without in chosen.items()}

    def paired(self) -> dict[str, Source]:
        """G²N² less each other network, fold by fold."""
        every = tu.differences(self.results)

        def difference(model: str, name: str) -> str:
            mean, error = every.get((name, model), (None, None))
            return EMPTY if mean is None else minus(f"{mean:+.1f} ± {error:.1f}")

        return {f"G²N² less {model}": partial(difference, model) for model in tu.OTHERS}

    def tu_variants(self, sets: Iterable[str] = q3.SETS) -> str:
        """Epochs and input of the GIN code: what the plan gives, the variant, the published row."""
        rows: dict[str, Source] = {}
        for variant in q3.VARIANTS:
            name, model = variant.set_name, variant.model
            if name not in sets or not self.results.of("q3", variant.name):
                continue
            for run in (q3.TuRun(name, model), variant):
                row = f"{tu.label(model)} on {name}, {run.epochs} epochs"
                if name.startswith("IMDB"):
                    row += f", degrees as {'classes' if run.one_hot else 'a number'}"
                last = entry(tu.last_epoch(self.results, run.name), 1)
                each = {s: self._accuracy(run.name, s)() for s in q3.STATISTICS}
                rows[row] = {"last epoch": last, **each}.__getitem__
            row = f"{model} on {name}, cited"
            rows[row] = defaultdict(str, {q3.GIN: cited("tu").rows[model][name].text}).__getitem__
        return table("accuracy (%)", rows, {name: name for name in ("last epoch", *q3.STATISTICS)})

    def errica_sets(self) -> dict[str, str]:
        """The sets that were run by Errica's splits."""
        return {n: n for n in q3.ERRICA_SETS if self.results.of("q3", f"errica/{n}/G2N2")}

    # Q4

    def filter_score(self, network: str, layers: int) -> Source:
        """The median test R², and in brackets the worst and the best run."""

        def shown(name: str) -> TableEntry:
            cell = f"{name}/{network}/layers-{layers}"
            middle, worst, best = (
                self.results.entry("q4", cell, metric, 4) for metric in (MEDIAN, WORST, BEST)
            )
            if middle.value is None:
                return middle
            return TableEntry(f"{middle} ({worst}–{best})", middle.value)

        return shown

    def filter_table(self, chosen: Sequence[Network] = ()) -> str:
        """Networks beside the published rows: all that were run, or those chosen."""
        tail = {"best step, low / high / band": "steps", "parameters": "size"}
        tail |= {"runs of each filter": "runs"}
        rows: list[tuple[str, Source]] = []
        for name, numbers in cited("filters").rows.items():
            row: dict[str, object] = {f: numbers[f] for f in FILTERS}
            row |= {"layers": "3" if name == "G²N²" else "", "steps": "", "size": "", "runs": "10"}
            rows.append((f"{name}, cited", row.__getitem__))
        for name, layers in chosen or networks_by_depth():
            records = [self.results.first("q4", f"{f}/{name}/layers-{layers}") for f in FILTERS]
            ran = [record for record in records if record]
            if ran:
                score = self.filter_score(name, layers)
                row = {f: score(f) for f in FILTERS} | {"layers": layers}
                row |= {"steps": _best_steps(records), "runs": _runs(records)}
                row["size"] = self.results.entry("q4", ran[0].cell, "parameters", 0).text
                rows.append((FILTER_LABELS.get(name, name), row.__getitem__))
        columns = {"layers": "layers", **self.filters, **({} if chosen else tail)}
        return table("network", rows, columns, "highest in column")

    # Power

    def brec_rows(self, names: Sequence[str] = ()) -> dict[str, Source]:
        """Pairs told apart after training, by category and in all, of networks with a record."""
        named = {**CONTENDERS, **MARKED}
        chosen = [named[name] for name in names] or ON_CLASSES
        return {
            f"{power_label(c)}, ours": partial(self._brec_count, f"brec/{c.name}")
            for c in chosen
            if self.results.first("power", f"brec/{c.name}")
        }

    def _brec_count(self, cell: str, column: str) -> TableEntry:
        if parts := CATEGORIES.get(column):
            values = (self.results.value("power", cell, f"{TRAINED}, {part}") for part in parts)
            count = sum(value.mean for value in values if value)
            return TableEntry(written(count, 0), count)
        if column == "judged":
            return TableEntry(f"{self.results.of('power', cell)[0].done:,}")
        metric = {"beyond its bound": BEYOND, "exact bound": BOUND}.get(column, TRAINED)
        return self.results.entry("power", cell, metric, 0)

    def on_brec(self) -> dict[str, str]:
        ran = [c for c in ON_CLASSES if self.results.first("power", f"brec/{c.name}")]
        return {power_label(c): c.name for c in ran}

    def exact_pairs(self, set_name: str) -> Source:
        """Pairs the words tell apart, or the bound if there is no grammar, of all."""

        def pairs(name: str) -> str:
            words, bound, every = self._power(f"{set_name}/{name}", SEPARATED, BOUND, PAIRS)
            separated = bound if words is None else words
            if every is None or separated is None:
                return EMPTY
            return f"{'at most ' if words is None else ''}{separated:,.0f} of {every:,.0f}"

        return pairs

    def merged_by_words(self, name: str) -> str:
        """Pairs of graph8c."""
        random, words, pairs = self._power(f"graph8c/{name}", MERGED_AT_RANDOM, SEPARATED, PAIRS)
        if random is None or pairs is None:
            return EMPTY
        return "" if words is None else written(pairs - words, 0)

    def _power(self, cell: str, *metrics: str) -> list[float | None]:
        values = (self.results.value("power", cell, metric) for metric in metrics)
        return [value.mean if value else None for value in values]

    def count_rows(self) -> dict[str, Source]:
        """Error of each count, and pairs the words merge though the count differs."""
        joint, rows = "counting/joint/{}", dict[str, Source]()
        for count in COUNTS:
            name = count.replace("_", "-")
            rows[f"{name}, all six at once"] = self.ours("power", joint, NORMALISED.format(count))
            rows[f"{name}, exact: pairs it differs in"] = partial(self._exact_count, count)
        rows["all six at once: parameters"] = self.size("power", joint)
        return {**rows, "all six at once: seeds × work": self.work("power", joint)}

    def _exact_count(self, count: str, name: str) -> str:
        if CONTENDERS.get(name, PPGN_ALIKE).grammar is None:
            return ""
        differ, merged = self._power(f"counting/exact/{name}", OTHER.format(count), MERGED)
        return EMPTY if differ is None else f"{differ:,.0f} of {merged:,.0f}"

    # molecules

    def molecules_table(self) -> str:
        """Score and time of each contender: CPU time, or wall time on a GPU."""
        check_same_molecules(self.results)
        rows = {
            f"{molecules.name}, {how} ({molecules.metric})": partial(self._score, molecules, how)
            for molecules, how in molecule_problems()
        }
        columns = {MOLECULE_LABELS[name]: name for name in ON_MOLECULES}
        return table("test score (time)", rows, columns, "highest in row")

    def _score(self, molecules: MoleculeSet, how: str, contender: str) -> TableEntry:
        """A score with its time; errors are compared by their negatives."""
        value = molecule_score(self.results, molecules, how, contender)
        if value is None and (molecules.name, contender) in CITED:
            published = cited(molecules.name).rows[contender][molecules.metric]
            return replace(published, text=f"{published.text} (cited)")
        if value is None:
            return TableEntry(EMPTY)
        cell = f"{molecules.name}/{how}/{contender}"
        times = ((self.results.value("molecules", cell, label), label) for label in (CPU, GPU))
        remarks = [
            duration(time.mean) + (" GPU" if label == GPU else "") for time, label in times if time
        ]
        if value.seeds < len(MOLECULE_SEEDS):
            remarks.append(f"{value.seeds} seed" + "s" * (value.seeds > 1))
        sign = -1.0 if molecules.metric == "RMSE" else 1.0
        return TableEntry(f"{entry(value, 3)} ({', '.join(remarks)})", sign * value.mean)

    # all records

    def provenance_table(self) -> str:
        """Seeds, work, time, machine and commit of every cell."""
        rows = []
        for (question, cell), records in self.results.by_cell.items():
            origins = [
                ", ".join(sorted({text for r in records for text in _origins(r.provenance, key)}))
                for key in ("device", "commit")
            ]
            time = duration(fmean(record.seconds for record in records))
            rows.append((question, cell, self.results.work(question, cell), time, *origins))
        headers = ["question", "cell", "seeds × work", "time a seed", "machine", "commit"]
        return markdown(headers, rows)


def _best_steps(records: list[CellRecord | None]) -> str:
    """Median best step of each filter's runs, `+` if it is the last one: `120 / 400+ / 0`."""
    texts = []
    for record in records:
        middle = round(median(run["best_step"] for run in record.detail["runs"])) if record else 0
        last = record is not None and middle == record.config["steps"]
        texts.append(f"{middle:,}" + "+" * last if record else EMPTY)
    return " / ".join(texts)


def _runs(records: list[CellRecord | None]) -> str:
    """Runs, steps and rate: `10; at most 400 steps at rate 0.005`."""
    config = next(record.config for record in records if record)
    done = [str(record.done) if record else EMPTY for record in records]
    counts = done[0] if len(set(done)) == 1 else " / ".join(done)
    return f"{counts}; at most {config['steps']:,} steps at rate {config['rate']}"


def check_same_molecules(results: Results) -> None:
    """Refuse records of one set, split and seed whose file or split differ."""
    digests: dict[tuple[str, str, int], tuple[str, str]] = {}
    for record in (r for r in results.records if r.question == "molecules"):
        name, how, _ = record.cell.split("/")
        digest = record.data[name], record.data["split"]
        if digests.setdefault((name, how, record.seed), digest) != digest:
            raise DataError(
                f"molecules {record.cell}, seed {record.seed}: its file or split is not that of "
                "the other contenders; delete its record and run it again"
            )


def _origins(provenance: Mapping[str, Any], key: str) -> list[str]:
    """Devices or commits of all attempts; a commit has `+` if the files differed from it."""
    texts = [str(a.get(key) or "?") for a in (provenance, *provenance.get(EARLIER, ()))]
    if key == "commit":
        texts = [text[:9] + ("+" if "with changes" in text else "") for text in texts]
    return texts
