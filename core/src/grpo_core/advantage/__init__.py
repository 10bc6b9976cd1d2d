"""Advantages: how much better than expected each completion was. Plain Python."""
