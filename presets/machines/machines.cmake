# The catalogue: one file a machine.
set(HEADROOM_MACHINES
  a100-40gb
  a100-80gb
  h100-80gb
  h200-141gb
  l4
  l40s
  mi250x
  mi300x
  rtx-3090
  rtx-4090
  t4
  v100-32gb
)
