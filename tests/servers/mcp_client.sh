#!/bin/sh
# The client of a scenario of the MCP conformance suite: adds the server whose address is the last argument, lists its
# tools, and calls those that the scenario is about. AGENT is the program.
set -eu
for url; do :; done
HOME=$(mktemp -d)
export HOME
cd "$HOME"
mkdir work
cd work
"$AGENT" mcp add s --url "$url" > /dev/null
# The scenarios of authorization: the browser is curl, which the scenario's own server leads back to us.
case ${MCP_CONFORMANCE_SCENARIO:-} in
auth/*)
    "$AGENT" mcp login s > login 2>&1 < /dev/null &
    until grep -q '^  http' login || ! kill -0 $! 2> /dev/null; do sleep 0.05; done
    address=$(sed -n 's/^  \(http.*\)/\1/p' login)
    [ -z "$address" ] || curl --silent --location --max-time 20 "$address" > /dev/null || :
    wait $! || cat login >&2
    ;;
esac
# The scenarios of skills: they are listed; those about what is fetched load one, and ask for one more file of it if that worked.
case ${MCP_CONFORMANCE_SCENARIO:-} in
sep-2640-client-no-prefetch) "$AGENT" skill list ;;
sep-2640-client-*)
    "$AGENT" mcp check s
    "$AGENT" skill show s__pdf-processing && "$AGENT" tool call load_skill_reference \
        '{"name": "s__pdf-processing", "path": "references/FORMS.md"}' || :
    ;;
esac
tools=$("$AGENT" mcp tools s | cut -d ' ' -f 1)
call() {
    "$AGENT" mcp call "s__$1" "$2" --approve all || :
}
for tool in $tools; do
    name=${tool#s__}
    case $name in
        add_numbers) call "$name" '{"a": 5, "b": 3}' ;;
        valid_tool) call "$name" '{"region": "us"}' ;;
        json_schema_2020_12_tool | test_custom_headers*) ;;
        json_schema_echo) call "$name" "$(python3 -c '
import json, subprocess, os
shown = subprocess.run([os.environ["AGENT"], "tool", "show", "s__json_schema_2020_12_tool"], capture_output=True)
print(json.dumps({"schema": json.loads(shown.stdout)["parameters"]}))')" ;;
        *) call "$name" '{}' ;;
    esac
done
# The calls that a scenario names itself.
python3 -c '
import json, os, subprocess
calls = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}").get("toolCalls", [])
for call in calls:
    line = ["mcp", "call", "s__" + call["name"], json.dumps(call["arguments"]), "--approve", "all"]
    subprocess.run([os.environ["AGENT"], *line])'
cd /
rm -rf "$HOME"
