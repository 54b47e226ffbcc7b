#!/usr/bin/env python3
"""Records greedy answers of the bundled models for tests/fixtures/greedy.

    tools/record_greedy.py > tests/fixtures/greedy/greedy.json

Runs build/sheave with --exact, 32 tokens, temperature 0. Read the texts before
committing them: the test only says that they stay the same.
"""

import json
import subprocess
import sys
from pathlib import Path

SHEAVE = Path(__file__).resolve().parent.parent / "build" / "sheave"
PROMPTS = {
    "smollm2": (True, [
        "Why does the moon have phases?",
        "What is the capital of France?",
        "Write one sentence about a lighthouse.",
        "How many days are there in a week?",
        "Explain what a compiler does in simple words.",
    ]),
    "gemma3-270m": (False, [
        "The capital of France is",
        "Water boils at a temperature of",
        "Once upon a time, in a small village by the sea,",
        "My favourite colour is",
        "def fibonacci(n):",
    ]),
}


def main() -> int:
    recorded = {}
    for model, (chat, prompts) in PROMPTS.items():
        recorded[model] = []
        for prompt in prompts:
            command = [SHEAVE, "run", model, prompt, "--exact", "--json", "--max-tokens", "32"]
            done = subprocess.run(
                command + ([] if chat else ["--raw"]),
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
            text = json.loads(done.stdout)["text"]
            recorded[model].append({"prompt": prompt, "chat": chat, "text": text})
    json.dump(recorded, sys.stdout, indent=2, ensure_ascii=False)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
