"""A deployment without a search index: everything else works, and search says what is missing."""

from typing import NoReturn

from ctrlb.domain.errors import Unavailable

RETRY_AFTER_S = 3_600


class SearchOff:
    """The port SessionIndex where there is none."""

    def search(self, *_: object, **__: object) -> NoReturn:
        """See SessionIndex.search."""
        raise self._missing()

    def commands(self, *_: object, **__: object) -> NoReturn:
        """See SessionIndex.commands."""
        raise self._missing()

    def _missing(self) -> Unavailable:
        return Unavailable("search is off in this deployment; whoever runs it can turn it on", RETRY_AFTER_S)
