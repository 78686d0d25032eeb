#!/usr/bin/env python3
"""Writes vendor.json: what NVIDIA's cuobjdump and nvdisasm say of each cubin below tests/cubins/corpus.

usage: make_vendor.py CUOBJDUMP NVDISASM     (both of CUDA 13.2, from the Python package index)
"""
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CORPUS = HERE.parent.parent / "cubins" / "corpus"


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def usage(text):
    """{function: {"REG": n, "SHARED": n, …}}, and the module's own under "<common>"."""
    found, name = {}, None
    for line in text.splitlines():
        line = line.strip()
        if line == "Common:":
            name = "<common>"
        elif line.startswith("Function "):
            name = line[len("Function "):-1]
        elif name and ":" in line:
            found[name] = {k: int(v) for k, v in re.findall(r"([A-Z]+(?:\[\d+\])?):(\d+)", line)}
    return found


def attribute(name, form, value):
    """The value as numbers where the tool prints them, else the numbers in its words."""
    value = value.strip()
    if name == "EIATTR_ANNOTATIONS":
        return " ".join(f"0x1 {offset}" for offset in re.findall(r"SpillRefill : \tOffset : (0x[0-9a-f]+)", value))
    if name == "EIATTR_INDIRECT_BRANCH_TARGETS":
        words = []
        for branch, count, targets in re.findall(r"Branch: (0x[0-9a-f]+)\s+Number of targets: (\d+)\s+Targets: ([^\n]*)", value):
            words += [branch, "0x0", f"{int(count):#x}", *targets.split()]
        return " ".join(words)
    if name == "EIATTR_LANGUAGE":
        return value.replace("\t", " ")
    if form != "EIFMT_SVAL" or re.fullmatch(r"(0x[0-9a-f]+ ?)*", value):
        return value
    words = [re.fullmatch(r"function: .*\((0x[0-9a-f]+)\)\t(?:register count|min stack size|frame size|max stack size): (\S+)", value)]
    if words[0]:
        return " ".join(f"{int(number, 0):#x}" for number in words[0].groups())
    if value.startswith("externs:"):
        return " ".join(re.findall(r"\((0x[0-9a-f]+)\)", value))
    if name.startswith("EIATTR_KPARAM_INFO"):
        return " ".join(re.findall(r"(?:Ordinal|Offset|Size)\s*: (0x[0-9a-f]+)", value))
    return None


def elf(text):
    """Header, sections, symbols, relocations and attributes, as the tool lists them."""
    out = {"sections": [], "symbols": [], "relocations": {}, "attributes": {}}
    mode = None
    table = None
    name = form = None
    for line in text.splitlines():
        if match := re.match(r"64-?bit (?:elf|ELF): (.*)", line):
            out["header"] = match[1]
        elif line.startswith("Sections:"):
            mode = "sections"
        elif match := re.fullmatch(r"\.section (\S+)(?:\t(RELA?))?", line):
            if match[2]:
                mode = "relocations"
                table = out["relocations"].setdefault(match[1], [])
            else:
                mode = "symbols" if match[1] == ".symtab" else None
        elif re.fullmatch(r"\.nv\.(info|compat)\S*", line):
            mode = "attributes"
            table = out["attributes"].setdefault(line, [])
        elif line.startswith((".", "<")):
            mode = None
        elif mode == "sections" and re.match(r"\s*[0-9a-f]+ ", line):
            out["sections"].append(" ".join(line.split()))
        elif mode == "symbols" and re.match(r"\s+(0x)?[0-9a-f]+ ", line):
            out["symbols"].append(" ".join(line.split()))
        elif mode == "relocations" and line.startswith("0x"):
            table.append(" ".join(line.split()))
        elif mode == "attributes":
            line = line.strip("\n")
            if line.startswith("\tAttribute:"):
                name = line.split(":", 1)[1].strip()
            elif line.startswith("\tFormat:"):
                form = line.split(":", 1)[1].strip()
                if form == "EIFMT_NVAL":
                    table.append([name, form, ""])
            elif line.startswith("\tValue:"):
                value = line[len("\tValue:"):]
                table.append([name, form, attribute(name, form, value)])
            elif name in ("EIATTR_ANNOTATIONS", "EIATTR_INDIRECT_BRANCH_TARGETS") and line.startswith("\t\t"):
                # These go on over several lines.
                value += "\n" + line
                table[-1][2] = attribute(name, form, value)
    return out


def barriers(text):
    """{function: n} from the disassembler's section flags."""
    found, name = {}, None
    for line in text.splitlines():
        if match := re.match(r"\t\.section\t\.text\.([^,]+),", line):
            name = match[1]
        elif line.startswith("\t.section\t"):
            name = None
        elif name and (match := re.search(r"SHF_BARRIERS=(\d+)", line)):
            found[name] = int(match[1])
    return found


def main():
    cuobjdump, nvdisasm = sys.argv[1:]
    golden = {"source": "cuobjdump and nvdisasm of CUDA 13.2", "files": {}, "refused": []}
    for path in sorted(CORPUS.rglob("*.cubin")):
        key = str(path.relative_to(CORPUS))
        dump, use = run(cuobjdump, "-elf", path), run(cuobjdump, "-res-usage", path)
        if dump is None or use is None:
            golden["refused"].append(key)
            continue
        entry = elf(dump)
        entry["usage"] = usage(use)
        entry["barriers"] = barriers(run(nvdisasm, path) or "")
        golden["files"][key] = entry
    with open(HERE / "vendor.json", "w") as out:
        json.dump(golden, out, separators=(",", ":"), sort_keys=True)
        out.write("\n")


main()
