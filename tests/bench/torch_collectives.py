"""Times collectives between the processes of torchrun, and the link that their all-reduces reach."""

import datetime
import os
import statistics
import time

PAYLOADS = [4 << 10, 64 << 10, 1 << 20, 16 << 20, 128 << 20]


def operations(torch, distributed, size, ranks, device):
    """Calls by headroom's names. `size` is the bytes a rank hands in, as the machine's file counts them."""
    elements = max(ranks, size // 4 // ranks * ranks)
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
    tables = {}
    for size in PAYLOADS[:3] if quick else PAYLOADS:
        for name, call in operations(torch, distributed, size, ranks, device.name).items():
            try:
                seconds, spread = seconds_of(torch, distributed, device, call, 3 if quick else 15)
            except (RuntimeError, ValueError):  # the backend lacks it
                continue
            tables.setdefault(name, []).append({"bytes": size, "seconds": seconds, "spread": spread})
    backend = distributed.get_backend()
    distributed.destroy_process_group()
    hosts = max(1, ranks // local)
    return ({"date": time.strftime("%Y-%m-%d"), "library": f"PyTorch {torch.__version__}, {backend}",
             "tables": [{"collective": name, "processes": ranks, "ranks": ranks, "hosts": hosts, "points": points}
                        for name, points in tables.items()]},
            link(tables["all_reduce"][-1], ranks, local, backend))


def link(largest, ranks, local, backend):
    """Bandwidth of the largest all-reduce: a ring sends 2·(n − 1)/n of the payload from each rank."""
    sent = 2 * (ranks - 1) / ranks * largest["bytes"]
    crosses = ranks > local
    rate = sent / largest["seconds"]
    return {"devices_per_node": local, "intra_node_kind": backend, "intra_node_bytes_per_s": rate,
            "inter_node_kind": backend if crosses else None,
            "inter_node_bytes_per_s": rate if crosses else None,
            "source": "measured: an all-reduce by torch.distributed"}
