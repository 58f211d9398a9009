"""Which texts LangChain would send at the end of each conversation. Arguments: its name, how it counts, a JSON file.

Prints a list of texts for each conversation; runs with the peers' Python.
"""

import json
import sys
import warnings
from pathlib import Path

from bench.keep_langchain import keeper
from bench.wire import Limits

# Of the window: where SummarizationMiddleware sums up, and what it keeps, as generous as it can be.
TRIGGER, KEEP = 1.0, 0.9
NAMES = {"trim_messages": "trim_messages", "SummarizationMiddleware": "SummarizationMiddleware"}


def main(name: str, how: str, path: str) -> None:
    warnings.simplefilter("ignore")
    asked = json.loads(Path(path).read_text("utf-8"))
    out = []
    for each in asked["conversations"]:
        window = each["window"]
        limits = Limits(window, int(window * TRIGGER), int(window * KEEP))
        keeps = keeper(NAMES[name], how, limits, asked["summary"])
        for message in each["messages"]:
            keeps.say(message)
            if name == "SummarizationMiddleware":
                keeps.next()
        out.append([message.content for message in keeps.next()])
    print(json.dumps(out))


if __name__ == "__main__":
    main(*sys.argv[1:])
