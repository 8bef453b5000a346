"""Modules written by users that register operations: `--plugin MODULE`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

from ..errors import DataError, G2N2Error


def load_plugin(name: str) -> ModuleType:
    """Import a module by its name, from the current folder too, or by the path of its file.

    Raises:
        DataError: There is no such module, or it fails while it is imported.
    """
    try:
        return _from_file(Path(name)) if name.endswith(".py") else _by_name(name)
    except G2N2Error as fault:
        raise DataError(f"the plugin {name} cannot be used: {fault}") from fault
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as fault:  # whatever a module does: SystemExit and the like too
        raise DataError(
            f"the plugin {name} fails while it is imported: {type(fault).__name__}: {fault}"
        ) from fault


def _from_file(path: Path) -> ModuleType:
    if not os.path.isfile(path):
        raise DataError(f"there is no file {str(path)!r}")
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    if spec is None or spec.loader is None:
        raise DataError(f"{str(path)!r} is no Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _by_name(name: str) -> ModuleType:
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as fault:
        if fault.name is None or not (name == fault.name or name.startswith(f"{fault.name}.")):
            raise
        raise DataError(
            f"no module is called {name!r}, in {here} neither; give its name, or the path of its "
            ".py file"
        ) from fault
    finally:
        if added:
            sys.path.remove(here)
