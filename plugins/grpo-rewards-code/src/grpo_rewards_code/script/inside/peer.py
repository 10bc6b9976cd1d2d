"""One side of the talk between a script and a program: asks the other one, and answers what it asks meanwhile.

What crosses is data (`forms`, `values`), and numbers that stand for objects which stay where they are. A line is a
request (`?`), its result (`=`), or the exception that ended it (`!`); `x` is the host's word that the other side ended.

Place in the flow: script → stub → **peer** → host → **peer** → program.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from grpo_rewards_code.executor.values import TooLargeError, decode, encode
from grpo_rewards_code.script.inside import forms
from grpo_rewards_code.script.inside.changes import Changes, take_over
from grpo_rewards_code.script.inside.describe import describe
from grpo_rewards_code.script.inside.stubs import Remote, RemoteType, Unjudged, make_stub

__all__ = ["Ended", "Peer"]

_DATA = (str, int, float, complex, bytes, bytearray, list, tuple, dict, set, frozenset)
_Served = Callable[[str, Any, Sequence[Any], Mapping[str, Any]], object]


class Ended(BaseException):
    """The other side is not there any more."""


class Peer:
    """This side. `serve` does what the other one asks: (operation, target, arguments, named arguments) → result."""

    def __init__(
        self,
        read: Callable[[], str],
        write: Callable[[str], None],
        serve: _Served,
        largest_bytes: int,
        *,
        decides: bool = False,
    ) -> None:
        """`decides`: whether verdicts are given here, so that no object of the other side may judge itself."""
        self._read, self._write, self._serve = read, write, serve
        self._largest_bytes = largest_bytes
        self.decides = decides
        self.asked = 0
        """Requests made, but for the list of all names."""
        self.ended: str | None = None
        """Why the other side is not there any more."""
        self.around: Callable[[], object] = lambda: None
        """What goes along with a request."""
        self.took: Callable[[Any], object] = lambda used: None
        """Is given what the other side printed during a request, and how much it read of what went along."""
        self._objects: list[object] = []
        self._numbers: dict[int, int] = {}
        self._told: set[int] = set()
        self._telling: set[int] = set()
        self._stubs: dict[int, Any] = {}
        self._stub_numbers: dict[int, int] = {}

    def ask(self, operation: str, target: object, arguments: Sequence[Any] = (), named: Mapping[str, Any] = {}) -> Any:
        """Have the other side do something; its result, or the exception that came of it."""
        if self.ended is not None:
            raise Ended(self.ended)
        self.asked += operation != "names"
        given = (list(arguments), dict(named))
        self._ask_for("?", (operation, target, *given, self.around()))
        while True:
            line = self._read()
            kind, text = line[:1], line[1:]
            if kind == "?":
                self.answer(text)
            elif kind == "=":
                return self._result(text, given)
            elif kind == "!":
                raise self._raised(
                    text, given, ends=operation in ("special", "await") or list(arguments[:1]) == ["send"]
                )
            else:
                self.ended = text or "the program ended"
                raise Ended(self.ended)

    def answer(self, text: str) -> None:
        """Do what a request asks, and reply."""
        operation, target, arguments, named, around = self._decoded(text)
        changes = Changes(self._encoded, (arguments, named))
        try:
            result = self._served(operation, target, arguments, named, around)
            place = changes.place_of(result)
            reply = (None if place is not None else result, place, changes.found(), self.used())
            try:
                self._send("=", reply)
            except RecursionError:
                raise ValueError("a value is nested too deeply") from None
        except (Ended, Unjudged, TooLargeError, MemoryError):
            raise
        except BaseException as error:  # noqa: BLE001  it is for the other side
            self._send("!", (self._error_form(error), None, changes.found(), self.used()))

    def _served(self, operation: str, target: Any, arguments: Any, named: Any, around: Any) -> object:
        return (
            self._serve(operation, target, arguments, named)
            if around is None
            else self.with_around(around, lambda: self._serve(operation, target, arguments, named))
        )

    def with_around(self, around: Any, work: Callable[[], object]) -> object:
        """Do work with what came along with a request."""
        return work()

    def used(self) -> object:
        """What was printed during a request, and how much was read."""
        return None

    def export(self, value: object) -> int:
        """The number of an object of this side, which stays here."""
        number = self._numbers.get(id(value))
        if number is None:
            number = self._numbers[id(value)] = len(self._objects)
            self._objects.append(value)
        return number

    def object_of(self, number: Any) -> Any:
        """The object of this side that a number stands for."""
        return self._objects[number]

    def data_of(self, value: object) -> object:
        """What an object of a class that derives from a built-in one holds, as plain data."""
        return decode(encode(value, self._largest_bytes))

    def _result(self, text: str, given: tuple[list[Any], dict[str, Any]]) -> Any:
        value, place, changed, used = self._decoded(text)
        self._settle(given, changed, used)
        if place is not None:
            return given[0][place] if isinstance(place, int) else given[1][place]
        return value

    def _raised(self, text: str, given: tuple[list[Any], dict[str, Any]], *, ends: bool) -> BaseException:
        """`ends`: whether the end of an iteration is what it is, and may not end one of this side's."""
        decoded: tuple[BaseException, Any, Any, Any] = self._decoded(text)
        error, _, changed, used = decoded
        self._settle(given, changed, used)
        if not isinstance(error, BaseException):
            raise ValueError("not an exception's data")
        if isinstance(error, StopIteration | StopAsyncIteration | GeneratorExit) and not ends:
            error = RuntimeError(f"raised {type(error).__name__}")
        error.of_program = True  # type: ignore[attr-defined]  # for the record, which tells whose it was
        return error

    def _settle(self, given: tuple[list[Any], dict[str, Any]], changed: Any, used: Any) -> None:
        if changed is not None:
            take_over(given, changed)
        if used is not None:
            self.took(used)

    def _ask_for(self, kind: str, value: object) -> None:
        if not self.decides:
            self._send(kind, value)
            return
        try:
            text = self._encoded(value)
        except TooLargeError:
            raise Unjudged("an argument of its tests is too large") from None
        if '["opaque"' in text:  # in a text, the quotes would be escaped
            raise Unjudged("an argument of its tests is nested too deeply")
        self._told |= self._telling
        self._write(kind + text)

    def _send(self, kind: str, value: object) -> None:
        text = self._encoded(value)
        self._told |= self._telling
        self._write(kind + text)

    def _encoded(self, value: object) -> str:
        self._telling = set()
        return encode(value, self._largest_bytes, self._form)

    def _decoded(self, text: str) -> Any:
        return decode(text, self._read_form)

    def _form(self, value: Any) -> object:
        number = self._stub_numbers.get(id(value))
        if number is not None:
            return "home", number
        if id(value) not in self._numbers:
            form = forms.form_of(value)
            if form is not None:
                return form
            if isinstance(value, _DATA):
                return None
        if isinstance(value, BaseException):
            return "error", self._error_parts(value)
        number = self.export(value)
        is_new = number not in self._told and number not in self._telling
        if inspect.isawaitable(value):
            return "awaitable", number
        if not is_new:
            return "object", [number, None]
        self._telling.add(number)
        return "object", [number, describe(value, isinstance(value, _DATA))]

    def _read_form(self, kind: str, content: Any) -> object:
        if kind == "home":
            return self._objects[content]
        if kind == "error":
            return self._error(*content)
        if kind == "awaitable":
            return self._wait(content)
        if kind != "object":
            return forms.read_form(kind, content)
        number, description = content
        if number not in self._stubs:
            self._stubs[number] = stub = make_stub(self, number, description)
            self._stub_numbers[id(stub)] = number
        return self._stubs[number]

    async def _wait(self, number: int) -> object:
        return self.ask("await", number)

    def _error_form(self, error: BaseException) -> object:
        return error if id(error) not in self._stub_numbers else str(error)

    def _error_parts(self, error: BaseException) -> list[object]:
        """Class, arguments and message; of a failed assertion no message, which may say what was expected."""
        kind: object = type(error)
        if self.decides and not self._is_shared(kind):
            kind = next(each for each in type(error).__mro__ if self._is_shared(each))
        if self.decides and isinstance(error, AssertionError):
            return [kind, [], "", None]
        arguments = [each for each in error.args if isinstance(each, str | int | float | bool | None)]
        number = None if self.decides else self.export(error)
        try:
            message = str(error)
        except Exception:  # noqa: BLE001  a class of the program may not be able to say it
            message = ""
        return [kind, arguments if len(arguments) == len(error.args) else [message], message, number]

    @staticmethod
    def _is_shared(kind: object) -> bool:
        return getattr(builtins, getattr(kind, "__name__", ""), None) is kind

    def _error(self, kind: Any, arguments: list[Any], message: str, number: int | None) -> BaseException:
        if number is not None and number in self._stubs:
            return self._stubs[number]  # type: ignore[no-any-return]
        if not isinstance(kind, type) or not issubclass(kind, BaseException):
            kind = Exception
        try:
            error: BaseException = kind.__new__(kind, *arguments)
            if not isinstance(kind, RemoteType):
                error.__init__(*arguments)  # type: ignore[misc]
        except TypeError:  # UnicodeDecodeError and its like take what did not come along
            kind = next(
                each for each in (ValueError, OSError, Exception) if issubclass(kind, each) or each is Exception
            )
            error = kind(message)
        if isinstance(error, Remote):
            error.__dict__.update(_peer_=self, _number_=number, _asked_=True, _message_=str(message))
        if number is not None:
            self._stubs[number] = error
            self._stub_numbers[id(error)] = number
        return error
