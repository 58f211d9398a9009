"""Exports of other programs in their real shapes, small."""

from typing import Any

Json = dict[str, Any]
DOT = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cf500f00"
    "038401806f9d6f9d0000000049454e44ae426082"
)


def node(key: str, parent: str | None, role: str = "", content: Json | str | None = None, **more: Any) -> Json:
    """A node of ChatGPT's mapping; a text stands for its usual content."""
    told = {"content_type": "text", "parts": [content]} if isinstance(content, str) else content
    about = {"author": {"role": role, "name": more.pop("name", None), "metadata": {}}, "content": told, **more}
    message = {"id": key, "create_time": None, "recipient": "all", "metadata": {}, **about} if role else None
    return {"id": key, "message": message, "parent": parent, "children": []}


def chatgpt() -> list[Json]:
    """Instructions, thoughts, a tool, an image, a file, a branch; and an entry without messages."""
    nodes = [
        node("root", None),
        node("hidden", "root", "system", "", metadata={"is_visually_hidden_from_conversation": True}),
        node(
            "about",
            "hidden",
            "user",
            {"content_type": "user_editable_context", "user_profile": "I sail.", "user_instructions": "Be short."},
        ),
        node("ask", "about", "user", "How old is she?", create_time=1756000001.5),
        node(
            "thought",
            "ask",
            "assistant",
            {"content_type": "thoughts", "thoughts": [{"summary": "Looking", "content": "Which boat?"}]},
            create_time=1756000002.0,
        ),
        node("recap", "thought", "assistant", {"content_type": "reasoning_recap", "content": "Thought for 3 s"}),
        node(
            "code",
            "recap",
            "assistant",
            {"content_type": "code", "language": "python", "text": "1 + 1"},
            recipient="python",
        ),
        node("output", "code", "tool", {"content_type": "execution_output", "text": "2"}, name="python"),
        node(
            "answer",
            "output",
            "assistant",
            "She is two \ue200cite\ue202turn0search1\ue202turn0news3\ue201【4†boats.pdf】.",
            create_time=1756000004.0,
            metadata={"model_slug": "gpt-5"},
        ),
        node(
            "picture",
            "answer",
            "user",
            {
                "content_type": "multimodal_text",
                "parts": [
                    {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-AbC123"},
                    {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_00lost"},
                    {"content_type": "audio_transcription", "text": "And this one?"},
                ],
            },
            metadata={
                "attachments": [{"id": "file-Notes9", "name": "notes.txt"}, {"id": "file-AbC123", "name": "a.png"}]
            },
        ),
        node("one", "picture", "assistant", "A boat.", status="finished_successfully"),
        node("other", "picture", "assistant", "A ship.", status="in_progress"),
        node("odd", "other", "critic", "No."),
    ]
    talk = {
        "title": "Old boats",
        "create_time": 1756000000.0,
        "update_time": 1756000400.0,
        "mapping": {each["id"]: each for each in nodes},
        "current_node": "one",
        "conversation_id": "6b0f0d9c-1",
        "id": "6b0f0d9c-1",
    }
    return [{"title": "Broken", "id": "6b0f0d9c-0"}, talk]


def claude() -> list[Json]:
    """A tool within a reply, thoughts, an attachment, a file, a branch."""

    def said(uuid: str, parent: str, sender: str, content: Any, **more: Any) -> Json:
        text = "" if isinstance(content, list) else content
        parts = content if isinstance(content, list) else [{"type": "text", "text": content, "citations": []}]
        times = {"created_at": "2025-06-01T10:00:00.123456Z", "updated_at": "2025-06-01T10:00:00.123456Z"}
        base = {"uuid": uuid, "text": text, "content": parts, "sender": sender, "attachments": [], "files": []}
        return base | times | {"parent_message_uuid": parent} | more

    reply = [
        {"type": "thinking", "thinking": "A search helps.", "summaries": [], "cut_off": False},
        {"type": "text", "text": "I look it up."},
        {"type": "tool_use", "id": None, "name": "web_search", "input": {"query": "masts"}},
        {
            "type": "tool_result",
            "tool_use_id": None,
            "name": "web_search",
            "content": [{"type": "text", "text": "Spruce."}],
        },
        {"type": "token_budget"},
        {"type": "text", "text": "Spruce, mostly."},
    ]
    messages = [
        said(
            "u1",
            "00000000-0000-4000-8000-000000000000",
            "human",
            "What are masts made of?",
            attachments=[{"file_name": "list.txt", "file_type": "txt", "extracted_content": "oak, pine"}],
            files=[{"file_name": "plan.pdf", "file_uuid": "f-1"}, {"file_name": "list.txt"}],
        ),
        said("a1", "u1", "assistant", reply),
        said("a2", "u1", "assistant", "Wood."),
        said("u2", "a1", "human", "Thanks."),
    ]
    talk = {
        "uuid": "c-1",
        "name": "Masts",
        "summary": "",
        "created_at": "2025-06-01T10:00:00Z",
        "chat_messages": messages,
    }
    old = {
        "uuid": "c-2",
        "name": "",
        "created_at": "2023-08-01T10:00:00+00:00",
        "chat_messages": [
            {"uuid": "o1", "text": "Hello", "sender": "human", "created_at": "2023-08-01T10:00:00+00:00"},
            {"uuid": "o2", "text": "Hi!", "sender": "assistant", "created_at": "2023-08-01T10:00:05+00:00"},
        ],
    }
    return [talk, old]


def librechat(*, recursive: bool) -> Json:
    """A tool within a reply, a branch, instructions."""

    def said(id: str, parent: str, text: str, *, is_user: bool, **more: Any) -> Json:
        base = {"messageId": id, "conversationId": "l-1", "parentMessageId": parent, "text": text}
        named = {"isCreatedByUser": is_user, "sender": "User" if is_user else "GPT-4", "error": False}
        return base | named | {"createdAt": "2024-04-09T14:32:05.230Z", "model": "gpt-4"} | more

    call = {"id": "t1", "name": "weather", "args": '{"place": "Kiel"}', "output": "Rain."}
    content = [
        {"type": "think", "think": "Kiel?"},
        {"type": "tool_call", "tool_call": call},
        {"type": "text", "text": {"value": "It rains."}},
    ]
    ask = said("m1", "00000000-0000-0000-0000-000000000000", "How is the weather?", is_user=True)
    one = said("m2", "m1", "", is_user=False, content=content)
    two = said("m3", "m1", "No idea.", is_user=False, unfinished=True)
    thanks = said("m4", "m2", "Thanks.", is_user=True, files=[{"filename": "map.png", "type": "image/png"}])
    about = {"conversationId": "l-1", "endpoint": "openAI", "title": "Weather", "exportAt": "16:33:32 GMT+0200"}
    options = {"promptPrefix": "Be brief.", "model": "gpt-4"}
    if not recursive:
        return about | {"branches": True, "recursive": False, "options": options, "messages": [ask, one, two, thanks]}
    tree = ask | {"children": [one | {"children": [thanks | {"children": []}]}, two | {"children": []}]}
    return about | {"branches": True, "recursive": True, "options": options, "messagesTree": [tree]}


def message_list() -> list[Json]:
    return [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What time is it?"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "clock", "arguments": '{"zone": "UTC"}'}},
                {"id": "b", "type": "function", "function": {"name": "date", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "12:00"},
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "Monday"}]},
        {"role": "assistant", "content": "Noon on Monday."},
    ]
