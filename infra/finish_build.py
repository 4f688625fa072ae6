"""After `sam build`: make what it built whole, and start faster. Run it by the Python that the functions will run on.

- The console's files are put beside their handler, for SAM takes a function's code from one folder.
- Of botocore only the services that the package calls are kept: the rest is most of what Lambda would fetch.
- Modules are compiled, since Lambda's file system is read-only and every cold start would compile them anew. They are
  not checked against their sources, whose times packing changes.
- A digest of the layer and the template's parameters is written beside the handlers: SAM publishes a version of a
  function when its code changes, and not for those.
"""

import argparse
import compileall
import hashlib
import py_compile
import shutil
import sys
from pathlib import Path

SERVICES = ("dynamodb", "s3", "sqs", "sts")
LAYER = "SharedLayer"
CONSOLE = "ServeConsoleFunction"
WEB = Path(__file__).resolve().parents[1] / "web"
DIGEST = "release.sha256"


def main() -> None:
    """Finish the build in the folder that is named."""
    parser = argparse.ArgumentParser(description="Make what `sam build` built whole, and start faster.")
    parser.add_argument("build", type=Path, help="the folder of the build")
    parser.add_argument("parameters", nargs="*", help="the template's parameters that are not default")
    options = parser.parse_args()
    finish(options.build, *options.parameters)


def finish(build: Path, *parameters: str) -> None:
    """Add the console's files, trim, compile and mark the build. A second time changes nothing."""
    packages = build / LAYER / "python"
    if not packages.is_dir():
        sys.exit(f"there is no {LAYER} in {build}: build first")
    shutil.rmtree(build / CONSOLE / WEB.name, ignore_errors=True)
    shutil.copytree(WEB, build / CONSOLE / WEB.name)
    trim(packages / "botocore" / "data")
    functions = sorted(path for path in build.iterdir() if path.is_dir() and path.name != LAYER)
    digest = digest_of(packages, *parameters)
    for function in functions:
        (function / DIGEST).write_text(digest + "\n")
    for folder in (packages, *functions):
        compiled(folder)


def trim(data: Path) -> None:
    """Remove the descriptions of the services that are not called; what is beside them is for all."""
    for service in data.iterdir():
        if service.is_dir() and service.name not in SERVICES:
            shutil.rmtree(service)


def digest_of(folder: Path, *parameters: str) -> str:
    """One digest of the parameters, and of all files in the folder by name and content, but for what was compiled."""
    digest = hashlib.sha256("".join(f"{parameter}\n" for parameter in sorted(parameters)).encode())
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            name = path.relative_to(folder).as_posix().encode()
            digest.update(b"%d:%b,%d:" % (len(name), name, path.stat().st_size))
            digest.update(path.read_bytes())
    return digest.hexdigest()


def compiled(folder: Path) -> None:
    """Compile the modules, in place of what was compiled before. Some packages carry files that are no Python."""
    for cache in folder.rglob("__pycache__"):
        shutil.rmtree(cache)
    compileall.compile_dir(
        folder,
        quiet=2,
        stripdir=folder,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


if __name__ == "__main__":
    main()
