"""The command line, `grpoctl`: one file a command group."""
