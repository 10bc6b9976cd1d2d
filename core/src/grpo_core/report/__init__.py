"""The report: one HTML file about one or several runs, which opens without a network.

    run folder → read → curves, completions, probes, settings → findings → page

Reads what a run wrote down and changes nothing in it but report.html. Knows no other stage; imports no torch.
"""
