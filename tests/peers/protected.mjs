// An MCP server of 2025-11-25 that a real authorization server protects, oidc-provider in the same process: dynamic registration,
// PKCE, resource indicators (RFC 8707), the issuer in redirects (RFC 9207), refresh tokens that are good once, and revocation.
// Prints its address. Its one tool `whoami` returns the account that the token of the call belongs to.
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const address = `http://127.0.0.1:${server.address().port}`;
  const resource = `${address}/mcp`;
  const metadata = `${address}/.well-known/oauth-protected-resource/mcp`;
  const provider = new Provider(address, {
    scopes: ['openid', 'offline_access', 'notes.read'],
    features: {
      devInteractions: { enabled: true },
      revocation: { enabled: true },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, name) => {
          if (name !== resource) throw new Error(`no resource ${name}`);
          return { scope: 'notes.read', audience: resource, accessTokenFormat: 'opaque', accessTokenTTL: 3600 };
        },
      },
    },
    clientDefaults: { grant_types: ['authorization_code', 'refresh_token'], token_endpoint_auth_method: 'none' },
    pkce: { required: () => true },
    issueRefreshToken: async () => true,
    rotateRefreshToken: true,
    ttl: { AccessToken: 3600, AuthorizationCode: 60, Grant: 3600, Interaction: 600, RefreshToken: 3600, Session: 3600 },
  });
  const serve = provider.callback();

  const json = (answer, status, body, headers = {}) => {
    answer.writeHead(status, { 'content-type': 'application/json', ...headers });
    answer.end(JSON.stringify(body));
  };

  async function mcp(request, answer) {
    const text = request.headers.authorization?.replace(/^Bearer /, '');
    const token = text && (await provider.AccessToken.find(text));
    if (!token || token.isExpired || token.aud !== resource) {
      return json(answer, 401, {}, { 'www-authenticate': `Bearer resource_metadata="${metadata}", scope="notes.read"` });
    }
    if (request.method !== 'POST') return json(answer, 405, {});
    let body = '';
    for await (const piece of request) body += piece;
    const { id, method, params } = JSON.parse(body);
    if (id === undefined) return answer.writeHead(202).end();
    const results = {
      initialize: () => ({
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'protected', version: '1' },
      }),
      'tools/list': () => ({ tools: [{ name: 'whoami', inputSchema: { type: 'object' } }] }),
      'tools/call': () => ({ content: [{ type: 'text', text: token.accountId }] }),
    };
    const result = results[method]?.();
    const outcome = result ? { result } : { error: { code: -32601, message: 'no such method' } };
    return json(answer, 200, { jsonrpc: '2.0', id, ...outcome });
  }

  server.on('request', (request, answer) => {
    const { pathname } = new URL(request.url, address);
    if (pathname === '/mcp') return mcp(request, answer);
    if (metadata.endsWith(pathname)) {
      return json(answer, 200, { resource, authorization_servers: [address], scopes_supported: ['notes.read'] });
    }
    return serve(request, answer);
  });
  console.log(address);
});
