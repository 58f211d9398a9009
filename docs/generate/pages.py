"""All that is made: whole pages, and parts of pages that people write."""

import re
from pathlib import Path

from docs.generate.command_pages import command_pages
from docs.generate.limits import limit_parts
from docs.generate.settings_page import settings_page
from docs.generate.token_examples import token_parts

DOCS = Path(__file__).parents[1]


def made_pages() -> dict[str, str]:
    """The generated pages, by path below docs/."""
    return {"settings.md": settings_page(), **command_pages()} | {
        path: with_parts((DOCS / path).read_text("utf-8"), parts())
        for path, parts in (("tokens.md", token_parts), ("troubleshooting.md", limit_parts))
    }


def with_parts(page: str, parts: dict[str, str]) -> str:
    """The page with new texts between `<!-- begin NAME -->` and `<!-- end -->`."""
    pattern = re.compile(r"(<!-- begin ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
    return pattern.sub(lambda found: f"{found[1]}{parts[found[2]]}{found[3]}", page)
