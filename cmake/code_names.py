#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Writes the table of all status codes that the public headers name.

    code_names.py --out FILE HEADER...

A row is CODE(number, "NAME", "what the header says of it"); where it says nothing, the words of the name.
"""
import argparse
import re
from pathlib import Path

from declared_names import write

ROW = re.compile(r"^\s*(?:#define\s+|static const \w+\s+)?((?:ACL|HCCL)\w+)\s*=?\s*(-?\d+)U?\s*[;,]?\s*(?://\s*(.*))?$")
PREFIXES = r"^(ACL_ERROR_RT|ACL_ERROR_GE|ACL_ERROR|ACL_RT|ACL|ACLNN_ERR_INNER|ACLNN_ERR|ACLNN|HCCL_E|HCCL)_"
KINDS = re.compile(r"^(ACL_ERROR_\w+|ACL_SUCCESS|ACL_RT_SUCCESS|ACLNN_(ERR_\w+|SUCCESS)|HCCL_E_\w+|HCCL_SUCCESS)$")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("headers", nargs="+", type=Path)
    args = parser.parse_args()
    rows = []
    for header in sorted(args.headers):
        for line in header.read_text(encoding="utf-8").splitlines():
            found = ROW.match(line)
            if not found or not KINDS.match(found.group(1)):
                continue
            name, code, comment = found.groups()
            words = re.sub(PREFIXES, "", name).replace("_", " ").lower()
            rows.append((int(code), name, comment or words))
    rows.sort(key=lambda row: row[0])
    write(args.out, "".join(f'CODE({code}, "{name}", "{text}")\n' for code, name, text in rows))


if __name__ == "__main__":
    main()
