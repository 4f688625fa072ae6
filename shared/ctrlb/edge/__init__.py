"""The doors: what comes in becomes a request, what goes out an answer. No decision is taken here."""
