"""libmdotc with LLVM inside, which the package mdot finds here: `mdot.compile` and `mdot.verify` need it."""
