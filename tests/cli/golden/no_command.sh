# Without a command: the usage, on stderr.
kiln
