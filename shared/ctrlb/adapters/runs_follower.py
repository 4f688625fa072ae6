"""What the Runs page shows follows both tables: what the function behind their streams does."""

from collections.abc import Callable, Sequence

from ctrlb.adapters import dynamodb_keys as places
from ctrlb.adapters.aws_client import StoreRefused
from ctrlb.adapters.dynamodb_projections import DynamodbProjections, relay_fact, session_fact
from ctrlb.adapters.search_follower import UNREADABLE
from ctrlb.domain.errors import Unavailable
from ctrlb.domain.projections import Fact, RelayFact, project
from ctrlb.domain.rows import Run
from ctrlb.domain.streams import DONE, IGNORED, Change, Outcome

RUN_FULL = Outcome("ignored", "a run is full")
"""One run that takes no more rows must not hold the stream, in which those of all workspaces come."""
_OF_RELAY = (places.CLAIM_PREFIX, places.EVENT_PREFIX)


class RunsFollower:
    """The port Follower on the projected rows of the relay table."""

    def __init__(self, projections: DynamodbProjections, fetch: Callable[[str], bytes]) -> None:
        """`fetch` gets the object that holds what a session row's item cannot."""
        self._projections = projections
        self._fetch = fetch

    def take(self, changes: Sequence[Change]) -> list[Outcome]:
        """See Follower.take. What it writes itself comes back on the stream, and is ignored."""
        found = [self._fact(change) for change in changes]
        # What lies behind a row that has to come again comes again with it.
        until = next((place for place, each in enumerate(found) if _is_retry(each)), len(found))
        full = self._projections.add(project(each for each in found[:until] if not isinstance(each, Outcome)))
        return [each if isinstance(each, Outcome) else RUN_FULL if _run_of(each) in full else DONE for each in found]

    def _fact(self, change: Change) -> Fact | Outcome:
        sk, image = change.key.get("sk", ""), change.fresh
        try:
            if image is None:
                return IGNORED
            item = dict(image)
            if sk.startswith(_OF_RELAY) and "kind" in item:
                return relay_fact(item)
            if sk.startswith(places.ROW_PREFIX) and "run_id" in item:
                return session_fact(item, self._fetch)
        except Unavailable as failure:
            return Outcome("retry", failure.message)
        except StoreRefused as refusal:
            return Outcome("poison", str(refusal))
        except UNREADABLE as error:
            return Outcome("poison", f"the row cannot be read: {type(error).__name__}")
        return IGNORED


def _run_of(fact: Fact) -> Run:
    return fact.run if isinstance(fact, RelayFact) else Run(fact.dataset, fact.row.run_id)


def _is_retry(found: Fact | Outcome) -> bool:
    return isinstance(found, Outcome) and found.kind == "retry"
