from recto.ids import new_id


def test_ids_are_26_characters_and_sort_by_birth() -> None:
    ids = [new_id() for _ in range(2000)]
    assert {len(id) for id in ids} == {26}
    assert ids == sorted(set(ids))
