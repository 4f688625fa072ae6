"""What the clients write down, as rows of the session store."""
