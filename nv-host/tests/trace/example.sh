#!/usr/bin/env bash
# Makes docs/trace-example.md on a machine with a GPU and the vendor's library:
#   nv-host/tests/trace/example.sh NV OUT [CUBIN]
# NV is the `nv` program; OUT an empty folder, where `trace-example.md` and everything that it was cut from will lie.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
nv=$(realpath "$1")
out=$(realpath "$2")
cubin=$(realpath "${3:-$here/../../../tests/cubins/bench/bench.sm_90.cubin}")
library=$(ldconfig -p | awk '/libcuda\.so\.1 / { found = $NF } END { print found }')
cc -O1 -o "$out/example" "$here/example.c" "${library:--l:libcuda.so.1}"

"$out/example" "$cubin" # Without the trace first: does it work at all?
"$nv" trace --keep "$out/records" --out "$out/full.txt" -- "$out/example" "$cubin"
"$nv" trace --from "$out/records" --brief --only calls --out "$out/calls.txt"
"$nv" trace --from "$out/records" --only commands --out "$out/commands.txt"
"$nv" trace --from "$out/records" --json --out "$out/full.jsonl"

# The last entry of a ring whose lines hold a pattern.
entry() {
  awk -v want="$1" '
    /^  entry |^ *[0-9.]+ ms / { if (text ~ want) last = text; text = "" }
    { text = text $0 "\n" }
    END { if (text ~ want) last = text; printf "%s", last }' "$out/commands.txt"
}
code() { printf '```text\n'; cut -c -150; printf '```\n'; }
{
  printf '# What the vendor library does: `nv trace`\n\n'
  printf '`%s` on the GPU below, driver %s; the program is `nv-host/tests/trace/example.c`.\n' \
    'nv trace -- ./example bench.sm_90.cubin' "$(cat /sys/module/nvidia/version 2>/dev/null || echo unknown)"
  printf 'Cut from the whole by `nv-host/tests/trace/example.sh`.\n\n'
  printf '## All in all\n\n'
  { tail -n 1 "$out/calls.txt"
    sed -nE 's/^ *[0-9.]+ ms (\[[0-9]+\] )?((RM_(ALLOC|CONTROL) )?[A-Za-z0-9_]+).*/\2/p' "$out/calls.txt" |
      sort | uniq -c | sort -rn | head -n 12 || true; } | code
  printf '\n## It begins\n\n'
  { head -n 24 "$out/calls.txt"; } | code
  printf '\n## A channel is made\n\n'
  awk '/RM_ALLOC [A-Z]*_CHANNEL_GPFIFO/ && !on { on = 1; print; next }
    on && /^                / { print; next }
    on { exit }' "$out/full.txt" | code
  printf '\n## The kernel is launched\n\n'
  { entry ' SEND_PCAS_A ' | grep -vE '^ +(0x[0-9a-f]+): (00000000 ?){8}$' | head -n 75 || true; } | code
  printf '\n## The result is copied back\n\n'
  { entry 'LAUNCH_DMA .*DATA_TRANSFER_TYPE=(NON_)?PIPELINED' | head -n 20 || true; } | code
} > "$out/trace-example.md"
wc -l "$out/trace-example.md"
