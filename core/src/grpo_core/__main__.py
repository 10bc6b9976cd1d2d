"""`python -m grpo_core` is `grpoctl`."""

from grpo_core.cli.main import main

if __name__ == "__main__":
    main()
