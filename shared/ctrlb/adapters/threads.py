"""Several calls to a store at once, with a bound."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

S = TypeVar("S")
T = TypeVar("T")


class Threads:
    """At most so many calls at once. Its threads start with their first work."""

    def __init__(self, most: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(most, thread_name_prefix=name)

    def each(self, do: Callable[[S], T], items: Iterable[S]) -> list[T]:
        """Do it for each item; the results in their order. A single one is done here.

        When one fails, the others have ended too before that is told: a write that went on after its call was
        answered could take the place of a later one.
        """
        wanted = list(items)
        if len(wanted) == 1:
            return [do(wanted[0])]
        jobs = [self._pool.submit(do, one) for one in wanted]
        wait(jobs)
        return [job.result() for job in jobs]
