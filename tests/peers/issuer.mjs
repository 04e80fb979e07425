// A real issuer of tokens, on oidc-provider: OAuth 2.0 with PKCE, refresh tokens that are good once, and revocation. Prints its
// address. The pages where a person signs in and grants are its own forms.
//
//   issuer.mjs      environment: CLIENT_ID, CLIENT_SECRET, SCOPES (with blanks between them)
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

const { CLIENT_ID, CLIENT_SECRET, SCOPES } = process.env;
const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const address = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(address, {
    clients: [
      {
        client_id: CLIENT_ID,
        client_secret: CLIENT_SECRET,
        application_type: 'native',
        redirect_uris: ['http://127.0.0.1'],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    scopes: SCOPES.split(' '),
    features: { devInteractions: { enabled: true }, revocation: { enabled: true } },
    pkce: { required: () => true },
    issueRefreshToken: async () => true,
    rotateRefreshToken: true,
    ttl: { AccessToken: 3600, AuthorizationCode: 60, Grant: 3600, Interaction: 600, RefreshToken: 3600, Session: 3600 },
  });
  server.on('request', provider.callback());
  console.log(address);
});
