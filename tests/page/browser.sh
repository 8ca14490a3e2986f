#!/usr/bin/env bash
# browser.sh HEADROOM PAGE_FOLDER: runs browser.mjs in the Chromium of CHROMIUM, of the PATH or of Playwright. Exit
# status 77: skipped, no node, no packages or no Chromium.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
headroom=$(readlink -f "$1")
modules=$2/node_modules

skip() {
  echo "skipped: $1"
  exit 77
}

command -v node >/dev/null || skip "no node"
[[ -d $modules/playwright-core && -d $modules/axe-core ]] || skip "no packages (npm ci in src/page)"
chromium=${CHROMIUM-}
for name in chromium chromium-browser google-chrome; do
  [[ -n $chromium ]] || chromium=$(command -v "$name" || true)
done
for program in ~/.cache/ms-playwright/chromium*/chrome-linux*/{chrome,headless_shell}; do
  [[ -n $chromium || ! -x $program ]] || chromium=$program
done
[[ -n $chromium ]] || skip "no Chromium (set CHROMIUM)"
exec node "$here/browser.mjs" "$headroom" "$modules" "$chromium"
