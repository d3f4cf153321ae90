"""Holds libmdotc with LLVM linked in. The package mdot looks for the library here, because `mdot.compile` and `mdot.verify`
need it."""
