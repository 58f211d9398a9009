import hashlib

from recto.store.store import Store
from recto.window.calibration import UsageReport
from recto.window.count import Count


def test_counts_come_back_by_meter_exact_or_not(store: Store) -> None:
    one, two = hashlib.sha256(b"1").digest(), hashlib.sha256(b"2").digest()
    assert store.token_counts.find("m", [one]) == {}
    store.token_counts.save("m", {one: Count(7), two: Count(0, exact=False)})
    store.token_counts.save("other", {one: Count(9)})
    assert store.token_counts.find("m", [one, two]) == {one: Count(7), two: Count(0, exact=False)}
    assert store.token_counts.find("other", [one, two]) == {one: Count(9)}


def test_a_count_can_be_corrected_and_many_can_be_asked_for(store: Store) -> None:
    hashes = [hashlib.sha256(bytes([n % 256, n // 256])).digest() for n in range(1200)]
    store.token_counts.save("m", {digest: Count(n) for n, digest in enumerate(hashes)})
    store.token_counts.save("m", {hashes[0]: Count(99)})
    found = store.token_counts.find("m", hashes)
    assert (len(found), found[hashes[0]], found[hashes[1199]]) == (1200, Count(99), Count(1199))
    store.token_counts.save("m", {})


def test_the_latest_reports_of_a_model_are_kept_newest_first(store: Store) -> None:
    made = [UsageReport("c", 1, 2, number, number + 1, "m") for number in range(70)]
    for report in made:
        store.usage_reports.add("one", report)
    store.usage_reports.add("other", made[0])
    assert store.usage_reports.latest("one") == made[:5:-1]
    assert store.usage_reports.latest("other") == made[:1]
    assert store.usage_reports.latest("unknown") == []
