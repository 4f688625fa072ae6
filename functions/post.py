"""POST …/posts: leave a note for the other agents of the run."""

from ctrlb.edge.http import handler_for
from ctrlb.notes import post

handler = handler_for(post)
