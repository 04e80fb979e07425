// Adds a bearer token to every request, because the conformance suite cannot send one: suite -> relay -> server.
// The rest passes unchanged; Host and Origin keep their names (the server must still refuse foreign ones), only the relay's port becomes the
// target's in them, as if the suite had called there itself.
//
//   bearer-relay.mjs LISTEN_PORT TARGET_PORT TOKEN     LISTEN_PORT 0 lets the kernel choose; prints `listening PORT`
import http from 'node:http';

const [listenPort, targetPort, token] = process.argv.slice(2);
if (!token) {
  console.error('usage: bearer-relay.mjs LISTEN_PORT TARGET_PORT TOKEN');
  process.exit(2);
}

const relay = http.createServer((request, response) => {
  const atTarget = (value) => value.replace(`:${relay.address().port}`, `:${targetPort}`);
  const { host = '', origin } = request.headers;
  const upstream = http.request({
    host: '127.0.0.1',
    port: Number(targetPort),
    method: request.method,
    path: request.url,
    setHost: false,
    headers: {
      ...request.headers,
      host: atTarget(host),
      ...(origin && { origin: atTarget(origin) }),
      authorization: `Bearer ${token}`,
    },
  });
  upstream.on('response', (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    response.flushHeaders(); // an event stream may be silent for long
    answer.pipe(response);
    answer.on('error', () => response.destroy());
  });
  upstream.on('error', (error) => {
    if (response.headersSent) response.destroy();
    else response.writeHead(502).end(String(error));
  });
  response.on('close', () => upstream.destroy());
  request.pipe(upstream);
});
relay.listen(Number(listenPort), '127.0.0.1', () => console.log(`listening ${relay.address().port}`));
