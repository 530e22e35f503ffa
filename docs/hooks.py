"""What the site makes of pages: notebooks executed, formulas as MathML, links to the repository."""

from __future__ import annotations

import os
import posixpath
import re
from html import escape, unescape
from pathlib import Path
from typing import Any

_CODE = re.compile(r"(<pre.*?</pre>|<code.*?</code>)", re.DOTALL)
_FENCED = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+?)\$", re.DOTALL)
_LINK = re.compile(r"\]\(((?:\.\./)+[^)#\s]+)((?:#[^)]*)?)\)")
_LISTING = re.compile(r"<!-- list (\w+) -->")
_REPOSITORY = "https://github.com/ptclust/ptclust/blob/main/"


def on_files(files: Any, config: Any) -> Any:
    """Execute the notebooks, and add what they show as pages."""
    from mkdocs.structure.files import File

    for notebook in sorted(Path(config.docs_dir, "notebooks").glob("*.ipynb")):
        text = as_markdown(executed(notebook))
        files.append(File.generated(config, f"notebooks/{notebook.stem}.md", content=text))
    return files


def executed(path: Path) -> Any:
    """Return a notebook after running all of its cells."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=600, kernel_name="python3", extra_arguments=["--log-level=40"]
    )
    inline = "module://matplotlib_inline.backend_inline"
    client.execute(env={**os.environ, "MPLBACKEND": inline})
    return notebook


def as_markdown(notebook: Any) -> str:
    """Return the cells of a notebook and what they show."""
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        parts += map(_shown, cell.outputs)
    return "\n\n".join(parts) + "\n"


def _shown(output: Any) -> str:
    if output.output_type == "stream":
        return f"<pre>{escape(output.text)}</pre>"
    data = output.data
    if "image/png" in data:
        picture = data["image/png"].replace("\n", "")
        return f'<img alt="picture" src="data:image/png;base64,{picture}">'
    if "text/html" in data:
        lines = (line.strip() for line in data["text/html"].splitlines())
        return f'<div class="output">{" ".join(lines)}</div>'
    return f"<pre>{escape(data['text/plain'])}</pre>"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Keep formulas from being read as Markdown, and lead links out of docs/ to the repository."""
    here = posixpath.dirname(page.file.src_uri)
    markdown = _LISTING.sub(lambda found: _listing(page, found[1]), markdown)

    def lead(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", here, found[1]))
        if target.startswith("docs/"):
            return found[0]
        return f"]({_REPOSITORY}{target}{found[2]})"

    parts = _FENCED.split(_LINK.sub(lead, markdown))
    parts[::2] = [_FORMULA.sub(_kept, part) for part in parts[::2]]
    return "".join(parts)


def _listing(page: Any, folder: str) -> str:
    """Return a list of all pages of a folder beside that of the page, by their titles."""
    pages = sorted((Path(page.file.abs_src_path).parents[1] / folder).glob("*.md"))
    titles = (each.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ") for each in pages)
    listed = zip(pages, titles, strict=True)
    return "\n".join(f"- [{title}](../{folder}/{each.name})" for each, title in listed)


def _kept(found: re.Match[str]) -> str:
    display, inline = found[1], found[2]
    style = "display" if display else "inline"
    return f'<span class="{style}-formula">{_masked(display or inline)}</span>'


def _masked(formula: str) -> str:
    """Return a formula in which Markdown finds nothing: every character as its number."""
    return ".".join(str(ord(char)) for char in formula)


_SPAN = re.compile(r'<span class="(display|inline)-formula">([0-9.]+)</span>')


def on_page_content(html: str, **_: Any) -> str:
    """Make MathML of formulas, which browsers show without help."""
    from latex2mathml.converter import convert

    def formula(found: re.Match[str]) -> str:
        text = "".join(chr(int(number)) for number in unescape(found[2]).split("."))
        return str(convert(text, display="block" if found[1] == "display" else "inline"))

    return _SPAN.sub(formula, html)
