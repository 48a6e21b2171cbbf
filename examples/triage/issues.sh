#!/bin/sh
# Prints issues, one JSON object per line: the same ones each time. Usage: issues.sh [COUNT]
awk -v count="${1:-1000}" 'BEGIN {
    split("crash when a file is empty|error 500 from the server|how do I set a proxy|typo in the manual|please add a dark theme", title, "|")
    split("parser|server|screen|installer", part, "|")
    for (n = 1; n <= count; n++)
        printf "{\"id\": \"issue-%d\", \"title\": \"%s: %s\"}\n", n, part[n % 4 + 1], title[n * 7 % 5 + 1]
}'
