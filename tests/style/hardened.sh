#!/usr/bin/env bash
# hardened.sh PROGRAM: fails unless the program was built as docs/security.md says. Without readelf it
# is skipped.
set -euo pipefail
program=$1
command -v readelf >/dev/null || exit 77

failed=0
require() {  # require WHAT PATTERN FLAG…: `readelf FLAG…` prints the pattern
  # grep reads all of it: readelf must not end by a closed pipe.
  if ! LC_ALL=C readelf "${@:3}" "$program" | grep -E -- "$2" >/dev/null; then
    printf '%s: not %s\n' "$program" "$1" >&2
    failed=1
  fi
}

require 'position-independent' 'Type: +DYN' --file-header
require 'linked with RELRO' 'GNU_RELRO' --program-headers --wide
require 'bound when it is loaded' 'BIND_NOW|FLAGS.* NOW' --dynamic
require 'without an executable stack' 'GNU_STACK .* RW +0x' --program-headers --wide
require 'protected by stack canaries' '__stack_chk_fail' --dyn-syms --wide
require 'fortified' '__(memcpy|memset|memmove|snprintf|read|pread64|pread|fread|realpath)_chk' --dyn-syms --wide
exit "$failed"
