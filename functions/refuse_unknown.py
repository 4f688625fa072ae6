"""$default: answer a path or method that no other function serves, in the one error shape."""

from ctrlb.edge.http import refuse_unknown

handler = refuse_unknown
