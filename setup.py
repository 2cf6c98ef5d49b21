"""Build the C library beside the package where there is a C compiler; without one posenc installs and runs plainly.

The library has no Python in it, so one wheel serves every Python of a platform: ``py3-none-<platform>``.
"""

from __future__ import annotations

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

NATIVE = Path("src/posenc/native")
FLAGS = ["-std=c11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fexceptions", "-fvisibility=hidden", "-g0"]


class BuildLibrary(build_ext):
    """A plain shared library: no Python tag in its name, no init function."""

    def get_ext_filename(self, fullname: str) -> str:
        return str(Path(*fullname.split(".")[:-1]) / "libposenc.so")

    def get_export_symbols(self, extension: Extension) -> list[str]:
        return []

    def build_extension(self, extension: Extension) -> None:
        if self.compiler.compiler_type == "unix":
            extension.extra_compile_args = FLAGS
        try:
            super().build_extension(extension)
        except Exception as error:
            self.warn(
                f"posenc's C library was not built ({error}). posenc works without it, more slowly; "
                "`posenc env` says which path runs. Install a C compiler and install posenc again to have it."
            )


class PlatformWheel(bdist_wheel):
    """One wheel for all Pythons of a platform; for all platforms when the library was not built."""

    def get_tag(self) -> tuple[str, str, str]:
        built = any(Path(self.bdist_dir or ".").rglob("libposenc.so")) or any(Path("build").rglob("libposenc.so"))
        return "py3", "none", super().get_tag()[2] if built else "any"


setup(
    ext_modules=[
        Extension(
            "posenc.native.libposenc",
            sources=sorted(str(p) for p in (NATIVE / "source").glob("*.c")),
            depends=sorted(str(p) for p in (NATIVE / "source").glob("*.h")),
            include_dirs=[str(NATIVE / "source")],
            optional=True,
        )
    ],
    cmdclass={"build_ext": BuildLibrary, "bdist_wheel": PlatformWheel},
)
