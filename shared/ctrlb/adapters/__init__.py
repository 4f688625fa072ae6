"""The stores behind the ports. An SDK's exceptions stop here."""
