#!/bin/sh
# Remakes system.fatbin. 32 registers leave room for blocks of 1,024 threads. It
# needs nvcc, nvlink and fatbinary of CUDA 13.0.
set -eu
images=""
for sm in 80 86 89 90 100 120; do
    nvcc -std=c++17 -rdc=true -maxrregcount=32 -arch=sm_$sm -cubin -o system.$sm.o system.cu
    nvlink -arch=sm_$sm -o system.$sm.cubin system.$sm.o
    images="$images --image3=kind=elf,sm=$sm,file=system.$sm.cubin"
done
fatbinary --compress-all --create=system.fatbin $images
rm -f system.*.o system.*.cubin
