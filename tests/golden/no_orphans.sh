#!/usr/bin/env bash
# no_orphans.sh CASE…: fails unless the folder cases/ holds a file for each of these, and no other.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/cases"
diff -u --label 'tests/integration.cmake' --label 'tests/golden/cases' \
  <(printf '%s.txt\n' "$@" | sort) <(printf '%s\n' * | sort)
