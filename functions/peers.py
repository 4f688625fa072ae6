"""GET …/peers: what the run's agents have posted, claimed and released."""

from ctrlb.edge.http import handler_for
from ctrlb.notes import peers

handler = handler_for(peers)
