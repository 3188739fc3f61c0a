"""The explorer: a round, its passes, graphs and audit, as one page for a browser.

description   all content of the page, as plain data
wiring        the calls of the round, and the values passed between them
sources       the user's files, and the calls on their lines
texts         the program before and after each pass, and what changed
graphs        compiled sections, function by function
steps         the steps of aggregations: zero, accumulate, merge, report
page          plain data as HTML that runs only its own script
web           the source of the page's script and style, which are built into `built`
"""
