#!/bin/sh
# Writes the public headers of an imaginary later version: every struct that begins with struct_size has two more fields.
# Usage: grow.sh INCLUDE_FOLDER OUTPUT_FOLDER
set -eu
mkdir -p "$2/mdot"
for header in "$1"/mdot/*.h; do
    awk '
    /^typedef struct mdot[a-z_]* \{/ { inside = 1; grows = 0 }
    inside && /size_t struct_size;/ { grows = 1 }
    inside && /^} mdot[a-z_]*;/ { if (grows) print "    uint64_t later[2];"; inside = 0 }
    { print }' "$header" > "$2/mdot/$(basename "$header").new"
    # Unchanged files keep the modification time, so they are not built again.
    cmp -s "$2/mdot/$(basename "$header").new" "$2/mdot/$(basename "$header")" ||
        cp "$2/mdot/$(basename "$header").new" "$2/mdot/$(basename "$header")"
    rm "$2/mdot/$(basename "$header").new"
done
