from recto.base.ids import id_start, new_id


def test_ids_are_26_characters_and_sort_by_birth() -> None:
    ids = [new_id() for _ in range(2000)]
    assert {len(id) for id in ids} == {26}
    assert ids == sorted(set(ids))


def test_the_beginning_of_an_id_can_be_typed_in_small_letters() -> None:
    id = new_id()
    assert id_start(id[:8].lower()) == id[:8]
    assert id_start(f" {id} ") == id
    assert [id_start(text) for text in (id[:3], f"{id}0", "yesterday", "01U4", "")] == [None] * 5
