"""The explorer: a round, and what tffc makes of it, as one page for a browser.

description   all that the page shows, as plain data
wiring        calls of the round, and the values that pass between them
sources       the user's files, and what a line of them calls
texts         the program before and after each pass, and what changed
graphs        compiled sections, function by function
steps         aggregations taken apart: zero, accumulate, merge, report
page          plain data as HTML that runs no script but its own
web           the page's own script and style, from which `built` is made
"""
