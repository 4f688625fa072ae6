"""`python -m bench`: measure CtrlB beside its floors, print the table and keep it in docs/performance.md."""

import argparse
import tempfile
from pathlib import Path

from bench import claims, cold_start, hooks, report, searches, starts, uploads
from bench.servers import PROJECT

PARTS = {
    "start": starts.measure,
    "claims": claims.measure,
    "uploads": uploads.measure,
    "search": searches.measure,
}

OWN_TABLES = {"hooks": hooks, "cold": cold_start}
"""The parts that have a table of their own."""


def main() -> None:
    """Measure the parts that were asked for. Only what was measured in full is kept."""
    parser = argparse.ArgumentParser(prog="bench", description="Measure CtrlB beside its floors.")
    parser.add_argument(
        "parts", nargs="*", metavar="part", help=f"{', '.join([*PARTS, *OWN_TABLES])}; all of them if none is named"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, a minute or so; nothing is written down")
    options = parser.parse_args()
    if unknown := set(options.parts) - {*PARTS, *OWN_TABLES}:
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    (PROJECT / "dist").mkdir(exist_ok=True)
    # Not in /tmp, which is often memory: a row that is to survive a power cut must go to a disk.
    with tempfile.TemporaryDirectory(prefix="bench-", dir=PROJECT / "dist") as folder:
        lines = [
            line
            for name, measure in PARTS.items()
            if name in options.parts or not options.parts
            for line in measure(Path(folder), options.quick)
        ]
        for name, part in OWN_TABLES.items():
            if name in options.parts or not options.parts:
                own_table = part.measure(Path(folder), options.quick)
                print(own_table)
                if not options.quick:
                    report.keep(own_table, part.BEGIN, part.END)
    if not lines:
        return
    figures = report.table(lines, options.quick)
    print(figures)
    if not options.parts and not options.quick:
        report.keep(figures)


if __name__ == "__main__":
    main()
