import posixpath
from collections.abc import Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.conftest import examples

from recto.vault.link_resolver import LinkResolver
from recto.vault.links import Link, find_all_links
from recto.vault.rename import RenamePlan, rewrite_links

FILES = ("Plan.md", "people/Ned.md", "boats/Ned.md", "people/Ada.md", "a/b/Deep.md", "pics/map.png", "log.md")


def rename(text: str, old: str, new: str, source: str = "log.md", files: Sequence[str] = FILES) -> str:
    renaming = RenamePlan(old, new, LinkResolver(files), LinkResolver(new if path == old else path for path in files))
    return rewrite_links(text, find_all_links(text), source, renaming)[0]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[[Plan]]", "[[Scheme]]"),
        ("[[plan]]", "[[Scheme]]"),
        ("[[Plan.md]]", "[[Scheme.md]]"),
        ("[[ Plan ]]", "[[ Scheme ]]"),
        ("[[Plan|my plan]]", "[[Scheme|my plan]]"),
        ("[[Plan#Goals]]", "[[Scheme#Goals]]"),
        ("[[Plan#A#B|c]]", "[[Scheme#A#B|c]]"),
        ("[[Plan^b1]] [[Plan#^b1]]", "[[Scheme^b1]] [[Scheme#^b1]]"),
        ("![[Plan#Goals]]", "![[Scheme#Goals]]"),
        ("| [[Plan\\|cell]] |", "| [[Scheme\\|cell]] |"),
        ("[[/Plan]]", "[[/Scheme]]"),
        ("[x](Plan.md)", "[x](Scheme.md)"),
        ("[x](./Plan.md#Goals)", "[x](./Scheme.md#Goals)"),
        ("[x](<Plan.md>)", "[x](<Scheme.md>)"),
        ('[x]( Plan.md "a title" )', '[x]( Scheme.md "a title" )'),
        ("![x](Plan)", "![x](Scheme)"),
        ("[![i](Plan.md)](Plan.md)", "[![i](Scheme.md)](Scheme.md)"),
        ("[see [[Plan]]](Plan.md)", "[see [[Scheme]]](Scheme.md)"),
    ],
)
def test_every_form_of_a_link_follows_a_renamed_note_and_keeps_its_other_parts(before: str, after: str) -> None:
    text = "a {} b\r\n\t{}"
    assert rename(text.format(before, before), "Plan.md", "Scheme.md") == text.format(after, after)


@pytest.mark.parametrize(
    "text",
    [
        "`[[Plan]]`",
        "```\n[[Plan]]\n[x](Plan.md)\n```",
        "%% [[Plan]] %%",
        "[[Planet]]",
        "[x](https://a.org/Plan.md)",
        "[[#Plan]]",
    ],
)
def test_code_comments_and_other_links_are_not_touched(text: str) -> None:
    assert rename(text, "Plan.md", "Scheme.md") == text


def test_a_short_name_stays_short_and_needs_no_change_when_only_the_folder_does() -> None:
    assert rename("[[Ada]] [[Deep]]", "people/Ada.md", "crew/Ada.md") == "[[Ada]] [[Deep]]"


def test_an_ambiguous_name_becomes_the_shortest_unique_path() -> None:
    assert (
        rename("[[Ada]]", "people/Ada.md", "people/Ned.md", files=("people/Ada.md", "boats/Ned.md")) == "[[people/Ned]]"
    )
    near = ("x/people/Ada.md", "boats/Ned.md")
    assert rename("[[Ada]]", "x/people/Ada.md", "boats/x/Ned.md", files=near) == "[[x/Ned]]"


def test_relative_links_of_a_moved_note_are_updated() -> None:
    text = "[a](Ada.md) ![m](../pics/map.png) [self](Ned.md#x) [[Plan]] [[#here]] [h](#here)"
    moved = "[a](../../people/Ada.md) ![m](../../pics/map.png) [self](Ned.md#x) [[Plan]] [[#here]] [h](#here)"
    assert rename(text, "people/Ned.md", "crew/new/Ned.md", "people/Ned.md") == moved


def test_a_new_name_steals_no_links_of_others() -> None:
    assert rename("[[Ned]] stays", "Plan.md", "Ned.md") == "[[boats/Ned]] stays"
    text = "[[Boss]]"
    before, after = LinkResolver(), LinkResolver()
    for names, plan in ((before, "Plan.md"), (after, "Boss.md")):
        names.add(plan)
        names.add("people/Ada.md", ["Boss"])
    renaming = RenamePlan("Plan.md", "Boss.md", before, after)
    assert rewrite_links(text, find_all_links(text), "log.md", renaming)[0] == "[[Ada]]"


@pytest.mark.parametrize(
    "name",
    ["C# notes", "a^b", "a|b", "[x] y", "a [b", "a]b", "a]] b", "a`b", "50% off", "100%20", "it's \"it\"", "🦊",
     "cafe\u0301", "note: x", "http:x", "a%%b", "<b>", "(x", "a\\b", "a\\|b", "a*b_c", "x  y",
     "#1", "^", "|", "~~~", "-"],
)  # fmt: skip
def test_links_can_lead_to_any_new_name(name: str) -> None:
    new = f"dir x/{name}.md"
    text = "[[Plan]] ![[Plan#Goals|c]] [x](Plan.md) [x](<Plan.md#Goals>) [[plan^b]] `tick`"
    files = [new if path == "Plan.md" else path for path in FILES]
    after, out = LinkResolver(files), rename(text, "Plan.md", new)
    found = find_all_links(out)
    assert [after.follow(link, "log.md") for link in found] == [new] * 5
    assert [link.heading for link in found] == [None, "Goals", None, "Goals", None]
    assert found[4].block == "b"
    assert [link.caption for link in found][1:4] == ["c", "x", "x"]


# -- the law

FOLDERS = st.sampled_from(["", "", "a/", "b/", "a/b/", "c d/", "A/"])
STEMS = st.one_of(
    st.sampled_from(
        ["x", "X", "y", "x y", "C", "C# n", "x#y", "x^y", "x|y", "x [y]", "x]y", "x%20y", "é", "e\u0301", "1"]
    ),
    st.text(alphabet="xy #^|[]()%`<>\\\"'é🦊:!*", min_size=1, max_size=6),
)
PATHS = st.builds(
    lambda folder, stem, end: f"{folder}{stem.strip() or 'z'}{end}",
    FOLDERS,
    STEMS,
    st.sampled_from([".md", ".md", ".png"]),
).filter(lambda path: "/." not in f"/{path}")
REST = st.sampled_from(["", "#h", "#h#i", "^b", "#^b", "|c", "\\|c", "#h|c [d]"])
FRAGMENT = st.sampled_from(["", "#h", "#h%20i", "#^b", ' "t"'])


def short(path: str, count: int) -> str:
    return "/".join(path.split("/")[-count:])


@st.composite
def link_to(draw: st.DrawFn, path: str, source: str) -> str:
    """A link as people write it, to a file; it may well mean another one."""
    name = draw(st.sampled_from([short(path, 1), short(path, 2), path, f"/{path}"]))
    relative = posixpath.relpath(f"/{path}", f"/{posixpath.dirname(source)}")
    name = draw(st.sampled_from([name, name, relative, f"./{relative}"]))
    name = name.removesuffix(".md") if draw(st.booleans()) else name
    name = name.upper() if draw(st.integers(0, 9)) == 0 else name
    kind = draw(st.integers(0, 3))
    if kind < 2:
        return f"{'!' * kind}[[{name}{draw(REST)}]]"
    if kind == 2:
        plain = "".join(f"%{ord(sign):02X}" if sign in ' %#()<>[]`\\|"' else sign for sign in name)
        return f"[c]({plain}{draw(FRAGMENT)})"
    return f"![c](<{name.replace('%', '%25').replace('<', '').replace('>', '').replace('#', '%23')}>)"


@st.composite
def vaults(draw: st.DrawFn) -> tuple[dict[str, str], dict[str, list[str]], str, str]:
    # a backtick in two links makes code of what lies between: such names are led to here, not from
    paths = draw(st.lists(PATHS.filter(lambda path: "`" not in path), min_size=2, max_size=6, unique=True))
    glue = st.sampled_from(
        [" ", "\n", "\r\n", "\n\n", " `[[x]]` ", "[", "]", "é", "\n```\n[[x]]\n```\n", "%%[[x]]%%", "| "]
    )
    texts = {}
    for source in paths:
        targets = draw(st.lists(st.sampled_from([*paths, "nowhere.md"]), max_size=4))
        texts[source] = "".join(draw(glue) + draw(link_to(target, source)) for target in targets) + draw(glue)
    aliases = {path: draw(st.lists(st.sampled_from(["x", "al", "C"]), max_size=1)) for path in paths}
    old = draw(st.sampled_from(paths))
    new = draw(PATHS)
    assume(new not in paths and new.endswith(".md") == old.endswith(".md"))
    return texts, aliases, old, new


def outside(text: str, links: Sequence[Link]) -> list[str]:
    """What is no link, with what is in no other link of those that hold others."""
    parts, kept = [], 0
    for link in links:
        parts.append(text[kept : max(kept, link.start)])
        kept = max(kept, link.end)
    return [*parts, text[kept:]]


@settings(max_examples=examples(200))
@given(vaults())
def test_after_a_rename_every_link_leads_where_it_led(
    vault: tuple[dict[str, str], dict[str, list[str]], str, str],
) -> None:
    texts, aliases, old, new = vault
    before, after = LinkResolver(), LinkResolver()
    for path in texts:
        before.add(path, aliases[path])
        after.add(new if path == old else path, aliases[path])
    # two spellings of one accent side by side: no link can tell them apart
    assume(after.resolve(f"/{new}") == new and all(before.resolve(f"/{path}") == path for path in texts))
    renaming = RenamePlan(old, new, before, after)
    for source, text in texts.items():
        links = find_all_links(text)
        out, count = rewrite_links(text, links, source, renaming)
        found = find_all_links(out)
        here = renaming.new_path(source)
        led = [before.follow(link, source) for link in links]
        leads = [after.follow(link, here) for link in found]
        assert len(leads) == len(led)
        assert [is_now for is_now, was in zip(leads, led, strict=True) if was] == [
            renaming.new_path(was) for was in led if was
        ]
        assert outside(out, found) == outside(text, links)
        for one, other, was in zip(links, found, led, strict=True):
            if was:
                assert (one.heading, one.block, one.embed) == (other.heading, other.block, other.embed)
        same = sum(one.wikilink == other.wikilink for one, other in zip(links, found, strict=True))
        assert same >= len(links) - count
        if not count:
            assert out == text
