"""__main__.py: the subcommands of `python -m mdot` agree with the command `mdot`."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import tempfile
import unittest
from pathlib import Path

import support

import mdot
from mdot.__main__ import main
from mdot.quantities import read_count, read_price, read_rate


def ask(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = int(stop.code or 0)
    return status, out.getvalue(), err.getvalue()


class Commands(support.TestCase):
    def expect(self, *arguments: str) -> str:
        status, out, err = ask(*arguments)
        self.assertEqual(status, 0, err)
        return out

    def test_gpus_lists_every_gpu(self) -> None:
        listed = self.expect("gpus").splitlines()
        self.assertEqual(len(listed), len(mdot.gpus()) + 1)
        read = json.loads(self.expect("gpus", "--json"))
        self.assertEqual([gpu["name"] for gpu in read["gpus"]], [gpu.name for gpu in mdot.gpus()])

    def test_fit_finds_the_batch_of_the_command(self) -> None:
        reported = support.ask_command(str(support.RESNET), "--gpu", "T4", "--fit")["predictions"][0]["batch"]
        self.assertRegex(self.expect("fit", support.RESNET, "--gpu", "T4"), rf"T4 +{reported} ")
        self.assertRegex(self.expect("predict", support.RESNET, "--gpu", "T4", "--fit"), rf"T4 +{reported} ")
        self.assertIn("excludes --batch", ask("fit", support.RESNET, "--gpu", "T4", "--batch", "3")[2])

    def test_price_matches_the_command(self) -> None:
        arguments = ("--gpu", "A100", "--batch", "64", "--gpus", "8")
        reported = support.ask_command(str(support.RESNET), *arguments, "--price", "2.5", "--steps", "100000")
        cost = reported["predictions"][0]["cost"]
        out = self.expect("price", support.RESNET, *arguments, "--price", "$2.5/h", "--steps", "1e5")
        self.assertAlmostEqual(float(out.split()[-1]), cost, delta=0.01 * cost)
        self.assertIn("million samples", self.expect("price", support.RESNET, *arguments, "--price", "2.5"))
        self.assertIn("price per hour", ask("price", support.RESNET, *arguments, "--price", "2.5/day")[2])

    def test_explain_shows_phases(self) -> None:
        for command in (("explain",), ("predict", "--explain")):
            out = self.expect(*command, support.RESNET, "--gpu", "A100", "--batch", "64", "--precision", "amp")
            self.assertIn("forward", out)
            self.assertIn("Conv", out)
        self.assertIn("one GPU", ask("explain", support.RESNET, "--gpu", "A100,T4")[2])

    def test_options_have_the_names_of_the_command(self) -> None:
        arguments = ("--gpu", "A100", "--batch", "64", "--gpus", "8", "--parallel", "dp=4,tp=2", "--checkpoint", "--compile",
                     "--torch", "2.4", "--link", "600GB/s", "--network", "100Gb/s", "--dim", "sequence=128")  # fmt: skip
        out = self.expect("predict", support.BERT, *arguments)
        command = [*arguments]
        reported = support.ask_command(str(support.BERT), *command)["predictions"][0]["step_ms"]
        self.assertAlmostEqual(float(out.splitlines()[1].split()[2]), reported, delta=0.01 * reported)
        self.assertIn("dp, tp", ask("predict", support.BERT, "--gpu", "A100", "--parallel", "xp=2")[2])

    def test_report_is_one_self_contained_page(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "page.html"
            self.expect("report", support.RESNET, "--gpu", "T4,A100", "--batch", "32", "-o", path)
            page = path.read_text(encoding="utf-8")
        self.assertEqual(page.count("<table>"), 3)
        self.assertNotIn("http", page)
        self.assertIsNone(re.search(r"[0-9]e[+-][0-9]", page))

    def test_calibrate_writes_what_predict_reads(self) -> None:
        plain = mdot.predict(support.RESNET, "T4", 32)
        with tempfile.TemporaryDirectory() as folder:
            table, calibration = Path(folder) / "steps.csv", Path(folder) / "site.cal"
            job = os.path.relpath(support.RESNET, folder)
            rows = [f"{job},T4,{batch},{1.5 * mdot.predict(support.RESNET, 'T4', batch).step_ms}" for batch in (16, 32, 64, 128)]
            table.write_text("\n".join(["# measured", "job,gpu,batch,ms", *rows]) + "\n")
            self.expect("calibrate", table, "-o", calibration)
            out = self.expect("predict", support.RESNET, "--gpu", "T4", "--batch", "32", "--calibration", calibration)
            table.write_text("job,gpu,batch,ms\n" + f"{job},T4,many,3\n")
            self.assertRegex(ask("calibrate", table, "-o", calibration)[2], "line 2: ")
            table.write_text("job,gpu,batch\n")
            self.assertIn("lacks the column ms", ask("calibrate", table, "-o", calibration)[2])
            for cells in (",", "0,1", ",nan", "inf,"):
                table.write_text(f"job,gpu,batch,ms,gib\n{job},T4,32,{cells}\n")
                self.assertRegex(ask("calibrate", table, "-o", calibration)[2], "line 2: ")
            table.write_text("job,gpu,batch,ms,colour\n")
            self.assertIn("'colour'", ask("calibrate", table, "-o", calibration)[2])
        self.assertGreater(float(out.splitlines()[1].split()[2]), 1.2 * plain.step_ms)

    def test_calibrate_reads_memory_as_the_command_does(self) -> None:
        measured = 1.25 * mdot.predict(support.RESNET, "T4", 32).memory_gib
        with tempfile.TemporaryDirectory() as folder:
            table, found, expected = (Path(folder) / name for name in ("steps.csv", "python.cal", "command.cal"))
            job = os.path.relpath(support.RESNET, folder)
            for text in (f"job,gpu,batch,gib\n{job},T4,32,{measured}\n",
                         f"job,gpu,batch,ms,gib\n{job},T4,32,,{measured}\n{job},T4,64,300,\n"):  # fmt: skip
                table.write_text(text)
                self.expect("calibrate", table, "-o", found)
                support.run(os.environ["MDOT_CLI"], "calibrate", str(table), "-o", str(expected), "--quiet")
                self.assertEqual(found.read_text(), expected.read_text())
                self.assertEqual(mdot.Calibration.load(found).memory_row_count, 1)

    def test_quantities_take_units(self) -> None:
        for text, value in (("1e5", 100000), ("1_000_000", 1000000), ("1M", 1000000), ("1.5k", 1500), ("7", 7)):
            self.assertEqual(read_count(text), value)
        for text, rate in (("12.5", 12.5), ("12.5GB/s", 12.5), ("100Gb/s", 12.5), ("400Gbps", 50.0), ("1.8TB/s", 1800.0)):
            self.assertAlmostEqual(read_rate(text), rate)
        for text, price in (("2.5", 2.5), ("$2.5/h", 2.5), ("2.5 USD/h", 2.5), ("€2", 2.0), ("3 per hour", 3.0)):
            self.assertEqual(read_price(text), price)
        for read, wrong in ((read_count, "1.5"), (read_count, "0"), (read_count, "1x"), (read_rate, "100Gb"), (read_rate, "0"),
                            (read_rate, "100GB/h"), (read_price, "2.5/day"), (read_price, "0")):  # fmt: skip
            self.assertRaises(mdot.InvalidArgumentError, read, wrong)


if __name__ == "__main__":
    unittest.main()
