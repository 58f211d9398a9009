"""Chat in the browser: replies as they come, stop, retry, several tabs, a restart."""

import re
import signal

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect
from tests.conftest import Open
from tests.web.conftest import OpenPage, Serve, say, shot

REPLY = "The pump has a **5 A fuse**.\n\n```python\nprint('fuse')\n```\n\n- one\n- two\n"


def test_a_question_is_answered_on_the_page(serve: Serve, open_page: OpenPage) -> None:
    page = open_page(serve({"text": REPLY, "delay_s": 0.01}))
    say(page, "Which fuse protects the bilge pump?")
    reply = page.locator("article.assistant")
    expect(reply.locator("strong")).to_have_text("5 A fuse")
    expect(reply.locator("li")).to_have_text(["one", "two"])
    expect(page.locator("article.user .body")).to_have_text("Which fuse protects the bilge pump?")
    expect(page).to_have_url(re.compile(r"/c/1$"))
    expect(page.get_by_role("navigation").get_by_text("Which fuse")).to_be_visible()
    reply.get_by_role("button", name="Copy").first.click()
    assert page.evaluate("navigator.clipboard.readText()").strip() == "print('fuse')"
    page.reload()
    expect(page.locator("article.assistant strong")).to_have_text("5 A fuse")
    shot(page, "chat")


@pytest.mark.slow
def test_a_reply_is_stopped_what_came_is_kept_and_it_is_tried_again_on_a_branch(
    serve: Serve, open_page: OpenPage
) -> None:
    page = open_page(serve({"text": "word " * 400, "delay_s": 0.05}, {"text": "second"}))
    say(page, "Tell me much")
    expect(page.locator(".turn .part.text")).to_contain_text("word word")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("article.assistant")).to_contain_text("stopped")
    expect(page.locator("article.assistant .body")).to_contain_text("word word")
    page.get_by_role("button", name="Retry").click()
    expect(page.locator("article.assistant .body")).to_have_text("second")


@pytest.mark.slow
def test_two_tabs_show_the_same_reply_as_it_comes(serve: Serve, open_page: OpenPage) -> None:
    served = serve({"text": "one"}, {"text": "two " * 5000, "delay_s": 0.05})
    first = open_page(served)
    say(first, "Hello")
    expect(first.locator("article.assistant")).to_have_count(1)
    second = open_page(served, path="/c/1")
    say(first, "Again")
    expect(second.locator(".turn .part.text")).to_contain_text("two two")
    third = open_page(served, path="/c/1")
    expect(third.locator(".turn .part.text")).to_contain_text("two two")
    # however long the tabs take to open, the reply goes on until it is stopped
    first.get_by_role("button", name="Stop").click()
    for page in (first, second, third):
        expect(page.locator("article.assistant")).to_have_count(2)


@pytest.mark.slow
def test_a_failure_is_told_where_it_happens_and_the_message_is_kept(serve: Serve, open_page: OpenPage) -> None:
    page = open_page(serve({"error": "rate_limited"}))
    say(page, "Hello")
    expect(page.locator(".turn .failure")).to_contain_text("slow down")
    expect(page.locator("article.user .body")).to_have_text("Hello")


@pytest.mark.slow
def test_a_draft_survives_a_reload_and_a_restart_of_the_server(serve: Serve, open_page: OpenPage) -> None:
    served = serve({"text": "fine"})
    page = open_page(served)
    field = page.get_by_label("Message", exact=True)
    field.fill("half a thought")
    page.reload()
    expect(field).to_have_value("half a thought")
    page.evaluate("window.isOld = true")
    served.restart()
    page.wait_for_function("!window.isOld && window.did_handshake === true")
    expect(field).to_have_value("half a thought")
    field.press("Enter")
    expect(page.locator("article.assistant .body")).to_have_text("fine")


TYPE_AT_SIGHT = """() => new MutationObserver((_, watch) => {
    const field = document.querySelector("[data-testid=composer]");
    if (!document.querySelector("article.assistant") || field.value) return;
    watch.disconnect();
    field.value = "What comes next?";
    field.dispatchEvent(new Event("input"));
}).observe(document.body, { childList: true, subtree: true, characterData: true })"""


def test_what_is_typed_as_soon_as_a_conversation_is_there_stays(serve: Serve, open_page: OpenPage) -> None:
    served = serve({"text": "Fine."})
    page = open_page(served)
    say(page, "The keel was laid in March.")
    expect(page.locator("article.assistant")).to_contain_text("Fine.")
    page = open_page(served)
    page.evaluate(TYPE_AT_SIGHT)
    page.locator(".conversations").get_by_text("The keel was laid").first.click()
    expect(page.locator("article.assistant")).to_contain_text("Fine.")
    page.wait_for_url("**/c/*")
    expect(page.get_by_label("Message", exact=True)).to_have_value("What comes next?")


class SlowLine:
    """What the server tells the page, held back while `is_slow`; what the page tells the server is not."""

    def __init__(self, page: Page) -> None:
        self.is_slow, self._page, self._held = False, page, list[str | bytes]()
        page.route_web_socket(re.compile("."), self._connect)

    def _connect(self, to_page: WebSocketRoute) -> None:
        self._to_page = to_page
        to_server = to_page.connect_to_server()
        to_page.on_message(to_server.send)
        to_server.on_message(lambda told: self._held.append(told) if self.is_slow else to_page.send(told))

    def wait_for(self, words: str) -> None:
        """Until the server has told this."""
        for _ in range(1000):
            if any(words in str(each) for each in self._held):
                return
            self._page.wait_for_timeout(30)
        raise AssertionError(f"the server did not say {words}")

    def catch_up(self) -> None:
        self.is_slow = False
        for each in self._held:
            self._to_page.send(each)


@pytest.mark.parametrize("is_new", [False, True])
def test_a_message_goes_where_it_was_written_though_another_conversation_is_being_opened(
    serve: Serve, open_page: OpenPage, is_new: bool
) -> None:
    served = serve({"text": "Fine."})
    page = open_page(served)
    say(page, "The keel was laid in March.")
    expect(page.locator("article.assistant")).to_have_count(1)
    line = SlowLine(page)
    page.goto(served.link.replace("/?", "/?" if is_new else "/c/1?"))
    expect(page.locator(".empty" if is_new else "article.assistant")).to_have_count(1)
    expect(page.locator(".meter-button")).to_be_visible()
    line.is_slow = True
    if is_new:
        page.locator(".conversations").get_by_text("The keel was laid").first.click()
    else:
        page.get_by_role("navigation").get_by_role("button", name="New").click()
    line.wait_for("setPlace")
    say(page, "It was launched in June.")
    line.catch_up()
    shown = page.locator("article.user .body")
    expect(page.locator(".notice")).to_contain_text("where you wrote it")
    expect(shown).to_have_text(["The keel was laid in March."] if is_new else [])
    page.locator(".conversations").get_by_text("It was launched" if is_new else "The keel was laid").first.click()
    expect(shown).to_have_text(
        ["It was launched in June."] if is_new else ["The keel was laid in March.", "It was launched in June."]
    )


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_the_page_ends_in_order_when_it_is_told_to(serve: Serve, told: signal.Signals) -> None:
    served = serve()
    served.process.send_signal(told)
    assert served.process.wait() == 0


@pytest.mark.slow
def test_what_came_of_a_reply_is_kept_when_the_page_is_told_to_end(
    serve: Serve, open_page: OpenPage, desk: Open
) -> None:
    served = serve({"text": "word " * 400, "delay_s": 0.05})
    page = open_page(served)
    say(page, "Tell me much")
    expect(page.locator(".turn .part.text")).to_contain_text("word word")
    served.process.send_signal(signal.SIGTERM)
    assert served.process.wait() == 0
    asked, reply = desk(served.options[1]).conversation(1).messages()
    assert asked.text == "Tell me much"
    assert (reply.status, reply.text[:9]) == ("stopped", "word word")
