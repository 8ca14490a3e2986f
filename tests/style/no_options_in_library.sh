#!/usr/bin/env bash
# no_options_in_library.sh: fails if the library names an option of the command line in its texts.
# Errors quote a Setting instead (include/headroom/error.h), which src/cli restates as an option.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Options of other programs: in the commands of engines, in the rules of KV-cache policies, and of tools that list devices.
foreign='--page-size|--swa-full|--query-gpu|--format=csv|--showproductname'

found=$(grep -rnE --include='*.cpp' --include='*.h' '"[^"]*(^|[^-[:alnum:]])--[a-z][^"]*"' src include |
  grep -vE '^src/(cli/|(plan/((serving|training|weight)_commands|megatron_model)|serve/serving_command)\.cpp)' | grep -vE '^[^:]*:[0-9]+: *//' | grep -vE -- "$foreign" || true)
if [[ -n $found ]]; then
  printf 'options of the command line in the library:\n%s\n' "$found" >&2
  exit 1
fi
