#!/bin/sh
# try.sh FOLDER: runs the packages of the folder on a system without any of headroom's libraries: the
# .deb where there is dpkg, and the tarball of this processor. Needs a POSIX shell, tar and root.
set -eu

folder=$1
expected=109482240  # parameters of bert-base

# check PROGRAM: it counts, runs a model, and needs none of its sources.
check() {
  cd /
  "$1" analyze bert-base --format json | grep "\"total\": $expected" >/dev/null
  "$1" measure bert-tiny --runs 2 --format json | grep '"matrix_flops' >/dev/null
  "$1" --version
}

if command -v dpkg >/dev/null; then
  dpkg --install "$folder"/headroom_*_"$(dpkg --print-architecture)".deb
  check headroom
  dpkg --remove headroom
fi
work=$(mktemp -d)
tar -xzf "$folder"/headroom-*-linux-"$(uname -m)".tar.gz -C "$work"
check "$work"/headroom-*/bin/headroom
rm -rf "$work"
