"""A wheel for one platform and any Python 3, because the C libraries are data files that ctypes opens. The remaining metadata
is in pyproject.toml."""

from __future__ import annotations

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class WithLibraries(Distribution):
    def has_ext_modules(self) -> bool:
        return True


class AnyPython(bdist_wheel):
    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(distclass=WithLibraries, cmdclass={"bdist_wheel": AnyPython})
