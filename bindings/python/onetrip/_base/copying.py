"""COPY, as far as nothing waits: which way its data goes, and what rows are made of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from onetrip import _native
from onetrip.adapt import AdaptersMap, Json, Jsonb, adapters
from onetrip.errors import ProgrammingError

if TYPE_CHECKING:
    from onetrip._base.cursor import Params

# Data of the program that is taken at once.
_PART = 256 * 1024

# What a statement consists of, as far as it matters here: strings, names in quotes, comments, words and brackets.
_PARTS = re.compile(
    r"""[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$
    | --[^\n]* | /\*.*?\*/ | [\w$]+ | [(),]""",
    re.DOTALL | re.VERBOSE,
)
_DOLLARS = re.compile(r"(?P<sign>\$\w*\$)(?P<text>.*)(?P=sign)", re.DOTALL)
_GIVES = {("FROM", "STDIN"): True, ("TO", "STDOUT"): False}
_JSON: dict[int, type[Json]] = {114: Json, 3802: Jsonb}


def composed(statement: str, params: Params, cursor: Any) -> str:
    """The statement with its parameters as literals: the server takes none with COPY."""
    if params is None:
        return statement
    own = cursor._adapters or cursor._inherited
    if own is not None:
        params = own._params(params)
    encoding = cursor.connection.parameter_status("client_encoding")
    return _native.composed(statement, params, encoding, (own or adapters).types.cast_of)


def _shape(statement: str) -> tuple[bool | None, bool]:
    """Whether the program gives the data of a COPY, where its words say so; and whether the data is binary."""
    words = [found[0].upper() for found in _PARTS.finditer(statement) if not found[0].startswith(("--", "/*"))]
    depth = 0
    for at, word in enumerate(words):
        depth += (word == "(") - (word == ")")
        gives = _GIVES.get((word, *words[at + 1 : at + 2]))  # type: ignore[arg-type]
        if depth == 0 and gives is not None:
            return gives, words[1] == "BINARY" or _says_binary(words[at + 2 :])
    return None, False


def _says_binary(options: list[str]) -> bool:
    """Whether the options of a COPY say that data is binary: in brackets by FORMAT, or the old way by a word alone."""
    depth = 0
    for at, word in enumerate(options):
        depth += (word == "(") - (word == ")")
        if depth == 0 and word == "WHERE":
            return False
        if depth == 0 and word == "BINARY":
            return True
        if depth == 1 and word == "FORMAT" and options[at - 1] in ("(", ","):
            return any(_unquoted(other) == "BINARY" for other in options[at + 1 : at + 2])
    return False


def _unquoted(word: str) -> str:
    """The text of a string or a name, as long as it has no escapes."""
    if quoted := _DOLLARS.fullmatch(word):
        return quoted["text"]
    return word.removeprefix("E").strip("'\"") if word.endswith(("'", '"')) else word


class CopyState:
    """Where a COPY stands: the same for both kinds of connections."""

    def __init__(self, statement: str, encoding: str | None, own: AdaptersMap | None) -> None:
        self.statement = statement
        self._named, self._is_binary = _shape(statement)
        self._encoding = encoding
        self._own = own
        self.buffer = _native.CopyBuffer(self._is_binary, encoding)
        self.pieces: list[bytes] = []
        self.is_over = False
        self._gives: bool | None = None
        self._types: list[int] = []
        self._json: dict[int, type[Json]] = {}
        self._rows: _native.CopyRows | None = None

    @property
    def gives(self) -> bool | None:
        """Whether it is the program that gives the data; None as long as nobody knows."""
        return self._gives

    def begins(self, gives: bool) -> bool:
        """Says which way the data goes; whether the statement has still to be sent."""
        if self.is_over:
            raise ProgrammingError("the COPY has ended")
        if self._gives not in (None, gives) or self._named not in (None, gives):
            raise ProgrammingError(f"this COPY has data to {'read' if gives else 'be written'}")
        begins, self._gives = self._gives is None, gives
        return begins

    @property
    def direction(self) -> bool:
        """Which way it goes where nobody has read or written."""
        return self._named is not False

    def set_types(self, types: Sequence[str | int]) -> None:
        """Takes the types of the columns."""
        known = (self._own or adapters).types
        self._types, self._rows = [known.get_oid(one) if isinstance(one, str) else one for one in types], None
        self._json = {at: _JSON[one] for at, one in enumerate(self._types) if one in _JSON}
        self.buffer.set_types(self._types)

    @property
    def is_direct(self) -> bool:
        """Whether rows go into the buffer as they are."""
        return not self._json and self._own is None

    def adder(self) -> Callable[[Sequence[Any]], bool]:
        """What takes rows to be sent, and says whether data is due."""
        return self.buffer.write_row if self.is_direct else self.add_row

    def add_row(self, row: Sequence[Any]) -> bool:
        """Takes a row to be sent; whether data is due."""
        return self.buffer.write_row(self._prepared(row))

    def prepared(self, rows: Iterable[Sequence[Any]]) -> Iterator[Any]:
        """Rows as the buffer takes them."""
        return iter(rows) if self.is_direct else map(self._prepared, rows)

    def _prepared(self, row: Sequence[Any]) -> Any:
        if self._json:
            row = [self._wrapped(at, value) for at, value in enumerate(row)]
        return row if self._own is None else self._own._params(row)

    def _wrapped(self, at: int, value: Any) -> Any:
        kind = self._json.get(at)
        return value if kind is None or value is None or isinstance(value, Json) else kind(value)

    def maker(self, native: Any) -> Callable[[bytes], tuple[Any, ...] | None]:
        """What makes the values of a row; None where a piece has none, as the end of binary data."""
        if self._rows is None:
            own = self._own
            texts, binaries = (native.loaders, native.binary_loaders) if own is None else own._functions
            self._rows = _native.CopyRows(self._is_binary, self._types, texts, binaries, native.setting, self._encoding)
        return self._rows.row


def parts(data: Any) -> Iterable[Any]:
    """Data of a program in parts that are not too long."""
    if isinstance(data, str):
        view: Any = data
    elif isinstance(data, bytes | bytearray | memoryview):
        if len(data) <= _PART and not isinstance(data, memoryview):
            return (data,)
        view = memoryview(data).cast("B")
    else:
        raise TypeError(f"data of COPY is bytes or str, not {type(data).__name__}")
    return (view[at : at + _PART] for at in range(0, len(view), _PART))


def reason(error: BaseException | None) -> str:
    """Why a program gave a COPY up, for the server's log."""
    return f"error from Python: {type(error).__name__}: {error}"[:1000] if error else "the client gave up"


class BaseCopy:
    """A COPY of a cursor: what is known of it."""

    _BLOCK = "with"

    def __init__(self, cursor: Any, statement: str) -> None:
        self.cursor: Any = cursor
        connection = cursor.connection
        encoding = connection.parameter_status("client_encoding")
        self._state = CopyState(statement, encoding, cursor._adapters or cursor._inherited)
        # What takes rows, as long as they may be written.
        self._add: Callable[[Sequence[Any]], bool] | None = None
        self._is_open = False
        self._was_open = False

    def __repr__(self) -> str:
        kind = f"{type(self).__module__}.{type(self).__qualname__}"
        return f"<{kind} {self.cursor.connection._shown()} at 0x{id(self):x}>"

    def _enter(self) -> None:
        if self._was_open:
            raise TypeError("a COPY can be entered only once: ask the cursor for another one")
        self._is_open = self._was_open = True

    def set_types(self, types: Sequence[str | int]) -> None:
        """The types of the columns, by name ("int4", "date", "text[]") or id: what rows are read as, and what binary
        ones are written as. Values of json and jsonb are written from plain objects then."""
        self._state.set_types(types)
        self._forget_adder()

    def _start(self, gives: bool) -> None:
        """Sends the statement with its first data."""
        raise NotImplementedError

    def _check(self) -> None:
        if not self._is_open:
            raise ProgrammingError(f"a COPY is used within its block: {self._BLOCK} cursor.copy(...) as copy")

    def _adder(self) -> Callable[[Sequence[Any]], bool]:
        self._start(True)
        self._add = add = self._state.adder()
        return add

    def _forget_adder(self) -> None:
        self._add = None

    def _row_maker(self) -> Callable[[bytes], tuple[Any, ...] | None]:
        """What makes the values of a row."""
        return self._state.maker(self.cursor.connection._native_part())
