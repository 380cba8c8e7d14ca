"""Learning from data that stays private."""
