#!/usr/bin/env bash
# bundle.sh PAGE_FOLDER: type-checks the scripts of pages, and fails when a bundle is not what its sources make. Exit
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
# The sources and options of package.json's "build".
options=$(node -p 'require("./package.json").scripts.build.replace(/^esbuild | --outdir=.*/g, "")')
read -ra arguments <<<"$options"
node_modules/.bin/esbuild "${arguments[@]}" --log-level=warning "--outdir=$work"
for bundle in "$work"/*.js; do
  name=$(basename "$bundle")
  cmp "$name" "$bundle" || { echo "$name is out of date: npm run build in src/page"; exit 1; }
done
