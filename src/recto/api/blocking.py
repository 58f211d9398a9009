"""Talk and Desk: AsyncTalk and AsyncDesk for blocking code. Work runs on a loop in a background thread.

Has every public method and attribute of the asynchronous classes. `make docs` writes `blocking.pyi` with their
signatures for type checkers and editors."""

import inspect
import textwrap
from collections.abc import Callable, Coroutine
from functools import wraps
from types import FunctionType, TracebackType
from typing import Any, Self, TypeVar, Unpack, get_args

from recto.api.desk import AsyncDesk, DeskOptions, new_desk
from recto.api.loop import Loop
from recto.api.talk import AsyncTalk

T = TypeVar("T")


def _blocking_form_of(asynchronous: type) -> Callable[[type[T]], type[T]]:
    """Adds the members of the asynchronous class that this one lacks."""

    def fill(own: type[T]) -> type[T]:
        for kind in asynchronous.__mro__[:-1]:
            for name in (*vars(kind), *inspect.get_annotations(kind)):
                if not name.startswith("_") and not hasattr(own, name):
                    member = vars(kind).get(name)
                    made = _called(member) if isinstance(member, FunctionType) else _read(name, member)
                    setattr(own, name, made)
        return own

    return fill


def _read(name: str, member: object) -> property:
    return property(lambda own: getattr(own.asynchronous, name), doc=member.__doc__ if member else None)


def _called(method: FunctionType) -> Callable[..., Any]:
    """Waits for the result of the asynchronous method."""
    gives_items = inspect.isasyncgenfunction(inspect.unwrap(method))

    @wraps(method)
    def call(own: Any, *args: Any, **named: Any) -> Any:
        loop: Loop = own._loop
        result = method(own.asynchronous, *args, **named)
        if inspect.isasyncgen(result):
            return loop.iterate(result) if gives_items else loop.stream(result)
        if inspect.iscoroutine(result):
            result = loop.run(result)
        return Talk(result, loop) if isinstance(result, AsyncTalk) else result

    call.__doc__ = _documented(method)
    return call


def _documented(method: FunctionType) -> str | None:
    """Adds the names of the options, which the signature does not show."""
    options = next((given for each in method.__annotations__.values() for given in _options(each)), None)
    if options is None:
        return method.__doc__
    listed = textwrap.fill(f"Options: {', '.join(options.__annotations__)}.", 110)
    return f"{inspect.cleandoc(method.__doc__)}\n\n{listed}" if method.__doc__ else listed


def _options(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if getattr(annotation, "__origin__", None) is Unpack else ()


@_blocking_form_of(AsyncTalk)
class Talk:
    """One conversation, from one client's place in it. It is stored with its first message."""

    def __init__(self, talk: AsyncTalk, loop: Loop) -> None:
        self._talk, self._loop = talk, loop

    @property
    def asynchronous(self) -> AsyncTalk:
        """The same conversation for asynchronous code."""
        return self._talk


@_blocking_form_of(AsyncDesk)
class Desk:
    """An open store with settings and a vault. Use it as a context manager, or `close()` it."""

    def __init__(self, desk: AsyncDesk) -> None:
        self._desk, self._loop = desk, Loop()

    @property
    def asynchronous(self) -> AsyncDesk:
        """The same desk for asynchronous code."""
        return self._desk

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine on the desk's loop."""
        return self._loop.run(work)

    def close(self) -> None:
        self._loop.run(self._desk.close())
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def open_desk(**options: Unpack[DeskOptions]) -> Desk:
    """A desk on `home` (default: RECTO_HOME or ~/.recto). Keyword settings override files and environment."""
    return Desk(new_desk(**options))
