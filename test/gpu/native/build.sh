#!/bin/bash
# Compiles the test programs of this directory: each NAME.c with a main() becomes DIRECTORY/NAME.
#
#   test/gpu/native/build.sh DIRECTORY [HOME]    HOME: the checkout or package whose build/libnccl.so.2 they use
set -u
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
home=$(cd "${2:-$here/../../..}" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
flags=(-std=gnu11 -O2 -g -Wall -Wextra -Werror -pthread -DNCCLRUN_NO_CUDA_HEADERS "-I$home/native/include")
shared=() objects=() programs=() jobs=()
for source in "$here"/*.c; do
  name=$(basename "$source" .c)
  if grep -q '^int main(' "$source"; then programs+=("$name"); else shared+=("$name"); fi
done
wait_all() {
  local job
  for job in "${jobs[@]}"; do wait "$job" || exit 1; done
  jobs=()
}
for name in "${shared[@]}"; do
  cc "${flags[@]}" -c -o "$out/$name.o" "$here/$name.c" &
  jobs+=($!) objects+=("$out/$name.o")
done
wait_all
for name in "${programs[@]}"; do
  cc "${flags[@]}" -o "$out/$name" "$here/$name.c" "${objects[@]}" "$home/build/libnccl.so.2" "-Wl,-rpath,$home/build" -ldl &
  jobs+=($!)
done
wait_all
