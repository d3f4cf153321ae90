"""measured_table.py: tables of measured steps are read as `mdot calibrate` reads them."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path

import support

import mdot
from mdot.measured_table import read_measured


class Tables(support.TestCase):
    def setUp(self) -> None:
        super().setUp()
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.table = Path(holder.name, "steps.csv")
        self.job = os.path.relpath(support.RESNET, holder.name)

    def refuse(self, text: str, expected: str) -> None:
        self.table.write_text(text)
        self.assertRaisesRegex(mdot.InvalidArgumentError, expected, read_measured, self.table)

    def test_calibrations_equal_those_of_the_command(self) -> None:
        measured, found, expected = 1.25 * mdot.predict(support.RESNET, "T4", 32).memory_gib, "python.cal", "command.cal"
        for text in (f"job,gpu,batch,gib\n{self.job},T4,32,{measured}\n",
                     f"job,gpu,batch,ms,gib\n{self.job},T4,32,,{measured}\n{self.job},T4,64,300,\n",
                     f"# measured\njob,gpu,batch,ms,parallel,precision\n{self.job},T4,32,40,dp=2,amp\n"):  # fmt: skip
            self.table.write_text(text)
            ours, theirs = self.table.with_name(found), self.table.with_name(expected)
            mdot.Calibration.measured(mdot.Predictor(), read_measured(self.table)).save(ours)
            support.run(os.environ["MDOT_CLI"], "calibrate", str(self.table), "-o", str(theirs), "--quiet")
            self.assertEqual(ours.read_text(), theirs.read_text())

    def test_wrong_cells_name_their_line(self) -> None:
        self.refuse(f"job,gpu,batch,ms\n{self.job},T4,many,3\n", "line 2: ")
        for cells in (",", "0,1", ",nan", "inf,"):
            self.refuse(f"job,gpu,batch,ms,gib\n{self.job},T4,32,{cells}\n", "line 2: ")
        self.refuse(f"job,gpu,batch,ms,parallel\n{self.job},T4,32,3,xp=2\n", "line 2: .*dp, tp")

    def test_wrong_columns_are_named(self) -> None:
        self.refuse("job,gpu,batch\n", "lacks the column ms")
        self.refuse("job,gpu,batch,ms,colour\n", "'colour'")


if __name__ == "__main__":
    unittest.main()
