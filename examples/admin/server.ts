//   npx --yes tsx node_modules/limitkeeper/examples/admin/server.ts
// (in a checkout: npm run example examples/admin/server.ts)
// Then open http://127.0.0.1:3000/ops/limits and type the key. Lock yourself out to have something to free:
//   for i in 1 2 3 4 5 6; do curl -X POST 'http://127.0.0.1:3000/login?email=a@b.c'; done
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { createShop } from './app.js';

const adminKey = process.env['LIMITS_ADMIN_KEY'] ?? randomBytes(24).toString('hex');
const { app, admin } = createShop({ adminKey, readKey: process.env['LIMITS_READ_KEY'] });
const server = createServer(app).listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
  console.log('Listening on', server.address());
  // Only for the example, and only where it was made up just now: a key has no business in a log.
  if (process.env['LIMITS_ADMIN_KEY'] === undefined) console.log('Admin key of this run:', adminKey);
});

process.once('SIGTERM', () => {
  // The live stream of an open page would keep the server from closing.
  admin.close();
  server.close();
});
