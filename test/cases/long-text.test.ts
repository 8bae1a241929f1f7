// S2: whatever comes from outside takes time that grows with its length, and no faster.
import { canonicalAddress } from '../../src/core/address.js';
import { hashSubject } from '../../src/core/subject.js';
import { isPreflight } from '../../src/express/preflight.js';
import { prefersProblem } from '../../src/express/problem.js';
import { ProxyWatch } from '../../src/express/proxy-watch.js';
import * as z from 'zod';
import { clientIp } from '../../src/index.js';
import { readJson } from '../../src/http/body.js';
import { parse, parseQuery } from '../../src/http/input.js';
import { Keyring, presentedKeys } from '../../src/http/keys.js';
import { pathOf, queryOf } from '../../src/http/send.js';
import { bearerToken } from '../../src/presets/bearer.js';
import { blockBody, blocksQuery, subjectBody } from '../../src/admin/input.js';
import { call, closeServers, EXPRESSES, serve } from '../support/http.js';
import { MemoryStore, rateLimit } from '../../src/index.js';
import http from 'node:http';

afterEach(closeServers);

const LENGTH = 65_536;
/** What a call may take, four times over: the machine may be busy. The quickest of five counts. */
const MOST_MS = 4 * 5;

const fill = (piece: string, before = '', after = ''): string =>
  before + piece.repeat(Math.ceil(LENGTH / piece.length)) + after;

function quickest(work: () => unknown): number {
  const spent = Array.from({ length: 5 }, () => {
    const before = process.cpuUsage();
    try {
      work();
    } catch {
      // A refusal is an answer as well.
    }
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
  return Math.min(...spent);
}

/** Runs of each kind of character, between what may stand before and after them. */
const runs = (befores: readonly string[], pieces: readonly string[], afters: readonly string[]): string[] =>
  befores.flatMap(before => pieces.flatMap(piece => afters.map(after => fill(piece, before, after))));

const BLANKS = [' ', '\t', '\u00a0', ' \t'];
const MARKS = [
  ',',
  ';',
  '=',
  '"',
  '\\',
  '/',
  '.',
  ':',
  '[',
  ']',
  '%',
  '+',
  '-',
  '*',
  '""',
  '\\"',
  '0',
  'a',
  'é',
];

const ACCEPTS = [
  ...runs(
    ['application/problem+json;a=', '*/*;q=', '*/*;', 'application/problem+json', '*/*,', '*/*;a="', '*'],
    [
      ...BLANKS,
      ...MARKS,
      ', ',
      '; ',
      '*/*,',
      ';a=b',
      ';q=1',
      ';charset=utf-8',
      'application/problem+json;q=0.1,',
    ],
    ['', '""x', '"', 'x', '\\'],
  ),
];

const ADDRESSES = runs(
  ['', '[', '::ffff:', '1.2.3.', '64:ff9b::', 'fe80::1%'],
  ['0', 'f', ':', '.', '1.', 'a:', '%', '[', ']', '::', ' '],
  ['', ']', ']:80', ':80', 'x', '%'],
);

const CREDENTIALS = runs(
  ['Bearer', 'Bearer ', 'bearer x', ' ', '\tBearer', 'Basic '],
  [...BLANKS, 'a', 'a ', 'bearer '],
  ['', 'x', '\n', '\u2028', ' '],
);

const QUERIES = [
  Array.from({ length: 9000 }, (_, i) => `a${String(i)}=1`).join('&'),
  fill('&'),
  fill('='),
  fill('%'),
  fill('%C3'),
  fill('a&'),
  fill('scope=a&'),
];

const BODIES: unknown[] = [
  { subject: { parts: Array.from({ length: 20_000 }, () => '') } },
  { subject: { parts: Array.from({ length: 20_000 }, () => 'a') } },
  { subject: { hash: fill('a') } },
  { subject: { hash: fill('0', '', 'x') } },
  { subject: { part: fill(' ') }, scope: fill('a') },
  Object.fromEntries(Array.from({ length: 8000 }, (_, i) => [`a${String(i)}`, 1])),
  Array.from({ length: 30_000 }, () => 0),
];

const keys = new Keyring(['a-key-of-sixteen-or-more', 'another-key-of-sixteen'], 'adminKey');
const request = (headers: http.IncomingHttpHeaders) => ({ headers, ip: '203.0.113.7' });

const READERS: readonly (readonly [
  what: string,
  texts: readonly unknown[],
  read: (text: never) => unknown,
])[] = [
  ['Accept', ACCEPTS, prefersProblem],
  ['an address', ADDRESSES, (text: string) => canonicalAddress(text)],
  ['the address of a request', ADDRESSES, (text: string) => clientIp({ ip: text })],
  ['a part of a key', [...ADDRESSES, ...CREDENTIALS], (text: string) => hashSubject([text, text], {}).hash],
  ['a key of many parts', [fill('a')], (text: string) => hashSubject(text.match(/.{8}/gs) ?? [], {}).hash],
  [
    'Authorization',
    CREDENTIALS,
    (text: string) => bearerToken({ headers: { authorization: text } } as never),
  ],
  [
    'a key of an operator',
    CREDENTIALS,
    (text: string) =>
      keys.opensFor(presentedKeys({ authorization: text, 'x-admin-key': text }, 'x-admin-key')),
  ],
  [
    'Forwarded and X-Forwarded-For',
    runs(
      ['', 'for=', 'for="[', '::1', '127.'],
      [...BLANKS, ...MARKS, 'for=', '127.', '1.2.3.4, '],
      ['', 'x'],
    ),
    (text: string) => {
      const headers = { forwarded: text, 'x-forwarded-for': text, 'x-real-ip': text };
      new ProxyWatch().observe({ ...request(headers), ip: '127.0.0.1', app: { get: () => 1 } });
    },
  ],
  [
    'the headers of a preflight',
    runs([''], [...BLANKS, '0', '9', '.', 'e'], ['', 'x']),
    (text: string) =>
      isPreflight({
        method: 'OPTIONS',
        headers: { origin: text, 'access-control-request-method': text, 'content-length': text },
      }),
  ],
  [
    'the type of a body',
    runs(
      ['application/', 'application/a', 'application/json', ''],
      [...BLANKS, ...MARKS, 'a+', 'json'],
      ['', 'json', 'x'],
    ),
    (text: string) =>
      void readJson({
        headers: { 'content-type': text, 'content-length': '2', 'content-encoding': text },
        body: {},
      } as never).catch(() => undefined),
  ],
  [
    'a path',
    runs(['/', '/x?'], ['/', '?', '%', 'a/'], ['', 'x']),
    (url: string) => [pathOf({ url } as never), queryOf({ url } as never)],
  ],
  ['a query', QUERIES, (text: string) => parseQuery(z.object({}), new URLSearchParams(text))],
  [
    'a query of blocks',
    QUERIES,
    (text: string) => parse(blocksQuery, { cursor: text, count: text, scope: text }),
  ],
  ['a subject in a body', BODIES, (body: unknown) => parse(subjectBody, body)],
  ['a block in a body', BODIES, (body: unknown) => parse(blockBody, body)],
];

test.each(READERS)('S2: 64 kB of the worst text as %s take milliseconds', (_what, texts, read) => {
  const slow = texts
    .map(
      text =>
        [
          typeof text === 'string' ? `${text.slice(0, 40)}…${text.slice(-8)}` : text,
          quickest(() => read(text as never)),
        ] as const,
    )
    .filter(([, ms]) => ms > MOST_MS);
  expect(slow).toEqual([]);
});

test.each(EXPRESSES)(
  'S2: in %s a refusal with 60 kB of Accept costs no more than one without',
  async (_name, express) => {
    const app = express();
    app.use(rateLimit({ scope: 'x', limit: 0, windowSec: 60, store: new MemoryStore() }));
    const server = http.createServer({ maxHeaderSize: 2 * LENGTH }, app);
    const url = await serve(server);
    const accept = `application/problem+json;a=${' '.repeat(60_000)}""x`;
    const times: number[] = [];
    for (let i = 0; i < 6; i += 1) {
      const before = process.cpuUsage();
      expect((await call(url, { headers: { Accept: accept } })).status).toBe(429);
      const { user, system } = process.cpuUsage(before);
      times.push((user + system) / 1000);
    }
    expect(Math.min(...times)).toBeLessThan(MOST_MS);
  },
);
