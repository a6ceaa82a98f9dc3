#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Ranks on two hosts: network namespaces joined by a pair of virtual interfaces, two ranks in each.

    two_hosts.py HCCL_TEST      status 77 where namespaces cannot be made
"""
import os
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
SKIPPED = 77
RANKS = 4
LIMIT = 3  # HCCL_EXEC_TIMEOUT, seconds


def inside_a_namespace():
    """Becomes this script once more, as the root of a namespace of its own."""
    command = ["unshare", "--user", "--map-root-user", "--net", "--fork", "--kill-child"]
    try:
        subprocess.run([*command, "ip", "link", "add", "probe0", "type", "veth", "peer", "name", "probe1"], check=True,
                       capture_output=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        print(f"skipped, no network namespace can be made: {problem} {getattr(problem, 'stderr', '')}")
        sys.exit(SKIPPED)
    os.execvp(command[0], [*command, sys.executable, __file__, PROGRAM, "--inside"])


def sh(*words):
    subprocess.run(words, check=True, timeout=20)


class TwoHosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.other = subprocess.Popen(["unshare", "--net", "sleep", "600"])
        cls.enter = ["nsenter", "--target", str(cls.other.pid), "--net"]
        own = os.stat("/proc/self/ns/net").st_ino
        while os.stat(f"/proc/{cls.other.pid}/ns/net").st_ino == own:
            time.sleep(0.01)
        sh("ip", "link", "add", "hosta", "type", "veth", "peer", "name", "hostb", "netns", str(cls.other.pid))
        for enter, interface, address in (([], "hosta", "10.99.0.1/24"), (cls.enter, "hostb", "10.99.0.2/24")):
            sh(*enter, "ip", "link", "set", "lo", "up")
            sh(*enter, "ip", "address", "add", address, "dev", interface)
            sh(*enter, "ip", "link", "set", interface, "up")

    @classmethod
    def tearDownClass(cls):
        cls.other.kill()
        cls.other.wait()

    def start(self, program, folder):
        env = {**os.environ, "HCCL_SOCKET_IFNAME": "host", "HCCL_EXEC_TIMEOUT": str(LIMIT), "HCCL_CONNECT_TIMEOUT": "20"}
        return [subprocess.Popen([*(self.enter if rank >= RANKS // 2 else []), PROGRAM, "--play", program, str(rank),
                                  str(RANKS), folder], env=env, stderr=subprocess.PIPE, text=True)
                for rank in range(RANKS)]

    def finish(self, ranks):
        texts = [process.communicate(timeout=60)[1] for process in ranks]
        self.assertEqual([process.returncode for process in ranks], [0] * RANKS, "".join(texts))

    def test_ranks_meet_over_the_link(self):
        for program in ("OrderOfRanks", "LongReductions", "UnevenExchanges", "Several"):
            with tempfile.TemporaryDirectory() as folder:
                self.finish(self.start(program, folder))

    def test_route_comes_late(self):
        blocked = ["ip", "route", "add", "unreachable", "10.99.0.1/32"]
        sh(*self.enter, *blocked)
        with tempfile.TemporaryDirectory() as folder:
            ranks = self.start("OrderOfRanks", folder)
            time.sleep(1.5)
            sh(*self.enter, "ip", "route", "del", *blocked[3:])
            self.finish(ranks)

    def test_link_is_cut(self):
        with tempfile.TemporaryDirectory() as folder:
            ranks = self.start("LinkIsCut", folder)
            time.sleep(2)
            self.assertEqual([process.poll() for process in ranks], [None] * RANKS)
            try:
                sh("ip", "link", "set", "hosta", "down")
                self.finish(ranks)  # each has checked what it was told, and when
            finally:
                sh("ip", "link", "set", "hosta", "up")


if __name__ == "__main__":
    if "--inside" not in sys.argv:
        inside_a_namespace()
    unittest.main(argv=sys.argv[:1])
