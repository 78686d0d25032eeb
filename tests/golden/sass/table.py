#!/usr/bin/env python3
"""Writes nv-proto/src/sass/table.rs from the instruction encoding facts.

usage: table.py opcodes.json samples.jsonl > nv-proto/src/sass/table.rs

`opcodes.json` gives, for each mnemonic and 12-bit opcode, the operand slots, the bit fields and the values that the
vendor's disassembler accepts; `samples.jsonl` are real instructions. Bits that no field covers have to be as the
samples have them (zero where there is none): an instruction with such a bit set is unknown.
"""
import json
import sys
from collections import defaultdict

SMS = [80, 86, 89, 90, 100, 120]
# Mnemonics left out: they decode as unknown. Warpgroup tensor cores, textures, surfaces, tensor copies, tensor memory.
UNCLAIMED = {
    "BGMMA", "HGMMA", "IGMMA", "QGMMA", "TEX", "TLD", "SULD", "SUST", "UTMALDG", "UTMAPF", "UTMAREDG", "UTMASTG",
    "UTMACCTL", "LDTM", "UTCATOMSWS", "UVIRTCOUNT", "OMMA", "QMMA", "LDGMC", "UBLKRED", "REDAS", "STAS", "BMMA",
    "CCTLL", "PMTRIG", "UP2UR", "UR2UP", "FADD2", "FFMA2", "FMUL2", "WARPGROUP", "FHADD", "FHFMA", "UFHADD", "UFHFMA",
    "IMUL",
}


def camel(name):
    return "".join(part[0] + part[1:].lower() for part in name.split("_"))


def main():
    opcodes = json.load(open(sys.argv[1]))
    forms = []
    extra_ops = set()
    for entry in opcodes:
        if entry["mnemonic"] == "__common__" or entry["mnemonic"] in UNCLAIMED:
            continue
        for form in entry["forms"]:
            forms.append((int(entry["opcode12"], 16), entry["mnemonic"], form))
    # A store to local memory past a uniform register: the facts have it for sm_120, compilers use it everywhere (seen in
    # tests/cubins/faults, as `STL.128 [UR5+0x20], R16`). Uniform registers have six bits up to sm_90.
    for opcode, mnemonic, form in list(forms):
        if mnemonic == "STL" and opcode == 0x987:
            for archs, high in ((["sm_80", "sm_86", "sm_89", "sm_90"], 69), (["sm_100"], 71)):
                fields = [dict(f, hi=high) if f["name"] == "op0.ureg" else f for f in form["fields"]]
                fields = [dict(f, values={"0": f["values"]["0"]}) if f["name"] == "op0_b76" else f for f in fields]
                forms.append((opcode, mnemonic, dict(form, archs=archs, fields=fields)))
        # The carry of this form: the facts have it for sm_86 and sm_89, compilers use it everywhere (seen in
        # code for sm_80 and sm_90, as `LEA.HI.X.SX32 R15, R2, 0x123, 0x1, P0`).
        if mnemonic == "LEA" and opcode == 0x811:
            if "sm_86" in form["archs"]:
                form["archs"] = ["sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]
            else:
                forms.remove((opcode, mnemonic, form))
        # The facts give this form's type twice where it counts lanes.
        if mnemonic == "ATOMS" and opcode == 0xF8C and "sm_80" in form["archs"]:
            for f in form["fields"]:
                if f["name"] == "mod_b73":
                    f["values"] = {"0": ""}
    forms.sort(key=lambda f: (f[0], sum(1 << SMS.index(int(a[3:])) for a in f[2]["archs"])))

    by_key = {}
    for i, (opcode, _, form) in enumerate(forms):
        for arch in form["archs"]:
            by_key[(arch, opcode)] = i
    seen = defaultdict(lambda: [0, 0])
    for line in open(sys.argv[2]):
        sample = json.loads(line)
        word = int.from_bytes(bytes.fromhex(sample["hex"]), "little")
        i = by_key.get((sample["arch"], word & 0xFFF))
        if i is not None:
            seen[i][0] |= word
            seen[i][1] |= ~word

    tokens, values, fields, slots = {}, [], {}, {}
    tables = {}

    def intern(pool, key):
        return pool.setdefault(key, len(pool))

    def table(rows):
        key = tuple(rows)
        if key not in tables:
            tables[key] = len(values)
            values.extend(rows)
        return tables[key]

    out_forms = []
    for i, (opcode, mnemonic, form) in enumerate(forms):
        ranks = {}
        for rank, mod in enumerate(form["mod_order"]):
            for m in mod if isinstance(mod, list) else [mod]:
                ranks[m] = rank
        covered = 0xFFFF | ((1 << 23) - 1) << 105
        ids = []
        for f in form["fields"]:
            spans = f.get("parts") or [f]
            if "bits" in f:
                bits = f["bits"]
            else:
                bits = [b for s in spans for b in range(s["lo"], s["hi"] + 1)]
            for b in bits:
                covered |= 1 << b
            if "values" in f:
                rows = []
                for v, text in f["values"].items():
                    words = text.split()
                    if any("???" in w or "INVALID" in w or "ILLEGAL" in w for w in words):
                        continue
                    if any(w.startswith("base=") and w[5:] in UNCLAIMED for w in words):
                        continue
                    for w in words:
                        if w.startswith("base="):
                            extra_ops.add(w[5:])
                    words = sorted(w for w in words if w[0] != ".") + sorted(
                        (w for w in words if w[0] == "."), key=lambda w: ranks.get(w, 99))
                    # Words that only say what others say too.
                    words = [w for w in words if w != "none"]
                    rows.append((int(v), intern(tokens, " ".join(words))))
                rows.sort()
                text = "Field::Table { bits: &%s, order: %d, first: %d, len: %d }" % (
                    bits, f.get("order", 0) or 0, table(rows), len(rows))
            else:
                kind = {"reg": "Reg", "ureg": "Ureg", "pred": "Pred", "upred": "Upred", "breg": "Barrier", "imm": "Imm",
                        "offset": "Offset", "cbank": "Bank", "rel_target": "Target", "sb": "Scoreboard", "list": "List",
                        "imm_f32": "F32", "imm_f64hi": "F64Hi", "imm_f16": "F16"}[f["kind"]]
                part = {"num": "Num", "base": "Base", "ureg": "Ureg", "desc": "Desc", "off": "Offset", "bank": "Bank",
                        "cu": "Bindless", "flt": "Num"}[f["part"]]
                parts = ", ".join("(%d, %d, %d)" % (s["lo"], s["hi"], s.get("scale", 1)) for s in spans)
                text = "Field::Number { slot: %d, kind: Kind::%s, part: Part::%s, spans: &[%s], signed: %s, inverted: %s }" % (
                    f["slot"], kind, part, parts, str(f.get("signed", False)).lower(), str(f.get("inverted", False)).lower())
            ids.append(intern(fields, text))
        rules = []
        for bits, allowed in form["reserved"].items():
            bits = [int(b) for b in bits.split(",")]
            for b in bits:
                covered |= 1 << b
            rules.append("(&%s, &%s)" % (bits, allowed))
        ones, zeros = seen.get(i, [0, ~0])
        fixed_mask = fixed_value = 0
        for b in range(105):
            if not covered >> b & 1:
                one, zero = ones >> b & 1, zeros >> b & 1
                if one and zero:
                    continue
                fixed_mask |= 1 << b
                fixed_value |= one << b
        slot_ids = []
        for op in form["operands"]:
            words = sorted(w for w in op["const"])
            presence = {"always": "Always", "modifier": "Modifier"}.get(op["presence"], "")
            if "elide" in op:
                kind = "ModifierUnless" if presence == "Modifier" else "Unless"
                presence = "%s(%d)" % (kind, op["elide"]["value"])
            mem = op.get("mem") or {}
            zero = mem.get("base_zero", {})
            uzero = mem.get("ureg_zero", {})
            text = 'Slot { kinds: "%s", words: "%s", presence: Presence::%s, base_zero: %s, base_zero_alone: %s, ureg_zero: %s }' % (
                op["kinds"], " ".join(words), presence,
                str("shown" in zero and "hidden_with_others" not in zero).lower(),
                str("shown_alone" in zero).lower(), str("shown" in uzero and "hidden_with_others" not in uzero).lower())
            slot_ids.append(intern(slots, text))
        # Where the modifiers of one field stand between those of another, their order is spelled out.
        def groups():
            for f in form["fields"]:
                if "values" in f:
                    have = [ranks[w] for text in f["values"].values() for w in text.split() if w in ranks]
                    if have:
                        yield f.get("order", 0) or 0, min(have), max(have)
        spans = sorted(groups())
        tangled = any(x[2] > y[1] for i, x in enumerate(spans) for y in spans[i + 1:] if x[0] <= y[0])
        order = []
        if tangled:
            order = [(w, r) for w, r in ranks.items() if "???" not in w and "INVALID" not in w]
        aliases = sum(bit for bit, name in ((1, ".MOV"), (2, ".IADD"), (4, ".SHL")) if name in ranks)
        in_tables = {w for f in form["fields"] for text in f.get("values", {}).values() for w in text.split()}
        mods = []
        for m in form["const_mods"]:
            if (m["text"] if isinstance(m, dict) else m) in in_tables:
                continue
            if isinstance(m, dict):
                mods.append((m["order"], m["text"]))
            else:
                mods.append((0, m))
        sm = sum(1 << SMS.index(int(a[3:])) for a in form["archs"])
        out_forms.append(
            "    Form { opcode: %#x, sm: %#x, op: Op::%s, uniform: %s, slots: &%s, fields: &%s, mods: &[%s], order: &[%s], aliases: %d, rules: &[%s], "
            "fixed_mask: %#x, fixed_value: %#x }," % (
                opcode, sm, camel(mnemonic), str(form["guard"] == "UP").lower(), slot_ids, ids,
                ", ".join('(%d, "%s")' % m for m in mods), ", ".join('("%s", %d)' % o for o in order), aliases, ", ".join(rules), fixed_mask, fixed_value))

    names = sorted({m for _, m, _ in forms} | extra_ops)
    print("// Generated by tests/golden/sass/table.py from the instruction encoding facts. Do not edit.\n")
    print("use super::form::{Field, Form, Kind, Part, Presence, Slot};\n")
    print("/// What an instruction does: the mnemonic without its modifiers.")
    print("#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]\n#[allow(missing_docs, reason = \"each is the mnemonic of its name\")]")
    print("pub enum Op {")
    for n in names:
        print("    %s," % camel(n))
    print("}\n\nimpl Op {\n    /// The mnemonic, as the vendor's disassembler spells it.\n    #[must_use]")
    print("    pub const fn name(self) -> &'static str {\n        match self {")
    for n in names:
        print('            Self::%s => "%s",' % (camel(n), n))
    print("        }\n    }\n\n    /// The operation of a mnemonic without modifiers.\n    #[must_use]")
    print("    pub fn from_name(name: &str) -> Option<Self> {\n        Some(match name {")
    for n in names:
        print('            "%s" => Self::%s,' % (n, camel(n)))
    print("            _ => return None,\n        })\n    }\n}\n")

    def lines(items, per):
        for i in range(0, len(items), per):
            print("    " + " ".join(items[i:i + per]))

    print("#[rustfmt::skip]\npub(super) static TOKENS: &[&str] = &[")
    lines(['"%s",' % t for t in tokens], 4)
    print("];\n\n#[rustfmt::skip]\npub(super) static VALUES: &[(u16, u16)] = &[")
    lines(["(%d,%d)," % v for v in values], 12)
    print("];\n\n#[rustfmt::skip]\npub(super) static FIELDS: &[Field] = &[")
    lines([f + "," for f in fields], 1)
    print("];\n\n#[rustfmt::skip]\npub(super) static SLOTS: &[Slot] = &[")
    lines([s + "," for s in slots], 1)
    print("];\n\n/// Sorted by opcode.\n#[rustfmt::skip]\npub(super) static FORMS: &[Form] = &[")
    print("\n".join(out_forms))
    print("];")


main()
