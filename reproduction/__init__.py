"""Wang & Hegde (2019), made again: its figures and claims, the comparison that should have been there, its extensions.

`python -m reproduction`, or `make paper`. An experiment (`experiment.py`) is tasks that find rows and statements that
rows decide about; there are five: `figures/` has two, then `claims/`, `comparison/` and `extensions/`. `engine.py` does
the tasks, `results.py` keeps their rows and writes tables, `report.py` puts everything on one page.
"""
