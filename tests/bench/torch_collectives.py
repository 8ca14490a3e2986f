"""Times collectives between the processes of torchrun, and the link that their all-reduces reach."""

import datetime
import os
import statistics
import time

PAYLOADS = [4 << 10, 64 << 10, 1 << 20, 16 << 20, 128 << 20]
LINK_PAYLOAD = PAYLOADS[-1]  # hides the latency of an all-reduce


def elements_of(size, ranks):
    """Of float32, in equal shards."""
    return max(ranks, size // 4 // ranks * ranks)


def counted_bytes(name, size, ranks):
    """As the machine's file counts them: of the buffer that a rank hands in, but of a reduce-scatter's shard."""
    return 4 * elements_of(size, ranks) // (ranks if name == "reduce_scatter" else 1)


def operations(torch, distributed, size, ranks, device):
    """Calls by headroom's names. A rank hands in `size` bytes."""
    elements = elements_of(size, ranks)
    x = torch.ones(elements, device=device)
    shard, whole = torch.empty(elements // ranks, device=device), torch.empty(elements * ranks, device=device)
    rank, exchanged = distributed.get_rank(), torch.empty_like(x)

    def send():
        """Pairs of ranks send at the same time."""
        peer = rank ^ 1
        if peer >= ranks:
            return
        (distributed.send if rank < peer else distributed.recv)(x, peer)
    calls = {"all_reduce": lambda: distributed.all_reduce(x),
             "all_gather": lambda: distributed.all_gather_into_tensor(whole, x),
             "reduce_scatter": lambda: distributed.reduce_scatter_tensor(shard, x),
             "all_to_all": lambda: distributed.all_to_all_single(exchanged, x), "send": send}
    if distributed.get_backend() == "gloo":  # has neither
        parts = list(x.chunk(ranks))
        calls["reduce_scatter"] = lambda: distributed.reduce_scatter(shard, parts)
        calls["all_to_all"] = lambda: distributed.all_to_all(list(exchanged.chunk(ranks)), parts)
    return calls


def seconds_of(torch, distributed, device, call, samples):
    """Median over samples of the slowest rank."""
    taken = []
    call()
    for _ in range(samples):
        device.synchronize()
        distributed.barrier()
        start = time.perf_counter()
        call()
        device.synchronize()
        slowest = torch.tensor(time.perf_counter() - start, device=device.name)
        distributed.all_reduce(slowest, op=distributed.ReduceOp.MAX)
        taken.append(slowest.item())
    median = statistics.median(taken)
    return median, statistics.median(abs(one - median) for one in taken) / median


def measure(torch, device, quick):
    """Returns the collectives and the interconnect of the machine's file."""
    import torch.distributed as distributed
    # The other ranks wait while the first measures its device.
    distributed.init_process_group({"cuda": "nccl", "xpu": "xccl"}.get(device.kind, "gloo"),
                                   timeout=datetime.timedelta(hours=2))
    ranks, local = distributed.get_world_size(), int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    samples, tables = 3 if quick else 15, {}
    for size in PAYLOADS[:3] if quick else PAYLOADS:
        for name, call in operations(torch, distributed, size, ranks, device.name).items():
            try:
                seconds, spread = seconds_of(torch, distributed, device, call, samples)
            except (RuntimeError, ValueError):  # the backend lacks it
                continue
            tables.setdefault(name, []).append(
                {"bytes": counted_bytes(name, size, ranks), "seconds": seconds, "spread": spread})
    interconnect = None if quick else link(torch, distributed, device, ranks, local, samples)
    backend = distributed.get_backend()
    distributed.destroy_process_group()
    hosts = max(1, ranks // local)
    return ({"date": time.strftime("%Y-%m-%d"), "library": f"PyTorch {torch.__version__}, {backend}",
             "tables": [{"collective": name, "processes": ranks, "ranks": ranks, "hosts": hosts, "points": points}
                        for name, points in tables.items()]}, interconnect)


def link(torch, distributed, device, ranks, local, samples):
    """Bandwidth of all-reduces inside the nodes, and of ones among a rank of each node; None where no node has
    two ranks, or where they have different numbers."""
    if local < 2 or ranks % local != 0:
        return None

    def rate(groups):
        """Of a rank, while all groups reduce. A ring sends 2·(n − 1)/n of the payload from each rank."""
        made = [distributed.new_group(group) for group in groups]  # every rank makes every group
        own = next(group for group, members in zip(made, groups) if distributed.get_rank() in members)
        x = torch.ones(LINK_PAYLOAD // 4, device=device.name)
        seconds, _ = seconds_of(torch, distributed, device, lambda: distributed.all_reduce(x, group=own), samples)
        return 2 * (len(groups[0]) - 1) / len(groups[0]) * LINK_PAYLOAD / seconds

    inside = rate([list(range(first, first + local)) for first in range(0, ranks, local)])
    between = rate([list(range(first, ranks, local)) for first in range(local)]) if ranks > local else None
    backend = distributed.get_backend()
    return {"devices_per_node": local, "intra_node_kind": backend, "intra_node_bytes_per_s": inside,
            "inter_node_kind": backend if between else None, "inter_node_bytes_per_s": between,
            "source": "measured: all-reduces of 128 MiB by torch.distributed"}
