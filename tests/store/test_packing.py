import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recto.store.packing import pack, unpack


@given(st.binary(max_size=4000))
def test_whatever_is_packed_comes_back(data: bytes) -> None:
    assert unpack(pack(data)) == data
    assert len(pack(data)) <= len(data) + 1


def test_a_wire_message_takes_less_room_than_its_text() -> None:
    data = b',{"role":"user","content":"What about the boat?"}'
    assert len(pack(data)) < len("What about the boat?") + 8


@pytest.mark.parametrize("blob", [b"", b"\x09abc", b"\x01\xff\xff\xff"])
def test_a_damaged_blob_is_an_error(blob: bytes) -> None:
    with pytest.raises(zlib.error):
        unpack(blob)


def test_what_an_older_version_packed_is_still_read() -> None:
    # never renew this: it breaks when the dictionary changes, and with it every store there is
    old = bytes.fromhex("01c323150e4a80106f80ac49ca4f2cb157aa0500")
    assert unpack(old) == b',{"role":"user","content":"What about the boat?"}'
