"""Where programs run: the contract, the local sandbox, and remote services."""
