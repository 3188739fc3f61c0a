#!/usr/bin/env bash
# Federated averaging on handwritten digits, from a Python module to a measured model.
# Run it from the root of the repository, with tffc installed.  It writes to the folder build/.
set -euo pipefail

show() {
  printf '\n$ %s\n' "$*"
  "$@"
}

module=examples/digits/federated_averaging.py
mkdir -p build

# Trace: the module becomes one message, and its text can be read.
show tffc trace $module:training -o build/training.pb
show tffc print build/training.pb --sexpr

# Compile: from the module with its first state, and a second program that measures the result.
show tffc compile $module:training --form mapreduce --out build/training --force
show tffc compile $module:evaluation --form mapreduce --out build/evaluation --force
show tffc print build/training --sexpr --style compact

# Run: twenty rounds on the clients' images, then one on images that no client has trained on.
show tffc run build/training --data examples/digits/train --rounds 20 --clients-per-round 20 \
  --state-out build/state.npz
show tffc run build/evaluation --data examples/digits/test --rounds 1 --state-in build/state.npz
