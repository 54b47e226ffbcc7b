"""What the comparisons with other engines share: running Sheave, rounds, tables.

A Comparison has two callables that run one measurement and return tokens/s by
test name: Sheave's and the peer's. They run one after the other, never
together, and change places from round to round.
"""

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build" / "sheave"
FEATURES = [
    "avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_int8",
    "amx_bf16", "asimddp", "i8mm", "sve",
]


class Failure(Exception):
    """What the user should read instead of a traceback."""


def home() -> Path:
    folder = os.environ.get("SHEAVE_HOME")
    return Path(folder) if folder else Path.home() / ".cache" / "sheave"


def bench_folder() -> Path:
    """Where comparisons keep the files that they make."""
    folder = home() / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def run(command: list, **options) -> str:
    """Standard output of a command. Raises Failure with the end of its errors."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    except OSError as error:
        raise Failure(f"{words[0]}: {error.strerror}") from error
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
        raise Failure(f"{Path(words[0]).name} failed ({done.returncode}): " + " / ".join(last))
    return done.stdout


class Sheave:
    """`sheave bench` with the same threads and kernel target each time."""

    def __init__(self, threads: int, target: str | None) -> None:
        if not PROGRAM.exists():
            raise Failure(f"no {PROGRAM.relative_to(ROOT)}: make build")
        self.threads = threads
        self.environment = dict(os.environ)
        if target:
            self.environment["SHEAVE_KERNELS"] = target
        self.report: dict = {}

    def bench(self, model: Path, *flags) -> list[dict]:
        """The results of one timed run of each test, after one warm-up run."""
        command = [
            PROGRAM, "bench", model, "--json", "--reps", 1, "--threads", self.threads, *flags,
        ]
        self.report = json.loads(run(command, env=self.environment))
        return self.report["results"]

    def words(self) -> str:
        report = self.report
        if not report:
            return "Sheave"
        return (
            f"Sheave {report['version']} (kernels {report['target']}, "
            f"MLX {report['mlx_version']}, commit {commit()})"
        )


def commit() -> str:
    try:
        return run(["git", "-C", ROOT, "describe", "--always", "--dirty"]).strip()
    except Failure:
        return "unknown"


def machine() -> str:
    """Processor features and cores; nothing that names the machine."""
    flags: set = set()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.split(":")[0].strip() in ("flags", "Features"):
                flags.update(line.split(":", 1)[1].split())
                break
    except OSError:
        pass
    known = [feature for feature in FEATURES if feature in flags]
    return f"{' '.join(known) or 'unknown features'}; {usable_processors()} cores"


class Comparison:
    """The figures of the tests that run together, gathered round by round."""

    def __init__(self, model: str, tests: list[str], ours, theirs) -> None:
        self.model = model
        self.tests = tests
        self.ours = ours
        self.theirs = theirs
        self.rounds: list[tuple[dict, dict]] = []
        self.refusal = ""

    def warm_up(self) -> None:
        """One round that doesn't count. A Sheave that can't do it yet says so."""
        try:
            self.ours()
        except Failure as failure:
            self.refusal = str(failure)
            return
        self.theirs()

    def measure(self, ours_first: bool) -> None:
        if self.refusal:
            return
        if ours_first:
            ours = self.ours()
            theirs = self.theirs()
        else:
            theirs = self.theirs()
            ours = self.ours()
        self.rounds.append((ours, theirs))

    def rows(self) -> list[list[str]]:
        return [self.row(test) for test in self.tests]

    def row(self, name: str) -> list[str]:
        if self.refusal:
            return [self.model, name, "-", "-", "-", "-"]
        ours = [ours[name] for ours, _ in self.rounds]
        theirs = [theirs[name] for _, theirs in self.rounds]
        ratios = [a / b for a, b in zip(ours, theirs)]
        median_ours, median_theirs = statistics.median(ours), statistics.median(theirs)
        return [
            self.model, name, f"{median_ours:.1f}", f"{median_theirs:.1f}",
            f"{median_ours / median_theirs:.2f}", f"{min(ratios):.2f}..{max(ratios):.2f}",
        ]


def compare(comparisons: list[Comparison], rounds: int) -> None:
    """One warm-up round, then `rounds` rounds over all comparisons."""
    for number in range(rounds + 1):
        for comparison in comparisons:
            what = f"{comparison.model}, {', '.join(comparison.tests)}"
            say(f"round {number} of {rounds}: {what}")
            if number == 0:
                comparison.warm_up()
            else:
                comparison.measure(ours_first=number % 2 == 1)


def markdown(header: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]

    def line(cells: list[str]) -> str:
        first = [cell.ljust(width) for cell, width in zip(cells[:2], widths)]
        rest = [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:])]
        return "| " + " | ".join(first + rest) + " |"

    rule = ["-" * width for width in widths[:2]] + ["-" * (w - 1) + ":" for w in widths[2:]]
    return "\n".join([line(header), line(rule), *map(line, rows)])


def report(comparisons: list[Comparison], peer: str, facts: list[str]) -> str:
    """The table below what it was measured on, and what couldn't be."""
    header = ["model", "test", "Sheave", peer, "ratio", "ratio of rounds"]
    rows = [row for comparison in comparisons for row in comparison.rows()]
    lines = [f"- {fact}" for fact in facts]
    lines += [
        f"- not measured: {c.model}, {', '.join(c.tests)}: {c.refusal}"
        for c in comparisons if c.refusal
    ]
    return "\n".join(
        [f"# Sheave and {peer}", "", *lines, "", markdown(header, rows), "",
         "Tokens/s of all rows together, medians of the rounds; the ratio is that of the",
         "medians, above 1 where Sheave is faster; the last column is its range over rounds.", ""]
    )


def facts(sheave: Sheave, peer: str, rounds: int, load: float) -> list[str]:
    return [
        f"date: {datetime.date.today().isoformat()}",
        f"processor: {machine()}; load before: {load:.2f}",
        f"threads: {sheave.threads} each; rounds: {rounds}, alternating, after one to warm up",
        sheave.words(),
        peer,
    ]


def load_before() -> float:
    """The load average, with a warning where others are using the cores."""
    load = os.getloadavg()[0]
    if load > 0.5:
        say(f"others use this machine (load {load:.2f}): llama.cpp can lose far more by that "
            "than Sheave, so the ratios may flatter")
    return load


def usable_processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def add_common_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=int, default=usable_processors())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--target", help="Sheave's kernels, e.g. avx2 (default: the best)")
    parser.add_argument("--prompt", type=int, default=512, help="tokens of a prompt")
    parser.add_argument("--tokens", type=int, default=128, help="tokens to decode")
    parser.add_argument("--batch", type=int, default=8, help="parallel rows, 0 for none")
    parser.add_argument("--output", type=Path, help="also write the table to this file")


def finish(text: str, output: Path | None) -> None:
    print(text, end="")
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def guarded(main) -> int:
    """main()'s exit code; a Failure becomes one line and 1."""
    try:
        return main()
    except Failure as failure:
        say(f"{Path(sys.argv[0]).name}: {failure}")
        return 1
    except KeyboardInterrupt:
        return 130
