"""The package's version. A test checks that it equals the version in mdot_base.h."""

VERSION = "0.4.0"
