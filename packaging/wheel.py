#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright The AnyACL Authors
"""Packs an installed tree into a Python wheel:  wheel.py PREFIX FOLDER VERSION

Wheels know no symbolic links, so the tree goes in without them: all libraries are real files already, and the other
spellings of include/ and lib64/ are for build files of programs, which can take the real ones. Folders that programs
look for are real folders with a note in them.
"""
import argparse
import base64
import hashlib
import platform
import re
import stat
import subprocess
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NOTE = "Programs look for this folder. What they need is in include and lib64, beside it.\n"
LOOKED_FOR = ("runtime", "compiler", "toolkit", "opp/vendors")
METADATA = """Metadata-Version: 2.1
Name: anyacl
Version: {version}
Summary: AscendCL and aclnn operators on any machine: runs PyTorch's Ascend backend on CPUs and NVIDIA GPUs
License: Apache-2.0
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{description}"""


def glibc_needed(files):
    """The newest version that any of the files asks for."""
    newest = (2, 17)
    for file in files:
        text = subprocess.run(["readelf", "-VW", file], check=True, text=True, stdout=subprocess.PIPE).stdout
        found = [(int(a), int(b)) for a, b in re.findall(r"GLIBC_(\d+)\.(\d+)", text)]
        newest = max([newest, *found])
    return newest


def contents(prefix, version):
    """Name in the wheel, bytes, executable."""
    module = (HERE / "python/anyacl/__init__.py").read_text(encoding="utf-8").replace("@VERSION@", version)
    yield "anyacl/__init__.py", module.encode(), False
    for path in sorted(prefix.rglob("*")):
        relative = path.relative_to(prefix)
        # A file below a link is there already under its real name.
        linked = any((prefix / Path(*relative.parts[:depth])).is_symlink() for depth in range(1, len(relative.parts) + 1))
        if linked or not path.is_file() or relative.parts[0] == "python":
            continue
        yield f"anyacl/prefix/{relative.as_posix()}", path.read_bytes(), bool(path.stat().st_mode & stat.S_IXUSR)
    for folder in LOOKED_FOR:
        yield f"anyacl/prefix/{folder}/README.txt", NOTE.encode(), False


def make(prefix, folder, version):
    files = list(contents(prefix, version))
    binaries = [prefix / name[len("anyacl/prefix/"):] for name, data, _ in files if data[:4] == b"\x7fELF"]
    major, minor = glibc_needed(binaries)
    tag = f"py3-none-manylinux_{major}_{minor}_{platform.machine()}"
    info = f"anyacl-{version}.dist-info"
    readme = (HERE.parent / "docs/pytorch.md").read_text(encoding="utf-8")
    files += [
        (f"{info}/METADATA", METADATA.format(version=version, description=readme).encode(), False),
        (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: anyacl\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), False),
        (f"{info}/entry_points.txt", b"[console_scripts]\nanyacl = anyacl:main\n", False),
        (f"{info}/licenses/LICENSE", (prefix / "share/doc/anyacl/LICENSE").read_bytes(), False),
    ]
    record = f"{info}/RECORD"
    rows = [f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}"
            for name, data, _ in files]
    files.append((record, "".join(f"{row}\n" for row in [*rows, f"{record},,"]).encode(), False))
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"anyacl-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data, executable in files:
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))  # the same tree makes the same wheel
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
            archive.writestr(entry, data)
    return wheel


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("version")
    args = parser.parse_args()
    print(make(args.prefix.resolve(), args.folder, args.version))


if __name__ == "__main__":
    main()
