"""From a template to a page: everything escaped, nothing fetched, written whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from reliablenet._checks import parameter_error
from reliablenet._files import write_atomically
from reliablenet._version import __version__
from reliablenet.errors import MissingExtraError
from reliablenet.report import text

TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, **values: Any) -> str:
    """Return a page.

    Parameters
    ----------
    template : str
        Name of a template.
    **values
        What it shows; text is escaped.

    Returns
    -------
    str
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise MissingExtraError(
            "A report needs jinja2: pip install 'reliablenet[report]'"
        ) from error
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def safe(written: str) -> Markup:
        return Markup(written)  # noqa: S704 (files of ours, and JSON that was made safe)

    environment.filters |= {"json": lambda data: safe(embed(data)), "count": text.count}
    script = (TEMPLATES / "page.js").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template(template).render(
        style=safe((TEMPLATES / "page.css").read_text("utf-8")),
        script=safe(script),
        script_hash=f"sha256-{digest}",
        version=__version__,
        **values,
    )


def embed(data: Any) -> str:
    r"""Return JSON that can stand inside a script element and ends it nowhere.

    Examples
    --------
    >>> from reliablenet.report.page import embed
    >>> print(embed(["</script>", "a & b"]))
    ["\u003c/script\u003e","a \u0026 b"]
    """
    written = json.dumps(data, separators=(",", ":"), allow_nan=False)  # ASCII, so no U+2028
    for sign in "<>&":
        written = written.replace(sign, f"\\u{ord(sign):04x}")
    return written


def write_page(page: str, path: str | Path) -> Path:
    """Write a page; the file appears under its name only when it is whole.

    Parameters
    ----------
    page : str
    path : str or Path
        By convention with the suffix ``.html``.

    Returns
    -------
    Path
    """
    target = Path(path)
    if not target.parent.is_dir() or target.is_dir():
        raise parameter_error(
            "path", "write_page", "name a file in an existing folder, as 'report.html'", str(target)
        )
    write_atomically(target, page.encode())
    return target
