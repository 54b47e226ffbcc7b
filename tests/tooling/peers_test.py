#!/usr/bin/env python3
"""Checks what bench/peers.py makes of measurements; runs none."""

import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
sys.dont_write_bytecode = True

import peers  # noqa: E402


def figures(*values):
    """A measurement that gives the next value each time, after a warm-up."""
    rest = iter((0, *values))
    return lambda: {"decode": next(rest)}


def refuse():
    raise peers.Failure("one row so far")


class Peers(unittest.TestCase):
    def setUp(self):
        peers.say = lambda line: None

    def test_ratios_are_of_the_medians_and_of_each_round(self):
        comparison = peers.Comparison(
            "m", ["decode"], figures(10, 30, 20), figures(10, 10, 40))
        peers.compare([comparison], 3)
        self.assertEqual(
            comparison.rows(), [["m", "decode", "20.0", "10.0", "2.00", "0.50..3.00"]])

    def test_programs_change_places(self):
        order = []

        def ours():
            order.append("ours")
            return {"decode": 1}

        def theirs():
            order.append("theirs")
            return {"decode": 1}

        peers.compare([peers.Comparison("m", ["decode"], ours, theirs)], 2)
        self.assertEqual(order[2:], ["ours", "theirs", "theirs", "ours"])

    def test_what_sheave_refuses_is_said_and_the_peer_not_run(self):
        comparison = peers.Comparison("m", ["decode"], refuse, self.fail)
        peers.compare([comparison], 2)
        text = peers.report([comparison], "peer", ["fact"])
        self.assertIn("- not measured: m, decode: one row so far", text)
        self.assertIn("| m     | decode |", text)

    def test_failing_commands_say_why_in_one_line(self):
        with self.assertRaisesRegex(peers.Failure, r"^python.* failed \(3\): no$"):
            peers.run([sys.executable, "-c", "import sys; print('no'); sys.exit(3)"])
        with self.assertRaisesRegex(peers.Failure, "no/such/program"):
            peers.run(["no/such/program"])

    def test_tables_are_aligned(self):
        lines = peers.markdown(["a", "b", "c"], [["long", "x", "1"]]).splitlines()
        self.assertEqual(len({len(line) for line in lines}), 1)


if __name__ == "__main__":
    unittest.main()
