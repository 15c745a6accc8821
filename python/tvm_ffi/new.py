# SPDX-License-Identifier: Apache-2.0
"""``python -m tvm_ffi.new NAME``: a small project to start from.

It has a C++ class and functions, a Python package with type hints, tests, and files for CMake,
scikit-build-core and continuous integration. ``make build``, ``make test`` and ``make wheel`` do
what they say.
"""

from __future__ import annotations

import argparse
import keyword
import re
import shlex
import sys
from pathlib import Path

_TEMPLATE = Path(__file__).with_name("_new")
_RUNTIMES = ("tether-ffi", "apache-tvm-ffi")

# How the README and the continuous integration of a project install the runtime. Tether is not on a
# package index.
_INSTALL = {
    "tether-ffi": "pip install /path/to/tether    # a clone or a wheel: it is not on an index yet",
    "apache-tvm-ffi": "pip install apache-tvm-ffi",
}
_CI_INSTALL = {
    "tether-ffi": """\
      # Tether is not on a package index yet. Set the variable TETHER of the repository (Settings,
      # Actions, Variables) to what pip installs it from: git+https://..., or the URL of a wheel.
      - run: python -m pip install "${{ vars.TETHER }}\"""",
    "apache-tvm-ffi": "      - run: python -m pip install apache-tvm-ffi",
}


# Names that the compiler, CMake or pip would take for something else.
_TAKEN = {
    "C++": """
        alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t
        char16_t char32_t class compl concept const const_cast consteval constexpr constinit
        continue co_await co_return co_yield decltype default delete do double dynamic_cast else
        enum explicit export extern false float for friend goto if inline int long mutable
        namespace new noexcept not not_eq nullptr operator or or_eq private protected public
        register reinterpret_cast requires return short signed sizeof static static_assert
        static_cast struct switch template this thread_local throw true try typedef typeid
        typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq
        std tvm ffi refl linux unix i386 abi""",
    "the C library": """
        abort abs access acos asin atan atexit atof atoi atol bcopy bind brk bsearch bzero calloc
        ceil chdir chown close connect copysign cos daemon dirname div dup environ erf errno exit
        exp fabs fclose feof fflush floor fmax fmin fmod fopen fork free frexp fsync gamma getenv
        getopt getpid hypot index ioctl isatty kill labs ldexp link listen localtime log longjmp
        lseek malloc memcpy memmove memset mktime modf nan nice open optarg pause perror pipe pow
        printf putchar puts qsort raise rand random read realloc recv remainder remove rename
        rewind rindex rmdir rint round scanf send setenv shutdown signgam sin sleep socket sqrt
        srand stderr stdin stdout stpcpy strcat strchr strcmp strcpy strdup strlen strstr strtol
        swab symlink sync system tan tgamma time tmpfile tolower toupper trunc truncate ungetc
        unlink usleep vfork wait write j0 j1 jn y0 y1 yn
        alloca asctime asprintf atoll basename bcmp clearenv clock clone ctermid ctime cuserid
        daylight difftime dprintf duplocale dysize ffs fdopen ferror fgetc fgets fileno fprintf
        fputc fputs fread freopen fscanf fseek ftell fwide fwrite getc getchar getcpu getdate
        getdelim getline getloadavg getw gmtime grantpt initstate isalnum isalpha isascii isblank
        iscntrl isctype isdigit isgraph islower isprint ispunct isspace isupper isxdigit
        itimerspec lconv ldiv llabs lldiv localeconv mblen memchr memcmp memfrob memmem mkdtemp
        mkstemp mktemp nanosleep newlocale obstack pclose popen pselect ptsname putc putenv putw
        realloc reallocarray realpath renameat rpmatch setbuf setlocale setns setstate setvbuf
        sigevent snprintf sprintf srandom sscanf strcoll strerror strfry strftime strncmp strncpy
        strndup strnlen strptime strrchr strsep strspn strtod strtof strtok strtoul strxfrm
        tempnam textdomain timegm timelocal timespec timeval timex timezone tm tmpnam toascii
        tzname tzset u_char u_int u_long u_short uint ulong unsetenv unshare uselocale ushort
        va_list valloc vprintf vscanf wctype""",
    "CMake": """
        all all_build build cache_stats clean depend edit_cache experimental nightly continuous
        help install list_install_components package package_source preinstall rebuild_cache
        run_tests test tests uninstall zero_check""",
    "this package and its tools": """
        tvm_ffi tether_ffi apache_tvm_ffi tether dlpack numpy pytest pip setuptools wheel cmake
        ninja scikit_build_core""",
}


def module_name(name: str) -> str:
    """Return the name of the Python module of a project.

    >>> from tvm_ffi.new import module_name
    >>> module_name("my-kernels")
    'my_kernels'
    """
    module = name.replace("-", "_")
    # The name is also a namespace of C++, a target of CMake and a prefix of registered names.
    if not re.fullmatch(r"[a-z][a-z0-9_]*", module) or module.endswith("_") or "__" in module:
        raise ValueError(
            f"{name!r} cannot be the name of a project: use lower-case letters, digits and single "
            "dashes, and begin with a letter"
        )
    if module.endswith("_t"):  # int8_t, size_t, ...
        raise ValueError(
            f"{name!r} cannot be the name of a project: names that end so are types of C"
        )
    meanings = {where: words.split() for where, words in _TAKEN.items()}
    meanings["the standard library of Python"] = list(sys.stdlib_module_names)
    meanings["the language Python"] = [*keyword.kwlist, *keyword.softkwlist]
    for where, words in meanings.items():
        if module in words:
            raise ValueError(
                f"{name!r} cannot be the name of a project: it already means something in {where}"
            )
    return module


def create(name: str, directory: Path, runtime: str = _RUNTIMES[0]) -> list[Path]:
    """Write the files of a project called `name` into a new folder; return their paths."""
    words = {
        "@name@": name,
        "@module@": module_name(name),
        "@runtime@": runtime,
        "@install@": _INSTALL[runtime],
        "@ci_install@": _CI_INSTALL[runtime],
    }
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise FileExistsError(f"{directory} exists already; give another one with --directory")
    written = []
    for source in sorted(_TEMPLATE.rglob("*.in")):
        relative = str(source.relative_to(_TEMPLATE)).removesuffix(".in")
        target = directory / relative.replace("NAME", words["@module@"])
        text = source.read_text(encoding="utf-8")
        for word, value in words.items():
            text = text.replace(word, value)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        written.append(target)
    return written


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tvm_ffi.new",
        description="Write a small project: C++, a Python package around it, tests and packaging.",
    )
    parser.add_argument("name", metavar="NAME", help="name of the package, for example my-kernels")
    parser.add_argument("--directory", type=Path, help="where to write it (default: ./NAME)")
    parser.add_argument(
        "--runtime",
        choices=_RUNTIMES,
        default=_RUNTIMES[0],
        help="the distribution that the project requires (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    directory = options.directory or Path(options.name)
    try:
        written = create(options.name, directory, options.runtime)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for path in written:
        print(path)
    print("\nREADME.md says what must be installed. Then:")
    print(f"cd {shlex.quote(str(directory))} && make build && make test && make wheel")
    return 0


if __name__ == "__main__":
    sys.exit(main())
