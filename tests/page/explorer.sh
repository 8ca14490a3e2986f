#!/usr/bin/env bash
# explorer.sh HEADROOM EXPLORER_FOLDER: runs explorer.mjs. Exit status 77: skipped, no node or no page.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
if ! command -v node >/dev/null || [[ ! -f $2/engine.wasm.gz ]]; then
  echo "skipped: no node, or no page (./dev page)"
  exit 77
fi
exec node "$here/explorer.mjs" "$(readlink -f "$1")" "$(readlink -f "$2")"
