"""What the operators of a machine see of its rounds: counts, and logs for machines.

counts      numbers that all processes of a node or a server add to
json_log    a JSON object for each line of a log
"""
