"""A guard without a clock: instructions of one rotation, counted by callgrind, beside the counts that were committed.

    python benchmarks/callgrind/guard.py [--write] [--tolerance 0.05]

The counts belong to a compiler and to the instructions that valgrind knows, which are AVX2 (it shows no AVX-512); the
compiler is written beside them. Another compiler's counts are printed and judged with four times the tolerance. Exit
code 1 when a count grew beyond it; 0 with a message where there is no valgrind or no compiler.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src" / "posenc" / "native" / "source"
FLAGS = ["-std=c11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fexceptions", "-g0"]
CASES = {
    f"{layout}, {dtype}": (number, code)
    for number, layout in enumerate(("halves", "adjacent"))
    for code, dtype in enumerate(("float32", "bfloat16", "float16"))
}


def instructions(driver: Path, layout: int, dtype: int, rounds: int, folder: str) -> int:
    """Instructions of a whole run."""
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", str(driver)]
    ran = subprocess.run([*command, str(layout), str(dtype), str(rounds)], capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", ran.stderr)[1])


def counted(compiler: str) -> dict[str, int]:
    """Instructions of one rotation of 8 heads, 64 tokens, 128 channels, for each case."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        driver = Path(folder) / "driver"
        files = [str(HERE / "driver.c"), *map(str, sorted(SOURCE.glob("*.c")))]
        subprocess.run([compiler, *FLAGS, f"-I{SOURCE}", *files, "-o", str(driver)], check=True)
        for name, case in CASES.items():
            few, more = (instructions(driver, *case, rounds, folder) for rounds in (1, 3))
            found[name] = (more - few) // 2
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="commit these counts as the ones to compare with")
    parser.add_argument("--tolerance", type=float, default=0.05)
    args = parser.parse_args()
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if not compiler or not shutil.which("valgrind"):
        print("No C compiler or no valgrind: nothing counted.")
        return 0
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    found, file = counted(compiler), HERE / "counts.json"
    if args.write:
        file.write_text(json.dumps({"compiler": version, "counts": found}, indent=2) + "\n")
    known = json.loads(file.read_text())
    tolerance = args.tolerance * (1 if known["compiler"] == version else 4)
    grown = False
    for name, count in found.items():
        before = known["counts"][name]
        worse = count > before * (1 + tolerance)
        grown |= worse
        print(f"{name:20s} {count:9d} instructions, {count / before - 1:+.1%}{'   GREW' if worse else ''}")
    return int(grown)


if __name__ == "__main__":
    sys.exit(main())
