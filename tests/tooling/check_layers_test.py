"""Tests of tools/check_layers.py on trees made for the purpose."""

import importlib.util
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parent.parent.parent / "tools" / "check_layers.py"
SPEC = importlib.util.spec_from_file_location("check_layers", TOOL)
check_layers = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_layers)


def breaches(files):
    """What the tool says of a tree of {path below src/sheave: content}."""
    with tempfile.TemporaryDirectory() as root:
        for path, content in files.items():
            file = Path(root, "src", "sheave", path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, encoding="utf-8")
        return [line.replace(root, "") for line in check_layers.check(Path(root))]


class CheckLayers(unittest.TestCase):
    def test_allows_what_the_table_says(self):
        self.assertEqual(breaches({
            "cache/a.cpp": '#include "sheave/cache/a.h"\n#include <mlx/array.h>\n',
            "models/b.cpp": '#include "sheave/nn/c.h"\n',
            "engine/e.cpp": '#include "sheave/models/model.h"\n',
            "cli/m.cpp": "#include <CLI/CLI.hpp>\n",
        }), [])

    def test_names_file_line_and_room_of_an_upward_include(self):
        found = breaches({"cache/a.h": '#pragma once\n#include "sheave/models/model.h"\n'})
        self.assertEqual(len(found), 1)
        self.assertIn("src/sheave/cache/a.h:2: cache may not include models/model.h", found[0])

    def test_engine_sees_two_headers_of_models_only(self):
        self.assertEqual(len(breaches({"engine/e.cpp": '#include "sheave/models/layer_loader.h"\n'})), 1)

    def test_keeps_third_parties_in_their_rooms(self):
        for path, header in (("text/a.cpp", "mlx/array.h"), ("engine/a.cpp", "CLI/CLI.hpp"),
                             ("nn/a.cpp", "nlohmann/json.hpp"), ("cli/a.cpp", "spdlog/spdlog.h"),
                             ("engine/a.cpp", "boost/asio.hpp"), ("engine/b.cpp", "sheave_text.h")):
            self.assertEqual(len(breaches({path: f"#include <{header}>\n"})), 1, header)

    def test_keeps_mlx_out_of_files_that_decide(self):
        self.assertEqual(len(breaches({"cache/ring_state.h": "#include <mlx/array.h>\n"})), 1)
        self.assertEqual(len(breaches({"kernels/a/a-inl.h": "#include <mlx/array.h>\n"})), 1)
        self.assertEqual(len(breaches({"weights/gguf.cpp": "#include <mlx/array.h>\n"})), 1)

    def test_refuses_a_room_that_is_not_in_the_table(self):
        self.assertEqual(len(breaches({"utils/a.h": ""})), 1)


if __name__ == "__main__":
    unittest.main()
