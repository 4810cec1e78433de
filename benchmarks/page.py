# SPDX-License-Identifier: BSD-3-Clause
"""What is read: benchmarks/README.md, five rows of README.md, and the bars, all made of records."""

from __future__ import annotations

import statistics
import textwrap
from collections.abc import Iterable, Sequence

from benchmarks import root
from benchmarks.cases import all_cases
from benchmarks.harness import Case, Figure
from benchmarks.record import Record

begin_mark, end_mark = "<!-- written by python -m benchmarks report: begin -->", "<!-- end -->"
_no_gain = 1.1  # as the page says
_noise = 0.9  # of a bar: a smaller miss is noise


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown, which also reads well on a terminal."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(f"| {' | '.join(map(str.ljust, line, widths))} |" for line in lines)


def digits(value: float) -> str:
    """Two of them."""
    text = f"{value:#.2g}"
    return f"{float(text):.0f}" if "e+" in text else text.rstrip(".")


def seconds_text(seconds: float) -> str:
    units = (("ms", 1e3), ("\N{MICRO SIGN}s", 1e6), ("ns", 1e9))
    unit, factor = next((pair for pair in units if seconds * pair[1] >= 0.995), units[-1])
    return f"{digits(seconds * factor)} {unit}"


_both = " / ".join  # with one thread, and with all


def fastest(figures: dict[str, Figure], names: Iterable[str]) -> str | None:
    """The fastest contender of these, as far as they took part."""
    return min((name for name in names if name in figures), key=lambda name: figures[name].seconds, default=None)


class Row:
    """A case's figures on one machine, with one thread and with all; none where it was not measured there."""

    def __init__(self, case: Case, record: Record) -> None:
        self.figures = [cases[case.name] for _, cases in record.best() if case.name in cases]
        self.alternatives, self.limits = self._fastest("alternative"), self._fastest("limit")

    def _fastest(self, kind: str) -> list[tuple[str, Figure]]:
        found = [fastest(each, (n for n, figure in each.items() if figure.kind == kind)) for each in self.figures]
        return [(name, each[name]) for name, each in zip(found, self.figures, strict=True) if name is not None]

    def own(self) -> str:
        return _both(seconds_text(figures["fastpe"].seconds) for figures in self.figures)


def _times(found: Sequence[tuple[str, Figure]]) -> str:
    names = _both(dict.fromkeys(name for name, _ in found))
    return f"{_both(digits(figure.times) for _, figure in found)} ({names})" if found else ""


class CaseRows:
    """A case's rows on all machines."""

    def __init__(self, case: Case, records: Sequence[Record]) -> None:
        self.case, self.rows = case, [Row(case, record) for record in records]

    @property
    def alternatives(self) -> list[Figure]:
        return [figure for row in self.rows for _, figure in row.alternatives]

    @property
    def limits(self) -> list[Figure]:
        return [figure for row in self.rows for _, figure in row.limits]

    def start(self) -> tuple[str, str, str]:
        return f"`{self.case.work}`", self.case.array, self.case.encoding

    def cells(self) -> tuple[str, ...]:
        pairs = ((row.own(), _times(row.alternatives)) for row in self.rows)
        return *self.start(), *(cell for pair in pairs for cell in pair)


def rows_of(records: Sequence[Record], *pages: str) -> list[CaseRows]:
    """Of the cases that took part somewhere and have alternatives, in the order of the page."""
    found = [CaseRows(case, records) for case in all_cases() if case.page in pages]
    return [row for row in found if row.alternatives]


def label(record: Record) -> str:
    """The processor's name in short, with the size of its last cache."""
    name = record.machine["processor"].split("(")[0].split()
    return f"{name[0]}, {record.machine['caches'].split(', ')[-1]}"


def threads_of(record: Record) -> str:
    counts = _both(str(threads) for threads, _ in record.best())
    return f"{counts} thread" + ("s" if counts != "1" else "")


def _main_table(records: Sequence[Record], rows: Sequence[CaseRows]) -> str:
    columns = (
        (f"{label(each)}: fastpe, {threads_of(each)}", "times as fast as the fastest alternative") for each in records
    )
    header = ("work", "array", "sin and cos", *(name for pair in columns for name in pair))
    return table(header, [row.cells() for row in rows])


def _machine(record: Record) -> str:
    machine, versions = record.machine, ", ".join(f"{name} {version}" for name, version in record.versions.items())
    text = (
        f"* **{label(record)}**: {record.date.split()[0]}, {machine['processor']}, {machine['system']}, processors: "
        f"{machine['processors']}, caches together: {machine['caches']}; {versions}; instruction set: "
        f"{next(iter(record.settings)).split(',')[0]}. Other programs used {record.others_share:.0%} of a processor."
    )
    return textwrap.fill(text, 120, subsequent_indent="  ", break_on_hyphens=False)


def _fresh(record: Record) -> str:
    units = ("ms", "MiB", "MiB without code")
    ms, mib, rest = (digits(max((v[u] for v in record.fresh.values() if u in v), default=0.0)) for u in units)
    return f"* **{label(record)}**: {ms} ms; {mib} MiB, or {rest} MiB without the pages of fastpe's code"


def _spread(rows: Sequence[CaseRows]) -> str:
    """Of the ratios, said once: half of what lies between the quartiles."""
    shares = sorted((figure.high - figure.low) / figure.times / 2 for row in rows for figure in row.alternatives)
    shares = shares or [0.0]  # where only bars were asked for
    return f"±{statistics.median(shares):.0%} of the one shown, or ±{shares[-1]:.0%} in the row that varies most"


_page = """\
# How fast fastpe is

fastpe makes sinusoidal positional encodings and rotary embeddings on the CPU. `encode(L, d)` and `tables(L)` make the sines and
cosines of L positions: one array of d columns, or two arrays. `add_` and `add` add them to embeddings [batch, L, d]. `embed`
gathers the embeddings of token ids, scales them, and adds. `rotate_` and `rotate` rotate queries or keys [batch, heads, L, d],
with columns paired in halves or interleaved. `resize_table` resizes a learned grid of positions. A name with `_` changes its
array in place. Arrays are float32 unless said otherwise.

{table}

* **array** says where the result goes. A "new" array is allocated by the call, as is everything else that the code needs. For
  a "given" array, and "in place", all arrays exist before.
* **sin and cos** says where these come from. "computed": all contenders compute them in each call. "kept": all read rows that
  were computed before. Except in a "first call", fastpe's encoder, the others' frequencies and positions, and all code are warm.
* **Each machine** that was measured has two columns: the time of fastpe, and how that compares. Its name is that of the
  processor's maker with the size of the last-level cache.
* **the fastest alternative** is the fastest of NumPy, torch (eager) and, in `rotate`, onnxruntime doing the same work in the same
  state, [written](cases.py) as fast as we know how; "complex" stands for pairs as complex numbers. For queries out of a
  projection, which hosts in C rotate themselves, it is [their loop](../examples/c_library/host_loops.c), compiled for the
  machine and called by ctypes. The loop and NumPy have one thread. **times as fast** is above 1 where fastpe is faster,
  with one thread and with all: the median of each turn's ratio. Everyone takes turns, in a random order, on arrays of their
  own, in {processes} processes; times are also medians. From turn to turn, half of the measured ratios lie within
  {spread}.
* Every answer is compared with exact values before it is timed. Sines and cosines of the alternatives are off by up to
  {worst:.0e}, since they compute angles in float32, and those of fastpe by up to {own:.0e}.

Measured on:

{machines}

![How many times as fast as the fastest alternative](speed.svg)

## How near to memory

The speed of fastpe, with one thread and with all, divided by that of code which only writes the array (`np.full`, `out.fill`,
`np.copyto`, which always have one thread) or changes it (`x + 1`):

{limits}

How much longer `import fastpe` takes than `import numpy` by itself, and the most memory that a process's first call takes beyond
its arrays:

{fresh}

## Where it does not help

In these cases, of the table above and others, fastpe is less than 1.1 times as fast with one thread or with all. A "first call"
makes its encoder as well.

{no_help}

Narrow rows, of 2 to 32 columns, cost tens of nanoseconds each if there are gaps between them or their positions are not
consecutive: with a table at hand, NumPy's sum can then be several times as fast. Rows of fractional positions are never kept,
and computing them takes 10 to 30 times as long as adding a table of them in NumPy.

A model as a whole hardly gets faster: the matrix multiplications around the encoding take most of its time. fastpe runs on the
CPU only, and has no gradients.

## Not measured

Machines with more than {processors} processors, ARM, macOS, Windows, and machines that other programs keep busy.
`python -m benchmarks` measures yours in two minutes: see [CONTRIBUTING.md](../CONTRIBUTING.md#how-to-compare-speed). The
[records](results) have more cases, and AVX2.
"""

_readme = """

{table}

A "new" array is allocated by the call. Where sines and cosines are "computed", every contender computes them in each call;
where they are "kept", every contender reads rows that were computed before. Half of the measured ratios lie within
{spread}. Measured on {machines}.
[The page of all rows](https://github.com/fastpe/fastpe/blob/main/benchmarks/README.md) says how, and where fastpe does not help.

"""


def page_text(records: Sequence[Record]) -> str:
    every = rows_of(records, "no", "page", "page and README")
    rows = [row for row in every if row.case.page != "no"]
    computed = [row for row in every if row.case.group in ("encode", "tables") and row.case.encoding == "computed"]
    own = [figures["fastpe"].error for case in computed for row in case.rows for figures in row.figures]
    labels = [label(record) for record in records]
    limits = [(*row.start()[:2], *(_times(each.limits) for each in row.rows)) for row in rows if row.limits]
    no_help = [row for row in every if min(figure.times for figure in row.alternatives) < _no_gain]
    return _page.format(
        table=_main_table(records, rows),
        processes=max(record.processes for record in records),
        spread=_spread(rows),
        worst=max((figure.error for row in computed for figure in row.alternatives), default=0.0),
        own=max(own, default=0.0),
        machines="\n".join(map(_machine, records)),
        limits=table(("work", "array", *labels), limits),
        fresh="\n".join(map(_fresh, records)),
        no_help=table(
            ("work", "array", "sin and cos", *labels),
            [(*row.start(), *(_times(each.alternatives) for each in row.rows)) for row in no_help],
        ),
        processors=max(int(record.machine["processors"].split()[0]) for record in records),
    )


def write(records: Sequence[Record]) -> None:
    rows, readme = rows_of(records, "page and README"), root / "README.md"
    text = _readme.format(
        table=_main_table(records, rows),
        spread=_spread(rows),
        machines=" and ".join(
            f"{label(each)} ({each.machine['processors'].split()[0]} processors, {each.date.split()[0]})"
            for each in records
        ),
    )
    before, begin, rest = readme.read_text(encoding="utf-8").partition(begin_mark)
    _, end, after = rest.partition(end_mark)
    if not end:
        raise SystemExit(f"report: README.md lacks the lines {begin_mark!r} and {end_mark!r}")
    readme.write_text(before + begin + text + end + after, encoding="utf-8")
    (root / "benchmarks" / "README.md").write_text(page_text(records), encoding="utf-8")


def bars_text(record: Record) -> str:
    """Every bar with its figures, for the terminal."""
    rows, verdicts = [], []

    def verdict(value: float, least: float) -> str:
        verdicts.append("" if value >= least else " ~" if value >= least * _noise else " !")
        return verdicts[-1]

    for case, bar in [(each, bar) for each in all_cases() for bar in each.bars]:
        cells = []
        for setting, cases in record.settings.items():
            least, figures = bar.one_thread if ", 1 thread" in setting else bar.all_threads, cases.get(case.name, {})
            rival = fastest(figures, bar.rivals)
            times = figures[rival].times if rival else 0.0
            cells.append(digits(times) + verdict(times, least) if rival and least else "")
        least_text = _both("-" if value is None else f"{value:g}" for value in (bar.one_thread, bar.all_threads))
        if any(cells):
            obstacle = bar.obstacle if any(cell.endswith("!") for cell in cells) else ""
            rows.append((case.name, " or ".join(bar.rivals), least_text, *cells, obstacle))
    text = table(("work", "times as fast as", "1 thread / all", *record.settings, "why it is missed"), rows)
    for name, values in record.fresh.items():
        unit, value = next(iter(values.items()))
        most = {"ms": 10, "MiB": 1}[unit]
        found = ", ".join(f"{digits(each)} {what}" for what, each in values.items())
        text += f"\n{name}: {found}; at most {most} {unit}{verdict(most, value)}"
    met, near = verdicts.count(""), verdicts.count(" ~")
    return f"{text}\n{met} of {len(verdicts)} bars are met; {near} are missed by less than a tenth (~), others by more (!)\n"
