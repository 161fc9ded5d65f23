#!/bin/sh
# Compiles the benchmark into DIRECTORY (default: build-bench/gpu in the checkout): build.sh [DIRECTORY]
set -e
here=$(cd "$(dirname "$0")" && pwd)
headers=$here/../../native/include
[ -d "$headers" ] || headers=$here # in a bundle they lie beside it
out=${1:-$here/../../build-bench/gpu}
cuda=${CUDA_HOME:-/usr/local/cuda}
nvcc=$(command -v nvcc || echo "$cuda/bin/nvcc")
mkdir -p "$out"
"$nvcc" -O2 -gencode "arch=compute_${NCCLRUN_CUDA_ARCHITECTURE:-90},code=[sm_${NCCLRUN_CUDA_ARCHITECTURE:-90},compute_${NCCLRUN_CUDA_ARCHITECTURE:-90}]" \
  -c "$here/device.cu" -o "$out/device.o"
${CC:-cc} -std=gnu11 -O2 -Wall -Wextra -Werror -I"$headers" -I"$cuda/include" -o "$out/collectives" "$here"/*.c "$out/device.o" \
  -L"$cuda/lib64" -lcudart_static -ldl -lrt -lpthread -lstdc++
echo "$out/collectives"
