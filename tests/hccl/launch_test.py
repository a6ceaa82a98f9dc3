#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""examples/sync_batch_norm.cpp as ranks of every launcher:  launch_test.py ANYACL SYNC_BATCH_NORM"""
import os
import shutil
import subprocess
import sys
import unittest

TOOL, PROGRAM = sys.argv[1:3]


class Launch(unittest.TestCase):
    def check(self, ranks, *command, tag="", **environment):
        done = subprocess.run([*command, PROGRAM], text=True, capture_output=True, env={**os.environ, **environment},
                              timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stderr, "")
        lines = done.stdout.splitlines()
        self.assertEqual(lines[-1], f"{tag}{ranks} ranks: right")
        self.assertEqual(len(lines), 7, done.stdout)

    def test_threads(self):
        self.check(3)

    def test_anyacl_run(self):
        for ranks in (1, 2, 4, 5):
            self.check(ranks, TOOL, "run", "-n", str(ranks), "--", tag="[0] ")

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun here")
    def test_mpirun(self):
        self.check(4, "mpirun", "-n", "4", "--oversubscribe", MASTER_PORT="29511", OMPI_ALLOW_RUN_AS_ROOT="1",
                   OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
