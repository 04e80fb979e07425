#!/bin/sh
# Drives the binary $TOOLSTEAD as the client of one conformance scenario; the suite starts it with the URL of its mock server as
# last argument and names the scenario in the environment (MCP_CONFORMANCE_SCENARIO, …_PROTOCOL_VERSION, …_CONTEXT).
# Its last line on stdout is "client finished": conformance.mjs counts no scenario as passed without it, since the suite itself
# takes a client that never ran for a good one where no check was made.
set -eu

for url in "$@"; do :; done
: "${url:?usage: conformance-client.sh URL}"
: "${TOOLSTEAD:?must hold the path of the toolstead binary}"
here=$(cd "$(dirname "$0")" && pwd)
PATH=$here/node_modules/.bin:$PATH

# Everything that this run may read or leave behind is in one folder that goes away with it.
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
export HOME="$temporary/home" XDG_CONFIG_HOME="$temporary/config" XDG_DATA_HOME="$temporary/data"
export XDG_STATE_HOME="$temporary/state" XDG_CACHE_HOME="$temporary/cache"
mkdir "$HOME" "$XDG_CONFIG_HOME" "$XDG_DATA_HOME" "$XDG_STATE_HOME" "$XDG_CACHE_HOME" "$temporary/work"
cat >"$temporary/toolstead.toml" <<END
[mcp_servers.c]
url = "$url"
names = "plain"
allow_tools = ["*"]
protocol = "${MCP_CONFORMANCE_PROTOCOL_VERSION:-2025-11-25}"
END
# Clients that the suite registers beforehand, as it describes them.
temporary=$temporary url=$url node -e '(async () => {
  const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_CONTEXT: text, temporary } = process.env;
  const given = JSON.parse(text || "{}");
  const client = { client_id: given.client_id, client_secret: given.client_secret };
  // Configured credentials are bound to their authorization server; the suite names it in the metadata of its server alone.
  const issuer = given.client_id && (await (async () => {
    const refused = await fetch(process.env.url, { method: "POST", headers: { "content-type": "application/json", accept: "application/json, text/event-stream" }, body: "{}" });
    const named = /resource_metadata="([^"]+)"/.exec(refused.headers.get("www-authenticate") ?? "");
    const { origin, pathname } = new URL(process.env.url);
    const metadata = await fetch(named?.[1] ?? `${origin}/.well-known/oauth-protected-resource${pathname}`);
    return (await metadata.json()).authorization_servers[0];
  })());
  const auth = {
    "auth/basic-cimd": { type: "oauth", client_metadata_url: "https://conformance-test.local/client-metadata.json" },
    "auth/pre-registration": { type: "oauth", issuer, ...client },
    "auth/client-credentials-basic": { type: "client_credentials", issuer, ...client },
    "auth/enterprise-managed-authorization": {
      type: "id_jag", issuer, ...client, idp_client_id: given.idp_client_id, idp_issuer: given.idp_issuer,
      idp_token_url: given.idp_token_endpoint, subject_token_file: `${temporary}/id.jwt`,
    },
  }[scenario];
  if (given.idp_id_token) require("fs").writeFileSync(`${temporary}/id.jwt`, given.idp_id_token, { mode: 0o600 });
  const members = Object.entries(auth ?? {}).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  if (auth) console.log(`auth = { ${members.join(", ")} }`);
})()' >>"$temporary/toolstead.toml"
cd "$temporary/work"

# A run that hangs ends before the suite gives up (300 s), so that nothing outlives the scenario.
toolstead() { timeout 250 "$TOOLSTEAD" --config "$temporary/toolstead.toml" "$@"; }
list() { toolstead tools --json </dev/null >"$temporary/tools.json"; }
call() { printf %s "$2" | toolstead call "$1" -; } # NAME JSON; over stdin, since arguments can be big
ask() { timeout 250 python3 "$here/at_terminal.py" "$TOOLSTEAD" --config "$temporary/toolstead.toml" call "$1" '{}'; } # NAME; a person is there
evaluate() { node -e "const { tools } = JSON.parse(require('fs').readFileSync('$temporary/tools.json', 'utf8')); $1"; }

case "${MCP_CONFORMANCE_SCENARIO:?}" in
  initialize | json-schema-ref-no-deref | request-metadata)
    list
    ;;
  tools_call)
    list
    call add_numbers '{"a":5,"b":3}'
    ;;
  json-schema-2020-12-preservation)
    list
    call json_schema_echo "$(evaluate '
      const { inputSchema } = tools.find((tool) => tool.name === "json_schema_2020_12_tool");
      console.log(JSON.stringify({ schema: inputSchema }))')"
    ;;
  http-standard-headers)
    list
    call test_headers '{}'
    call my-hyphenated-tool '{}'
    ;;
  http-custom-headers)
    list
    # printf and not echo, which would turn the \n inside the JSON into line breaks
    printf %s "$MCP_CONFORMANCE_CONTEXT" >"$temporary/context.json"
    node -e '
      const { toolCalls } = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"));
      for (const call of toolCalls) console.log(call.name + "\t" + JSON.stringify(call.arguments));
    ' "$temporary/context.json" >"$temporary/calls"
    while IFS="$(printf '\t')" read -r name arguments; do call "$name" "$arguments"; done <"$temporary/calls"
    ;;
  http-invalid-tool-headers)
    list
    evaluate '
      const kept = tools.map((tool) => tool.name).filter((name) => name.startsWith("invalid_"));
      if (kept.length > 0) { console.error("must have been dropped: " + kept); process.exit(1); }'
    call valid_tool '{"region":"eu"}'
    ;;
  sse-retry)
    # Without a list before: the mock server takes any GET after the call for the one that it waits for, and a client that
    # already knows the tools would make its call before the GET by which it listens.
    call test_reconnection '{}'
    ;;
  elicitation-sep1034-client-defaults)
    list
    ask test_client_elicitation_defaults
    ;;
  sep-2322-client-request-state)
    list
    for name in test_mrtr_echo_state test_mrtr_unrelated test_mrtr_no_state test_mrtr_no_result_type; do ask "$name"; done
    ;;
  auth/*)
    # Signs in whenever the server requires it, as a person would, but not for ever. Some of these servers must be refused, so a
    # call that fails is an end as good as any: what counts is what the suite saw.
    export BROWSER="$here/node_modules/.bin/node $here/person.mjs"
    for attempt in 1 2 3; do
      if list && call test-tool '{}'; then break; fi
      case $attempt in 3) break ;; esac
      toolstead auth login c </dev/null || break
    done
    ;;
  *)
    echo "no way to drive $MCP_CONFORMANCE_SCENARIO with toolstead tools and toolstead call" >&2
    exit 1
    ;;
esac
echo
echo 'client finished'
