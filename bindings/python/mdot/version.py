"""The package's version; a test holds it to mdot_base.h."""

VERSION = "0.3.0"
