"""Makes tests/data/chunked/mask.csv anew: the mask of Llama 4's chunked attention, pair by pair, by
transformers.

    python3 tests/reference/make_chunked_mask.py [FILE]

Needs torch and transformers. For every chunk size, past and number of new tokens: `pairs`, which the
mask leaves, and `keys`, which some new token sees.
"""

import csv
import sys
from pathlib import Path

from transformers.masking_utils import chunked_causal_mask_function
import torch

FILE = Path(__file__).parent.parent / "data/chunked/mask.csv"


def rows():
    for chunk in (4, 8):
        mask = chunked_causal_mask_function(chunk, torch.zeros(1, dtype=torch.int))
        for past in range(0, 3 * chunk):
            for new in (1, 2, chunk, chunk + 3):
                seen = [key for query in range(past, past + new) for key in range(past + new)
                        if bool(mask(0, 0, torch.tensor(query), torch.tensor(key)))]
                yield chunk, past, new, len(seen), len(set(seen))


def main():
    with open(sys.argv[1] if len(sys.argv) > 1 else FILE, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["chunk", "past_len", "seq_len", "pairs", "keys"])
        table.writerows(rows())


if __name__ == "__main__":
    main()
