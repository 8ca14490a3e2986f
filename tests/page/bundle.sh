#!/usr/bin/env bash
# bundle.sh PAGE_FOLDER: type-checks the script of pages, and fails when page.js is not what its sources make. Exit
# status 77: skipped, no node or no packages.
set -euo pipefail

cd "$1"
if ! command -v node >/dev/null || [[ ! -x node_modules/.bin/esbuild || ! -x node_modules/.bin/tsc ]]; then
  echo "skipped: no node, or no packages (npm ci in src/page)"
  exit 77
fi
node_modules/.bin/tsc --noEmit
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The options of package.json's "build".
options=$(node -p 'require("./package.json").scripts.build.replace(/^esbuild | --outfile=.*/g, "")')
read -ra arguments <<<"$options"
node_modules/.bin/esbuild "${arguments[@]}" --log-level=warning "--outfile=$work/page.js"
cmp page.js "$work/page.js" || { echo "page.js is out of date: npm run build in src/page"; exit 1; }
