#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Fails when docs/operators is not what `anyacl ops --markdown` writes. Usage: operator_pages.py TOOL SOURCE_FOLDER"""
import subprocess
import sys
import tempfile
from pathlib import Path


def pages(folder):
    return {path.name: path.read_text(encoding="utf-8") for path in Path(folder).glob("*.md")}


def main():
    tool, source = sys.argv[1], Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([tool, "ops", "--markdown", "--out", folder], check=True)
        now, kept = pages(folder), pages(source / "docs" / "operators")
    stale = sorted(name for name in now.keys() | kept.keys() if now.get(name) != kept.get(name))
    if stale:
        print(f"docs/operators is stale: {', '.join(stale)}\nRun: anyacl ops --markdown --out docs/operators")
        return 1
    print(f"{len(now)} pages are current")
    return 0


if __name__ == "__main__":
    sys.exit(main())
