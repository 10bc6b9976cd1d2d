"""What the curves of a run say, as plain sentences: one small pure function a rule, each giving a finding or None."""
