import got from 'got';
import ky from 'ky';
import { Agent, RetryAgent, request } from 'undici';
import { MemoryStore, rateLimit } from 'limitkeeper';
import type { RateLimitOptions } from 'limitkeeper';
import { closeServers, EXPRESSES, serve } from '../support/http.js';

afterEach(closeServers);

const RULES: readonly (readonly [string, Partial<RateLimitOptions>])[] = [
  ['a fixed window', { algorithm: 'fixed-window', windowSec: 2 }],
  ['a sliding window', { windowSec: 1 }],
  ['a bucket', { algorithm: 'token-bucket', windowSec: 2 }],
  ['a block that outlasts its window', { algorithm: 'fixed-window', windowSec: 1.5, blockSec: 2.2 }],
];

const CLIENTS: readonly (readonly [string, (url: string) => Promise<number>])[] = [
  [
    "undici's RetryAgent",
    async url => {
      const agent = new RetryAgent(new Agent(), { statusCodes: [429], maxRetries: 3 });
      const { statusCode, body } = await request(url, { dispatcher: agent });
      await body.dump();
      await agent.close();
      return statusCode;
    },
  ],
  ['got', async url => (await got(url, { retry: { limit: 3, statusCodes: [429] } })).statusCode],
  ['ky', async url => (await ky(url, { retry: { limit: 3, statusCodes: [429] } })).status],
];

// Each waits in real time, so all combinations run side by side.
test('a client that obeys Retry-After is never refused twice', async () => {
  const runs = EXPRESSES.flatMap(([name, express]) =>
    RULES.flatMap(([rule, options]) =>
      CLIENTS.map(async ([client, get]) => {
        const refusals: number[] = [];
        const app = express();
        let refused = 0;
        app.use((_req, res, next) => {
          res.on('finish', () => {
            if (res.statusCode === 429) refused += 1;
          });
          next();
        });
        app.use(
          rateLimit({ scope: 'x', limit: 1, store: new MemoryStore(), ...options } as RateLimitOptions),
          (_req, res) => res.send('ok'),
        );
        const url = await serve(app);
        for (let i = 0; i < 4; i += 1) {
          refused = 0;
          expect(await get(url)).toBe(200);
          refusals.push(refused);
        }
        return { what: `${name}, ${rule}, ${client}`, refusals };
      }),
    ),
  );
  for (const { what, refusals } of await Promise.all(runs)) {
    // It was refused at all, or there would be nothing to obey; and never twice for one request.
    expect([what, Math.max(...refusals)]).toEqual([what, 1]);
  }
}, 90_000);
