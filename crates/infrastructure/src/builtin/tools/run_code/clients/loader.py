import os, sys
sys.path[:] = [folder for folder in sys.path if folder]
import json
sent = b""
while len(sent) < int(sys.argv[1]) and (more := os.read(0, int(sys.argv[1]) - len(sent))):
    sent += more
given = json.loads(sent)
exec(compile(given["client"], "<tools>", "exec"), {"__name__": "tools", "__file__": "<tools>", "given": given})
