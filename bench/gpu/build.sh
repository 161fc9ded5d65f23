#!/bin/sh
# Compiles the benchmark into DIRECTORY (default: build-bench/gpu in the checkout): build.sh [DIRECTORY]
set -e
here=$(cd "$(dirname "$0")" && pwd)
headers=$here/../../native/include
out=${1:-$here/../../build-bench/gpu}
cuda=${CUDA_HOME:-/usr/local/cuda}
architecture=${NCCLRUN_CUDA_ARCHITECTURE:-90}
nvcc=$(command -v nvcc || echo "$cuda/bin/nvcc")
mkdir -p "$out"
for source in "$here/device.cu" "$here/product.cu" "$here/../../examples/overlap/product.cu"; do
  object=$(basename "$(dirname "$source")")-$(basename "$source" .cu).o
  "$nvcc" -std=c++20 -O2 -gencode "arch=compute_$architecture,code=[sm_$architecture,compute_$architecture]" \
    -c "$source" -o "$out/$object"
done
${CC:-cc} -std=gnu11 -O2 -Wall -Wextra -Werror -I"$headers" -I"$cuda/include" -o "$out/collectives" "$here"/*.c "$out"/*.o \
  -L"$cuda/lib64" -lcudart_static -ldl -lrt -lpthread -lstdc++ -lm
rm "$out"/*.o
${CC:-cc} -std=gnu11 -O2 -Wall -Wextra -Werror -I"$headers" -I"$cuda/include" -o "$out/one_thread" \
  "$here"/one-thread/one_thread.c -L"$cuda/lib64" -lcudart_static -ldl -lrt -lpthread -lstdc++ -lm
echo "$out/collectives"
