#!/usr/bin/env bash
# kernels_aarch64.sh: builds the tests of the kernels for 64-bit Arm and runs them on emulated
# processors that have one of the program's instruction sets each. Needs g++-aarch64-linux-gnu and
# qemu-user-static.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

cmake --preset kernels-aarch64 >/dev/null
cmake --build build/kernels-aarch64 --target headroom_kernels_tests -- --quiet

# Armv8.0; Armv8.2 with sdot; all that qemu emulates, with usdot.
for processor in cortex-a53 neoverse-n1 max; do
  echo "$processor"
  OMP_WAIT_POLICY=passive qemu-aarch64-static -cpu "$processor" \
    build/kernels-aarch64/headroom_kernels_tests --no-intro
done
