import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { MemoryStore, rateLimit } from 'limitkeeper';
import type { Check, RateLimitHandler } from 'limitkeeper';
import type { BatchResult } from '../../src/testing/batch.js';
import { plainBatch, takeResult } from '../support/checks.js';
import { call, closeServers, EXPRESSES, pause, serve } from '../support/http.js';
import { RemoteStore } from '../support/stores.js';

/** A store in another process, over TCP. */
class TcpStore extends RemoteStore {
  readonly #socket: Socket;
  readonly #waiting = new Map<number, (result: BatchResult) => void>();
  #calls = 0;

  constructor(socket: Socket) {
    super(new MemoryStore());
    this.#socket = socket;
    createInterface(socket).on('line', line => {
      const { id, result } = JSON.parse(line);
      this.#waiting.get(id)?.(result);
      this.#waiting.delete(id);
    });
  }

  override decide(checks: readonly Check[]): Promise<number> {
    this.#calls += 1;
    const id = this.#calls;
    this.#socket.write(`${JSON.stringify({ id, batch: plainBatch(checks) })}\n`);
    return new Promise(resolve => {
      this.#waiting.set(id, result => {
        resolve(takeResult(checks, result));
      });
    });
  }
}

let child: ChildProcess;
let socket: Socket;

beforeAll(async () => {
  child = spawn(process.execPath, ['--import', 'tsx', join('test/fixtures', 'echo-store.ts')], {
    cwd: join(__dirname, '../..'),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [line] = (await once(createInterface(child.stdout!), 'line')) as [string];
  socket = connect(Number(line), '127.0.0.1');
  await once(socket, 'connect');
}, 30_000);

afterAll(async () => {
  socket.destroy();
  child.stdin?.end();
  await once(child, 'exit');
});

afterEach(closeServers);

/** What keeps the process from everything else: a large JSON, a regular expression, a synchronous hash. */
function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

describe.each(EXPRESSES)(
  '%s: a process that was busy for a second does not take its store for dead',
  (_name, express) => {
    let limiter: RateLimitHandler;
    let events: string[];

    async function start(scope: string, before: () => void, inHandler: () => void): Promise<string> {
      events = [];
      limiter = rateLimit({
        scope: `${_name} ${scope}`,
        limit: 100,
        windowSec: 60,
        keyFn: () => 'alice',
        store: new TcpStore(socket),
        count: 'failures',
        outcome: () => 'failure',
      });
      for (const name of ['store-error', 'degraded'] as const)
        limiter.limiter.on(name, () => events.push(name));
      const app = express();
      app.use((_req, _res, next) => {
        before();
        next();
      });
      app.use(limiter, (_req, res) => {
        res.send('ok');
        inHandler();
      });
      return serve(app);
    }

    test('while a decision is under way', async () => {
      const url = await start(
        'decision',
        () => setTimeout(block, 0, 1000),
        () => {},
      );
      const { status, headers } = await call(url);
      expect([status, headers['x-ratelimit-remaining']]).toEqual([200, '99']);
      expect(events).toEqual([]);
    }, 20_000);

    test('right after the decision was asked for, before it has left', async () => {
      const url = await start(
        'asked',
        () => process.nextTick(block, 1000),
        () => {},
      );
      const { status, headers } = await call(url);
      expect([status, headers['x-ratelimit-remaining']]).toEqual([200, '99']);
      expect(events).toEqual([]);
    }, 20_000);

    test('while the outcome is settled', async () => {
      const url = await start(
        'outcome',
        () => {},
        () => setImmediate(block, 1000),
      );
      const { status, headers } = await call(url);
      expect([status, headers['x-ratelimit-remaining']]).toEqual([200, '99']);
      expect(events).toEqual([]);
    }, 20_000);

    test('with ten requests under way', async () => {
      let blocked = false;
      const url = await start(
        'ten',
        () => {
          if (blocked) return;
          blocked = true;
          setTimeout(block, 1, 1000);
        },
        () => {},
      );
      const replies = await Promise.all(Array.from({ length: 10 }, () => call(url)));
      expect(replies.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
      await pause(10);
      expect(events).toEqual([]);
      expect((await limiter.limiter.peek('alice')).remaining).toBe(90);
    }, 20_000);
  },
);
