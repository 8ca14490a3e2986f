#!/usr/bin/env python3
"""delayed_link.py NAMESPACE NAMESPACE DEVICE MILLISECONDS: a link between two network namespaces
that delivers each packet after a delay, for kernels without the netem filter. Makes a TUN device of
that name in both, prints a line when they exist, and carries packets until it is ended."""

import collections
import contextlib
import ctypes
import fcntl
import os
import pathlib
import select
import struct
import sys
import time

# linux/if_tun.h and linux/sched.h
TUNSETIFF = 0x400454CA
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000
CLONE_NEWNET = 0x40000000
LARGEST_PACKET = 65535

libc = ctypes.CDLL(None, use_errno=True)


def tun_in(namespace: str, device: str) -> int:
    with pathlib.Path("/run/netns", namespace).open() as handle:
        if libc.setns(handle.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns", namespace)
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", device.encode(), IFF_TUN | IFF_NO_PI))
    return descriptor


def carry(ends: list[int], delay: float) -> None:
    # Packets leave in the order of their arrival, since all wait equally long.
    waiting: collections.deque = collections.deque()
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for end in select.select(ends, [], [], timeout)[0]:
            packet = os.read(end, LARGEST_PACKET)
            waiting.append((time.monotonic() + delay, ends[1 - ends.index(end)], packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, end, packet = waiting.popleft()
            with contextlib.suppress(OSError):  # an end that is not up yet loses packets
                os.write(end, packet)


def main() -> None:
    *namespaces, device, milliseconds = sys.argv[1:]
    ends = [tun_in(namespace, device) for namespace in namespaces]
    print("ready", flush=True)
    carry(ends, float(milliseconds) / 1e3)


if __name__ == "__main__":
    main()
