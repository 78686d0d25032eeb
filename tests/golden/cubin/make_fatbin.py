#!/usr/bin/env python3
"""Writes fatbin.json: what NVIDIA's cuobjdump takes out of each file below tests/cubins/fatbin.

usage: make_fatbin.py CUOBJDUMP     (of CUDA 13.2, from the Python package index)
"""
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
FILES = HERE.parent.parent / "cubins" / "fatbin"


def extracted(cuobjdump, path, kind):
    """[target, sha256] of each entry of a kind, in the file's order."""
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([cuobjdump, f"-x{kind}", "all", path], cwd=out, capture_output=True, check=False)
        listed = subprocess.run([cuobjdump, f"-l{kind}", path], cwd=out, capture_output=True, text=True, check=False)
        names = re.findall(r"file +\d+: (\S+)", listed.stdout)
        digest = lambda name: hashlib.sha256((pathlib.Path(out) / name).read_bytes()).hexdigest()
        return [[re.search(r"\.(sm_\d+[af]?)\.", name)[1], digest(name)] for name in names]


def main():
    golden = {"source": "cuobjdump of CUDA 13.2", "files": {}}
    for path in sorted(path for path in FILES.iterdir() if path.suffix != ".md"):
        golden["files"][path.name] = {kind: extracted(sys.argv[1], path, kind) for kind in ("elf", "ptx")}
    with open(HERE / "fatbin.json", "w") as out:
        json.dump(golden, out, indent=0, sort_keys=True)
        out.write("\n")


main()
