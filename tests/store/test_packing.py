import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.store.packing import MUCH, PackDictionary, pack, pack_with, unpack


@given(st.binary(max_size=4000))
def test_whatever_is_packed_comes_back(data: bytes) -> None:
    assert unpack(pack(data)) == data
    assert len(pack(data)) <= len(data) + 1


@pytest.mark.parametrize("blob", [b"", b"\x09abc", b"\x01\xff\xff\xff"])
def test_a_damaged_blob_is_an_error(blob: bytes) -> None:
    with pytest.raises(zlib.error):
        unpack(blob)


def test_what_an_older_version_packed_is_still_read() -> None:
    # never renew this: it breaks when the dictionary changes, and with it every store there is
    old = bytes.fromhex("01c323150e4a80106f80ac49ca4f2cb157aa0500")
    assert unpack(old) == b',{"role":"user","content":"What about the boat?"}'


@given(st.binary(max_size=2000), st.sets(st.integers(1, 1 << 40), max_size=60), st.binary(max_size=30_000))
def test_what_is_packed_beside_other_bytes_comes_back_with_them(data: bytes, names: set[int], beside: bytes) -> None:
    numbers = sorted(names)
    blob = pack_with(data, PackDictionary(tuple(numbers), beside))
    assert len(blob) <= max(len(pack(data)), len(data) // MUCH)
    asked: list[list[int]] = []
    assert unpack(blob, lambda which: asked.append(which) or beside) == data  # type: ignore[func-returns-value]
    assert asked in ([], [numbers])


BESIDE = b'01ABC[{"text":"The mast of the Albatross is 14 metres tall and made of spruce."}]'
QUOTING = b',{"role":"user","content":"#57 user: The mast of the Albatross is 14 metres tall and made of spruce."}'


def test_what_an_older_version_packed_beside_others_is_still_read() -> None:
    # never renew this either
    old = bytes.fromhex("02c5fe858d02038107c39312944dcd154082560a145b0300")
    assert unpack(old, lambda numbers: {(3, 900): BESIDE}[(numbers[0], numbers[1])]) == QUOTING


@pytest.mark.parametrize("blob", [b"\x02", b"\x02abcd\x03\x01", b"\x02abcd\x01\xff", b"\x02abcd\x01\x01\xff\xff\xff"])
def test_a_damaged_blob_beside_others_is_an_error(blob: bytes) -> None:
    with pytest.raises(zlib.error):
        unpack(blob, lambda _: b"")
    with pytest.raises(zlib.error):
        unpack(blob)
