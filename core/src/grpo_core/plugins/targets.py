"""From a target, the text `pkg.mod:attr` or `/absolute/file.py:attr`, to the object; and from there to a component.

Knows no catalog: a rank or a reward worker turns the targets of its plan into objects with this module alone.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

from grpo_core.errors import BrokenReference, GrpoError, PluginError
from grpo_core.plugins.absent import no_attribute, no_file, no_module
from grpo_core.plugins.faults import describe

__all__ = ["build_by_factory", "build_target", "file_module_name", "is_target", "load_module", "load_target"]

_DOTTED = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
_TARGET = re.compile(rf"({_DOTTED}|/.+\.py):{_DOTTED}")


def is_target(text: object) -> bool:
    """Whether this is the text of a target; says nothing about where it leads."""
    return isinstance(text, str) and _TARGET.fullmatch(text) is not None


def load_target(target: str) -> object:
    """Import the object that `pkg.mod:attr` or `/absolute/file.py:attr` leads to; raises `BrokenReference`."""
    if not is_target(target):
        raise BrokenReference(f"'{target}' is not a target", hint="Write pkg.mod:attr or /absolute/file.py:attr.")
    place, _, attribute = target.rpartition(":")
    found: object = load_module(place, target=target)
    names = attribute.split(".")
    for number, part in enumerate(names):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            raise no_attribute(target, names[:number], part, dir(found)) from error
        except (Exception, SystemExit) as error:  # a lazy module imports here
            raise _import_failed(place, target, error) from error
    return found


def load_module(place: str, *, target: str | None = None) -> ModuleType:
    """Import `pkg.mod` or `/absolute/file.py`, `target` being what messages name; raises `BrokenReference`.

    Code that exits at import is reported like any other failure; only Ctrl-C passes.
    """
    try:
        return _load_file(Path(place), target) if place.endswith(".py") else importlib.import_module(place)
    except GrpoError:
        raise
    except ModuleNotFoundError as error:
        if not place.endswith(".py") and error.name and f"{place}.".startswith(f"{error.name}."):
            raise no_module(error.name, target) from error
        raise _import_failed(place, target, error) from error
    except (Exception, SystemExit) as error:  # whatever foreign code raises at import
        raise _import_failed(place, target, error) from error


def build_target(target: str, options_model: str | None, options: Mapping[str, object], context: object) -> object:
    """Build a reward or a preprocessor: the target itself, or with an options model `make(validated options, context)`.

    Raises `BrokenReference` when a target leads nowhere and `PluginError` when the options are wrong or `make` fails.
    """
    if options_model is None:
        _refuse_options(target, options)
        return load_target(target)
    return build_by_factory(target, options_model, options, context)


def build_by_factory(target: str, options_model: str | None, options: Mapping[str, object], context: object) -> object:
    """Build a backend or a tracker: `make(options, context)`, where options are validated, and None without a model.

    Raises as `build_target` does.
    """
    make = load_target(target)
    if not callable(make):
        what = "has options, so it" if options_model else "is of a kind that is built by a factory, so it"
        raise PluginError(f"'{target}' {what} must be a factory make(options, context); it is {make!r}")
    if options_model is None:
        _refuse_options(target, options)
    checked = None if options_model is None else _validate(options_model, options, target)
    try:
        built: object = make(checked, context)
    except GrpoError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(f"'{target}' could not be built: {describe(error)}", hint=_call_of(make)) from error
    return built


def _refuse_options(target: str, options: Mapping[str, object]) -> None:
    if options:
        raise PluginError(f"'{target}' takes no options, but got: {', '.join(options)}", hint="Remove `options`.")


def _call_of(make: Callable[..., object]) -> str | None:
    """What to say where the call itself did not fit."""
    try:
        inspect.signature(make).bind(None, None)
    except TypeError:
        return "A factory is called as make(options, context); options are None where its spec has no options model."
    except ValueError:
        pass
    return None


def file_module_name(path: Path) -> str:
    """The name in `sys.modules` of a file that is imported by path: the same in every process."""
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
    return f"grpo_file_{path.stem if path.stem.isidentifier() else 'plugin'}_{digest}"


def _load_file(path: Path, target: str | None) -> ModuleType:
    path = Path(os.path.abspath(path))
    name = file_module_name(path)
    if name in sys.modules:
        return sys.modules[name]
    if not path.is_file():
        raise no_file(path, target)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # a file may import its neighbours; last, so that it shadows nothing
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs, as the import system does: dataclasses and pickle look there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _validate(options_model: str, options: Mapping[str, object], target: str) -> object:
    from pydantic import BaseModel, ValidationError

    model = load_target(options_model)
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise PluginError(f"'{options_model}', the options of '{target}', is not a pydantic model; it is {model!r}")
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, item['loc'])) or 'options'}: {item['msg']}" for item in error.errors()]
        known = f"Options: {', '.join(model.model_fields)}." if model.model_fields else "It has no options."
        raise PluginError(f"wrong options for '{target}': {'; '.join(lines)}", hint=known) from error


def _import_failed(place: str, target: str | None, error: BaseException) -> BrokenReference:
    return BrokenReference(f"'{target or place}' cannot be imported: {describe(error)}")
