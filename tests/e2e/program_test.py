#!/usr/bin/env python3
"""Runs the sheave program as a user would, with the embedded model.

    program_test.py PATH_TO_SHEAVE [unittest arguments]
"""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PROGRAM = ""
ROOT = Path(__file__).resolve().parent.parent.parent
TINY = ROOT / "tests" / "fixtures" / "golden" / "llama"
MODEL = "smollm2"
QUESTION = "What is the capital of France?"


def sheave(*arguments, text=None, **options):
    """Runs the program; standard input is `text`, or nothing."""
    if text is None:
        options["stdin"] = subprocess.DEVNULL
    else:
        options["input"] = text
    return subprocess.run(
        [PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300, **options)


class Run(unittest.TestCase):
    def test_text_goes_to_stdout_and_the_rest_to_stderr(self):
        done = sheave("run", MODEL, QUESTION, "--exact")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "The capital of France is Paris.\n")
        self.assertRegex(
            done.stderr,
            r"^prompt: \d+ tokens, [\d.]+ tokens/s; generated: \d+ tokens, [\d.]+ tokens/s; "
            r"first token: [\d.]+ s; peak memory: \d+ MB\n$")

    def test_piped_text_is_the_prompt(self):
        done = sheave("run", MODEL, "--exact", text=QUESTION)
        self.assertEqual(done.stdout, "The capital of France is Paris.\n")

    def test_piped_text_follows_the_prompt(self):
        both = sheave("run", MODEL, "Answer:", "--max-tokens", 4, "--json", text=QUESTION)
        one = sheave("run", MODEL, f"Answer:\n\n{QUESTION}", "--max-tokens", 4, "--json")
        self.assertEqual(json.loads(both.stdout)["tokens"], json.loads(one.stdout)["tokens"])

    def test_json_is_one_object(self):
        done = sheave("run", MODEL, QUESTION, "--exact", "--json")
        answer = json.loads(done.stdout)
        self.assertEqual(answer["text"], "The capital of France is Paris.")
        self.assertEqual(answer["finish_reason"], "stop")
        self.assertEqual(answer["stats"]["generated_tokens"], len(answer["tokens"]))
        self.assertGreater(answer["stats"]["peak_memory_bytes"], 1e6)

    def test_max_tokens_ends_the_answer(self):
        answer = json.loads(sheave("run", MODEL, QUESTION, "--max-tokens", 3, "--json").stdout)
        self.assertEqual(len(answer["tokens"]), 3)
        self.assertEqual(answer["finish_reason"], "length")

    def test_stop_ends_the_answer_before_the_text(self):
        done = sheave("run", MODEL, QUESTION, "--exact", "--stop", " of", "--json")
        answer = json.loads(done.stdout)
        self.assertEqual(answer["text"], "The capital")
        self.assertEqual(answer["finish_reason"], "stop")

    def test_ignore_eos_goes_on(self):
        answer = json.loads(
            sheave("run", MODEL, QUESTION, "--ignore-eos", "--max-tokens", 30, "--json").stdout)
        self.assertEqual(len(answer["tokens"]), 30)

    def test_a_seed_reproduces_an_answer(self):
        def sample(*more):
            done = sheave("run", MODEL, QUESTION, "--temperature", 1.5, "--max-tokens", 12,
                          "--json", *more)
            return json.loads(done.stdout)
        first = sample()
        again = sample("--seed", first["seed"])
        self.assertEqual(first["tokens"], again["tokens"])
        self.assertNotEqual(sample("--seed", 1)["tokens"], sample("--seed", 2)["tokens"])

    def test_the_system_message_counts(self):
        plain = sheave("run", MODEL, "Who are you?", "--max-tokens", 20)
        pirate = sheave("run", MODEL, "Who are you?", "--max-tokens", 20,
                        "--system", "You are a pirate. Answer as a pirate.")
        self.assertNotEqual(plain.stdout, pirate.stdout)

    def test_raw_completes_the_text(self):
        done = sheave("run", MODEL, "The capital of France is", "--raw", "--max-tokens", 4)
        self.assertIn("Paris", done.stdout)

    def test_a_closed_pipe_ends_it_quietly(self):
        done = subprocess.run(
            f"'{PROGRAM}' run {MODEL} 'Count to one hundred.' </dev/null | head -c 1",
            shell=True, capture_output=True, text=True, timeout=300)
        self.assertEqual(len(done.stdout), 1)
        self.assertNotIn("sheave:", done.stderr)

    def test_a_full_disk_is_reported(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full here")
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run(
                [PROGRAM, "run", MODEL, QUESTION], stdin=subprocess.DEVNULL, stdout=full,
                stderr=subprocess.PIPE, text=True, timeout=300)
        self.assertEqual(done.returncode, 1)
        self.assertIn("can't write to standard output", done.stderr)


class BadInput(unittest.TestCase):
    def assert_refused(self, done, *parts):
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        lines = done.stderr.strip().split("\n")
        self.assertEqual(len(lines), 1, done.stderr)
        for part in parts:
            self.assertIn(str(part), lines[0])

    def test_models_that_are_not_there(self):
        self.assert_refused(sheave("run", "/no/such/model", "x"), "/no/such/model")
        self.assert_refused(sheave("inspect", "nonsense"), "nonsense", "smollm2")

    def test_broken_model_files(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "broken.gguf"
            for content in (b"", b"GGUF", b"not a model at all", b"GGUF\x03\0\0\0" + b"\xff" * 64):
                file.write_bytes(content)
                self.assert_refused(sheave("run", file, "x"), file)
            self.assert_refused(sheave("run", folder, "x"), "config.json")

    def test_a_model_cut_short_names_the_tensor(self):
        whole = (models_folder() / "SmolLM2-135M-Instruct.Q4_1.gguf").read_bytes()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "cut.gguf"
            file.write_bytes(whole[: len(whole) // 2])
            self.assert_refused(sheave("run", file, "x"), file, "tensor")

    def test_unsupported_architectures_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "config.json").write_text('{"model_type": "mamba2"}', encoding="utf-8")
            os.symlink(TINY / "model.safetensors", Path(folder, "model.safetensors"))
            self.assert_refused(sheave("run", folder, "x"), "mamba2", "llama")

    def test_prompts_longer_than_the_context(self):
        done = sheave("run", MODEL, text="word " * 9000)
        self.assert_refused(done, "8192", "tokens")
        self.assertRegex(done.stderr, r"the prompt has \d{4,} tokens")

    def test_prompts_that_are_not_utf8(self):
        done = subprocess.run([PROGRAM, "run", MODEL], input=b"\xff\xfe\xfd", capture_output=True,
                              timeout=300)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"UTF-8", done.stderr)

    def test_values_out_of_range(self):
        for flag, value in (("--top-p", "2"), ("--top-p", "0"), ("--temperature", "-1"),
                            ("--min-p", "1.5"), ("--top-k", "-3"), ("--max-tokens", "0"),
                            ("--threads", "0"), ("--seed", "x"), ("--temperature", "nan")):
            self.assert_refused(sheave("run", MODEL, "x", flag, value), flag)

    def test_unknown_flags_and_commands(self):
        self.assert_refused(sheave("run", MODEL, "x", "--warmth", "1"), "--warmth")
        self.assert_refused(sheave("serve"), "serve")
        self.assert_refused(sheave(), "a command is needed")

    def test_flags_that_have_no_effect_are_refused(self):
        self.assert_refused(sheave("run", MODEL, "x", "--raw", "--system", "y"), "--system")

    def test_kernel_targets_that_do_not_exist(self):
        done = sheave("run", MODEL, "x", env={**os.environ, "SHEAVE_KERNELS": "mmx"})
        self.assert_refused(done, "mmx", "base")


class OtherCommands(unittest.TestCase):
    def test_version_says_what_it_runs_on(self):
        self.assertRegex(
            sheave("--version").stdout,
            r"^sheave \d+\.\d+\.\d+ \(MLX [\d.]+\S*, device \w+, kernels \w+, \d+ threads\)$")

    def test_inspect_describes_the_model(self):
        model = json.loads(sheave("inspect", MODEL, "--json").stdout)
        self.assertEqual(model["architecture"], "llama")
        self.assertEqual(model["context"], 8192)
        self.assertEqual(len(model["layers"]), 30)
        self.assertEqual(len(model["tensors"]), 272)
        self.assertTrue(model["chat_template"])
        text = sheave("inspect", MODEL, "--tensors").stdout
        for part in ("Q4_1", "8192 tokens", "model.layers.29.mlp.down_proj.weight", "full"):
            self.assertIn(part, text)

    def test_inspect_shows_sliding_layers(self):
        model = json.loads(sheave("inspect", ROOT / "tests/fixtures/golden/gemma3_text",
                                  "--json").stdout)
        self.assertEqual([layer["attention"] for layer in model["layers"]],
                         ["sliding"] * 5 + ["full"] + ["sliding"] * 2)
        self.assertIn("rotating window=16", model["layers"][0]["cache"])

    def test_perplexity_counts_chunks(self):
        text = "the quick brown fox jumps over the lazy dog " * 40
        done = sheave("perplexity", TINY, "-", "--ctx", 64, "--json", text=text)
        result = json.loads(done.stdout)
        self.assertEqual(result["tokens"], result["chunks"] * 31)
        self.assertGreater(result["perplexity"], 1)
        short = sheave("perplexity", TINY, "-", "--ctx", 64, text="short")
        self.assertEqual(short.returncode, 2)

    def test_bench_measures_each_combination(self):
        done = sheave("bench", TINY, "--prefill", "8,40", "--decode", 4, "--depth", "0,16",
                      "--reps", 2, "--json", "--profile")
        self.assertEqual(done.stderr, "")
        report = json.loads(done.stdout)
        self.assertEqual(
            [(r["test"], r["tokens"], r["batch"], r["depth"]) for r in report["results"]],
            [("prefill", 8, 1, 0), ("prefill", 40, 1, 0), ("decode", 4, 1, 0),
             ("decode", 4, 1, 16)])
        for result in report["results"]:
            self.assertGreater(result["tokens_per_second"], 0)
            self.assertIn("outside_kernels", result["profile"])
        self.assertGreater(report["memory"]["peak_rss_bytes"], 0)

    def test_bench_exact_measures_exact_arithmetic(self):
        def operations(*more):
            done = sheave("bench", MODEL, "--prefill", 8, "--decode", 0, "--reps", 1,
                          "--warmup", 0, "--json", "--profile", *more)
            profile = json.loads(done.stdout)["results"][0]["profile"]
            return {operation["name"] for operation in profile["operations"]}
        self.assertIn("SheaveQuantizedTail", operations())
        exact = operations("--exact")
        self.assertIn("SheaveLinear", exact)
        self.assertFalse([name for name in exact if "Quantized" in name])

    def test_tokenize_shows_ids_and_pieces(self):
        result = json.loads(sheave("tokenize", MODEL, "Hello, world", "--json").stdout)
        self.assertEqual("".join(result["pieces"]), "Hello, world")
        self.assertEqual(result["count"], len(result["ids"]))
        special = json.loads(sheave("tokenize", MODEL, "<|im_end|>", "--json").stdout)
        plain = json.loads(sheave("tokenize", MODEL, "<|im_end|>", "--json", "--plain").stdout)
        self.assertEqual(special["count"], 1)
        self.assertGreater(plain["count"], 1)


class Terminal:
    """The program on a pseudo-terminal; stdout and stderr are both that."""

    def __init__(self, *arguments):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "dumb"
            os.execv(PROGRAM, [PROGRAM, *arguments])
        self.seen = ""

    def type(self, text):
        time.sleep(0.5)  # the prompt is shown a moment before the keys are the editor's
        os.write(self.fd, text.encode())

    def wait_for(self, pattern, seconds=120):
        """Reads on until the pattern matches what was not matched before."""
        end = time.monotonic() + seconds
        while not (match := re.search(pattern, self.seen, re.S)):
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"{pattern} not seen in {self.seen!r}")
            try:
                self.seen += os.read(self.fd, 4096).decode(errors="replace")
            except OSError as error:
                raise AssertionError(f"ended before {pattern}: {self.seen!r}") from error
        before, self.seen = self.seen[: match.end()], self.seen[match.end():]
        return before

    def exit_code(self, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            ready, _, _ = select.select([self.fd], [], [], 0.1)
            if ready:
                try:
                    self.seen += os.read(self.fd, 4096).decode(errors="replace")
                except OSError:
                    pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError(f"did not end: {self.seen!r}")


class Chat(unittest.TestCase):
    def test_remembers_and_can_be_stopped(self):
        chat = Terminal("run", MODEL, "--max-tokens", "200")
        chat.wait_for(r">>> ")
        chat.type("My name is Ada. Please answer in one short sentence.\r")
        chat.wait_for(r"prompt: \d+ tokens.*?>>> ")
        chat.type("Count from one to one hundred in words.\r")
        chat.wait_for(r"words\.[\r\n]+.{12}")
        chat.type("\x03")
        stopped = chat.wait_for(r"prompt: \d+ tokens.*?>>> ")
        self.assertIn("cached", stopped)
        chat.type('"""one\rtwo"""\r')
        chat.wait_for(r"prompt: \d+ tokens.*?>>> ")
        chat.type("/clear\r")
        chat.wait_for(r">>> ")
        chat.type("/nonsense\r")
        chat.wait_for(r"unknown command /nonsense.*?>>> ")
        chat.type("\x04")
        self.assertEqual(chat.exit_code(), 0)

    def test_ctrl_c_at_the_prompt_asks_before_leaving(self):
        chat = Terminal("run", str(TINY))
        chat.wait_for(r">>> ")
        chat.type("half a line\x03")
        chat.wait_for(r"Ctrl-C again.*?>>> ")
        chat.type("\x03")
        self.assertEqual(chat.exit_code(), 0)

    def test_shows_progress_while_loading(self):
        chat = Terminal("run", MODEL)
        chat.wait_for(r"loading \[[# ]{30}\] \d+ %")
        chat.wait_for(r">>> ")
        chat.type("/exit\r")
        self.assertEqual(chat.exit_code(), 0)


def models_folder():
    home = os.environ.get("SHEAVE_HOME")
    return (Path(home) if home else Path.home() / ".cache" / "sheave") / "models"


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
