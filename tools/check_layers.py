#!/usr/bin/env python3
"""Checks that every room includes only what the table below allows.

    tools/check_layers.py [ROOT]

Reads the #include lines of src/sheave/ROOM/**.{h,cpp} and prints one line per
breach, file:line: what; exits 1 if there are any. docs/architecture.md explains
the table.
"""

import re
import sys
from pathlib import Path

# room: rooms it may include. A path instead of a room allows that header alone.
ROOMS = {
    "base": [],
    "text": ["base"],
    "kernels": ["base"],
    "weights": ["base", "kernels"],
    "cache": ["base", "kernels"],
    "nn": ["base", "kernels", "cache"],
    "models": ["nn", "cache", "kernels", "weights", "base"],
    "engine": [
        "models/model.h", "models/registry.h", "cache", "text", "base",
        "kernels/logits/logits.h", "kernels/profile.h", "kernels/runtime.h", "weights/text_assets.h",
    ],
    "server": ["engine", "text", "base"],
    "cli": ["server", "engine", "base"],
}

# Third-party headers: pattern, and the rooms that may include them.
THIRD_PARTY = [
    (r"mlx/", ["kernels", "weights", "cache", "nn", "models", "engine"]),
    (r"boost/", ["server"]),
    (r"nlohmann/", ["weights", "engine", "server", "cli"]),
    (r"sheave_text\.h", ["text"]),
    (r"CLI/", ["cli"]),
    (r"histedit\.h", ["cli"]),
    (r"spdlog/", ["base"]),
]

# Files without MLX inside rooms that may use it: they decide in integers, or
# are fuzzed and used without it.
WITHOUT_MLX = [
    r"cache/.*_(state|plan)\.(h|cpp)",
    r"cache/step_layout\.(h|cpp)",
    r"engine/(scheduler|request|scheduler_output)\.(h|cpp)",
    r"kernels/.*-inl\.h",
    r"kernels/(kernel_table|weight_format|column_range)\.h",
    r"kernels/targets/.*",
    r"weights/(config_|gguf|safetensors|model_config|model_limits|tensor_|finite|mapped_file|"
    r"text_assets|json_object|family_defaults|utf8|checkpoint_files).*\.(h|cpp)",
]

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def allowed_room(room: str, header: str) -> bool:
    """Whether `room` may include sheave/`header`."""
    target = header.split("/")[0]
    return target == room or target in ROOMS[room] or header in ROOMS[room]


def breach(room: str, relative: str, header: str) -> str:
    """What is wrong with an include line, or "" if nothing is."""
    if header.startswith("sheave/"):
        inside = header.removeprefix("sheave/")
        return "" if allowed_room(room, inside) else f"{room} may not include {inside}"
    for pattern, rooms in THIRD_PARTY:
        if not re.match(pattern, header):
            continue
        test = relative.endswith(("_test.cpp", "_test_support.h"))
        if room not in rooms and not (test and pattern == r"nlohmann/"):
            return f"{room} may not include {header}"
        if pattern == r"mlx/" and not test and any(
                re.fullmatch(p, relative) for p in WITHOUT_MLX):
            return f"{relative} must not include MLX ({header})"
    return ""


def check(root: Path) -> list:
    """All breaches below root/src/sheave."""
    source, found = root / "src" / "sheave", []
    for file in sorted(source.rglob("*")):
        if file.suffix not in (".h", ".cpp"):
            continue
        relative = file.relative_to(source).as_posix()
        room = relative.split("/")[0]
        if room not in ROOMS:
            found.append(f"{file}:1: {room} is not a room of the table")
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if match := INCLUDE.match(line):
                if what := breach(room, relative, match.group(2)):
                    found.append(f"{file}:{number}: {what}")
    return found


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    found = check(root)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
