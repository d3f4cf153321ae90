#!/bin/sh
# Prints the words of source files, for fuzzing: string literals that look like names, each once, as in "axis".
#
#     words.sh FILE…
#
# The lines are a dictionary of libFuzzer. With a comma behind each, they are a C array (tests/support/onnx_mutator.c).
# The words are names of operators, attributes, modes, domains and columns, compared by the code with the input.
# Extracted words never fall behind the code, as a second list would.
set -eu
cat "$@" | grep -v '^#include' | grep -oE '"[A-Za-z_][A-Za-z0-9_.:+-]{0,39}"' | LC_ALL=C sort -u
