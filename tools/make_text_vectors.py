#!/usr/bin/env python3
"""Makes the reference files of tests/fixtures/text.

    python tools/make_text_vectors.py --llama-cpp DIR --smollm2 FILE.gguf \
        --gemma3 FILE.gguf

DIR is a llama.cpp checkout with build/bin/libllama.so; without --llama-cpp
only what needs no model is made. Needs Python packages tokenizers,
transformers and jinja2. What each file holds: tests/fixtures/text/README.md.
"""

import argparse
import json
import random
import struct
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "tests" / "fixtures" / "text"

# How a template wants tool calls where it can't take them as they come; the
# references are what Transformers gives for messages in that shape.
SHAPES = {"string_calls": "string", "xml_calls": "object", "channels": "object",
          "dated_tools": "object", "brackets": "object"}
# Other templates would print these as Python prints a list or None; there
# Sheave converts the messages instead.
ONLY_FOR = {"parts": {"turns"}, "string_calls": {
    "string_calls", "xml_calls", "channels", "thinking", "dated_tools", "brackets"}}

READER = r"""
#include "llama.h"
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>
static bool get(void* p, size_t n) { return fread(p, 1, n, stdin) == n; }
int main(int, char** argv) {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  auto params = llama_model_default_params();
  params.vocab_only = true;
  auto* model = llama_model_load_from_file(argv[1], params);
  if (!model) return 1;
  auto* vocab = llama_model_get_vocab(model);
  uint32_t head[2];
  while (get(head, sizeof head)) {
    std::string text(head[0], 0);
    if (head[0] && !get(text.data(), head[0])) return 2;
    std::vector<llama_token> ids(text.size() + 16);
    int n = llama_tokenize(vocab, text.data(), text.size(), ids.data(),
                           ids.size(), false, head[1]);
    if (n < 0) return 3;
    for (int i = 0; i < n; ++i) printf("%d ", ids[i]);
    puts("");
  }
}
"""

PLAIN = [
    "", " ", "  ", "   ", "\n", "\n\n", "\n\n\n", "\t", "\t\t", " \n", "\n ", "\r\n",
    "\r\n\r\n", "\r", " \t \n \r\n ", "a", " a", "a ", " a ", "  a  ", "a\n", "\na",
    "Hello", " Hello", "Hello World", " Hello World", "Hello, world!", "HELLO world",
    "hello  world", "hello   world", "hello     world     ", "a b c d e", "I'm", "I'M",
    "we've they'll she'd you're it's don't", "WE'VE THEY'LL", "' s 't", "''''", "\"'\"",
    "1", "12", "123", "1234", "12345", "1234567890", "3.14159", "1,000,000.50", "0x1F",
    "2026-12-01T09:05:00Z", "v1.2.3-rc4", "10% of 5€ = 0.5€", "½ ¼ ² ³ ①", "٣٤٥ १२३ 一二三",
    "int main() { return 0; }", "for i in range(10):\n    print(i)\n",
    "def f(x):\n\treturn x ** 2  # square\n\n\nclass A:\n    pass",
    "#include <vector>\nstd::vector<std::pair<int, float>> v{{1, 2.f}};",
    "SELECT * FROM t WHERE a = 'b' AND c <> 1;", "{\"key\": [1, 2, {\"n\": null}]}",
    "<div class=\"x\">&amp;&lt;</div>", "a->b; a::b; a=>b; a==b; a!=b; a<=b; !a",
    "https://example.org/a/b?c=d&e=f#g", "user@example.org", "C:\\dir\\file.txt",
    "$ ls -la | grep foo > /dev/null 2>&1", "```python\nprint('x')\n```", "`a` **b** _c_ ~~d~~",
    "| a | b |\n|---|---|\n| 1 | 2 |", "- item\n  - sub\n    - subsub", "===========", "----", "....",
    "!!!???", "…—–“”‘’«»", "###", "@@@", "&&&", "(((", ")))", "[[]]", "{{}}", "\\n \\t \\u0041",
    "é", "e\u0301", "É è ñ ü ß ø å æ œ", "naïve café", "ﬁ ﬂ ﬀ", "Ａ１！", "İstanbul ıI", "Straße STRASSE",
    "Привет, мир!", "Ελληνικά κείμενο", "שלום עולם", "مرحبا بالعالم", "नमस्ते दुनिया", "สวัสดีชาวโลก",
    "こんにちは世界", "カタカナ ひらがな 漢字", "你好,世界!你好吗?", "中文和English混合123", "안녕하세요 세계",
    "한글 조합 한글", "ខ្ញុំ", "བོད་ཡིག", "ქართული", "አማርኛ", "𝕳𝖊𝖑𝖑𝖔", "𠀀𠁀𪚥",
    "😀", "😀😀", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇳🇴🇺🇸", "🧑🏿‍💻 codes", "❤️", "1️⃣", "a😀b", " 😀 ",
    "\u200b", "\u200d", "\ufeff", "\u00a0", "\u3000", "\u2028\u2029", "a\u00a0b", "\u00ad", "\ufffd", "\ufffd\ufffd",
    "\x00", "\x01\x02\x1b[31m", "a\x00b", "\x7f", "\u0080\u009f", "\ud7ff\ue000", "\U0010ffff", "\uffff",
    "▁", "▁▁", "a▁b", " ▁ ", "Ġ", "ĠHello", "Ċ", "Ā", "<0x0A>", "<0xE2>", "<0xzz>", "<unk>",
    "<s>", "</s>", "<bos>", "<eos>", "<pad>", "<mask>", "[INST]", "<|im_start|>", "<|im_end|>", "<|endoftext|>",
    "<start_of_turn>", "<end_of_turn>", "<unused0>", "<repo_name>", "<empty_output>", "<jupyter_code>", "<td>", "<h1>",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<|im_start|> user", "a<|im_end|>b", " <|im_end|> ",
    "<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n", "a<end_of_turn>b", " <end_of_turn> x",
    "<bos><bos>Hi", "<bos> Hi", "<|im_end|><|im_end|>", "<|im_end", "im_end|>", "<|IM_END|>", "<|im_end|>\n\n<|im_start|>",
    "<table><tr><td>1</td></tr></table>", "<eos>\n<bos>", "x<unused1>y", "<|im_start|>системa",
    "The quick brown fox jumps over the lazy dog.", "Lorem ipsum dolor sit amet, consectetur adipiscing elit.",
    "supercalifragilisticexpialidocious", "antidisestablishmentarianism", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "abababababababababab", "zzzzzzzzzzzzzzzz", "ThisIsCamelCase", "this_is_snake_case", "SCREAMING_SNAKE", "kebab-case-word",
    "iPhone 15 Pro", "COVID-19", "Mr. Smith", "U.S.A.", "e.g.", "3rd", "x²+y²=z²", "∑∫√∞≠≈", "αβγ", "H₂O",
]


def texts() -> list[str]:
    """The fixed texts, and mixtures of them drawn with a fixed seed."""
    rng = random.Random(20261201)
    result = list(PLAIN)
    for n in (4, 7, 8, 15, 16, 17, 31, 32, 33, 64, 100):
        result += [" " * n, " " * n + "x", "\n" * n, "\t" * n + "y", "=" * n]
    while len(result) < 340:
        parts = rng.choices(PLAIN, k=rng.randint(2, 5))
        result.append(rng.choice(["", " ", "\n"]).join(parts))
    for _ in range(40):
        points = [rng.choice([rng.randint(1, 0x7F), rng.randint(0x80, 0x7FF),
                              rng.randint(0x800, 0xD7FF), rng.randint(0x1F300, 0x1FAFF)])
                  for _ in range(rng.randint(1, 12))]
        result.append("".join(map(chr, points)))
    return list(dict.fromkeys(result))


def llama_cpp_ids(llama_cpp: Path, model: Path) -> dict[bool, list[list[int]]]:
    """parse_special -> ids of each text, by llama.cpp."""
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder) / "reader.cpp", Path(folder) / "reader"
        source.write_text(READER)
        libs = llama_cpp / "build" / "bin"
        subprocess.run(
            ["g++", "-O1", "-o", binary, source, f"-I{llama_cpp}/include",
             f"-I{llama_cpp}/ggml/include", f"-L{libs}", f"-Wl,-rpath,{libs}",
             f"-Wl,-rpath-link,{libs}", "-lllama", "-lggml", "-lggml-base"], check=True)
        result = {}
        for special in (True, False):
            raw = [text.encode() for text in texts()]
            stdin = b"".join(struct.pack("<II", len(r), special) + r for r in raw)
            out = subprocess.run([binary, model], input=stdin, stdout=subprocess.PIPE, check=True)
            lines = out.stdout.decode().splitlines()
            assert len(lines) == len(raw)
            result[special] = [list(map(int, line.split())) for line in lines]
    return result


def write_vectors(name: str, ids: dict[bool, list[list[int]]]) -> None:
    """One object a line; plain_ids only where special tokens make a difference."""
    lines = []
    for text, special, plain in zip(texts(), ids[True], ids[False]):
        entry = {"text": text, "ids": special}
        if plain != special:
            entry["plain_ids"] = plain
        lines.append(json.dumps(entry, ensure_ascii=True, separators=(",", ":")))
    (OUT / f"vectors_{name}.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(name, len(lines), "texts")


def write_tiny() -> None:
    """By Hugging Face tokenizers; hex, so that a test needs no JSON reader."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(OUT / "tiny_tokenizer.json"))
    lines = []
    for text in texts():
        tokenizer.encode_special_tokens = False
        special = tokenizer.encode(text, add_special_tokens=False).ids
        tokenizer.encode_special_tokens = True
        plain = tokenizer.encode(text, add_special_tokens=False).ids
        columns = [" ".join(map(str, ids)) for ids in (special, plain)]
        lines.append("\t".join([text.encode().hex()] + columns))
    (OUT / "vectors_tiny.tsv").write_text("\n".join(lines) + "\n")
    print("tiny", len(lines), "texts")


def shaped(messages: list[dict], shape: str | None) -> list[dict]:
    messages = json.loads(json.dumps(messages))
    for message in messages:
        for call in message.get("tool_calls", []):
            function = call["function"]
            given = function["arguments"]
            if shape == "object" and isinstance(given, str):
                function["arguments"] = json.loads(given)
            if shape == "string" and not isinstance(given, str):
                function["arguments"] = json.dumps(given, ensure_ascii=False)
            if shape == "string":
                message["content"] = message["content"] or None
            if shape == "object":
                message["content"] = message["content"] or ""
    return messages


def read_case(name: str, kind: str, empty):
    path = OUT / "cases" / f"{name}.{kind}.json"
    return json.loads(path.read_text()) if path.exists() else empty


def write_renders() -> None:
    from jinja2.exceptions import TemplateError
    from transformers.utils import chat_template_utils

    def at_noon(_format: str) -> str:
        import time

        return time.strftime(_format, time.gmtime(1_700_000_000))

    expected = OUT / "expected"
    expected.mkdir(exist_ok=True)
    for old in expected.iterdir():
        old.unlink()
    count = 0
    for path in sorted((OUT / "templates").glob("*.jinja")):
        template = chat_template_utils._compile_jinja_template(path.read_text())
        for case in sorted((OUT / "cases").glob("*.messages.json")):
            name = case.name.removesuffix(".messages.json")
            target = expected / f"{path.stem}.{name}"
            if path.stem not in ONLY_FOR.get(name, {path.stem}):
                continue
            try:
                text = template.render(
                    messages=shaped(json.loads(case.read_text()), SHAPES.get(path.stem)),
                    tools=read_case(name, "tools", None), documents=None, add_generation_prompt=True,
                    bos_token="<s>", eos_token="</s>", strftime_now=at_noon,
                    **read_case(name, "extra", {}))
                target.with_name(target.name + ".txt").write_text(text)
            except TemplateError as error:
                if type(error) is not TemplateError:
                    continue  # the template can't take this case
                target.with_name(target.name + ".error").write_text(str(error))
            except TypeError:
                continue
            count += 1
    print(count, "renders")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--llama-cpp", type=Path)
    parser.add_argument("--smollm2", type=Path)
    parser.add_argument("--gemma3", type=Path)
    args = parser.parse_args()
    if args.llama_cpp:
        for name in ("smollm2", "gemma3"):
            if getattr(args, name):
                write_vectors(name, llama_cpp_ids(args.llama_cpp, getattr(args, name)))
    write_tiny()
    write_renders()


if __name__ == "__main__":
    main()
