#!/bin/sh
# Remakes the files here; needs nvcc of CUDA 13.0 with its headers.
set -eu
all=""
for sm in 80 86 89 90 120; do
    all="$all -gencode arch=compute_$sm,code=sm_$sm"
done
make() { out=$1 from=$2; shift 2; nvcc -std=c++17 -fatbin -Xfatbin -compress-all "$@" -o "$out" "$from"; }
make range.fatbin range.cu $all
make many.fatbin many.cu $all
make prints.fatbin syscalls.cu -DWHICH=1 $all
make allocates.fatbin syscalls.cu -DWHICH=2 $all
nvcc -std=c++17 -arch=sm_90a -cubin -o hopper.sm_90a.cubin hopper.cu
