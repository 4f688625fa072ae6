"""What a scripted model says: for each conversation a list of turns, each a list of blocks."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Json = dict[str, Any]


class Say(NamedTuple):
    """A block of text."""

    text: str


class Think(NamedTuple):
    """A block of thinking."""

    text: str


class Call(NamedTuple):
    """A tool call. The input is an object, or a text for the tools of Codex that take free text."""

    tool: str
    input: Json | str


Block = Say | Think | Call
Turn = Sequence[Block] | Callable[[Json], Sequence[Block]]
"""The blocks of one answer, or what makes them of the request's body."""

Scripts = Mapping[str, Sequence[Turn]]
"""The turns of each conversation, by the first word of its prompt."""

SPENT = (Say("Nothing more to do."),)


class Request(NamedTuple):
    """One request that a client made to its model."""

    path: str
    headers: Mapping[str, str]
    body: Json
    word: str
    """The first word of the prompt that was answered, empty when no script has it."""
    said: Sequence[Json]
    """What the model is told beside its tools and system prompt: the messages, or the input items."""

    def tells(self, text: str) -> bool:
        """Whether the text stands in what the model is told, between whatever else."""
        return any(text in part for part in texts(self.said))


class Play:
    """The scripts, how far each conversation has come, and every request so far."""

    def __init__(self) -> None:
        self.scripts: Scripts = {}
        self.requests: list[Request] = []
        self.failures: list[Exception] = []
        """What went wrong in a turn that is a function, which ran in the server's thread."""
        self._served: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def prompted(self, word: str) -> list[Request]:
        """The requests of the conversation whose prompt begins with the word, in order."""
        return [request for request in self.requests if request.word == word]

    def answer(self, conversation: str, request: Request, prompts: Sequence[str]) -> Sequence[Block]:
        """Record the request and return the next turn of the conversation's newest prompt that a script has."""
        words = [words[0] for words in (prompt.split(maxsplit=1) for prompt in prompts) if words]
        with self._lock:
            word = next((word for word in reversed(words) if word in self.scripts), "")
            self.requests.append(request._replace(word=word))
            served = self._served.get((conversation, word), 0)
            self._served[conversation, word] = served + 1
            turns = self.scripts.get(word, ())
        if served >= len(turns):
            return SPENT
        turn = turns[served]
        try:
            return turn(request.body) if callable(turn) else turn
        except Exception as failure:  # the test's own thread raises it
            self.failures.append(failure)
            return SPENT


def texts(value: object) -> list[str]:
    """Every text inside of the JSON value, in order."""
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [text for part in inner for text in texts(part)]
