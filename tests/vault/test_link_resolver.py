import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.vault.link_resolver import LinkResolver
from recto.vault.links import Link, find_all_links

PATHS = ("Plan.md", "people/Ned.md", "boats/Ned.md", "boats/old/Ned.md", "a/b/Deep.md", "a/pic.png", "v1.2.md")


def link(text: str) -> Link:
    return find_all_links(text)[0]


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("plan", "Plan.md"),
        ("PLAN.MD", "Plan.md"),
        ("Ned", "boats/Ned.md"),
        ("people/ned", "people/Ned.md"),
        ("old/ned.md", "boats/old/Ned.md"),
        ("b/deep", "a/b/Deep.md"),
        ("/a/b/deep", "a/b/Deep.md"),
        ("/b/deep", None),
        ("pic.png", "a/pic.png"),
        ("pic", None),
        ("v1.2", "v1.2.md"),
        ("lan", None),
        ("x/plan", None),
        ("ats/Ned", None),
        ("", None),
        ("/", None),
        ("../Plan", None),
    ],
)
def test_names_are_found_without_case_and_ending_and_by_suffix(target: str, path: str | None) -> None:
    assert LinkResolver(PATHS).resolve(target) == path


@pytest.mark.parametrize(
    ("source", "path"),
    [(None, "a/x/Note.md"), ("b/y/z.md", "b/y/Note.md"), ("b/other.md", "b/y/Note.md"), ("a/x/q.md", "a/x/Note.md")],
)
def test_of_equally_deep_files_the_nearest_wins_and_then_the_alphabet(source: str | None, path: str) -> None:
    names = LinkResolver(["b/y/Note.md", "a/x/Note.md", "a/x/deeper/Note.md"])
    assert names.resolve("note", source) == path


def test_aliases_are_the_last_resort() -> None:
    names = LinkResolver()
    names.add("a.md", ["The Boat", "b", "x/y"])
    names.add("b.md")
    assert names.resolve("the boat") == "a.md"
    assert names.resolve("b") == "b.md"
    assert names.resolve("x/y") == "a.md"
    names.add("a.md", ["Ship"])
    assert (names.resolve("the boat"), names.resolve("ship")) == (None, "a.md")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("[t](x.md)", "a/x.md"),
        ("[t](./x.md)", "a/x.md"),
        ("[t](../x.md)", "x.md"),
        ("[t](../../x.md)", None),
        ("[t](/x.md)", "x.md"),
        ("[t](b/x.md)", "a/b/x.md"),
        ("[t](y.md)", "c/y.md"),
        ("[[x]]", "x.md"),
        ("[[./x]]", "a/x.md"),
        ("[[#heading]]", "a/z.md"),
    ],
)
def test_markdown_links_are_paths_from_their_note_first(text: str, path: str | None) -> None:
    names = LinkResolver(["x.md", "a/x.md", "a/b/x.md", "a/z.md", "c/y.md"])
    assert names.follow(link(text), "a/z.md") == path


def test_broken_names_have_similar_ones() -> None:
    names = LinkResolver(["Budget 2024.md", "Budget 2025.md", "Garden.md", "people/Ned.md"])
    assert names.closest("Bugdet 2024")[0] == "Budget 2024.md"
    assert names.closest("zzz") == []
    assert len(names.closest("Budget", 1)) == 1
    assert LinkResolver().closest("a") == []


FILES = st.lists(
    st.tuples(st.lists(st.sampled_from("abA"), max_size=2), st.sampled_from(["x", "X", "y", "\u00e9", "e\u0301"])).map(
        lambda parts: "/".join([*parts[0], f"{parts[1]}.md"])
    ),
    unique=True,
    max_size=8,
)


@given(FILES, st.data())
def test_the_order_of_adding_and_removing_does_not_matter(paths: list[str], data: st.DataObject) -> None:
    gone = data.draw(st.lists(st.sampled_from(paths), unique=True)) if paths else []
    names = LinkResolver(data.draw(st.permutations(paths)))
    for path in gone:
        names.remove(path)
    left = LinkResolver(path for path in paths if path not in gone)
    for target in ("x", "X", "a/x", "y", "é", "b/X.md"):
        for source in (None, "a/b/z.md"):
            assert names.resolve(target, source) == left.resolve(target, source)
    assert len(names) == len(left)


@given(FILES)
def test_every_file_is_found_by_its_whole_path(paths: list[str]) -> None:
    names = LinkResolver(paths)
    for path in paths:
        assert names.resolve(f"/{path}") == path
        assert path in names


FOLDERS = st.lists(st.sampled_from(["a", "A", "b", "c d", "é", "a.md"]), max_size=3)
NAMES = st.sampled_from(
    [
        "x.md",
        "X.md",
        "x.markdown",
        "y.md",
        "y",
        "x",
        "y.png",
        "C# x.md",
        "C.md",
        "x|y.md",
        "x]].md",
        "é.md",
        "e\u0301.md",
    ]
)
VAULTS = st.lists(st.builds(lambda folders, name: "/".join([*folders, name]), FOLDERS, NAMES), unique=True, max_size=12)


def _links(path: str) -> list[str]:
    """Every link by name or path that could be meant for this file."""
    wholes = {path, path.removesuffix(".md"), path.removesuffix(".markdown")}
    ends = {
        end for whole in wholes for end in (whole, *(whole.split("/", at)[at] for at in range(whole.count("/") + 1)))
    }
    return [f"[[{inside}]]" for inside in (*ends, *(f"/{whole}" for whole in wholes))]


def _is_link_to(names: LinkResolver, text: str, path: str) -> bool:
    found = find_all_links(text)
    if [each.wikilink for each in found] != [text]:
        return False
    whole = found[0]
    return not (whole.heading or whole.block or whole.caption) and names.follow(found[0]) == path


@given(VAULTS)
def test_the_shortest_link_leads_to_its_own_path_and_none_that_does_is_shorter(paths: list[str]) -> None:
    names = LinkResolver(paths)
    made = {path: names.shortest_link(path) for path in paths}
    for path, text in made.items():
        shortest = min((len(each) for each in _links(path) if _is_link_to(names, each, path)), default=None)
        if shortest is None:
            assert text == f"[[{path}]]", "there is none"
        else:
            assert _is_link_to(names, text, path)
            assert len(text) == shortest
    assert len(set(made.values())) == len(paths), "no two are listed under one link"
