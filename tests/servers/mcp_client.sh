#!/bin/sh
# The client of a scenario of the MCP conformance suite: adds the server whose address is the last argument, lists its
# tools, and calls those that the scenario is about. AGENT is the program.
set -eu
ANSWERS=$(cd "$(dirname "$0")" && pwd)/answer_questions.py
for url; do :; done
HOME=$(mktemp -d)
export HOME
cd "$HOME"
mkdir work
cd work
scenario=${MCP_CONFORMANCE_SCENARIO:-}
said() {
    python3 -c 'import json, os, sys; print(json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])[sys.argv[1]])' "$1"
}
case $scenario in
auth/pre-registration)
    CLIENT_SECRET=$(said client_secret)
    export CLIENT_SECRET
    "$AGENT" mcp add s --url "$url" --client-id "$(said client_id)" --client-secret-env CLIENT_SECRET > /dev/null
    ;;
*) "$AGENT" mcp add s --url "$url" > /dev/null ;;
esac
if [ "$scenario" = auth/basic-cimd ]; then
    printf 'oauth: { client_metadata_url: https://conformance-test.local/client-metadata.json }\n' \
        >> "$HOME/.config/agent/mcp/s.yaml"
fi
# The browser is curl, which the scenario's own server leads back to us. What an earlier login said is gone before this one
# begins, which is in the background: its address would be taken for this one's.
login() {
    : > login
    timeout 60 "$AGENT" mcp login s > login 2>&1 < /dev/null &
    until grep -q '^  http' login || ! kill -0 $! 2> /dev/null; do sleep 0.05; done
    address=$(sed -n 's/^  \(http.*\)/\1/p' login)
    [ -z "$address" ] || curl --silent --location --max-time 60 "$address" > /dev/null || :
    wait $! || cat login >&2
}
case $scenario in
auth/*) login ;;
esac
# The scenarios of skills: they are listed; those about what is fetched load one, and ask for one more file of it if that worked.
case $scenario in
sep-2640-client-no-prefetch) "$AGENT" skill list ;;
sep-2640-client-*)
    "$AGENT" mcp check s
    "$AGENT" skill show s__pdf-processing && "$AGENT" tool call load_skill_reference \
        '{"name": "s__pdf-processing", "path": "references/FORMS.md"}' || :
    ;;
esac
tools=$("$AGENT" mcp tools s 2> listing | cut -d ' ' -f 1)
if grep -q 'agent mcp login' listing; then
    login
    tools=$("$AGENT" mcp tools s | cut -d ' ' -f 1)
fi
# Calls a tool. Where it wants another login, that is what a person is advised to do, and a second call follows.
call() {
    "$AGENT" mcp call "s__$1" "$2" --approve all > called 2>&1 || :
    cat called
    if grep -q 'agent mcp login' called; then
        login
        "$AGENT" mcp call "s__$1" "$2" --approve all || :
    fi
}
for tool in $tools; do
    name=${tool#s__}
    case $name in
        add_numbers) call "$name" '{"a": 5, "b": 3}' ;;
        test_client_elicitation_defaults)
            python3 "$ANSWERS" "$AGENT" mcp call "s__$name" '{}' --approve all
            ;;
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
