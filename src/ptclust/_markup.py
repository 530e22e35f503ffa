"""Small pieces of HTML for notebooks, and names of nodes as short text: what comes in is data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "text-align:left;vertical-align:top;padding:0.1em 1em 0.1em 0"


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


def facts(title: str, rows: Iterable[tuple[str, object]], *rest: str) -> str:
    """Return a title and a table of names and values; a list of values is one below the other.

    A name with an empty list is left out. ``rest`` is HTML already.

    >>> facts("Title", [("a", 1), ("b", [])]).count("<tr>")
    1
    """
    lines = [f"<strong>{escape(title)}</strong>", '<table style="border:none">']
    for name, value in rows:
        values = value if isinstance(value, (list, tuple)) else [value]
        if not values:
            continue
        cell = "<br>".join(escape(str(each)) for each in values)
        lines.append(
            f'<tr><th style="{_CELL}">{escape(name)}</th><td style="{_CELL}">{cell}</td></tr>'
        )
    return "\n".join(["<div>", *lines, "</table>", *rest, "</div>"])


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table.

    >>> table(["a"], [["<b>"]]).count("&lt;b&gt;")
    1
    """

    def line(cells: Sequence[object], tag: str) -> str:
        made = (f'<{tag} style="{_CELL}">{escape(str(cell))}</{tag}>' for cell in cells)
        return f"<tr>{''.join(made)}</tr>"

    body = "\n".join(line(row, "td") for row in rows)
    return f"<table><thead>{line(head, 'th')}</thead><tbody>\n{body}\n</tbody></table>"
