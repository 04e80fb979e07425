// Adds a bearer token to every request, because the conformance suite cannot send one: suite -> relay -> server.
// The rest passes unchanged; Host keeps its name (the server must still refuse a foreign one), only its port becomes the target's.
//
//   bearer-relay.mjs LISTEN_PORT TARGET_PORT TOKEN     LISTEN_PORT 0 lets the kernel choose; prints `listening PORT`
import http from 'node:http';

const [listenPort, targetPort, token] = process.argv.slice(2);
if (!token) {
  console.error('usage: bearer-relay.mjs LISTEN_PORT TARGET_PORT TOKEN');
  process.exit(2);
}

const relay = http.createServer((request, response) => {
  const host = (request.headers.host ?? '').replace(`:${relay.address().port}`, `:${targetPort}`);
  const upstream = http.request({
    host: '127.0.0.1',
    port: Number(targetPort),
    method: request.method,
    path: request.url,
    setHost: false,
    headers: { ...request.headers, host, authorization: `Bearer ${token}` },
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
