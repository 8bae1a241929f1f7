//   export RATE_ADMIN_KEY=$(openssl rand -hex 24)
//   npx --yes tsx node_modules/limitkeeper/examples/service/server.ts
// (in a checkout: npm run example examples/service/server.ts), and in another terminal with the same key:
//   curl -X POST http://127.0.0.1:3001/rate/check -H 'X-User-Id: 42' -H 'Content-Type: application/json' -d '{"endpoint":"/search"}'
//   curl 'http://127.0.0.1:3001/rate/status?endpoint=/search' -H 'X-User-Id: 42'
//   curl -X DELETE http://127.0.0.1:3001/rate/reset/42 -H "X-Admin-Key: $RATE_ADMIN_KEY"
import { createServer } from 'node:http';
import { createService } from './app.js';

const app = createService({
  adminKey: process.env['RATE_ADMIN_KEY'],
  serviceKey: process.env['RATE_SERVICE_KEY'],
});
// The loopback interface alone: X-User-Id is taken on trust.
const server = createServer(app).listen(Number(process.env['PORT'] ?? 3001), '127.0.0.1', () => {
  console.log('Listening on', server.address());
});
process.once('SIGTERM', () => server.close());
