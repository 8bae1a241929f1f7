import type { EventName, LimiterEvents } from '../../src/core/events.js';
import type { Limiter } from '../../src/core/limiter.js';
import { subjectHash } from '../../src/core/subject.js';
import { limiterWithFaults } from '../support/limiters.js';

const NAMES = [
  'allowed',
  'refused',
  'shadow-refused',
  'blocked',
  'store-error',
  'degraded',
  'recovered',
  'error',
] as const satisfies readonly EventName[];

type Heard = { [N in EventName]: [N, LimiterEvents[N]] }[EventName];

function listenToAll(limiter: Limiter): Heard[] {
  const heard: Heard[] = [];
  for (const name of NAMES) limiter.on(name, event => heard.push([name, event] as Heard));
  return heard;
}

const ALICE = subjectHash('alice');
const rule = { scope: 'mail', limit: 2, windowSec: 60, algorithm: 'fixed-window', blockSec: 30 } as const;
const shadow = { ...rule, scope: 'new', limit: 1, mode: 'shadow' } as const;

test('allowed, refused, blocked and shadow-refused, each with the hash of its subject', async () => {
  const { limiter, clock } = limiterWithFaults([shadow, rule]);
  const heard = listenToAll(limiter);
  const first = await limiter.consume('alice');
  const second = await limiter.consume('alice');
  const third = await limiter.consume('alice');
  const at = clock.now();
  const [tight] = second.readings;
  expect(heard).toEqual([
    ['allowed', { scope: 'mail', subjectHash: ALICE, decision: first }],
    ['blocked', { scope: 'new', subjectHash: ALICE, reading: tight, at }],
    ['allowed', { scope: 'mail', subjectHash: ALICE, decision: second }],
    ['shadow-refused', { scope: 'new', subjectHash: ALICE, reading: tight, at }],
    ['blocked', { scope: 'mail', subjectHash: ALICE, reading: third.readings[1], at }],
    ['refused', { scope: 'mail', subjectHash: ALICE, decision: third }],
    ['shadow-refused', { scope: 'new', subjectHash: ALICE, reading: third.readings[0], at }],
  ]);
});

test('the hash is that of the binding rule, where rules have subjects of their own', async () => {
  const { limiter } = limiterWithFaults([rule, { ...rule, scope: 'sms', limit: 1 }]);
  const heard = listenToAll(limiter);
  await limiter.consume({ mail: 'alice', sms: 'bob' });
  await limiter.consume({ mail: 'alice', sms: 'bob' });
  expect(
    heard.map(([name, event]) => ('subjectHash' in event ? [name, event.scope, event.subjectHash] : name)),
  ).toEqual([
    ['allowed', 'sms', subjectHash('bob')],
    ['blocked', 'sms', subjectHash('bob')],
    ['refused', 'sms', subjectHash('bob')],
  ]);
});

test('without an enforced rule: allowed, of nobody', async () => {
  const { limiter } = limiterWithFaults({ ...rule, mode: 'off' });
  const heard = listenToAll(limiter);
  const decision = await limiter.consume('alice');
  expect(heard).toEqual([['allowed', { scope: null, subjectHash: null, decision }]]);
});

test('a block that starts with a charge or a settle is told, too; one by hand is not news', async () => {
  const { limiter } = limiterWithFaults(rule);
  const heard = listenToAll(limiter);
  const reservation = await limiter.reserve('alice');
  await reservation.settle(2);
  await limiter.charge('bob', 5);
  await limiter.charge('bob', 5);
  await limiter.block('carol', 60);
  expect(heard.map(([name, event]) => ('subjectHash' in event ? [name, event.subjectHash] : name))).toEqual([
    ['allowed', ALICE],
    ['blocked', ALICE],
    ['blocked', subjectHash('bob')],
  ]);
});

test('who only looks, and what only gives back, is no news', async () => {
  const { limiter } = limiterWithFaults([rule, shadow]);
  const taken = await limiter.consume('alice', { cost: { mail: 2, new: 1 } });
  const heard = listenToAll(limiter);
  expect(await limiter.peek('alice')).toMatchObject({ allowed: false });
  await limiter.refund('alice', taken);
  await limiter.unblock('alice');
  await limiter.reset('alice');
  expect(heard).toEqual([]);
});

test('a refusal because the store failed names no rule', async () => {
  const { limiter, store } = limiterWithFaults(rule, { failMode: 'closed' });
  const heard = listenToAll(limiter);
  store.fault = 'rejects';
  const decision = await limiter.consume('alice');
  store.fault = undefined;
  await limiter.peek('alice');
  const error = expect.objectContaining({ code: 'ERR_LIMITKEEPER_STORE' });
  expect(heard).toEqual([
    ['store-error', { error, dropped: false }],
    ['degraded', { failMode: 'closed', error }],
    ['refused', { scope: null, subjectHash: null, decision }],
    ['recovered', {}],
  ]);
});

test('no event contains a subject in plain', async () => {
  const { limiter, store } = limiterWithFaults([rule, shadow], { failMode: 'local', hashSecret: 'pepper' });
  const heard = listenToAll(limiter);
  const key = ['alice@example.com', '203.0.113.7'];
  for (let i = 0; i < 4; i += 1) await limiter.consume(key);
  store.fault = 'throws';
  for (let i = 0; i < 4; i += 1) await limiter.consume(key);
  await limiter.charge(key, 10);
  expect(heard.length).toBeGreaterThan(12);
  const text = JSON.stringify(
    heard.map(([name, event]) => [name, event, String('error' in event && event.error)]),
  );
  expect(text).toContain(subjectHash(key, 'pepper'));
  expect(text).not.toMatch(/alice|203\.0\.113|pepper/);
});

test('a listener that throws changes no decision and reaches nobody but the listeners of error', async () => {
  const { limiter, store } = limiterWithFaults(rule);
  const errors: unknown[] = [];
  for (const name of NAMES) {
    if (name === 'error') continue;
    limiter.on(name, () => {
      throw new Error(`broken listener of ${name}`);
    });
  }
  limiter.on('error', event => errors.push(event));
  const seen = [];
  for (let i = 0; i < 3; i += 1) seen.push((await limiter.consume('alice')).allowed);
  store.fault = 'rejects';
  seen.push((await limiter.consume('alice')).allowed);
  store.fault = undefined;
  seen.push((await limiter.peek('alice')).allowed);
  expect(seen).toEqual([true, true, false, true, false]);
  expect(errors).toEqual(
    ['allowed', 'allowed', 'blocked', 'refused', 'store-error', 'degraded', 'allowed', 'recovered'].map(
      name => ({
        error: new Error(`broken listener of ${name}`),
        source: 'listener',
      }),
    ),
  );
});

test('off() ends it', async () => {
  const { limiter } = limiterWithFaults(rule);
  let heard = 0;
  const off = limiter.on('allowed', () => {
    heard += 1;
  });
  await limiter.consume('alice');
  off();
  await limiter.consume('alice');
  expect(heard).toBe(1);
});

test('nobody listens: the decisions are the same', async () => {
  const [quiet, told] = [
    limiterWithFaults([rule, shadow]).limiter,
    limiterWithFaults([rule, shadow]).limiter,
  ];
  listenToAll(told);
  for (let i = 0; i < 4; i += 1) {
    const [a, b] = [await quiet.consume('alice'), await told.consume('alice')];
    expect({ ...a, receipt: undefined }).toEqual({ ...b, receipt: undefined });
  }
});
