# SPDX-License-Identifier: BSD-3-Clause
"""The documents, made of the results that are kept: RESULTS.md, the charts, and a part of README.md."""

from __future__ import annotations

import pathlib
import textwrap
from collections.abc import Mapping, Sequence

from benchmarks import chart, results, tables
from benchmarks.cases import embed, encode, rotary
from benchmarks.peers import float32_idiom, float64_idiom, numpy_add, numpy_rotary, onnx_rotary, torch_add, torch_rotary
from benchmarks.results import BarResult, CaseResult, MachineResult, SettingResult
from benchmarks.tables import seconds_text

_root = pathlib.Path(__file__).parent.parent
begin_mark, end_mark = "<!-- written by python -m benchmarks report: begin -->", "<!-- end -->"

_how_to_read = """\
`python -m benchmarks report` writes this page from `benchmarks/results/`, which `python -m benchmarks record` measures. Read
the ratios and not the times: ratios carry over to another machine.

* A column has processes of its own. Its head names their instruction set and number of threads. torch, numba and the native
  loops have as many threads, and NumPy's own loops have one. Native loops are compiled for that instruction set. NumPy and
  torch use all instruction sets that the processor has.
* The rows of one table took turns in a random order, on the same arrays. `record` measures each table in several processes,
  with all others in between, since one process's arrays may lie well or badly in the caches. Times are medians over the
  rounds of all processes, and a ratio is the median of the ratios within rounds.
* Every answer was compared with the exact one before it was timed. `largest error` is the largest difference of all values,
  or of 1024 rows if the answer has more than 4 million values.
* `encoding` says where the encoding comes from. With `computed`, the call computes it, and with `cached`, it reads a table at
  hand. With `own`, the encoder computes it, or reads rows that it has kept because it was asked for them again. With `none`,
  there is no encoding: the row is a limit, and no rival.
* `output` says where the result goes: in place, into an array that was written before (`warm out`), or into a new array
  (`fresh`), where the operating system's page faults dominate.
* The careful loop (`limits.c`) does the same work with a table at hand, in segments, while all of the next segment is
  fetched: segments of 12 KiB into the first-level cache, or of 48 KiB into the second (`second level`). Encodings and
  tables have no table to read: there it computes the rows from anchors at hand, and angles by one multiplication, and
  writes them past the caches (`streaming`) or not, to arrays that begin on a cache line's boundary. NumPy's large ones
  begin 16 bytes behind one.
* The memory of a first call is what the process grows by. Much of it may be pages of code: processes share them, and the
  system maps many of them at once."""

_how_to_read_bars = """\
A target is what fastpe has to reach. A row compares the time of fastpe with that of other code. A cell has the ratio, and
its target in brackets. A ratio in bold misses its target. `fastpe` is an encoder that was made without `max_len`, after some
calls, so that it may read rows that it keeps. So does `encode` here, also beside NumPy's idioms, which compute theirs; the
case's own table has the time in which `encode` computes them."""

_how_to_read_missed = """\
`limit` is the ratio that fastpe would have if it took as long as the loop that shows what the machine allows."""


def machine_text(result: MachineResult) -> str:
    """One machine's part of RESULTS.md."""
    bars = result.bars()
    missed = [bar for bar in bars if not bar.holds]
    blocks = [
        *(f"**Warning:** {warning}." for warning in result.warnings),
        tables.table(("machine", ""), result.machine.items()),
        f"### Targets: {len(bars) - len(missed)} of {len(bars)} are met",
        _how_to_read_bars,
        _bars_table(result),
    ]
    if result.processes:
        blocks.append(
            tables.table(
                ("in fresh processes", "median", "target", ""),
                [
                    (bar.requirement, f"{bar.value.median:.3g} {bar.unit}", bar.bar, _verdict_beside_limit(bar))
                    for bar in result.processes
                ],
                (1, 2),
            )
        )
    if missed:
        blocks += [
            "### Targets that are missed, and what the machine allows",
            _how_to_read_missed,
            _missed_table(result),
        ]
    blocks.append("### Times")
    for name in _case_names(result):
        cases = [setting.case(name) for setting in result.settings]
        notes = dict.fromkeys(case.note for case in cases if case is not None and case.note)
        blocks += [f"#### {name}" + "".join(f" ({note})" for note in notes), _times_table(result.settings, cases)]
    return "\n\n".join(blocks) + "\n"


def _case_names(result: MachineResult) -> list[str]:
    return list(dict.fromkeys(case.name for setting in result.settings for case in setting.cases))


def _verdict(bar: BarResult) -> str:
    text = "met" if bar.holds else "missed"
    return text + (", within the spread" if bar.meets(bar.value.low) != bar.meets(bar.value.high) else "")


def _verdict_beside_limit(bar: BarResult) -> str:
    limit = "" if bar.value_at_limit is None else f"; {bar.value_at_limit:.3g} {bar.unit} {bar.limit}"
    return _verdict(bar) + limit


def _bars_table(result: MachineResult) -> str:
    def cell(setting: SettingResult, name: str, requirement: str) -> str:
        case = setting.case(name)
        bar = next((bar for bar in case.bars if bar.requirement == requirement), None) if case else None
        if bar is None:
            return ""
        value = f"{bar.value.median:.3g}"
        return f"{value if bar.holds else f'**{value}**'} ({bar.bar})"

    keys = dict.fromkeys(
        (case.name, bar.requirement)
        for name in _case_names(result)
        for setting in result.settings
        if (case := setting.case(name)) is not None
        for bar in case.bars
    )
    rows = [(*key, *(cell(setting, *key) for setting in result.settings)) for key in keys]
    header = ("work", "", *map(str, result.settings))
    return tables.table(header, rows, range(2, len(header)))


def _missed_table(result: MachineResult) -> str:
    rows = []
    for setting in result.settings:
        for case in setting.cases:
            for bar in case.bars:
                if bar.holds:
                    continue
                limit = ""
                if bar.value_at_limit is not None:
                    allowed = "met" if bar.meets(bar.value_at_limit) else "missed, too"
                    limit = f"{bar.value_at_limit:.3g} ({bar.limit}): {allowed}"
                spread = f"{bar.value.low:.3g} .. {bar.value.high:.3g}"
                value = f"{bar.value.median:.3g}"
                rows.append(
                    (str(setting), case.name, f"{bar.requirement} ({bar.rival})", bar.bar, value, spread, limit)
                )
    header = ("setting", "work", "compared (with the fastest rival)", "target", "median", "quartiles", "limit")
    return tables.table(header, rows, (3, 4, 5))


def _times_table(settings: Sequence[SettingResult], cases: Sequence[CaseResult | None]) -> str:
    def cell(case: CaseResult | None, name: str) -> str:
        time = case.time(name) if case is not None else None
        if case is None or time is None:
            return ""
        return f"{seconds_text(time.seconds.median)} ({case.bytes_moved / time.seconds.median / 1e9:.3g})"

    found = {time.contender: time for case in cases if case is not None for time in case.times}
    rows = [
        (name, time.encoding, time.output, *(cell(case, name) for case in cases), f"{time.largest_error:.1e}")
        for name, time in found.items()
    ]
    header = ("time (GB/s)", "encoding", "output", *map(str, settings), "largest error")
    return tables.table(header, rows, range(3, len(header)))


def results_text(machines: Sequence[MachineResult]) -> str:
    parts = [
        "# Benchmark results",
        _how_to_read,
        "![Speed of encode against size](encode.svg)",
        "![Speed of add_ against size](add.svg)",
    ]
    for result in machines:
        machine = result.machine
        title = f"## {machine['processor']} ({machine['family, model, stepping']}), {machine['date']}"
        parts += [title, machine_text(result).rstrip()]
    return "\n\n".join(parts) + "\n"


# The contender, its name in README.md, and whether README.md shows its error.
_Rival = tuple[str, str, bool]
_encode_rivals: tuple[_Rival, ...] = (
    (float32_idiom, "usual NumPy code in float32", True),
    (float64_idiom, "in float64", False),
    (encode.fill, "`out.fill(1.5)`", False),
)
_table_rivals: tuple[_Rival, ...] = ((numpy_add, "NumPy with a table", False), (torch_add, "torch with a table", False))
_float16_rivals: tuple[_Rival, ...] = (("NumPy np.add(x, table, out=x) float16", "NumPy with a table", False),)
_embed_rivals: tuple[_Rival, ...] = ((embed.three_passes, "NumPy in three passes", False),)
_decode_rivals: tuple[_Rival, ...] = (
    ("NumPy x += table[offset]", "NumPy with a table", False),
    ("torch tensor.add_(table[offset])", "torch with a table", False),
)
_rotary_rivals: tuple[_Rival, ...] = (
    (numpy_rotary, "usual NumPy code", False),
    (torch_rotary, "usual torch code", False),
    (onnx_rotary, "onnxruntime", False),
)
# The case, its name in README.md, fastpe's contender, and the rivals.
_readme_rows = (
    ("encode [512, 768]", "`encode` [512, 768]", "fastpe", _encode_rivals),
    ("encode [65536, 1024]", "`encode` [65536, 1024]", "fastpe", _encode_rivals),
    ("add_ [1, 512, 768]", "`add_` [1, 512, 768]", "fastpe", _table_rivals),
    ("add_ [8, 512, 768]", "`add_` [8, 512, 768]", "fastpe", _table_rivals),
    ("add_ [32, 512, 768]", "`add_` [32, 512, 768]", "fastpe", _table_rivals),
    ("add_ 16 bits [8, 512, 768]", "`add_` float16 [8, 512, 768]", "fastpe float16", _float16_rivals),
    ("embed [32, 512, 768] of 30522", "`embed` [32, 512, 768], scaled", "fastpe", _embed_rivals),
    ("decode [1, 1, 768]", "`add_` one token [1, 1, 768], `max_len`", "fastpe, max_len", _decode_rivals),
    ("rotate_ [1, 32, 2048, 128], halves", "`rotate_` [1, 32, 2048, 128]", "fastpe", _rotary_rivals),
    (rotary.one_token, "`rotate_` q and k, one token, `max_len`", "fastpe, max_len", _rotary_rivals[:1]),
)


def readme_text(result: MachineResult) -> str:
    """The text of README.md between the two marks: times of the first instruction set, with all threads and with one."""
    instruction_set = result.settings[0].instruction_set
    settings = [setting for setting in result.settings if setting.instruction_set == instruction_set]
    rows = []
    for name, title, own, rivals in _readme_rows:
        cases = [setting.case(name) for setting in settings]
        if cases[0] is None:
            continue
        beside = [
            # NumPy's loops have one thread in both settings.
            f"{called} {_times(cases[:1] if rival.startswith('NumPy') else cases, rival)}"
            + (f" (error {_error(cases, rival)})" if shows_error else "")
            for rival, called, shows_error in rivals
            if any(case is not None and case.time(rival) for case in cases)
        ]
        rows.append((title, _times(cases, own), _error(cases, own), "; ".join(beside)))
    threads = " / ".join(str(setting.threads) for setting in settings)
    bars = result.bars()
    machine = result.machine
    header = ("warm arrays", f"fastpe, {threads} threads", "largest error", "other code")
    caption = (
        f"{machine['processor']} ({machine['family, model, stepping']}), processors: {machine['processors']}, caches: "
        f"{machine['caches']}; {instruction_set}; fastpe {machine['fastpe']}; {machine['beside it']}; {machine['date']}. torch "
        f"has as many threads as fastpe, and NumPy has one. fastpe meets {sum(bar.holds for bar in bars)} of its {len(bars)} "
        "targets, most of which say how fast a call has to be beside other code. Those that it misses, and all rows, are in "
        "[RESULTS.md](https://github.com/fastpe/fastpe/blob/main/benchmarks/RESULTS.md)."
    )
    return f"{tables.table(header, rows, (1, 2))}\n\n{textwrap.fill(caption, 120)}"


def _times(cases: Sequence[CaseResult | None], contender: str) -> str:
    times = [case.time(contender) if case is not None else None for case in cases]
    return " / ".join(seconds_text(time.seconds.median) if time is not None else "?" for time in times)


def _error(cases: Sequence[CaseResult | None], contender: str) -> str:
    times = [case.time(contender) for case in cases if case is not None]
    return f"{max(time.largest_error for time in times if time is not None):.1e}"


def with_table(readme: str, text: str) -> str:
    """README.md with `text` between the two marks."""
    before, mark, rest = readme.partition(begin_mark)
    _, end, after = rest.partition(end_mark)
    if not (mark and end):
        raise ValueError(f"README.md lacks the lines {begin_mark!r} and {end_mark!r}")
    return f"{before}{mark}\n\n{text}\n\n{end}{after}"


def documents(machines: Sequence[MachineResult], readme: str) -> Mapping[pathlib.Path, str]:
    """What each file has to be; the charts and README.md show the machine that was measured last."""
    return {
        _root / "benchmarks" / "RESULTS.md": results_text(machines),
        _root / "benchmarks" / "encode.svg": chart.drawn(chart.encode_chart, machines[0]),
        _root / "benchmarks" / "add.svg": chart.drawn(chart.add_chart, machines[0]),
        _root / "README.md": with_table(readme, readme_text(machines[0])),
    }


def write() -> None:
    machines = results.stored()
    if not machines:
        raise SystemExit(
            f"report: {results.directory} holds no results; measure them with: python -m benchmarks record"
        )
    for path, text in documents(machines, (_root / "README.md").read_text(encoding="utf-8")).items():
        path.write_text(text, encoding="utf-8")
        print(path)
