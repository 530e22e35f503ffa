"""Node names as short text, and the templates of text and HTML; all input is escaped."""

from __future__ import annotations

import base64
import hashlib
import math
import os
import textwrap
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptclust._files import held, written_at_once
from ptclust._version import __version__

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).parent / "templates"


def shortened(text: object, most: int = 24) -> str:
    r"""Return a text that fits a line, without what would move a cursor.

    >>> shortened("a" * 30, 8), shortened("a\x1b[2J")
    ('aaaaaaa…', 'a·[2J')
    """
    plain = "".join(char if char.isprintable() else "·" for char in str(text))
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def quoted(name: object, most: int = 80) -> str:
    """Return a name as messages quote it: no more than its beginning if it is long.

    >>> quoted("ada"), quoted(7), quoted("a" * 100, 3)
    ("'ada'", '7', "'aaa...'")
    """
    text = str(name)
    return repr(name) if len(text) <= most else repr(f"{text[:most]}...")


def quoted_list(names: Sequence[object], most: int = 20) -> str:
    """Return the first names of a list, quoted, and how many more there are.

    >>> quoted_list(["a", "b", 3], 2), quoted_list([])
    ("'a', 'b' and 1 more", 'none')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(map(quoted, names[:most])) or "none") + more


def listed(names: Sequence[object], most: int, longest: int = 24) -> str:
    """Return the first names in a line, and how many more there are.

    >>> listed("abcdef", 3)
    'a, b, c and 3 more'
    """
    shown = ", ".join(shortened(name, longest) for name in names[:most])
    left = len(names) - most
    return f"{shown} and {left:,} more" if left > 0 else shown


def counted(count: int, word: str) -> str:
    """Return a number of things.

    >>> counted(1, "node"), counted(2000, "node")
    ('1 node', '2,000 nodes')
    """
    return f"{count:,} {word}{'s' * (count != 1)}"


def number(value: float | None) -> str:
    """Return a number of three digits, a dash if there is none.

    >>> number(0.01234), number(-8.0), number(12345.6), number(0.00000283), number(None)
    ('0.0123', '-8', '12,300', '0.00000283', '-')
    """
    if value is None:
        return "-"
    short = f"{value:.3g}"
    readable = math.isfinite(value) and 1e-12 < abs(value) < 1e15
    return f"{Decimal(short):,f}" if readable else short


def wrapped(text: str) -> str:
    """Return a text in lines for a terminal."""
    return "\n".join(textwrap.wrap(text, 88))


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"number": number, "counted": counted, "short": shortened, "wrap": wrapped}
    return made


def rendered(template: str, **content: Any) -> str:
    """Return a template filled in; where its name ends in .html, everything is escaped."""
    return _templates().get_template(template).render(content)


def macros(template: str, **names: Any) -> Any:
    """Return the macros of a template as functions; ``names`` are what it may use beside them."""
    return _templates().get_template(template).make_module(names)


def page(name: str, **content: Any) -> str:
    """Return a self-contained page of HTML: it may run its own style and script, and no more."""
    from markupsafe import Markup

    style, script = (
        (_TEMPLATES / f"{name}.{kind}").read_text(encoding="utf-8") for kind in ("css", "js")
    )
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return rendered(
        f"{name}.html",
        style=Markup(style),  # noqa: S704 - ours, not data
        script=Markup(script),  # noqa: S704
        policy=policy,
        version=__version__,
        **content,
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def write_page(made: str, path: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Write a page to a file; FileError if it exists and ``overwrite`` is not set."""
    with held(Path(path), overwrite), written_at_once(Path(path)) as temporary:
        temporary.write_text(made, encoding="utf-8")


def facts(
    title: str,
    rows: Iterable[tuple[str, object]],
    table: tuple[Sequence[str], Iterable[Sequence[object]]] | None = None,
    more: str = "",
) -> str:
    """Return HTML for notebooks: names and values, and a table of a head and rows below.

    A list of values is one below the other; a name with an empty list is left out.

    >>> facts("Title", [("a", "<b>"), ("c", [])], (["d"], [[1], [2]])).count("<tr>")
    4
    """
    values = [(name, each if isinstance(each, (list, tuple)) else [each]) for name, each in rows]
    return rendered("facts.html", title=title, facts=values, table=table, more=more)
