#!/usr/bin/env bash
# browser.sh SCRIPT SUBJECT PAGE_FOLDER: runs SCRIPT, browser.mjs or explorer_browser.mjs, on SUBJECT, the program or the
# page's folder, in the Chromium of CHROMIUM, of the PATH or of Playwright. Exit status 77: skipped, no node, no packages,
# no Chromium or no page.
set -euo pipefail

here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
script=$1
subject=$(readlink -m "$2")
modules=$3/node_modules

skip() {
  echo "skipped: $1"
  exit 77
}

[[ -f $subject || -f $subject/engine.wasm.gz ]] || skip "no page (./dev page)"
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
exec node "$here/$script" "$subject" "$modules" "$chromium"
