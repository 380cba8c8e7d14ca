"""Pictures of what was released; they show nothing that the release itself does not, unless they say NOT PRIVATE."""

from quietq.cli.report.pictures import plot_function as plot_function, require as require
