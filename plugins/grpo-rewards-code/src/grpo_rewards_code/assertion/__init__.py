"""From test code to runs and checks: the program's part of an assertion is separated from the answers by its syntax.

    assertions → what runs beside the program | what is compared, or evaluated apart

Only calls of the program, and what makes their arguments, run beside it. A test that cannot be taken apart like that
raises `TestsError`: it is never replaced by a weaker one.
"""
