#!/usr/bin/env bash
# Checks on which memory nodes weights lie, on an emulated machine with two sockets.
#
# usage: memory_nodes.sh KERNELS_TESTS VMLINUZ
#
# KERNELS_TESTS is headroom_kernels_tests of a build with HEADROOM_NATIVE=OFF, VMLINUZ a kernel that
# knows NUMA, such as that of Debian's linux-image-cloud-amd64. Needs qemu-system-x86, busybox-static
# and cpio.
set -euo pipefail
tests=$1 kernel=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

root=$work/root
mkdir -p "$root"/{bin,proc,sys,dev,tmp}
cp "$(command -v busybox)" "$root/bin/busybox"
cp "$tests" "$root/bin/tests"
for library in $(ldd "$tests" | grep -o '/[^ )]*'); do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done
cat >"$root/init" <<'END'
#!/bin/busybox sh
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t sysfs sys /sys
/bin/busybox mount -t devtmpfs dev /dev
export OMP_NUM_THREADS=4 OMP_WAIT_POLICY=passive OMP_PLACES=cores OMP_PROC_BIND=close
/bin/tests --no-colors=true -tc="weights lie on the nodes*" && echo "exit status 0"
/bin/busybox poweroff -f
END
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc 2>/dev/null | gzip -1) >"$work/initrd"

timeout 600 qemu-system-x86_64 -accel tcg -cpu max -m 2048 -smp 4,sockets=2,cores=2 \
  -object memory-backend-ram,id=first,size=1G -object memory-backend-ram,id=second,size=1G \
  -numa node,cpus=0-1,memdev=first -numa node,cpus=2-3,memdev=second \
  -kernel "$kernel" -initrd "$work/initrd" -append 'console=ttyS0 quiet panic=-1' -nographic -no-reboot |
  tr -d '\r' | tee "$work/log"
# A test that finds one node checks nothing.
grep -q 'assertions: *[1-9]' "$work/log" && grep -q 'exit status 0' "$work/log"
